//! What the storage of a Durable Object does with its engine: SQL of the handler with its rows buffered, a key-value table,
//! and one open transaction that the turn commits. It must never leave a statement open: an undrained cursor of a handler
//! is a buffer, which holds no read mark and locks nothing.

mod alarm;
mod delete_all;
mod exec;
mod kv;
mod transaction;
mod wish;

pub(super) use alarm::{AlarmContext, carry_alarm_over};
pub use exec::{ExecLimits, ExecRows, SqlValue};
pub use kv::{KV_LIST_LEN_MAX, KvRange};
pub(super) use wish::carry_restores_over;
pub use wish::{RestoreFate, RestoreWish};

use rusqlite::{Connection, OptionalExtension as _};

use super::Engine;
use crate::error::{SqlFailure, code_name};

/// What the statements of a connection have come to since it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Writes {
    /// Rows written, by triggers and foreign keys too.
    pub(crate) total_changes: u64,
    /// The rowid of the last one that was inserted; zero before the first.
    pub(crate) last_row_id: i64,
    /// As of [`Engine::object_size_bytes`].
    pub(crate) size_bytes: u64,
}

/// A number as SQLite keeps it. Numbers stay far below 2^63.
fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn from_sql(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// Whether there is such a table: each of the engine's own is made when it is first needed.
fn has_table(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    let found = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1";
    Ok(connection.query_row(found, [name], |_| Ok(())).optional()?.is_some())
}

impl Engine {
    /// What has been written.
    pub(crate) fn object_writes(&mut self) -> Result<Writes, SqlFailure> {
        Ok(Writes {
            total_changes: self.connection.total_changes(),
            last_row_id: self.connection.last_insert_rowid(),
            size_bytes: self.object_size_bytes()?,
        })
    }

    /// Runs statements of the storage itself, and remembers what puts the files in doubt.
    fn storage<T>(
        &mut self,
        work: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<T>,
    ) -> Result<T, SqlFailure> {
        self.system(work).map_err(|error| {
            let mut failure = failure_of(&error);
            self.explain_page(&mut failure);
            self.note_failure(&failure);
            failure
        })
    }

    /// The size of the database in bytes, uncommitted changes included; without its free pages.
    ///
    /// # Errors
    /// [`SqlFailure`] where the database cannot be read.
    pub fn object_size_bytes(&mut self) -> Result<u64, SqlFailure> {
        let page_size = u64::from(self.page_size);
        self.storage(|connection| {
            let pages: u32 = connection.query_row("PRAGMA page_count", [], |row| row.get(0))?;
            let free: u32 = connection.query_row("PRAGMA freelist_count", [], |row| row.get(0))?;
            Ok(u64::from(pages.saturating_sub(free)) * page_size)
        })
    }
}

fn failure_of(error: &rusqlite::Error) -> SqlFailure {
    let (inner, message) = match error {
        rusqlite::Error::SqliteFailure(inner, message) => (inner, message.clone()),
        rusqlite::Error::SqlInputError { error: inner, msg, .. } => (inner, Some(msg.clone())),
        other => return SqlFailure::new("SQLITE_ERROR", other.to_string()),
    };
    SqlFailure {
        code: code_name(inner.extended_code),
        message: message.unwrap_or_else(|| error.to_string()),
        extended: inner.extended_code,
    }
}
