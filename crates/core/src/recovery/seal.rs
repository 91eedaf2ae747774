//! The step that finds a witness, and the one that gives up on finding any.

use super::machine::{Recovery, SEAL_ROUNDS_MAX, Step};
use super::witness::Witnesses;
use super::{RECOVERY_SILENCE_MS, RecoveryEffect, RecoveryFailure, RecoveryOutcome};
use crate::log_record::{Ensemble, LogRecord, LogState};
use crate::mutant::{self, Mutant};
use crate::store::Guard;

impl<V: Clone + core::fmt::Debug> Recovery<V> {
    /// Goes on from a frozen record. None: members have yet to answer.
    pub(super) fn proceed(&mut self) -> Option<RecoveryEffect<V>> {
        let (record, _) = self.record.as_ref().expect("the record was read");
        if record.state == LogState::Sealed {
            let record = record.clone();
            return Some(self.finish(RecoveryOutcome::Recovered { record }));
        }
        let Some(witnesses) = &self.witnesses else { return Some(self.ask_members()) };
        if let Some((member, holdings)) = witnesses.conclusive() {
            if !self.is_held() {
                return Some(self.hold());
            }
            return Some(self.gather(member, holdings, true));
        }
        if witnesses.is_waiting() {
            self.step = Step::Sealing;
            return None;
        }
        if self.is_loss_declared {
            return Some(self.gather_what_is_left());
        }
        if witnesses.has_failed_tails() && self.seal_rounds < SEAL_ROUNDS_MAX {
            return Some(self.ask_members());
        }
        self.step = Step::LookingForLoss;
        Some(RecoveryEffect::LookForLoss)
    }

    /// Asks every member of the ensemble that holds what the bucket lacks, if there is one.
    fn ask_members(&mut self) -> RecoveryEffect<V> {
        let (record, _) = self.record.as_ref().expect("the record was read");
        if mutant::is(Mutant::ReadBundlesBeforeSeal)
            && let Some(from) = record.bundles_from.filter(|_| !self.are_bundles_read && self.is_held())
        {
            return self.gather_bundles(from, true);
        }
        let Some(ensemble) = ensemble_to_ask(record) else {
            // Nothing that was acknowledged is on followers alone.
            return self.gather_from_bundles();
        };
        let members = ensemble.members.clone();
        self.witnesses = Some(Witnesses::ask(ensemble));
        self.seal_rounds += 1;
        self.step = Step::Sealing;
        RecoveryEffect::SealMembers { members }
    }

    pub(super) fn on_loss_looked_for(&mut self, is_declared: bool) -> RecoveryEffect<V> {
        if is_declared || mutant::is(Mutant::DeclareLoss) {
            self.is_loss_declared = true;
            return if self.is_held() { self.gather_what_is_left() } else { self.hold() };
        }
        if let Some(damage) = self.damage.take() {
            return self.fail(RecoveryFailure::Gather(damage));
        }
        let mark = self.record.as_ref().and_then(|(record, _)| record.recovery.as_ref());
        let is_marked = mark
            .is_some_and(|mark| mark.is_blocked && self.now.since(mark.heartbeat_ms) < RECOVERY_SILENCE_MS);
        if is_marked {
            return self.finish_blocked();
        }
        let (next, guard) = self.marked(self.done_below(), true);
        self.write(next, guard, Step::MarkingBlocked)
    }

    pub(super) fn finish_blocked(&mut self) -> RecoveryEffect<V> {
        let witnesses = self.witnesses.as_ref().expect("members were asked");
        let (log_epoch, missing) = (witnesses.log_epoch, witnesses.missing());
        self.finish(RecoveryOutcome::Blocked { log_epoch, missing })
    }

    /// After a declared loss: what the best of the members has is better than nothing. What bundles hold comes before it.
    pub(super) fn gather_what_is_left(&mut self) -> RecoveryEffect<V> {
        if let Some(from) = self.bundles_from().filter(|_| !self.are_bundles_read) {
            return self.gather_bundles(from, false);
        }
        let rest = self.witnesses.as_ref().and_then(Witnesses::best_of_the_rest);
        match rest {
            Some((member, holdings)) => self.gather(member, holdings, false),
            None => self.seal(),
        }
    }

    /// Writes `sealed`. Only once everything is covered, or a person declared the rest lost.
    pub(super) fn seal(&mut self) -> RecoveryEffect<V> {
        // INV-REC-2 and INV-REC-3.
        assert!(
            self.is_covered || self.is_loss_declared || mutant::is(Mutant::SealBeforeCoverage),
            "sealed means that every acknowledged frame is covered"
        );
        let write_id = self.next_write_id();
        let (record, version) = self.record.as_ref().expect("the record was read");
        assert_eq!(record.state, LogState::Recovering, "only a frozen record is sealed");
        let guard = Guard::Match(version.clone());
        let next = LogRecord {
            write_id,
            state: LogState::Sealed,
            recovery: None,
            loss_declared: !self.is_covered && self.is_loss_declared && !mutant::is(Mutant::HideDeclaredLoss),
            ..record.clone()
        };
        self.write(next.clone(), guard, Step::Writing { next })
    }
}

/// The ensemble of which one member is needed; none where the bucket holds all that was acknowledged.
fn ensemble_to_ask(record: &LogRecord) -> Option<&Ensemble> {
    if !record.active && mutant::is(Mutant::IgnorePriorEnsemble) {
        return None;
    }
    record.witnesses().filter(|ensemble| !ensemble.members.is_empty())
}
