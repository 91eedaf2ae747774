//! Merges files without a gap into one whose effect is exactly theirs in turn. Memory: two pages per input. Neighbours may
//! overlap: pages are as of a file's end.
//!
//! The newest version of a page wins, unless a later file cut the database below it: then the page is gone, and zero if
//! a still later file grew the database over it again.

use crate::decoder::{DecodeError, Decoder};
use crate::encoder::{EncodeError, EncodedLtx, Encoder};
use crate::header::{Header, WalSpan};
use crate::page_size::PageSize;
use crate::transaction::encode_zeros;
use holdfast_types::Txid;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{Read, Write};

/// Why files cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum CompactError {
    /// There is nothing to merge. Disposition: bug.
    #[error("there are no files to compact")]
    NoInputs,
    /// A file does not lead on from the one before. Disposition: bug, or a chain with a gap.
    #[error("the file that ends at transaction {max} is followed by one from {next_min} to {next_max}, which does not hold transaction {}", .max.next())]
    NotContiguous {
        /// Last transaction of the one.
        max: Txid,
        /// First transaction of the next.
        next_min: Txid,
        /// Its last.
        next_max: Txid,
    },
    /// Page sizes differ. Disposition: corrupt.
    #[error("the file from transaction {min} has page size {found}, the first has {expected}")]
    PageSize {
        /// First transaction of the file.
        min: Txid,
        /// Its page size.
        found: PageSize,
        /// The first file's.
        expected: PageSize,
    },
    /// An input is not acceptable. Disposition: that of the source.
    #[error("file {min} to {max}: {source}")]
    Input {
        /// First transaction of the file.
        min: Txid,
        /// Its last.
        max: Txid,
        /// What is wrong.
        source: DecodeError,
    },
    /// An input is not even an LTX file. Disposition: that of the source.
    #[error("a file cannot be opened: {0}")]
    Open(#[source] DecodeError),
    /// The output.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// Merges files, which stand in order, into one that begins as the first and ends as the last. Nothing counts before
/// this returns `Ok`: inputs are verified at their ends.
///
/// # Errors
/// [`CompactError`].
pub fn compact<R: Read, W: Write>(
    inputs: Vec<Decoder<R>>,
    writer: W,
) -> Result<(W, EncodedLtx), CompactError> {
    let header = merged_header(&inputs)?;
    let mut encoder = Encoder::new(writer, header)?;
    let mut merge = Merge::new(inputs, header)?;
    let mut fill_from = if header.is_snapshot() { 1 } else { merge.floor_of_first() + 1 };
    while let Some((pgno, input)) = merge.peek() {
        if merge.survives(pgno, input) {
            encode_zeros(&mut encoder, fill_from..=pgno.saturating_sub(1))?;
            fill_from = fill_from.max(pgno + 1);
            encoder.page(pgno, &merge.inputs[input].page)?;
        }
        merge.pop_page(pgno)?;
    }
    // Verified before the tail is filled: the tail's length is the header's word alone.
    merge.finish()?;
    encode_zeros(&mut encoder, fill_from..=header.commit)?;
    Ok(encoder.finish()?)
}

/// Merges whole files in memory, which stand in order, as [`compact`] does.
///
/// # Errors
/// [`CompactError`].
pub fn merge<F: AsRef<[u8]>>(files: &[F]) -> Result<Vec<u8>, CompactError> {
    let decoders: Result<Vec<_>, _> = files.iter().map(|file| Decoder::new(file.as_ref())).collect();
    let decoders = decoders.map_err(CompactError::Open)?;
    let len_max = files.iter().map(|file| file.as_ref().len()).sum();
    Ok(compact(decoders, Vec::with_capacity(len_max))?.0)
}

fn merged_header<R: Read>(inputs: &[Decoder<R>]) -> Result<Header, CompactError> {
    let (Some(first), Some(last)) = (inputs.first(), inputs.last()) else {
        return Err(CompactError::NoInputs);
    };
    let (first, last) = (*first.header(), *last.header());
    for pair in inputs.windows(2) {
        let (left, right) = (pair[0].header(), pair[1].header());
        if right.min > left.max.next() || right.max <= left.max {
            let (max, next_min, next_max) = (left.max, right.min, right.max);
            return Err(CompactError::NotContiguous { max, next_min, next_max });
        }
        if right.page_size != first.page_size {
            let (found, expected) = (right.page_size, first.page_size);
            return Err(CompactError::PageSize { min: right.min, found, expected });
        }
    }
    let min = inputs.iter().map(|input| input.header().min).min().unwrap_or(first.min);
    Ok(Header { min, wal: WalSpan::default(), node_id: 0, ..last })
}

struct Input<R> {
    header: Header,
    decoder: Decoder<R>,
    page: Vec<u8>,
    /// Smallest database size from this file on: a page beyond it was cut away, here or later.
    floor: u32,
}

struct Merge<R> {
    inputs: Vec<Input<R>>,
    /// The page that waits in each input: lowest page first, of one page the newest input first.
    waiting: BinaryHeap<(Reverse<u32>, usize)>,
}

impl<R: Read> Merge<R> {
    fn new(decoders: Vec<Decoder<R>>, merged: Header) -> Result<Self, CompactError> {
        let mut inputs: Vec<_> = decoders
            .into_iter()
            .map(|decoder| {
                let header = *decoder.header();
                Input { header, decoder, page: vec![0; header.page_size.bytes()], floor: header.commit }
            })
            .collect();
        let mut floor = merged.commit;
        for input in inputs.iter_mut().rev() {
            floor = floor.min(input.floor);
            input.floor = floor;
        }
        let mut merge = Self { waiting: BinaryHeap::with_capacity(inputs.len()), inputs };
        for input in 0..merge.inputs.len() {
            merge.advance(input)?;
        }
        Ok(merge)
    }

    fn floor_of_first(&self) -> u32 {
        self.inputs[0].floor
    }

    fn peek(&self) -> Option<(u32, usize)> {
        self.waiting.peek().map(|&(Reverse(pgno), input)| (pgno, input))
    }

    /// Whether the newest version of a page is part of the result. If not, no older one is.
    fn survives(&self, pgno: u32, input: usize) -> bool {
        pgno <= self.inputs[input].floor
    }

    /// Drops all versions of a page.
    fn pop_page(&mut self, pgno: u32) -> Result<(), CompactError> {
        while let Some((next, input)) = self.peek() {
            if next != pgno {
                break;
            }
            self.waiting.pop();
            self.advance(input)?;
        }
        Ok(())
    }

    fn advance(&mut self, index: usize) -> Result<(), CompactError> {
        let input = &mut self.inputs[index];
        let next =
            input.decoder.next_page(&mut input.page).map_err(|source| input_error(&input.header, source))?;
        if let Some(pgno) = next {
            self.waiting.push((Reverse(pgno), index));
        }
        Ok(())
    }

    fn finish(self) -> Result<(), CompactError> {
        for Input { header, decoder, .. } in self.inputs {
            decoder.finish().map_err(|source| input_error(&header, source))?;
        }
        Ok(())
    }
}

fn input_error(header: &Header, source: DecodeError) -> CompactError {
    CompactError::Input { min: header.min, max: header.max, source }
}
