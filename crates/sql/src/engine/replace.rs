//! Another database in the place of this one, in one commit: how a state of the past comes back. It is a transaction like any
//! other, captured and proved as one, so the history before it stays what it was.

use std::path::Path;

use holdfast_types::Position;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::{Engine, fault_code, object};
use crate::error::SqlFailure;

/// Why a database was not put in the place of another, which is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    /// A transaction is open. Disposition: retry.
    #[error("a transaction is open")]
    InTransaction,
    /// SQLite changes the page size of a file only outside of WAL mode. Disposition: reject.
    #[error("its pages have {theirs} bytes, those of the present database {ours}")]
    PageSize {
        /// Of the present database, in bytes.
        ours: u32,
        /// Of the other, in bytes.
        theirs: u32,
    },
    /// The present database cannot be read. Disposition: by its cause.
    #[error(transparent)]
    Present(SqlFailure),
    /// SQLite failed: the disk or the bound of the database's size is full, the other file is damaged. Disposition: by its
    /// cause.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

impl Engine {
    /// Puts what is in another database file in the place of all that is here, and commits it. The file is changed on the way,
    /// and of no use afterwards. An alarm that was armed there is installed anew, because the number of an installation is
    /// never used twice. A wish for a restore ends with it: `fulfilled` is the number of the one that this is, and where
    /// the database stands now.
    ///
    /// # Errors
    /// [`ReplaceError`]; nothing has changed here.
    pub fn replace(&mut self, other: &Path, fulfilled: Option<(u32, Position)>) -> Result<(), ReplaceError> {
        if self.in_transaction() {
            return Err(ReplaceError::InTransaction);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let other = Connection::open_with_flags(other, flags)?;
        // A cell's database is in WAL mode, for which the file has no use any more.
        other.query_row("PRAGMA journal_mode=DELETE", [], |_| Ok(()))?;
        other.execute_batch("PRAGMA synchronous=OFF")?;
        let theirs = other.query_row("PRAGMA page_size", [], |row| row.get(0))?;
        if theirs != self.page_size {
            return Err(ReplaceError::PageSize { ours: self.page_size, theirs });
        }
        let present = self.alarm_state().map_err(ReplaceError::Present)?;
        object::carry_alarm_over(&other, present, self.alarm.epoch())?;
        let restores = self.restores().map_err(ReplaceError::Present)?;
        object::carry_restores_over(&other, restores, fulfilled)?;
        let copied = Backup::new(&other, &mut self.connection)?.step(-1);
        match copied {
            Ok(StepResult::Done) => {}
            Ok(_) => return Err(ReplaceError::InTransaction),
            Err(error) => {
                if matches!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::SystemIoFailure)) {
                    self.fault = Some(fault_code(&error));
                }
                return Err(error.into());
            }
        }
        // No statement has ended by which SQLite would have told of the commit.
        self.shared.set_commit_uncounted(true);
        self.settle();
        self.alarm.touch();
        Ok(())
    }
}
