//! The transaction of a turn, and savepoints in it.

use super::{Engine, failure_of};
use crate::error::SqlFailure;

impl Engine {
    /// Begins the transaction unless one is open.
    ///
    /// # Errors
    /// [`SqlFailure`] where SQLite cannot.
    pub fn object_begin(&self) -> Result<(), SqlFailure> {
        if self.in_transaction() {
            return Ok(());
        }
        self.system(|connection| connection.execute_batch("BEGIN")).map_err(|error| failure_of(&error))
    }

    /// Commits the open transaction, if there is one. One that cannot be committed is rolled back: none stays open.
    ///
    /// # Errors
    /// [`SqlFailure`]: nothing of the transaction is there.
    pub fn object_commit(&mut self) -> Result<(), SqlFailure> {
        if !self.in_transaction() {
            return Ok(());
        }
        self.storage(|connection| connection.execute_batch("COMMIT")).inspect_err(|_| self.object_roll_back())
    }

    /// Ends the open transaction, if there is one, without its changes.
    pub fn object_roll_back(&mut self) {
        self.is_object_lost.set(false);
        if let Err(error) = self.roll_back() {
            // A connection that cannot roll back cannot be used any more.
            let failure = failure_of(&error);
            tracing::error!(%failure, "cannot roll back");
            self.fault.get_or_insert(failure.extended);
        }
    }

    /// Whether SQLite rolled the open transaction back by itself since the last call of [`Engine::object_roll_back`]: a
    /// full disk, a statement that was interrupted while it wrote, `ON CONFLICT ROLLBACK`.
    #[must_use]
    pub fn is_object_transaction_lost(&self) -> bool {
        self.is_object_lost.get()
    }

    /// Opens the savepoint `depth` of the transaction, which it begins if need be.
    ///
    /// # Errors
    /// [`SqlFailure`].
    pub fn object_savepoint(&mut self, depth: u32) -> Result<(), SqlFailure> {
        self.object_begin()?;
        self.storage(|connection| connection.execute_batch(&format!("SAVEPOINT _hf_{depth}")))
    }

    /// Ends the savepoint `depth`, with its changes or without them.
    ///
    /// # Errors
    /// [`SqlFailure`]; among others where the transaction is gone.
    pub fn object_end_savepoint(&mut self, depth: u32, keep: bool) -> Result<(), SqlFailure> {
        let undo = if keep { String::new() } else { format!("ROLLBACK TO _hf_{depth};") };
        self.storage(|connection| connection.execute_batch(&format!("{undo} RELEASE _hf_{depth}")))
    }
}
