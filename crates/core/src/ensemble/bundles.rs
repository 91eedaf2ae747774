//! Bundles of a node log: one object with the frames of many cells, for rounds in which so many cells are dirty that an
//! object for each would cost more than storing them twice. Bundles follow each other without a gap of the log, and the
//! record says from which frame on a recovery must read them. Keeps INV-LOG-3: a frame in a bundle that the record does
//! not exclude is stored; it is covered only once it is in its cell's prefix, and then alone its bundle may go.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use holdfast_types::LogOffset;

use crate::mutant::{self, Mutant};

/// Cells with frames in one round from which on the round is bundled. Below, an object for each cell costs less than what
/// a bundle brings with it: its own object, its deletion, a write of the record, and each frame stored twice.
pub const BUNDLE_CELLS_MIN: u64 = 64;
/// Cells in one round below which a session stops to bundle: half, so that it does not change its mind with every round.
const BUNDLE_CELLS_KEPT: u64 = BUNDLE_CELLS_MIN / 2;
/// Rounds that a cell's frames gather for one object of its own while rounds are bundled. Here lies the gain: a busy cell
/// costs one object in eight rounds instead of eight. More would gain little (one eighth is left) and lengthen recoveries,
/// which read what is not drained.
pub const DRAIN_ROUNDS: u32 = 8;
/// Drained bundles that are worth a write of the record, so that they may be deleted. While it is under way no other
/// ensemble can be written down.
const DRAINED_TOGETHER: usize = 8;
/// Bundles that are not drained. Beyond, frames stay retained, and the session's own bound makes their cells' uploads
/// urgent. Bounds what a recovery reads: 64 bundles of at most 8 MiB.
const BUNDLES_MAX: usize = 64;

/// The bundles of one session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Bundles {
    /// Rounds are bundled.
    is_wanted: bool,
    /// What the record says of bundles, as confirmed. Nothing may rest on a bundle before it says something.
    confirmed: Option<LogOffset>,
    /// First frame, and the one after the last, of bundles that are in the bucket and not drained.
    live: VecDeque<(LogOffset, LogOffset)>,
    /// First frames of drained bundles that are to be deleted once the record excludes them.
    drained: Vec<LogOffset>,
    /// The first frame of the next bundle.
    next: LogOffset,
    /// Bounds of the one that is being made, and the end of its round.
    making: Option<(LogOffset, LogOffset)>,
}

impl Bundles {
    pub(super) const fn new() -> Self {
        Self {
            is_wanted: false,
            confirmed: None,
            live: VecDeque::new(),
            drained: Vec::new(),
            next: LogOffset::new(1),
            making: None,
        }
    }

    /// What the record is to say: the first frame of the first bundle that is not drained. None: there were never any.
    pub(super) fn from(&self) -> Option<LogOffset> {
        let first = self.live.front().map_or(self.next, |(first, _)| *first);
        (self.is_wanted || self.confirmed.is_some()).then_some(first)
    }

    /// Whether the record should be written for its bundles' sake.
    pub(super) fn wants_mark(&self) -> bool {
        let is_first = self.is_wanted && self.confirmed.is_none();
        let are_all = self.live.is_empty() && !self.drained.is_empty();
        is_first || are_all || self.drained.len() >= DRAINED_TOGETHER
    }

    /// Every frame below is in a bundle, or was covered when the bundle was made.
    pub(super) const fn stored_below(&self) -> LogOffset {
        self.next
    }

    /// Whether cells' frames gather for [`DRAIN_ROUNDS`].
    pub(super) const fn is_on(&self) -> bool {
        self.is_wanted && self.confirmed.is_some()
    }

    /// A round begins with this many dirty cells.
    pub(super) fn round(&mut self, cells: u64, may_bundle: bool) {
        let enough = if self.is_wanted { BUNDLE_CELLS_KEPT } else { BUNDLE_CELLS_MIN };
        self.is_wanted = may_bundle && cells >= enough;
    }

    /// Bounds of a bundle to make now: the frames not covered of `start..below`.
    pub(super) fn begin(&mut self, start: LogOffset, below: LogOffset) -> Option<(LogOffset, LogOffset)> {
        if !self.is_on() || self.making.is_some() || self.live.len() >= BUNDLES_MAX || start >= below {
            return None;
        }
        // It begins where the one before ends, or a recovery would not find it, though the frames from there to `start`
        // be covered by now.
        self.making = Some((self.next, below));
        self.making
    }

    /// The bundle that was asked for is in the bucket up to this frame. Returns the bounds of the next one of its round.
    pub(super) fn made(&mut self, below: LogOffset) -> Option<(LogOffset, LogOffset)> {
        let (first, round_below) = self.making.take().expect("a bundle was asked for");
        assert!(first < below && below <= round_below, "a bundle lies within what was asked for");
        self.live.push_back((first, below));
        self.next = below;
        if below < round_below { self.begin(below, round_below) } else { None }
    }

    /// Every frame that it would hold is covered by now.
    pub(super) fn not_made(&mut self) {
        self.making = None;
    }

    /// Every frame below is in its cell's prefix.
    pub(super) fn covered(&mut self, below: LogOffset) {
        let is_early = mutant::is(Mutant::DropUndrainedBundle);
        while let Some((first, _)) = self.live.pop_front_if(|(_, end)| *end <= below || is_early) {
            self.drained.push(first);
        }
    }

    /// Drained bundles, whatever the record says.
    pub(super) fn drained(&mut self) -> Vec<LogOffset> {
        core::mem::take(&mut self.drained)
    }

    /// The record says so now. Returns the bundles to delete: no recovery reads them any more.
    pub(super) fn confirmed(&mut self, from: Option<LogOffset>) -> Vec<LogOffset> {
        self.confirmed = from;
        let excluded = |first: &LogOffset| from.is_some_and(|from| *first < from);
        let (gone, kept) = core::mem::take(&mut self.drained).into_iter().partition(excluded);
        self.drained = kept;
        gone
    }

    /// The log is sealed: nobody reads a bundle of it.
    pub(super) fn all(&mut self) -> Vec<LogOffset> {
        let live = core::mem::take(&mut self.live).into_iter().map(|(first, _)| first);
        core::mem::take(&mut self.drained).into_iter().chain(live).collect()
    }
}
