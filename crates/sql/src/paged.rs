//! A database whose file is not all there yet: what the engine asks of whoever has its pages. The file has its full length
//! from the beginning, with holes; a page is read only once it is in the file.

use std::fmt::Debug;
use std::time::Duration;

/// Why a page cannot be had. The statement that needed it fails with `SQLITE_IOERR` and this text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PageFailure {
    /// Which page, of what, from where, why not, and what to do.
    pub message: String,
    /// It cannot be had at all: the database must be discarded. Else the same statement may succeed later.
    pub is_lost: bool,
}

/// Where the missing pages of one database file come from. Called on the thread of the engine, which waits.
///
/// Offsets and lengths are of the database file, in bytes.
pub trait PageSource: Debug + Send + Sync {
    /// Returns once the bytes are in the file. Waits no longer than `patience`. A failure is of this call: the next one
    /// tries anew.
    ///
    /// # Errors
    /// [`PageFailure`].
    fn need(&self, offset: u64, len: u64, patience: Duration) -> Result<(), PageFailure>;

    /// SQLite writes whole pages. `write` does it, and tells whether it did; nothing older is put there afterwards.
    ///
    /// # Errors
    /// [`PageFailure`] for a part of a page that is missing; nothing was written.
    fn write(&self, offset: u64, len: u64, write: &mut dyn FnMut() -> bool) -> Result<(), PageFailure>;

    /// The file becomes so long. `truncate` does it, and tells whether it did; what was beyond is gone for good.
    fn truncate(&self, len: u64, truncate: &mut dyn FnMut() -> bool);

    /// The engine has closed the file.
    fn closed(&self);
}
