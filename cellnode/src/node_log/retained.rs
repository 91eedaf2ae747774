//! The frames that the bucket does not cover yet, in order, in memory: what a new member of an ensemble must be sent.

use std::collections::VecDeque;
use std::sync::Arc;

use holdfast_rpc::follower::LogFrame;
use holdfast_types::LogOffset;

use crate::cells::Resident;

/// One frame.
#[derive(Clone, Debug)]
pub(super) struct Retained {
    pub(super) resident: Arc<Resident>,
    pub(super) frame: LogFrame,
    is_covered: bool,
}

/// The frames from `start` on.
#[derive(Debug)]
pub(super) struct Frames {
    start: LogOffset,
    frames: VecDeque<Retained>,
    bytes: u64,
}

fn len(retained: &Retained) -> u64 {
    retained.frame.body.len().try_into().unwrap_or(u64::MAX)
}

impl Frames {
    pub(super) const fn new() -> Self {
        Self { start: LogOffset::new(1), frames: VecDeque::new(), bytes: 0 }
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
        assert_eq!(self.index(frame.offset), Some(self.frames.len()), "frames follow each other");
        let retained = Retained { resident, frame, is_covered: false };
        self.bytes += len(&retained);
        self.frames.push_back(retained);
    }

    fn index(&self, offset: LogOffset) -> Option<usize> {
        usize::try_from(offset.get().checked_sub(self.start.get())?).ok()
    }

    /// The frames from an offset on; none where some of them are not retained any more.
    pub(super) fn from(&self, offset: LogOffset) -> Option<impl Iterator<Item = &Retained>> {
        let at = self.index(offset)?;
        Some(self.frames.range(at.min(self.frames.len())..))
    }

    /// The frame is in its cell's prefix.
    pub(super) fn cover(&mut self, offset: LogOffset) {
        if let Some(retained) = self.index(offset).and_then(|at| self.frames.get_mut(at)) {
            retained.is_covered = true;
        }
    }

    /// Drops what is covered without a gap. Returns the first offset that is retained.
    pub(super) fn drop_covered(&mut self) -> LogOffset {
        while let Some(retained) = self.frames.pop_front_if(|retained| retained.is_covered) {
            self.bytes -= len(&retained);
            self.start = self.start.next();
        }
        self.start
    }
}
