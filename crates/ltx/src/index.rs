//! The page index at the end of a file. The writer keeps its encoded bytes, typically 6 to 10 and at most 20 per page.
//! The reader keeps none: it checks length and CRC-64 of the index against those of the one it would have written.

use crate::bytes::push_varint;
use crate::checksum::Checksum;

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
