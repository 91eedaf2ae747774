//! A follower's disk: one journal of all sessions, in segments. What a power cut or a lost segment leaves of it, and which
//! segments may go.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use holdfast_core::follower::{LogEntry, LogReplay, Ticket};
use holdfast_types::{Incarnation, LogOffset, SessionId};

use crate::frame::Frame;
use crate::rng::Rng;

/// Entries of a segment, so small that every run begins several.
const SEGMENT_LEN_MAX: usize = 24;

/// An entry as it stands in the journal.
#[derive(Clone, Debug)]
pub(crate) struct JournalEntry {
    pub(crate) session: SessionId,
    pub(crate) ticket: Ticket,
    pub(crate) entry: LogEntry,
    pub(crate) frames: Vec<Rc<Frame>>,
}

#[derive(Clone, Debug)]
struct Written {
    segment: u64,
    entry: JournalEntry,
}

/// A disk.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    pub(crate) incarnation: Incarnation,
    /// What the system has been given, in order.
    written: Vec<Written>,
    /// How much of it is fsynced.
    synced: usize,
    /// Segments that were lost, of those that are not given up.
    lost: BTreeSet<u64>,
    /// Whether a segment was ever lost.
    is_harmed: bool,
    segment: u64,
    /// Where the head of the current segment ends, which says all that the segments before it say.
    head_end: usize,
    /// What the entries say so far.
    replays: BTreeMap<SessionId, LogReplay>,
}

impl Disk {
    pub(crate) fn new(incarnation: Incarnation) -> Self {
        Self {
            incarnation,
            written: Vec::new(),
            synced: 0,
            lost: BTreeSet::new(),
            is_harmed: false,
            segment: 1,
            head_end: 0,
            replays: BTreeMap::new(),
        }
    }

    /// Writes a batch; the bound of what an fsync begun now makes durable.
    pub(crate) fn write(&mut self, batch: Vec<JournalEntry>) -> u64 {
        let in_segment = self.written.iter().rev().take_while(|written| written.segment == self.segment);
        if in_segment.count() >= SEGMENT_LEN_MAX {
            self.begin_segment();
        }
        for entry in batch {
            let replay = self.replays.entry(entry.session).or_default();
            replay.apply(entry.ticket, &entry.entry);
            if replay.is_forgotten() {
                self.replays.remove(&entry.session);
            }
            self.written.push(Written { segment: self.segment, entry });
        }
        self.written.len() as u64
    }

    /// A new segment says first what all before it say, so that they can be given up.
    fn begin_segment(&mut self) {
        self.segment += 1;
        for (session, replay) in &self.replays {
            let (ticket, entry) = replay.carried();
            let entry = JournalEntry { session: *session, ticket, entry, frames: Vec::new() };
            self.written.push(Written { segment: self.segment, entry });
        }
        self.head_end = self.written.len();
    }

    /// An fsync has ended: what became durable by it.
    pub(crate) fn on_synced(&mut self, upto: u64) -> Vec<JournalEntry> {
        let upto = usize::try_from(upto).expect("an index").min(self.written.len());
        let fresh = self.written[self.synced.min(upto)..upto].iter().map(|written| written.entry.clone());
        let fresh = fresh.collect();
        self.synced = self.synced.max(upto);
        fresh
    }

    /// Gives up segments from the oldest on that hold no retained frame.
    pub(crate) fn drop_segments(&mut self) {
        while let Some(oldest) = self.written.first().map(|written| written.segment) {
            let len = self.written.iter().take_while(|written| written.segment == oldest).count();
            let is_needed = self.written[..len].iter().any(|written| self.retains(&written.entry));
            if oldest == self.segment || is_needed || self.synced < self.head_end {
                return;
            }
            self.written.drain(..len);
            self.synced -= len;
            self.head_end -= len;
            self.lost = self.lost.split_off(&(oldest + 1));
        }
    }

    fn retains(&self, entry: &JournalEntry) -> bool {
        let start = self.replays.get(&entry.session).map(|replay| replay.holdings().start);
        start.is_some_and(|start| entry.frames.iter().any(|frame| frame.offset >= start))
    }

    /// A power cut: of what was not fsynced some prefix may be left, torn at its end.
    pub(crate) fn cut_power(&mut self, rng: &mut Rng) {
        let survives = rng.index(self.written.len() - self.synced + 1);
        self.written.truncate(self.synced + survives);
    }

    /// Loses one segment, and with it whatever stands there.
    pub(crate) fn lose_segment(&mut self, rng: &mut Rng) {
        let Some(first) = self.written.first().map(|written| written.segment) else { return };
        let lost = rng.within(first, self.segment);
        self.lost.insert(lost);
        self.is_harmed = true;
        let before = self.written.iter().take(self.synced).filter(|written| written.segment != lost).count();
        self.written.retain(|written| written.segment != lost);
        self.synced = before;
    }

    /// Reads everything that is there, as a starting process does: it is fsynced first.
    pub(crate) fn open(&mut self) -> (Vec<JournalEntry>, BTreeMap<SessionId, LogReplay>) {
        let fresh = self.on_synced(self.written.len() as u64);
        self.replays.clear();
        let mut lost = self.lost.clone();
        for written in &self.written {
            while lost.first().is_some_and(|lost| *lost < written.segment) {
                lost.pop_first();
                self.replays.values_mut().for_each(LogReplay::hole);
            }
            let replay = self.replays.entry(written.entry.session).or_default();
            replay.apply(written.entry.ticket, &written.entry.entry);
            if replay.is_forgotten() {
                self.replays.remove(&written.entry.session);
            }
        }
        if !lost.is_empty() {
            self.replays.values_mut().for_each(LogReplay::hole);
        }
        self.begin_segment();
        (fresh, self.replays.clone())
    }

    /// The frames of a session from an offset on, without a gap, that are fsynced.
    pub(crate) fn tail(&self, session: SessionId, from: LogOffset, len_max: usize) -> Vec<Rc<Frame>> {
        let entries = self.written[..self.synced].iter().map(|written| &written.entry);
        let frames = entries.filter(|entry| entry.session == session).flat_map(|entry| &entry.frames);
        let held: BTreeMap<LogOffset, &Rc<Frame>> = frames.map(|frame| (frame.offset, frame)).collect();
        let offsets = (from.get()..).map(LogOffset::new);
        offsets.map_while(|offset| held.get(&offset).map(|frame| Rc::clone(frame))).take(len_max).collect()
    }

    /// Whether a segment was ever lost.
    pub(crate) fn is_harmed(&self) -> bool {
        self.is_harmed
    }
}
