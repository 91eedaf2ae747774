//! A batch as it is written: small pieces copied into one buffer, large bodies left where they are.

use std::io::{self, IoSlice};

use bytes::Bytes;
use holdfast_types::Incarnation;

use super::disk::DiskFile;
use super::format::{self, BATCH_HEAD_LEN, BatchHead, ENTRY_HEAD_LEN, Entry, EntryBody, span};
use super::index::FramePlace;

/// A body from this length on is written from where it is; a shorter one is cheaper to copy.
const COPIED_LEN_MAX: usize = 8 * 1024;
/// Pieces of one write: `IOV_MAX` of Linux.
const PIECES_MAX: usize = 1024;

/// A batch in the making.
pub(super) struct BatchBuilder {
    staged: Vec<u8>,
    /// Where in the staged bytes a body belongs.
    bodies: Vec<(usize, Bytes)>,
    bodies_len: usize,
    entries: usize,
}

impl BatchBuilder {
    pub(super) fn new() -> Self {
        Self { staged: vec![0; BATCH_HEAD_LEN], bodies: Vec::new(), bodies_len: 0, entries: 0 }
    }

    fn len(&self) -> usize {
        self.staged.len() + self.bodies_len
    }

    /// Adds an entry; gives the place of each of its frames, from the begin of the batch.
    pub(super) fn push(&mut self, entry: &Entry) -> Vec<(usize, usize)> {
        let head = format::entry_head(entry);
        let mut crc = format::crc();
        crc.update(&head[..ENTRY_HEAD_LEN - 4]);
        let head_at = self.staged.len();
        self.staged.extend_from_slice(&head);
        let mut places = Vec::new();
        match &entry.body {
            EntryBody::Note { node, entry } => {
                let note = format::note(node, entry);
                crc.update(&note);
                self.staged.extend_from_slice(&note);
            }
            EntryBody::Frames(frames) => {
                let count = u32::try_from(frames.len()).expect("messages are bounded").to_le_bytes();
                crc.update(&count);
                self.staged.extend_from_slice(&count);
                for frame in frames {
                    let (at, head_at) = (self.len(), self.staged.len());
                    format::frame_head(frame, &mut self.staged);
                    crc.update(&self.staged[head_at..]);
                    if frame.body.len() <= COPIED_LEN_MAX {
                        self.staged.extend_from_slice(&frame.body);
                    } else {
                        self.bodies_len += frame.body.len();
                        self.bodies.push((self.staged.len(), frame.body.clone()));
                    }
                    places.push((at, self.len() - at));
                }
            }
        }
        let crc = format::finish(&crc).to_le_bytes();
        self.staged[head_at + ENTRY_HEAD_LEN - 4..head_at + ENTRY_HEAD_LEN].copy_from_slice(&crc);
        self.entries += 1;
        places
    }

    /// Whether it says nothing but that everything before it is fsynced.
    pub(super) fn is_mark(&self) -> bool {
        self.entries == 0
    }

    /// Bytes that it will take.
    pub(super) fn span(&self) -> usize {
        span(self.len() - BATCH_HEAD_LEN)
    }

    /// Writes it at `position` of a segment. It is not fsynced.
    pub(super) fn write(
        mut self,
        file: &dyn DiskFile,
        (segment, position): (u32, u64),
        sequence: u64,
        incarnation: Incarnation,
    ) -> io::Result<()> {
        let (payload_len, span) = (self.len() - BATCH_HEAD_LEN, self.span());
        let head = BatchHead { segment, durable: position, sequence, payload_len, entries: self.entries };
        self.staged[..BATCH_HEAD_LEN].copy_from_slice(&head.encode(incarnation));
        self.staged.resize(span - self.bodies_len, 0);
        let mut pieces = Vec::with_capacity(self.bodies.len() * 2 + 1);
        let mut from = 0;
        for (at, body) in &self.bodies {
            pieces.push(IoSlice::new(&self.staged[from..*at]));
            pieces.push(IoSlice::new(body));
            from = *at;
        }
        pieces.push(IoSlice::new(&self.staged[from..]));
        write_all(file, position, &mut pieces)
    }
}

fn write_all(file: &dyn DiskFile, mut position: u64, mut pieces: &mut [IoSlice<'_>]) -> io::Result<()> {
    while !pieces.is_empty() {
        let some = pieces.len().min(PIECES_MAX);
        let written = file.write_at(position, &pieces[..some])?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        position += written as u64;
        IoSlice::advance_slices(&mut pieces, written);
    }
    Ok(())
}

/// The places of an entry's frames in a segment.
pub(super) fn places(segment: u32, position: u64, relative: &[(usize, usize)]) -> Vec<FramePlace> {
    let place = |(at, len): &(usize, usize)| {
        let at = u32::try_from(position + *at as u64).expect("segments are smaller than 4 GiB");
        FramePlace { segment, position: at, len: u32::try_from(*len).expect("frames are bounded") }
    };
    relative.iter().map(place).collect()
}
