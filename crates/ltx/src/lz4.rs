//! One page as one LZ4 block, with the buffers that are kept from page to page.

use crate::page_size::PageSize;
use lz4_flex::block::{self, CompressTable};

/// Bytes of a page frame before its block: number, flags, size.
pub(crate) const FRAME_PREFIX_LEN: usize = 10;
/// Bytes of a page header alone; a zero one ends the pages.
pub(crate) const PAGE_HEADER_LEN: usize = 6;
/// Page flag: a size and an LZ4 block follow.
pub(crate) const FLAG_SIZE: u16 = 1;

/// The most bytes a page's block may have. No sound compressor needs more than n + n/255 + 16; this allows a little more.
pub(crate) fn block_len_max(page_size: PageSize) -> usize {
    block::get_maximum_output_size(page_size.bytes())
}

/// Makes page frames.
pub(crate) struct FrameWriter {
    table: CompressTable,
    frame: Vec<u8>,
}

impl FrameWriter {
    pub(crate) fn new(page_size: PageSize) -> Self {
        Self { table: CompressTable::default(), frame: vec![0; FRAME_PREFIX_LEN + block_len_max(page_size)] }
    }

    /// The whole frame of a page, until the next call.
    pub(crate) fn frame(&mut self, pgno: u32, page: &[u8]) -> &[u8] {
        let block = &mut self.frame[FRAME_PREFIX_LEN..];
        let len = block::compress_into_with_table(page, block, &mut self.table)
            .expect("the buffer has the size that the compressor asks for");
        self.frame[0..4].copy_from_slice(&pgno.to_be_bytes());
        self.frame[4..6].copy_from_slice(&FLAG_SIZE.to_be_bytes());
        let stored_len = u32::try_from(len).expect("a block is a little longer than a page at most");
        self.frame[6..10].copy_from_slice(&stored_len.to_be_bytes());
        &self.frame[..FRAME_PREFIX_LEN + len]
    }
}

/// Decompresses a block into exactly one page. `false` when it is not such a block.
pub(crate) fn decompress(block: &[u8], page: &mut [u8]) -> bool {
    block::decompress_into(block, page).is_ok_and(|len| len == page.len())
}
