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

/// A source, a piece of which was read already.
#[derive(Debug)]
pub struct Ahead<'f, F> {
    file: &'f F,
    offset: u64,
    bytes: Vec<u8>,
}

impl<'f, F: ReadAt> Ahead<'f, F> {
    /// Reads `len` bytes from `offset` on.
    ///
    /// # Errors
    /// Those of [`ReadAt::read_exact_at`].
    pub(crate) fn read(file: &'f F, offset: u64, len: usize) -> io::Result<Self> {
        let mut bytes = vec![0; len];
        file.read_exact_at(&mut bytes, offset)?;
        Ok(Self { file, offset, bytes })
    }
}

impl<F: ReadAt> ReadAt for Ahead<'_, F> {
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let is_here = offset.checked_sub(self.offset).is_some_and(|from| {
            let here = self.bytes.as_slice();
            here.read_exact_at(bytes, from).is_ok()
        });
        if is_here { Ok(()) } else { self.file.read_exact_at(bytes, offset) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_ahead_is_not_read_again_and_the_rest_is() {
        let file = b"0123456789".to_vec();
        let mut ahead = Ahead::read(&file, 2, 4).unwrap();
        ahead.bytes.copy_from_slice(b"abcd");
        for (offset, expected) in [(2, b"abc"), (3, b"bcd"), (4, b"456"), (1, b"123"), (7, b"789")] {
            let mut bytes = [0; 3];
            ahead.read_exact_at(&mut bytes, offset).unwrap();
            assert_eq!(&bytes, expected, "{offset}");
        }
        let error = ahead.read_exact_at(&mut [0; 3], 8).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(Ahead::read(&file, 8, 3).is_err());
    }
}
