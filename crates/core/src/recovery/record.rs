//! The step that freezes the record: from `recovering` on the session writes it no more, so no further ensemble becomes
//! active and whom to ask is settled. A record that is not there is frozen too, as `sealed`: a paused owner could
//! create it later and acknowledge.

use alloc::vec::Vec;

use holdfast_types::{LogEpoch, LogOffset};

use super::machine::{Recovery, Step};
use super::{RECOVERY_SILENCE_MS, RecoveryEffect, RecoveryFailure, RecoveryOutcome};
use crate::log_record::{Ensemble, LogRecord, LogState, RecoveryMark};
use crate::mutant::{self, Mutant};
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
                self.finish(RecoveryOutcome::Busy { claimant: mark.claimant })
            }
            (LogState::Recovering, Some(_)) => self.hold(),
        })
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
        let mark =
            RecoveryMark { claimant: self.me.claimant, heartbeat_ms: self.now, done_below, is_blocked };
        let record =
            LogRecord { write_id, state: LogState::Recovering, recovery: Some(mark), ..record.clone() };
        (record, Guard::Match(version.clone()))
    }
}
