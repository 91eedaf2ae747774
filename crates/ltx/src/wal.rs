//! Frames of an SQLite WAL (file format: <https://www.sqlite.org/fileformat2.html#walformat>). Reads what the caller says is
//! committed, and checks that it belongs to the WAL as it was opened: a frame of an earlier use of the file has other
//! salts and is an error, never data. It must never write.

use crate::bytes::u32_at;
use crate::header::WalSpan;
use crate::page_size::{PageSize, PageSizeError};
use crate::read_at::{Ahead, ReadAt};
use std::io;

/// Bytes of a WAL's header.
pub const WAL_HEADER_LEN: u64 = 32;
/// Bytes of a frame before its page.
pub const WAL_FRAME_HEADER_LEN: u64 = 24;

const MAGIC_LITTLE: u32 = 0x377f_0682;
const MAGIC_BIG: u32 = 0x377f_0683;
const VERSION: u32 = 3_007_000;

/// Why a WAL cannot be read as asked.
#[derive(Debug, thiserror::Error)]
pub enum WalError {
    /// Reading failed. Disposition: retry.
    #[error("reading the WAL failed: {0}")]
    Io(#[from] io::Error),
    /// The file has no WAL header; it is empty until the first commit after a truncating checkpoint. Disposition: reread after a commit.
    #[error("the WAL has no header: it is empty or cut")]
    NoHeader,
    /// The file is not a WAL. Disposition: corrupt.
    #[error("the WAL starts with {0:#010x}, which is no WAL magic")]
    Magic(u32),
    /// Another version. Disposition: corrupt.
    #[error("the WAL has version {0}; only 3007000 exists")]
    Version(u32),
    /// Not a page size. Disposition: corrupt.
    #[error("the WAL header is not acceptable: {0}")]
    PageSize(#[from] PageSizeError),
    /// The header's checksum does not hold. Disposition: corrupt.
    #[error("the WAL header's checksum does not hold")]
    HeaderChecksum,
    /// Frames count from 1 and do not descend. Disposition: bug.
    #[error("frames {from} to {to} are not a range from 1 on")]
    Range {
        /// First frame.
        from: u32,
        /// Last frame.
        to: u32,
    },
    /// The file ends before or inside the frame. Disposition: corrupt.
    #[error("the WAL ends before frame {0} does")]
    Truncated(u32),
    /// The frame was written before the WAL was restarted, or after: frames are lost. Disposition: corrupt; snapshot anew.
    #[error(
        "frame {frame} has salts {found:08x?}, the WAL was opened with {expected:08x?}: it was restarted"
    )]
    Salts {
        /// The frame.
        frame: u32,
        /// Its salts.
        found: [u32; 2],
        /// The header's.
        expected: [u32; 2],
    },
    /// The frame's checksum does not hold. Disposition: corrupt.
    #[error("frame {0}: the checksum does not hold")]
    Checksum(u32),
    /// The frame names page 0. Disposition: corrupt.
    #[error("frame {0} names page 0")]
    PageZero(u32),
    /// The range ends inside a transaction. Disposition: bug; ask up to a committed frame.
    #[error("frame {0} ends no transaction")]
    NoCommit(u32),
}

/// A running WAL checksum: two sums over pairs of words.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Sums {
    first: u32,
    second: u32,
}

impl Sums {
    fn read(bytes: &[u8], at: usize) -> Self {
        Self { first: u32_at(bytes, at), second: u32_at(bytes, at + 4) }
    }

    fn add(mut self, bytes: &[u8], is_big_endian: bool) -> Self {
        for pair in bytes.chunks_exact(8) {
            let (left, right) = pair.split_at(4);
            let word = |half: &[u8]| {
                let half = half.try_into().expect("half of eight bytes");
                if is_big_endian { u32::from_be_bytes(half) } else { u32::from_le_bytes(half) }
            };
            self.first = self.first.wrapping_add(word(left)).wrapping_add(self.second);
            self.second = self.second.wrapping_add(word(right)).wrapping_add(self.first);
        }
        self
    }
}

/// What a WAL says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalHeader {
    /// Page size of the database.
    pub page_size: PageSize,
    /// How often the WAL was restarted.
    pub checkpoint_seq: u32,
    /// The salts of all frames that are part of it; others are left from earlier uses.
    pub salts: [u32; 2],
    /// Byte order of the words that checksums add.
    pub is_big_endian: bool,
}

/// How much of each frame is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The salts: the frame is of this use of the WAL. Reads 24 bytes per frame.
    Salts,
    /// The salts and the running checksum, from the stored one of the frame before. Reads every page.
    Checksums,
}

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its number; the first is 1.
    pub number: u32,
    /// The page it holds.
    pub pgno: u32,
    /// The database's size in pages when it ends a transaction, otherwise 0.
    pub commit: u32,
    /// Where its page begins in the WAL.
    pub data_offset: u64,
}

/// A WAL opened for reading. It knows the WAL by its salts: reopen it after the WAL was restarted.
pub struct WalReader<F> {
    file: F,
    header: WalHeader,
    sums: Sums,
}

impl<F: ReadAt> WalReader<F> {
    /// Reads and verifies the header.
    ///
    /// # Errors
    /// [`WalError`].
    pub fn open(file: F) -> Result<Self, WalError> {
        let mut bytes = [0; WAL_HEADER_LEN as usize];
        file.read_exact_at(&mut bytes, 0).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => WalError::NoHeader,
            _ => WalError::Io(error),
        })?;
        let is_big_endian = match u32_at(&bytes, 0) {
            MAGIC_LITTLE => false,
            MAGIC_BIG => true,
            other => return Err(WalError::Magic(other)),
        };
        let sums = Sums { first: 0, second: 0 }.add(&bytes[..24], is_big_endian);
        if sums != Sums::read(&bytes, 24) {
            return Err(WalError::HeaderChecksum);
        }
        let version = u32_at(&bytes, 4);
        if version != VERSION {
            return Err(WalError::Version(version));
        }
        let header = WalHeader {
            page_size: PageSize::new(u32_at(&bytes, 8))?,
            checkpoint_seq: u32_at(&bytes, 12),
            salts: [u32_at(&bytes, 16), u32_at(&bytes, 20)],
            is_big_endian,
        };
        Ok(Self { file, header, sums })
    }

    /// The header, as it was at opening.
    #[must_use]
    pub fn header(&self) -> &WalHeader {
        &self.header
    }

    /// Where a frame begins. Also the length of a WAL of `frame - 1` frames.
    ///
    /// # Panics
    /// For frame 0: frames count from 1.
    #[must_use]
    pub fn frame_offset(&self, frame: u32) -> u64 {
        assert!(frame > 0, "frames count from 1");
        WAL_HEADER_LEN + u64::from(frame - 1) * self.frame_len()
    }

    /// Where frames `from..=to` lie, for an LTX header.
    #[must_use]
    pub fn span(&self, from: u32, to: u32) -> WalSpan {
        let [salt1, salt2] = self.header.salts;
        let frames = u64::from(to.saturating_sub(from)) + 1;
        WalSpan { offset: self.frame_offset(from), len: frames * self.frame_len(), salt1, salt2 }
    }

    /// Reads the page of a frame; `page` is one page long.
    ///
    /// # Errors
    /// [`WalError::Truncated`], [`WalError::Io`].
    pub fn read_page(&self, frame: u32, page: &mut [u8]) -> Result<(), WalError> {
        self.read(frame, WAL_FRAME_HEADER_LEN, page)
    }

    /// The frames `from..=to`, both of which must be committed. Ends after the first error.
    ///
    /// # Errors
    /// [`WalError::Range`]; for a start in the middle with [`Check::Checksums`], reading the frame before.
    pub fn frames(&self, from: u32, to: u32, check: Check) -> Result<Frames<'_, F>, WalError> {
        if from == 0 || from > to {
            return Err(WalError::Range { from, to });
        }
        let sums = match check {
            Check::Salts => None,
            Check::Checksums if from == 1 => Some(self.sums),
            Check::Checksums => {
                let mut bytes = [0; WAL_FRAME_HEADER_LEN as usize];
                self.read(from - 1, 0, &mut bytes)?;
                self.check_salts(from - 1, &bytes)?;
                Some(Sums::read(&bytes, 16))
            }
        };
        let len = match check {
            Check::Salts => WAL_FRAME_HEADER_LEN,
            Check::Checksums => self.frame_len(),
        };
        let buffer = vec![0; usize::try_from(len).expect("a frame fits in memory")];
        Ok(Frames { wal: self, next: Some(from), to, sums, buffer })
    }

    /// The same WAL with the frames `from..=to` read at once: for those who read each of them in parts, and of few frames.
    ///
    /// # Errors
    /// [`WalError::Range`], [`WalError::Truncated`], [`WalError::Io`].
    pub fn read_ahead(&self, from: u32, to: u32) -> Result<WalReader<Ahead<'_, F>>, WalError> {
        if from == 0 || from > to {
            return Err(WalError::Range { from, to });
        }
        let len = (u64::from(to - from) + 1) * self.frame_len();
        let len = usize::try_from(len).expect("few frames fit in memory");
        let file =
            Ahead::read(&self.file, self.frame_offset(from), len).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => WalError::Truncated(to),
                _ => WalError::Io(error),
            })?;
        Ok(WalReader { file, header: self.header, sums: self.sums })
    }

    /// The last frame that ends a transaction and up to which all checksums hold, or 0. Reads the whole WAL: for a
    /// WAL whose owner died. `frames_max` is how many whole frames the file has room for.
    ///
    /// # Errors
    /// [`WalError::Io`].
    pub fn last_commit(&self, frames_max: u32) -> Result<u32, WalError> {
        let mut last = 0;
        if frames_max == 0 {
            return Ok(last);
        }
        for frame in self.frames(1, frames_max, Check::Checksums)? {
            match frame {
                Ok(frame) if frame.commit > 0 => last = frame.number,
                Ok(_) => {}
                Err(WalError::Io(error)) => return Err(error.into()),
                Err(_) => break,
            }
        }
        Ok(last)
    }

    fn frame_len(&self) -> u64 {
        WAL_FRAME_HEADER_LEN + u64::from(self.header.page_size.get())
    }

    fn read(&self, frame: u32, at: u64, bytes: &mut [u8]) -> Result<(), WalError> {
        let offset = self.frame_offset(frame) + at;
        self.file.read_exact_at(bytes, offset).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => WalError::Truncated(frame),
            _ => WalError::Io(error),
        })
    }

    fn check_salts(&self, frame: u32, bytes: &[u8]) -> Result<(), WalError> {
        let found = [u32_at(bytes, 8), u32_at(bytes, 12)];
        let expected = self.header.salts;
        if found == expected { Ok(()) } else { Err(WalError::Salts { frame, found, expected }) }
    }
}

/// Frames of a range, in order; see [`WalReader::frames`].
pub struct Frames<'a, F> {
    wal: &'a WalReader<F>,
    next: Option<u32>,
    to: u32,
    sums: Option<Sums>,
    buffer: Vec<u8>,
}

impl<F: ReadAt> Frames<'_, F> {
    fn read(&mut self, number: u32) -> Result<Frame, WalError> {
        let bytes = &mut self.buffer;
        self.wal.read(number, 0, bytes)?;
        self.wal.check_salts(number, bytes)?;
        if let Some(sums) = &mut self.sums {
            let (head, page) = bytes.split_at(WAL_FRAME_HEADER_LEN as usize);
            let is_big_endian = self.wal.header.is_big_endian;
            *sums = sums.add(&head[..8], is_big_endian).add(page, is_big_endian);
            if *sums != Sums::read(head, 16) {
                return Err(WalError::Checksum(number));
            }
        }
        let pgno = u32_at(bytes, 0);
        if pgno == 0 {
            return Err(WalError::PageZero(number));
        }
        let data_offset = self.wal.frame_offset(number) + WAL_FRAME_HEADER_LEN;
        Ok(Frame { number, pgno, commit: u32_at(bytes, 4), data_offset })
    }
}

impl<F: ReadAt> Iterator for Frames<'_, F> {
    type Item = Result<Frame, WalError>;

    fn next(&mut self) -> Option<Self::Item> {
        let number = self.next.take()?;
        let frame = self.read(number);
        if frame.is_ok() && number < self.to {
            self.next = Some(number + 1);
        }
        Some(frame)
    }
}
