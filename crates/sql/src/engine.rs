//! The SQLite engine of one resident cell: one connection in WAL mode with exclusive locking (so no shared-memory file)
//! and `synchronous=OFF`, because durability comes from replication. What commits becomes LTX transactions by
//! [`Engine::capture`]; checkpoints are the engine's alone, and only of captured frames (INV-CHAIN-1). It must never
//! let a statement of a user change the journal, and never reuse a WAL whose end it did not write itself.
//!
//! Files while open: the database, its WAL, and the WAL once more for reading after the first capture. SQLite opens
//! unlinked temporary files while a statement sorts or a VACUUM runs.

mod capture;
mod close;
mod kept;
mod object;
mod open;
mod policy;
mod pragma;
mod replace;
mod run;
mod shared;
mod spool;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_ltx::WalReader;
use holdfast_types::Txid;
use rusqlite::{Connection, InterruptHandle};

pub use capture::{CaptureError, Captured, CapturedBody};
pub use close::{CloseError, ClosedDatabase};
pub(crate) use object::Writes;
pub use object::{ExecLimits, ExecRows, KV_LIST_LEN_MAX, KvRange, RestoreFate, RestoreWish, SqlValue};
pub use open::OpenError;
pub use policy::RESERVED_PREFIX;
pub use replace::ReplaceError;
pub(crate) use run::{Budget, RowSink, Session, Summary, Tail};
pub(crate) use shared::Shared;

use self::kept::KeptStatements;
use crate::ffi::{self, ConnectionMemory};
use crate::options::EngineOptions;

/// Bytes of a WAL's header and of a frame's header, by SQLite's file format.
const WAL_HEADER_LEN: u64 = 32;
const WAL_FRAME_HEADER_LEN: u64 = 24;

/// The engine of one cell. It may move to another thread, but is used by one at a time.
pub struct Engine {
    /// Before the connection: dropped first.
    kept: RefCell<KeptStatements>,
    connection: Connection,
    shared: Arc<Shared>,
    options: EngineOptions,
    path: PathBuf,
    position: Txid,
    page_size: u32,
    /// Frames of the WAL that captures cover.
    captured_frames: u32,
    /// Frames beyond these that captures must end with, one after the other. Each was asked for by an operation that waits.
    cuts: VecDeque<u32>,
    /// Size of the database in pages at `position`.
    commit_pages: u32,
    /// The WAL, open for reading since the first capture after it was emptied.
    wal: Option<WalReader<File>>,
    /// The extended result code of the first error that puts the files in doubt.
    fault: Option<i32>,
    /// SQLite rolled back the transaction of a Durable Object's turn by itself.
    is_object_lost: Cell<bool>,
    alarm: object::AlarmContext,
    /// Whether a restore may be wished for.
    may_have_wish: bool,
}

/// A checkpoint or closing failed. Disposition: retry a checkpoint, as the WAL still holds everything (a full disk may have
/// space again); after closing, discard the files.
#[derive(Debug, thiserror::Error)]
#[error("{action} failed: {source}")]
pub struct EngineError {
    /// What was tried.
    pub action: &'static str,
    /// SQLite's error.
    #[source]
    pub source: rusqlite::Error,
}

impl Engine {
    /// The connection, for what the engine has no call for. Whoever resets a writing statement before its end must ask
    /// [`Engine::is_dirty`] before it begins an explicit transaction: SQLite counts the frames of such a commit only
    /// with the next statement that runs to its end outside a transaction.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The last captured transaction.
    #[must_use]
    pub fn position(&self) -> Txid {
        self.position
    }

    /// Whether something is committed and not yet captured.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        self.settle();
        self.shared.wal_frames() > self.captured_frames || self.shared.is_commit_uncounted()
    }

    /// The transaction that an output of now must wait for: the last of those that what is committed becomes. That is one
    /// more than the position when something is uncaptured, and another for each cut that divides it.
    #[must_use]
    pub fn ticket(&self) -> Txid {
        self.settle();
        let is_beyond = self.shared.wal_frames() > self.cut_frames() || self.shared.is_commit_uncounted();
        self.cut_txid(u64::from(is_beyond))
    }

    /// Cuts that no capture has reached yet.
    #[must_use]
    pub fn cuts_waiting(&self) -> usize {
        self.cuts.len()
    }

    /// Has the transaction end here that holds what is committed, whatever is committed before its capture. Answers which
    /// one that is.
    pub fn cut(&mut self) -> Txid {
        self.settle();
        let frames = self.shared.wal_frames();
        if frames > self.cut_frames() {
            self.cuts.push_back(frames);
        }
        self.cut_txid(0)
    }

    /// Frames up to the last cut, or those that captures cover.
    fn cut_frames(&self) -> u32 {
        self.cuts.back().copied().unwrap_or(self.captured_frames)
    }

    /// The transaction that ends with the last cut, or so many later.
    fn cut_txid(&self, more: u64) -> Txid {
        let cuts = u64::try_from(self.cuts.len()).expect("a count fits 64 bits");
        Txid::new(self.position.get() + cuts + more)
    }

    /// Whether an explicit transaction is open.
    #[must_use]
    pub fn in_transaction(&self) -> bool {
        !self.connection.is_autocommit()
    }

    /// Bytes of committed frames in the WAL.
    #[must_use]
    pub fn wal_bytes(&self) -> u64 {
        match self.shared.wal_frames() {
            0 => 0,
            frames => WAL_HEADER_LEN + u64::from(frames) * self.frame_len(),
        }
    }

    /// Bytes of committed frames that no capture covers yet.
    #[must_use]
    pub fn uncaptured_bytes(&self) -> u64 {
        u64::from(self.shared.wal_frames().saturating_sub(self.captured_frames)) * self.frame_len()
    }

    /// The page size in bytes.
    #[must_use]
    pub fn page_size(&self) -> u32 {
        self.page_size
    }

    /// The size of the database in bytes at the last captured transaction.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        u64::from(self.commit_pages) * u64::from(self.page_size)
    }

    /// Where the database file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The options that it was opened with.
    #[must_use]
    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// The extended result code of the first error that puts the local files in doubt (I/O, corruption), if there was
    /// one. The owner then discards the engine and restores.
    #[must_use]
    pub fn fault(&self) -> Option<i32> {
        self.fault.or_else(|| self.shared.are_pages_lost().then_some(ffi::IOERR_PAGE))
    }

    /// Interrupts the running statement from another thread.
    #[must_use]
    pub fn interrupter(&self) -> InterruptHandle {
        self.connection.get_interrupt_handle()
    }

    /// Heap bytes that SQLite holds for this connection.
    #[must_use]
    pub fn memory(&self) -> ConnectionMemory {
        ffi::connection_memory(&self.connection)
    }

    /// Gives back what an idle cell does not need: cached pages, kept statements, the read handle of the WAL.
    pub fn trim(&mut self) {
        self.wal = None;
        self.kept.get_mut().clear();
        if let Err(error) = self.connection.release_memory() {
            tracing::debug!(%error, "sqlite could not release memory");
        }
    }

    /// Whether [`Engine::checkpoint`] is worth calling: the WAL is long, all captured, and no transaction is open.
    #[must_use]
    pub fn checkpoint_due(&self) -> bool {
        self.wal_bytes() > self.options.checkpoint_bytes && !self.in_transaction() && !self.is_dirty()
    }

    /// Moves the WAL into the database file and empties it. Answers false, and does nothing, while something is
    /// uncaptured or a transaction is open.
    ///
    /// # Errors
    /// [`EngineError`]; the engine then has a [`Engine::fault`]: SQLite may have begun the WAL anew before it failed, so
    /// that its frames can no longer be told from those that were captured.
    pub fn checkpoint(&mut self) -> Result<bool, EngineError> {
        if self.in_transaction() || self.is_dirty() {
            return Ok(false);
        }
        self.connection.wal_checkpoint_v2(Some("main"), rusqlite::wal::CheckpointMode::TRUNCATE).map_err(
            |source| {
                self.fault = Some(fault_code(&source));
                EngineError { action: "checkpoint of the write-ahead log", source }
            },
        )?;
        self.wal = None;
        self.captured_frames = 0;
        self.shared.set_wal_frames(0);
        Ok(true)
    }

    /// Reads one number, for the description of the cell.
    pub(crate) fn read_number(&self, sql: &str) -> rusqlite::Result<i64> {
        self.system(|connection| connection.query_row(sql, [], |row| row.get(0)))
    }

    fn frame_len(&self) -> u64 {
        WAL_FRAME_HEADER_LEN + u64::from(self.page_size)
    }

    /// Has SQLite count the frames of a commit that no statement's end has counted yet.
    fn settle(&self) {
        if self.shared.is_commit_uncounted() && !self.in_transaction() {
            let counted = self.system(|connection| connection.execute_batch("SELECT 1 WHERE 0"));
            if counted.is_ok() {
                self.shared.set_commit_uncounted(false);
            }
        }
    }

    /// Runs statements of the engine itself, which no policy holds.
    fn system<T>(&self, work: impl FnOnce(&Connection) -> T) -> T {
        let before = self.shared.is_system();
        self.shared.set_system(true);
        let result = work(&self.connection);
        self.shared.set_system(before);
        result
    }
}

/// SQLite's extended code, for [`Engine::fault`].
fn fault_code(error: &rusqlite::Error) -> i32 {
    error.sqlite_error().map_or(rusqlite::ffi::SQLITE_IOERR, |error| error.extended_code)
}

#[cfg(test)]
mod tests;
