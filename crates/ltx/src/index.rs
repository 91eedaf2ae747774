//! The page index at the end of a file. The writer keeps its encoded bytes, typically 6 to 10 and at most 20 per page.
//! The reader of a whole file keeps none: it checks length and CRC-64 of the index against those of the one it would have
//! written. Whoever reads the index alone ([`IndexReader`]) cannot check a sum; it checks that the entries are what only an
//! index of this file's pages can be: in order, without a gap from the header to the end of the pages.

use crate::bytes::{push_varint, u64_at};
use crate::checksum::Checksum;
use crate::header::{HEADER_LEN, Header, TRAILER_LEN};
use crate::lz4::{self, FRAME_PREFIX_LEN, PAGE_HEADER_LEN};
use crate::order::{PageOrder, PageOrderError};
use std::ops::Range;

/// Bytes at the end of a file that tell where its index is: the index's length, and the trailer.
pub const INDEX_TAIL_LEN: usize = 8 + TRAILER_LEN;
/// The longest varint, in bytes.
const VARINT_LEN_MAX: u32 = 10;

/// Why an index cannot be used. Disposition: corrupt; a restore of the whole file tells more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// The length that the file names does not leave room for a header and an end of pages.
    #[error("the LTX file has {file_len} bytes and claims an index of {index_len}")]
    Len {
        /// Length of the file.
        file_len: u64,
        /// The claimed length of the index.
        index_len: u64,
    },
    /// A page may not stand where it stands.
    #[error("the pages of the LTX index are not in order: {0}")]
    Order(#[from] PageOrderError),
    /// A page's frame does not begin where the one before ends, or has an impossible length.
    #[error("the LTX index has {len} bytes at {offset} for page {pgno}, where {expected} was to begin")]
    Frame {
        /// The page.
        pgno: u64,
        /// Where its frame is said to be.
        offset: u64,
        /// Its length.
        len: u64,
        /// Where it must be.
        expected: u64,
    },
    /// The index does not end where it must, or the pages do not.
    #[error("the LTX index does not end where it must")]
    End,
    /// A number is longer than any.
    #[error("the LTX index holds a number of more than 64 bits")]
    Varint,
}

/// Where the entries of a file's index are, the zero that ends them included: from the last [`INDEX_TAIL_LEN`] bytes of a
/// file of this length.
///
/// # Errors
/// [`IndexError::Len`].
pub fn index_range(tail: &[u8; INDEX_TAIL_LEN], file_len: u64) -> Result<Range<u64>, IndexError> {
    let index_len = u64_at(tail, 0);
    let around = (HEADER_LEN + PAGE_HEADER_LEN + INDEX_TAIL_LEN) as u64;
    let refused = IndexError::Len { file_len, index_len };
    match file_len.checked_sub(around).and_then(|room| room.checked_sub(index_len)) {
        Some(_) if index_len > 0 => {
            let end = file_len - INDEX_TAIL_LEN as u64;
            Ok(end - index_len..end)
        }
        _ => Err(refused),
    }
}

/// Reads an index that arrives in pieces, and hands each entry out: page, offset of its frame, length of its frame.
pub(crate) struct IndexReader {
    order: PageOrder,
    frame_len: Range<u64>,
    /// Where the next frame must begin.
    expected: u64,
    /// Where the pages must end: right before the end of pages, which stands before the index.
    pages_end: u64,
    /// Bytes of the index that are still to come.
    left: u64,
    entry: [u64; 3],
    field: usize,
    shift: u32,
    has_ended: bool,
}

impl IndexReader {
    /// For the index that stands at `index` in a file with this header.
    pub(crate) fn new(header: &Header, index: &Range<u64>) -> Self {
        let shortest = FRAME_PREFIX_LEN as u64 + 1;
        let longest = (FRAME_PREFIX_LEN + lz4::block_len_max(header.page_size)) as u64;
        Self {
            order: PageOrder::new(header),
            frame_len: shortest..longest + 1,
            expected: HEADER_LEN as u64,
            pages_end: index.start.saturating_sub(PAGE_HEADER_LEN as u64),
            left: index.end - index.start,
            entry: [0; 3],
            field: 0,
            shift: 0,
            has_ended: false,
        }
    }

    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(u32, u64, u32),
    ) -> Result<(), IndexError> {
        for &byte in bytes {
            self.left = self.left.checked_sub(1).ok_or(IndexError::End)?;
            if self.has_ended {
                return Err(IndexError::End);
            }
            if self.shift >= 7 * VARINT_LEN_MAX || (self.shift == 63 && byte > 1) {
                return Err(IndexError::Varint);
            }
            self.entry[self.field] |= u64::from(byte & 0x7f) << self.shift;
            self.shift += 7;
            if byte & 0x80 != 0 {
                continue;
            }
            self.shift = 0;
            self.field += 1;
            if self.field == 1 && self.entry[0] == 0 {
                self.has_ended = true;
            } else if self.field == 3 {
                let [pgno, offset, len] = std::mem::take(&mut self.entry);
                self.field = 0;
                let (pgno, len) = self.admit(pgno, offset, len)?;
                each(pgno, offset, len);
            }
        }
        Ok(())
    }

    fn admit(&mut self, pgno: u64, offset: u64, len: u64) -> Result<(u32, u32), IndexError> {
        let refused = IndexError::Frame { pgno, offset, len, expected: self.expected };
        if offset != self.expected || !self.frame_len.contains(&len) {
            return Err(refused);
        }
        let Ok(page) = u32::try_from(pgno) else { return Err(refused) };
        self.order.admit(page)?;
        self.expected += len;
        Ok((page, len as u32))
    }

    /// All of it has been fed.
    pub(crate) fn finish(self) -> Result<(), IndexError> {
        if !self.has_ended || self.left > 0 || self.expected != self.pages_end {
            return Err(IndexError::End);
        }
        Ok(self.order.close()?)
    }
}

fn push_entry(out: &mut Vec<u8>, pgno: u32, offset: u64, len: u64) {
    push_varint(out, u64::from(pgno));
    push_varint(out, offset);
    push_varint(out, len);
}

/// Collects the index of a file being written.
#[derive(Default)]
pub(crate) struct IndexWriter(Vec<u8>);

impl IndexWriter {
    pub(crate) fn push(&mut self, pgno: u32, offset: u64, len: u64) {
        push_entry(&mut self.0, pgno, offset, len);
    }

    /// The section: entries, a zero, and the length of both.
    pub(crate) fn into_section(mut self) -> Vec<u8> {
        self.0.push(0);
        let len = self.0.len() as u64;
        self.0.extend_from_slice(&len.to_be_bytes());
        self.0
    }
}

/// Follows what the index of a file being read must be.
pub(crate) struct IndexDigest {
    checksum: Checksum,
    len: u64,
    entry: Vec<u8>,
}

impl IndexDigest {
    pub(crate) fn new() -> Self {
        Self { checksum: Checksum::new(), len: 0, entry: Vec::with_capacity(32) }
    }

    pub(crate) fn push(&mut self, pgno: u32, offset: u64, len: u64) {
        self.entry.clear();
        push_entry(&mut self.entry, pgno, offset, len);
        self.feed_entry();
    }

    /// Ends the entries. The length and the checksum of entries and zero.
    pub(crate) fn close(mut self) -> (u64, u64) {
        self.entry.clear();
        self.entry.push(0);
        self.feed_entry();
        (self.len, self.checksum.stored())
    }

    fn feed_entry(&mut self) {
        self.checksum.update(&self.entry);
        self.len += self.entry.len() as u64;
    }
}
