//! What a node log makes of what the bucket has: frames that are covered, frames in bundles, and how both shape what is
//! retained, released, deleted and written into the record.

use alloc::vec::Vec;

use holdfast_types::LogOffset;

use super::NodeLogEffect;
use super::bundles::{Bundles, DRAIN_ROUNDS};
use super::machine::{Effects, NodeLog};
use crate::log_record::LogRecord;
use crate::mutant::{self, Mutant};

impl<V: Clone + core::fmt::Debug> NodeLog<V> {
    /// Everything below is in its cell's prefix.
    #[must_use]
    pub const fn covered_below(&self) -> LogOffset {
        self.covered_below
    }

    /// Over how many rounds a cell's frames gather for one upload, where they may wait at all.
    #[must_use]
    pub const fn rounds(&self) -> u32 {
        self.rounds
    }

    pub(super) fn on_covered(&mut self, below: LogOffset, effects: &mut Effects<V>) {
        assert!(below <= self.next, "only what was appended is covered");
        self.covered_below = self.covered_below.max(below);
        self.bundles.covered(self.covered_below);
        if mutant::is(Mutant::DeleteBundleBeforeRecord) {
            let firsts = self.bundles.drained();
            effects.push(NodeLogEffect::DeleteBundles { firsts });
        }
        self.stored_below(below);
    }

    fn stored_below(&mut self, below: LogOffset) {
        self.start = self.start.max(below);
        self.sent.forget(self.start);
    }

    pub(super) fn on_round(&mut self, cells: u64, effects: &mut Effects<V>) {
        self.bundles.round(cells, self.by_ensemble && !self.is_closing);
        self.bundle(|bundles, (start, below)| bundles.begin(start, below), effects);
    }

    pub(super) fn on_bundled(&mut self, below: LogOffset, effects: &mut Effects<V>) {
        // INV-LOG-3: gates are told of a proof while its frames are retained.
        assert!(below <= self.proved_below, "only what is proved is bundled");
        self.bundle(|bundles, _| bundles.made(below), effects);
        // Its rows may have been covered meanwhile.
        self.bundles.covered(self.covered_below);
        self.stored_below(self.bundles.stored_below());
        if mutant::is(Mutant::CreditBundlesAsCells) {
            self.on_covered(below, effects);
        }
    }

    fn bundle(
        &mut self,
        next: impl FnOnce(&mut Bundles, (LogOffset, LogOffset)) -> Option<(LogOffset, LogOffset)>,
        effects: &mut Effects<V>,
    ) {
        if let Some((first, below)) = next(&mut self.bundles, (self.start, self.proved_below)) {
            effects.push(NodeLogEffect::Bundle { first, below });
        }
    }

    pub(super) fn tell_rounds(&mut self, effects: &mut Effects<V>) {
        let rounds = if self.bundles.is_on() { DRAIN_ROUNDS } else { 1 };
        if rounds != self.rounds {
            self.rounds = rounds;
            effects.push(NodeLogEffect::Rounds { rounds });
        }
    }

    /// The record, for its bundles' sake. While an ensemble is being set up that goes first.
    pub(super) fn marked(&self) -> Option<LogRecord> {
        self.record.current().filter(|record| record.active && self.bundles.wants_mark()).cloned()
    }
}

/// Nobody reads these bundles any more.
pub(super) fn delete<V>(firsts: Vec<LogOffset>, effects: &mut Effects<V>) {
    if !firsts.is_empty() {
        effects.push(NodeLogEffect::DeleteBundles { firsts });
    }
}
