//! What the journal needs of a disk. The real one is a folder; tests put one beneath that fails, fills, lies about nothing
//! and forgets everything that was not fsynced.

use std::io::{self, IoSlice};
use std::sync::Arc;

/// A folder of files.
pub trait Disk: Send + Sync + 'static {
    /// The names of all files.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes a file of `len` bytes whose space is taken, and fsyncs it. It has a name for sure after [`Disk::sync_names`].
    fn create(&self, name: &str, len: u64) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file.
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Reads a small file; none where there is none.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>>;

    /// Makes or replaces a small file: afterwards it has its new content for sure, or on an error its old or its new one.
    fn replace(&self, name: &str, content: &[u8]) -> io::Result<()>;

    /// Gives a file another name, in place of what had it.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Fsyncs the names.
    fn sync_names(&self) -> io::Result<()>;

    /// Bytes that could still be taken.
    fn free_bytes(&self) -> io::Result<u64>;
}

/// An open file.
pub trait DiskFile: Send + Sync + 'static {
    /// Its length.
    fn size(&self) -> io::Result<u64>;

    /// Writes at a position; tells how many bytes, which may be fewer.
    fn write_at(&self, position: u64, pieces: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Fsyncs the data.
    fn sync(&self) -> io::Result<()>;

    /// Reads at a position until the buffer is full.
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Drops what memory holds of it, so that the next read asks the disk. After a failed fsync, memory may hold what the
    /// disk never got.
    fn forget_cached(&self) -> io::Result<()>;
}
