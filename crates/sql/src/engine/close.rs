//! The two ends of an engine: closed clean, a plain database file without a WAL remains; discarded, nothing does.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use holdfast_types::Txid;

use super::open::beside;
use super::{Engine, EngineError};

/// What remains of a closed engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosedDatabase {
    /// The file holds exactly the transactions up to this one. At zero there is no file.
    pub txid: Txid,
    /// Length of the file in bytes.
    pub len: u64,
}

/// Why an engine was not closed clean. Its files must then be discarded.
#[derive(Debug, thiserror::Error)]
pub enum CloseError {
    /// Something is uncaptured. Disposition: bug; capture first, or discard.
    #[error("the engine holds uncaptured commits: capture them before it is closed")]
    Dirty,
    /// The checkpoint failed. Disposition: corrupt.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A file operation failed. Disposition: corrupt.
    #[error("cannot settle `{path}`: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

impl Engine {
    /// Rolls back an open transaction, moves the WAL into the file, closes, and makes the file durable. Never call it
    /// dirty. A database that was never written is deleted: position zero has no file.
    ///
    /// # Errors
    /// [`CloseError`]; the files are closed all the same.
    pub fn close(mut self) -> Result<ClosedDatabase, CloseError> {
        if self.in_transaction() {
            self.roll_back().map_err(|source| EngineError { action: "rollback", source })?;
        }
        if self.is_dirty() {
            return Err(CloseError::Dirty);
        }
        self.checkpoint()?;
        self.kept.get_mut().clear();
        let Self { connection, path, position: txid, options, .. } = self;
        connection.close().map_err(|(_, source)| EngineError { action: "closing the database", source })?;
        let failed = |source| CloseError::Io { path: path.clone(), source };
        remove(&beside(&path, "-wal")).map_err(failed)?;
        if txid == Txid::ZERO {
            remove(&path).map_err(failed)?;
            return Ok(ClosedDatabase { txid, len: 0 });
        }
        let file = File::open(&path).map_err(failed)?;
        if options.is_synced_on_close {
            file.sync_all().map_err(failed)?;
        }
        Ok(ClosedDatabase { txid, len: file.metadata().map_err(failed)?.len() })
    }

    /// Closes without a checkpoint and deletes the files, whatever they hold.
    ///
    /// # Errors
    /// The first file that could not be deleted.
    pub fn discard(mut self) -> io::Result<()> {
        self.kept.get_mut().clear();
        let Self { connection, path, .. } = self;
        drop(connection);
        remove(&beside(&path, "-wal"))?;
        remove(&beside(&path, "-journal"))?;
        remove(&path)
    }
}

fn remove(path: &std::path::Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
