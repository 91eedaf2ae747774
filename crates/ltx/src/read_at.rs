//! Reading at an offset without moving a cursor, so that a WAL and a database can be read while their owner has them open.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Positioned reads.
pub trait ReadAt {
    /// Fills `bytes` from `offset` on.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] when there are fewer bytes, or what the source says.
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;
}

impl ReadAt for File {
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, bytes, offset)
    }
}

impl ReadAt for [u8] {
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let range = usize::try_from(offset).ok().and_then(|from| Some(from..from.checked_add(bytes.len())?));
        let source = range.and_then(|range| self.get(range)).ok_or(io::ErrorKind::UnexpectedEof)?;
        bytes.copy_from_slice(source);
        Ok(())
    }
}

impl ReadAt for Vec<u8> {
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.as_slice().read_exact_at(bytes, offset)
    }
}

impl<T: ReadAt + ?Sized> ReadAt for &T {
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        (**self).read_exact_at(bytes, offset)
    }
}
