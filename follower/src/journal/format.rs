//! The bytes of a segment. It is a row of batches, each at a multiple of [`PAGE_LEN`], so that no later write touches a
//! page that an earlier fsync has covered. All numbers are little-endian.
//!
//! ```text
//! batch   magic u32 | crc u32 | segment u64 | durable u64 | sequence u64 | payload_len u32 | entries u32 | entry… | zeros
//! entry   kind u32 | payload_len u32 | ticket u64 | session u128 | crc u32 | payload
//! note    log_epoch u64 | start u64 | next u64 | flags u8 | node_len u8 | node             (every kind but frames)
//! frames  count u32 | frame…
//! frame   offset u64 | epoch u64 | txid u64 | crc u32 | body_len u32 | cell_len u32 | cell | body
//! ```
//!
//! `durable` is the batch's own place: all before it in the segment was fsynced before it was written, which is what tells
//! damage from a torn end. A batch's crc begins with the disk's incarnation, so that nothing that a client stored can
//! pass for a batch. An entry's crc covers all of it but frames' bodies; those have the crc that they came with.

use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest};
use holdfast_core::follower::{Holdings, LogEntry, Ticket};
use holdfast_rpc::follower::LogFrame;
use holdfast_types::{CellName, Epoch, Incarnation, LogEpoch, LogOffset, NodeName, SessionId, Txid};

/// What batches are aligned to: the largest unit that a disk or a page cache writes at once.
pub(super) const PAGE_LEN: usize = 4096;
/// `HFJ1`.
const MAGIC: u32 = 0x314a_4648;
pub(super) const BATCH_HEAD_LEN: usize = 40;
pub(super) const ENTRY_HEAD_LEN: usize = 36;
pub(super) const FRAME_HEAD_LEN: usize = 36;
const NOTE_LEN: usize = 26;

const FLAG_SEALED: u8 = 1;
const FLAG_DAMAGED: u8 = 2;

/// A change of one session's log.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The session.
    pub session: SessionId,
    /// The number among those of its session.
    pub ticket: Ticket,
    /// The change.
    pub body: EntryBody,
}

/// What an entry says.
#[derive(Clone, Debug, PartialEq)]
pub enum EntryBody {
    /// Frames, in order, without a gap.
    Frames(Vec<LogFrame>),
    /// Anything else.
    Note {
        /// The node whose session it is.
        node: NodeName,
        /// Never [`LogEntry::Frames`].
        entry: LogEntry,
    },
}

impl Entry {
    /// The entry as the core's replay takes it.
    pub(super) fn log_entry(&self) -> LogEntry {
        match &self.body {
            EntryBody::Note { entry, .. } => *entry,
            EntryBody::Frames(frames) => LogEntry::Frames {
                first: frames.first().expect("an entry has frames").offset,
                last: frames.last().expect("an entry has frames").offset,
            },
        }
    }

    /// Bytes in a batch, head and all.
    pub(super) fn len(&self) -> usize {
        ENTRY_HEAD_LEN
            + match &self.body {
                EntryBody::Note { node, .. } => NOTE_LEN + node.as_str().len(),
                EntryBody::Frames(frames) => 4 + frames.iter().map(frame_len).sum::<usize>(),
            }
    }
}

pub(super) fn frame_len(frame: &LogFrame) -> usize {
    FRAME_HEAD_LEN + frame.cell.as_str().len() + frame.body.len()
}

/// The most that a message of frames takes in a segment: heads and all, in a batch of its own.
pub(super) fn frames_span(frames: &[LogFrame]) -> usize {
    span(ENTRY_HEAD_LEN + 4 + frames.iter().map(frame_len).sum::<usize>())
}

pub(super) fn crc() -> Digest {
    Digest::new(CrcAlgorithm::Crc32Iscsi)
}

pub(super) fn finish(digest: &Digest) -> u32 {
    u32::try_from(digest.finalize()).expect("a CRC-32 has 32 bits")
}

fn len_u32(len: usize) -> u32 {
    u32::try_from(len).expect("what is queued is bounded far below 4 GiB")
}

/// Bytes of a batch with its padding.
pub(super) fn span(payload_len: usize) -> usize {
    (BATCH_HEAD_LEN + payload_len).next_multiple_of(PAGE_LEN)
}

/// The head of a batch, but for its crc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BatchHead {
    pub(super) segment: u32,
    pub(super) durable: u64,
    pub(super) sequence: u64,
    pub(super) payload_len: usize,
    pub(super) entries: usize,
}

impl BatchHead {
    pub(super) fn encode(&self, incarnation: Incarnation) -> [u8; BATCH_HEAD_LEN] {
        let mut bytes = [0; BATCH_HEAD_LEN];
        bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[8..16].copy_from_slice(&u64::from(self.segment).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.durable.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[32..36].copy_from_slice(&len_u32(self.payload_len).to_le_bytes());
        bytes[36..].copy_from_slice(&len_u32(self.entries).to_le_bytes());
        let crc = Self::crc(&bytes, incarnation);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn crc(bytes: &[u8; BATCH_HEAD_LEN], incarnation: Incarnation) -> u32 {
        let mut digest = crc();
        digest.update(&incarnation.bits().to_le_bytes());
        digest.update(&bytes[..4]);
        digest.update(&bytes[8..]);
        finish(&digest)
    }

    /// Reads a head that stands at `position` of a segment; none when there is no such head.
    pub(super) fn decode(data: &[u8], segment: u32, position: u64, incarnation: Incarnation) -> Option<Self> {
        let bytes: &[u8; BATCH_HEAD_LEN] = data.first_chunk()?;
        let mut reader = Reader(bytes);
        let (magic, crc) = (reader.u32()?, reader.u32()?);
        let (number, durable, sequence) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let (payload_len, entries) = (reader.len()?, reader.len()?);
        let is_ours = magic == MAGIC && number == u64::from(segment) && durable == position;
        let head = Self { segment, durable, sequence, payload_len, entries };
        (is_ours && crc == Self::crc(bytes, incarnation)).then_some(head)
    }
}

/// Takes bytes off the front.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn u128(&mut self) -> Option<u128> {
        self.array().map(u128::from_le_bytes)
    }

    fn len(&mut self) -> Option<usize> {
        self.u32().and_then(|len| usize::try_from(len).ok())
    }
}

fn kind(body: &EntryBody) -> u32 {
    match body {
        EntryBody::Frames(_) | EntryBody::Note { entry: LogEntry::Frames { .. }, .. } => 1,
        EntryBody::Note { entry, .. } => match entry {
            LogEntry::Frames { .. } => 1,
            LogEntry::Adopt { .. } => 2,
            LogEntry::Release { .. } => 3,
            LogEntry::Seal => 4,
            LogEntry::Damage => 5,
            LogEntry::Forget => 6,
            LogEntry::Carried { .. } => 7,
        },
    }
}

/// The head of an entry, whose crc is put in when the rest is known.
pub(super) fn entry_head(entry: &Entry) -> [u8; ENTRY_HEAD_LEN] {
    let mut bytes = [0; ENTRY_HEAD_LEN];
    bytes[..4].copy_from_slice(&kind(&entry.body).to_le_bytes());
    bytes[4..8].copy_from_slice(&len_u32(entry.len() - ENTRY_HEAD_LEN).to_le_bytes());
    bytes[8..16].copy_from_slice(&entry.ticket.0.to_le_bytes());
    bytes[16..32].copy_from_slice(&entry.session.bits().to_le_bytes());
    bytes
}

pub(super) fn note(node: &NodeName, entry: &LogEntry) -> Vec<u8> {
    let (log_epoch, start, next, flags) = match *entry {
        LogEntry::Adopt { log_epoch, start } => (log_epoch.get(), start.get(), 0, 0),
        LogEntry::Release { start } => (0, start.get(), 0, 0),
        LogEntry::Seal | LogEntry::Damage | LogEntry::Forget | LogEntry::Frames { .. } => (0, 0, 0, 0),
        LogEntry::Carried { holdings: Holdings { log_epoch, start, next }, is_sealed, is_damaged } => {
            let flags = if is_sealed { FLAG_SEALED } else { 0 } | if is_damaged { FLAG_DAMAGED } else { 0 };
            (log_epoch.get(), start.get(), next.get(), flags)
        }
    };
    let node = node.as_str().as_bytes();
    let mut bytes = Vec::with_capacity(NOTE_LEN + node.len());
    for number in [log_epoch, start, next] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.push(flags);
    bytes.push(u8::try_from(node.len()).expect("names have at most 63 bytes"));
    bytes.extend_from_slice(node);
    bytes
}

/// The head of a frame and its cell.
pub(super) fn frame_head(frame: &LogFrame, into: &mut Vec<u8>) {
    let LogFrame { offset, cell, epoch, txid, body, crc } = frame;
    for number in [offset.get(), epoch.get(), txid.get()] {
        into.extend_from_slice(&number.to_le_bytes());
    }
    into.extend_from_slice(&crc.to_le_bytes());
    into.extend_from_slice(&len_u32(body.len()).to_le_bytes());
    into.extend_from_slice(&len_u32(cell.as_str().len()).to_le_bytes());
    into.extend_from_slice(cell.as_str().as_bytes());
}

/// An entry as read, and where each of its frames stands, from the begin of the payload.
pub(super) struct ReadEntry {
    pub(super) entry: Entry,
    /// Place and length of each frame, relative to the data that was read from.
    pub(super) frames: Vec<(usize, usize)>,
}

/// Reads an entry off the front. `base` is the place of the reader's first byte. None for anything damaged.
pub(super) fn read_entry(reader: &mut Reader<'_>, base: usize) -> Option<ReadEntry> {
    let whole = reader.0.len();
    let head = reader.take(ENTRY_HEAD_LEN)?;
    let mut fields = Reader(head);
    let (kind, payload_len, ticket) = (fields.u32()?, fields.len()?, Ticket(fields.u64()?));
    let (session, crc) = (SessionId::from_bits(fields.u128()?), fields.u32()?);
    let start = base + (whole - reader.0.len());
    let payload = reader.take(payload_len)?;
    let mut digest = self::crc();
    digest.update(&head[..32]);
    let (body, frames) = match kind {
        1 => read_frames(payload, start, session, &mut digest)?,
        _ => {
            digest.update(payload);
            (read_note(kind, payload)?, Vec::new())
        }
    };
    let entry = Entry { session, ticket, body };
    (crc == finish(&digest)).then_some(ReadEntry { entry, frames })
}

fn read_note(kind: u32, payload: &[u8]) -> Option<EntryBody> {
    let mut reader = Reader(payload);
    let (log_epoch, start, next) =
        (LogEpoch::new(reader.u64()?), LogOffset::new(reader.u64()?), LogOffset::new(reader.u64()?));
    let [flags, node_len] = reader.array()?;
    let node = NodeName::parse(std::str::from_utf8(reader.take(usize::from(node_len))?).ok()?).ok()?;
    let entry = match kind {
        2 => LogEntry::Adopt { log_epoch, start },
        3 => LogEntry::Release { start },
        4 => LogEntry::Seal,
        5 => LogEntry::Damage,
        6 => LogEntry::Forget,
        7 => LogEntry::Carried {
            holdings: Holdings { log_epoch, start, next },
            is_sealed: flags & FLAG_SEALED != 0,
            is_damaged: flags & FLAG_DAMAGED != 0,
        },
        _ => return None,
    };
    reader.0.is_empty().then_some(EntryBody::Note { node, entry })
}

fn read_frames(
    payload: &[u8],
    start: usize,
    session: SessionId,
    digest: &mut Digest,
) -> Option<(EntryBody, Vec<(usize, usize)>)> {
    let mut reader = Reader(payload);
    digest.update(payload.get(..4)?);
    let count = reader.len()?;
    let (mut frames, mut places) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let at = payload.len() - reader.0.len();
        let frame = read_frame(&mut reader)?;
        let len = frame_len(&frame);
        digest.update(&payload[at..at + len - frame.body.len()]);
        let follows = frames.last().is_none_or(|last: &LogFrame| last.offset.next() == frame.offset);
        if !follows || !frame.is_intact(session) {
            return None;
        }
        frames.push(frame);
        places.push((start + at, len));
    }
    (reader.0.is_empty() && !frames.is_empty()).then_some((EntryBody::Frames(frames), places))
}

/// Reads a frame off the front, crc unchecked.
pub(super) fn read_frame(reader: &mut Reader<'_>) -> Option<LogFrame> {
    let (offset, epoch, txid) = (reader.u64()?, reader.u64()?, reader.u64()?);
    let (crc, body_len, cell_len) = (reader.u32()?, reader.len()?, reader.len()?);
    let cell = CellName::parse(std::str::from_utf8(reader.take(cell_len)?).ok()?).ok()?;
    let body = Bytes::copy_from_slice(reader.take(body_len)?);
    let (offset, epoch, txid) = (LogOffset::new(offset), Epoch::new(epoch), Txid::new(txid));
    Some(LogFrame { offset, cell, epoch, txid, body, crc })
}
