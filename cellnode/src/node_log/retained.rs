//! The frames that are not stored in the bucket yet, in order, in memory: what a new member of an ensemble must be sent. And
//! of every frame, whether it is covered, which frames in bundles are not yet.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use holdfast_rpc::follower::LogFrame;
use holdfast_types::LogOffset;

use crate::cells::Resident;

/// One frame.
#[derive(Clone, Debug)]
pub(super) struct Retained {
    pub(super) resident: Arc<Resident>,
    pub(super) frame: LogFrame,
}

/// The frames from `start` on.
#[derive(Debug)]
pub(super) struct Frames {
    start: LogOffset,
    frames: VecDeque<Retained>,
    bytes: u64,
    covered_below: LogOffset,
    /// From `covered_below` on: whether the frame is in its cell's prefix.
    covered: VecDeque<bool>,
}

fn len(retained: &Retained) -> u64 {
    retained.frame.body.len().try_into().unwrap_or(u64::MAX)
}

fn distance(from: LogOffset, to: LogOffset) -> Option<usize> {
    usize::try_from(to.get().checked_sub(from.get())?).ok()
}

impl Frames {
    pub(super) const fn new() -> Self {
        Self {
            start: LogOffset::new(1),
            frames: VecDeque::new(),
            bytes: 0,
            covered_below: LogOffset::new(1),
            covered: VecDeque::new(),
        }
    }

    /// The first frame's offset; that of the next one where none is there.
    pub(super) const fn start(&self) -> LogOffset {
        self.start
    }

    /// Bytes of all bodies.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn push(&mut self, resident: Arc<Resident>, frame: LogFrame) {
        assert_eq!(distance(self.start, frame.offset), Some(self.frames.len()), "frames follow each other");
        assert_eq!(distance(self.covered_below, frame.offset), Some(self.covered.len()), "without a gap");
        let retained = Retained { resident, frame };
        self.bytes += len(&retained);
        self.frames.push_back(retained);
        self.covered.push_back(false);
    }

    /// The frames from an offset on; none where some of them are not retained any more.
    pub(super) fn from(&self, offset: LogOffset) -> Option<impl Iterator<Item = &Retained>> {
        let at = distance(self.start, offset)?;
        Some(self.frames.range(at.min(self.frames.len())..))
    }

    /// The frame is in its cell's prefix.
    pub(super) fn cover(&mut self, offset: LogOffset) {
        if let Some(covered) = distance(self.covered_below, offset).and_then(|at| self.covered.get_mut(at)) {
            *covered = true;
        }
    }

    /// The first frame that is not in its cell's prefix.
    pub(super) fn covered_below(&mut self) -> LogOffset {
        while self.covered.pop_front_if(|covered| *covered).is_some() {
            self.covered_below = self.covered_below.next();
        }
        self.covered_below
    }

    fn is_covered(&self, offset: LogOffset) -> bool {
        distance(self.covered_below, offset).is_none_or(|at| self.covered.get(at).is_some_and(|is| *is))
    }

    /// The retained frames of a range that are not covered, in order.
    pub(super) fn lacking(&self, first: LogOffset, below: LogOffset) -> impl Iterator<Item = &Retained> {
        let frames = self.from(first.max(self.start)).into_iter().flatten();
        let frames = frames.take_while(move |retained| retained.frame.offset < below);
        frames.filter(move |retained| !self.is_covered(retained.frame.offset))
    }

    /// Cells with retained frames that are not covered.
    pub(super) fn dirty_cells(&self) -> usize {
        let lacking = self.frames.iter().filter(|retained| !self.is_covered(retained.frame.offset));
        lacking.map(|retained| Arc::as_ptr(&retained.resident)).collect::<HashSet<_>>().len()
    }

    /// Drops what need not be retained any more.
    pub(super) fn drop_below(&mut self, start: LogOffset) {
        while self.start < start
            && let Some(retained) = self.frames.pop_front()
        {
            self.bytes -= len(&retained);
            self.start = self.start.next();
        }
    }
}
