//! Where a capture is written: memory while it is small, a temporary file beyond.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tempfile::{NamedTempFile, TempPath};

/// Bytes gathered before a write to the file.
const BUFFER_LEN: usize = 64 << 10;

/// A writer that moves to a file when it outgrows memory.
pub(super) struct Spool {
    dir: PathBuf,
    memory_max: usize,
    place: Place,
}

enum Place {
    Memory(Vec<u8>),
    File { writer: BufWriter<File>, path: TempPath },
}

/// What was written.
pub(super) enum Spooled {
    /// No longer than what was written: it is kept until the bucket has it.
    Memory(Bytes),
    File(TempPath),
}

impl Spool {
    pub(super) fn new(dir: &Path, memory_max: usize, expected: usize) -> Self {
        let buffer = Vec::with_capacity(expected.min(memory_max));
        Self { dir: dir.into(), memory_max, place: Place::Memory(buffer) }
    }

    pub(super) fn finish(self) -> io::Result<Spooled> {
        match self.place {
            // What was expected is several times what most captures take.
            Place::Memory(bytes) if bytes.len() < bytes.capacity() / 2 => {
                Ok(Spooled::Memory(Bytes::copy_from_slice(&bytes)))
            }
            Place::Memory(bytes) => Ok(Spooled::Memory(bytes.into())),
            Place::File { writer, path } => {
                writer.into_inner().map_err(io::IntoInnerError::into_error)?;
                Ok(Spooled::File(path))
            }
        }
    }

    fn move_to_file(&mut self) -> io::Result<()> {
        let Place::Memory(bytes) = &mut self.place else { return Ok(()) };
        let (file, path) = NamedTempFile::with_prefix_in("capture-", &self.dir)?.into_parts();
        let mut writer = BufWriter::with_capacity(BUFFER_LEN, file);
        writer.write_all(bytes)?;
        self.place = Place::File { writer, path };
        Ok(())
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Place::Memory(held) = &mut self.place {
            if held.len() + bytes.len() <= self.memory_max {
                held.extend_from_slice(bytes);
                return Ok(bytes.len());
            }
            self.move_to_file()?;
        }
        match &mut self.place {
            Place::File { writer, .. } => writer.write(bytes),
            Place::Memory(_) => Err(io::Error::other("the spool stayed in memory")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.place {
            Place::Memory(_) => Ok(()),
            Place::File { writer, .. } => writer.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spool_moves_to_a_file_when_it_outgrows_memory() {
        let dir = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(dir.path(), 10, 0);
        spool.write_all(b"0123456789").unwrap();
        assert!(matches!(spool.place, Place::Memory(_)));
        spool.write_all(b"ab").unwrap();
        let Spooled::File(path) = spool.finish().unwrap() else { panic!("in memory") };
        assert_eq!(std::fs::read(&path).unwrap(), b"0123456789ab");
        drop(path);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
