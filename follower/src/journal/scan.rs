//! Reads the journal back. An invalid place with valid batches behind it was fsynced once, so it is damage; one at the very
//! end of the segment that was being written is a batch that was not, and nothing in it was ever acknowledged.

use std::collections::{HashMap, HashSet};

use holdfast_core::follower::{LogEntry, LogReplay};
use holdfast_types::{Incarnation, NodeName, SessionId};

use super::batch;
use super::format::{BATCH_HEAD_LEN, BatchHead, EntryBody, PAGE_LEN, ReadEntry, Reader, read_entry, span};
use super::index::FrameIndex;

/// A log as it was read back.
#[derive(Clone, Debug)]
pub struct RecoveredLog {
    /// The node.
    pub node: NodeName,
    /// What the entries say.
    pub replay: LogReplay,
    /// Where the retained frames stand.
    pub index: FrameIndex,
}

pub(super) struct Scan {
    incarnation: Incarnation,
    pub(super) logs: HashMap<SessionId, RecoveredLog>,
    /// Whether anything that was fsynced is gone.
    pub(super) is_damaged: bool,
}

struct Batch {
    head: BatchHead,
    entries: Vec<ReadEntry>,
}

impl Scan {
    pub(super) fn new(incarnation: Incarnation) -> Self {
        Self { incarnation, logs: HashMap::new(), is_damaged: false }
    }

    /// Entries of any session may have stood here.
    pub(super) fn hole(&mut self) {
        self.is_damaged = true;
        for log in self.logs.values_mut() {
            log.replay.hole();
        }
    }

    /// Reads a segment that ends at `end`, or wherever its last batch does; gives its end.
    pub(super) fn segment(&mut self, number: u32, data: &[u8], end: Option<u64>) -> u64 {
        let limit = end.map_or(data.len(), |end| usize::try_from(end).unwrap_or(usize::MAX));
        let data = &data[..limit.min(data.len())];
        let mut position = 0;
        while position < limit {
            if let Some(batch) = self.batch(number, data, position) {
                let span = span(batch.head.payload_len);
                self.apply(number, batch);
                position += span;
            } else if let Some(next) = self.next_batch(number, data, position) {
                tracing::error!(
                    segment = number,
                    position,
                    next,
                    "the journal is damaged here: fsynced entries are gone"
                );
                self.hole();
                position = next;
            } else if end.is_some() {
                tracing::error!(
                    segment = number,
                    position,
                    "the journal is damaged from here to the segment's end"
                );
                self.hole();
                position = limit;
            } else {
                self.tell_torn(number, data, position);
                break;
            }
        }
        position as u64
    }

    fn tell_torn(&self, number: u32, data: &[u8], position: usize) {
        let head = BatchHead::decode(&data[position..], number, position as u64, self.incarnation);
        if head.is_some() {
            tracing::warn!(
                segment = number,
                position,
                "the last batch was not written whole; it is cut off, nothing in it was acknowledged"
            );
        }
    }

    fn batch(&self, number: u32, data: &[u8], position: usize) -> Option<Batch> {
        let bytes = data.get(position..)?;
        let head = BatchHead::decode(bytes, number, position as u64, self.incarnation)?;
        let payload = bytes.get(BATCH_HEAD_LEN..BATCH_HEAD_LEN.checked_add(head.payload_len)?)?;
        let mut reader = Reader(payload);
        let mut entries = Vec::new();
        for _ in 0..head.entries {
            let base = position + BATCH_HEAD_LEN + (payload.len() - reader.0.len());
            entries.push(read_entry(&mut reader, base)?);
        }
        reader.0.is_empty().then_some(Batch { head, entries })
    }

    fn next_batch(&self, number: u32, data: &[u8], position: usize) -> Option<usize> {
        let mut later = (position + PAGE_LEN..data.len()).step_by(PAGE_LEN);
        later.find(|at| self.batch(number, data, *at).is_some())
    }

    fn apply(&mut self, number: u32, batch: Batch) {
        // The first batch of a segment names every session that there is.
        let is_first = batch.head.sequence == 0;
        let mut named = HashSet::new();
        for ReadEntry { entry, frames } in batch.entries {
            named.insert(entry.session);
            let log_entry = entry.log_entry();
            let node = match &entry.body {
                EntryBody::Note { node, .. } => Some(node.clone()),
                EntryBody::Frames(_) => None,
            };
            let log = match (self.logs.get_mut(&entry.session), node) {
                (Some(log), _) => log,
                (None, Some(node)) => self.logs.entry(entry.session).or_insert_with(|| RecoveredLog {
                    node,
                    replay: LogReplay::default(),
                    index: FrameIndex::default(),
                }),
                (None, None) => {
                    // Its adoption is gone. The name of its node comes with its next note or carried entry.
                    tracing::error!(session = %entry.session, "frames of a session whose adoption is gone");
                    self.is_damaged = true;
                    continue;
                }
            };
            log.replay.apply(entry.ticket, &log_entry);
            if let LogEntry::Frames { first, .. } = log_entry {
                log.index.push(first, batch::places(number, 0, &frames));
            }
            log.index.drop_below(log.replay.holdings().start);
            if log.replay.is_forgotten() {
                self.logs.remove(&entry.session);
            }
        }
        if is_first {
            self.logs.retain(|session, _| named.contains(session));
        }
    }

    /// Nothing more can be read.
    pub(super) fn end(&mut self) {
        for log in self.logs.values_mut() {
            log.replay.end();
        }
    }
}
