//! The step that freezes the record: from `recovering` on the session writes it no more, so no further ensemble becomes
//! active and whom to ask is settled. A record that is not there is frozen too, as `sealed`: a paused owner could
//! create it later and acknowledge.

use alloc::vec::Vec;

use holdfast_types::{LogEpoch, LogOffset, SessionId};

use super::machine::{Recovery, Step};
use super::{RECOVERY_SILENCE_MS, Recoverer, RecoveryEffect, RecoveryFailure, RecoveryOutcome};
use crate::log_record::{Ensemble, LogRecord, LogState, RecoveryMark};
use crate::mutant::{self, Mutant};
use crate::ownership::{LeaseView, is_session_dead};
use crate::store::Guard;

impl<V: Clone + core::fmt::Debug> Recovery<V> {
    pub(super) fn on_record(&mut self, read: Option<(LogRecord, V)>) -> Option<RecoveryEffect<V>> {
        let Some((record, version)) = read else { return Some(self.on_absent_record()) };
        if record.node != self.me.node || record.session != self.me.session {
            return Some(self.fail(RecoveryFailure::OtherSession));
        }
        let mark = record.recovery.clone();
        let state = record.state;
        self.record = Some((record.clone(), version));
        Some(match (state, mark) {
            (LogState::Sealed, _) => self.finish(RecoveryOutcome::Recovered { record }),
            // Coverage does not depend on who finds it.
            (LogState::Recovering, _) if self.is_covered => self.seal(),
            (LogState::Open, _) | (LogState::Recovering, None) => self.hold(),
            (LogState::Recovering, Some(mark)) if mark.claimant == self.me.claimant || mark.is_blocked => {
                return self.proceed();
            }
            (LogState::Recovering, Some(mark)) if self.now.since(mark.heartbeat_ms) < RECOVERY_SILENCE_MS => {
                self.judge(mark)
            }
            (LogState::Recovering, Some(_)) => self.hold(),
        })
    }

    /// Another recoverer is at it, and was so lately: it is left alone while it lives.
    fn judge(&mut self, mark: RecoveryMark) -> RecoveryEffect<V> {
        let RecoveryMark { claimant, claimant_node, heartbeat_ms: _, done_below: _, is_blocked: _ } = mark;
        if mutant::is(Mutant::TakeOverLiveRecoverer) {
            return self.hold();
        }
        let Some(node) = claimant_node else { return self.finish(RecoveryOutcome::Busy { claimant }) };
        self.step = Step::Judging { claimant };
        RecoveryEffect::ReadClaimantLease { node }
    }

    /// A recoverer whose lease is dead by the rule of every takeover is taken over without waiting for its silence. That is
    /// for liveness alone, and safe however wrong the judgement: recoveries are idempotent and may race. One that was
    /// judged dead and lives may go on to upload, which changes nothing, for the same frames go under the same keys. Its next
    /// heartbeat meets another version of the record and ends it, unless it has covered everything itself, and then it may
    /// seal whoever holds the record. Nor is its progress lost or taken for more than it is: `done_below` is copied from the
    /// very version that this write replaces, so a heartbeat that lands in between has this write refused and read again;
    /// and what it says, that frames are in their cells' prefixes, stays true whoever wrote it.
    pub(super) fn on_claimant_lease(
        &mut self,
        claimant: SessionId,
        lease: Option<&LeaseView>,
    ) -> RecoveryEffect<V> {
        if is_session_dead(lease, claimant, self.now, self.me.clock_skew_max_ms) {
            self.hold()
        } else {
            self.finish(RecoveryOutcome::Busy { claimant })
        }
    }

    fn on_absent_record(&mut self) -> RecoveryEffect<V> {
        if self.record.is_some() {
            return self.fail(RecoveryFailure::RecordGone);
        }
        let sealed = LogRecord {
            write_id: self.next_write_id(),
            node: self.me.node.clone(),
            session: self.me.session,
            state: LogState::Sealed,
            ensemble: Ensemble { log_epoch: LogEpoch::ZERO, members: Vec::new() },
            active: false,
            prior: None,
            recovery: None,
            loss_declared: false,
            bundles_from: None,
        };
        if mutant::is(Mutant::AbsentLogIsNothing) {
            return self.finish(RecoveryOutcome::Recovered {
                record: LogRecord { state: LogState::Open, ..sealed },
            });
        }
        self.write(sealed.clone(), Guard::Absent, Step::Writing { next: sealed })
    }

    /// Whether the record says that this recoverer is at it.
    pub(super) fn is_held(&self) -> bool {
        self.record.as_ref().is_some_and(|(record, _)| {
            record.state == LogState::Recovering
                && record
                    .recovery
                    .as_ref()
                    .is_some_and(|mark| mark.claimant == self.me.claimant && !mark.is_blocked)
        })
    }

    /// Where the next gathering begins.
    pub(super) fn done_below(&self) -> LogOffset {
        let mark = self.record.as_ref().and_then(|(record, _)| record.recovery.as_ref());
        mark.map_or(LogOffset::ZERO, |mark| mark.done_below)
    }

    /// Writes down that this recoverer is at it.
    pub(super) fn hold(&mut self) -> RecoveryEffect<V> {
        let (next, guard) = self.marked(self.done_below(), false);
        self.write(next.clone(), guard, Step::Writing { next })
    }

    /// The record with this recoverer's mark, and the guard to write it under.
    pub(super) fn marked(&mut self, done_below: LogOffset, is_blocked: bool) -> (LogRecord, Guard<V>) {
        let write_id = self.next_write_id();
        let (record, version) = self.record.as_ref().expect("the record was read");
        let Recoverer { claimant, claimant_node, .. } = self.me.clone();
        let mark = RecoveryMark { claimant, claimant_node, heartbeat_ms: self.now, done_below, is_blocked };
        let record =
            LogRecord { write_id, state: LogState::Recovering, recovery: Some(mark), ..record.clone() };
        (record, Guard::Match(version.clone()))
    }
}
