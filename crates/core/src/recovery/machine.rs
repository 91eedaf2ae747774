//! The machine: which event belongs to which step. The steps are in files of their own.

use alloc::string::String;
use alloc::vec::Vec;

use holdfast_types::{Millis, SessionId, WriteId};

use super::gather::Gathering;
use super::witness::Witnesses;
use super::{Recoverer, RecoveryEffect, RecoveryEvent, RecoveryFailure, RecoveryOutcome};
use crate::log_record::{LogRecord, LogState, RecoveryMark};
use crate::mutant::{self, Mutant};
use crate::store::{Answer, Guard};

/// Writes whose outcome stayed unknown before giving up.
const UNKNOWN_ROUNDS_MAX: u32 = 3;
/// Writes lost to others before giving up.
const CONTENDED_ROUNDS_MAX: u32 = 8;
/// Times that the members are asked to seal before giving up: more than once only where a witness could not be read.
pub(super) const SEAL_ROUNDS_MAX: u32 = 3;

/// One recovery of one session's log. Record effects are outstanding one at a time; seals and a gathering may be
/// outstanding beside them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Recovery<V> {
    pub(super) me: Recoverer,
    /// Of the next write. Random in its high bits, so no other writer has it.
    pub(super) write_id: WriteId,
    /// The wall clock at the last event.
    pub(super) now: Millis,
    /// The record as last read or written. Once it was there it never goes away.
    pub(super) record: Option<(LogRecord, V)>,
    /// The members that were asked. Whom to ask cannot change once the record says `recovering`.
    pub(super) witnesses: Option<Witnesses>,
    pub(super) seal_rounds: u32,
    /// Every acknowledged frame is covered: what remains is to write it down.
    pub(super) is_covered: bool,
    pub(super) is_loss_declared: bool,
    /// After a declared loss: what bundles hold is brought.
    pub(super) are_bundles_read: bool,
    /// What is wrong with a bundle.
    pub(super) damage: Option<String>,
    unknown_rounds: u32,
    contended_rounds: u32,
    pub(super) step: Step,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    Reading,
    /// Any write after which the record is looked at anew: `next` is what it will then be.
    Writing {
        next: LogRecord,
    },
    /// Finding out whether the recoverer that the record names lives.
    Judging {
        claimant: SessionId,
    },
    Sealing,
    LookingForLoss,
    Gathering(Gathering),
    MarkingBlocked,
    Finished,
}

impl<V: Clone + core::fmt::Debug> Recovery<V> {
    /// Begins. `write_id` is fresh randomness.
    #[must_use]
    pub fn start(me: Recoverer, write_id: WriteId) -> (Self, RecoveryEffect<V>) {
        let recovery = Self {
            me,
            write_id,
            now: Millis::ZERO,
            record: None,
            witnesses: None,
            seal_rounds: 0,
            is_covered: false,
            is_loss_declared: false,
            are_bundles_read: false,
            damage: None,
            unknown_rounds: 0,
            contended_rounds: 0,
            step: Step::Reading,
        };
        (recovery, RecoveryEffect::ReadRecord)
    }

    /// Takes an event and says what to do besides what is outstanding, if anything. `wall_now` is the wall clock before
    /// what is reported began, so that an answer which was long on its way makes no other recoverer look silent.
    ///
    /// # Panics
    /// When the event answers nothing that is outstanding: a bug of the shell.
    pub fn on(&mut self, event: RecoveryEvent<V>, wall_now: Millis) -> Option<RecoveryEffect<V>> {
        self.now = self.now.max(wall_now);
        match (&self.step, event) {
            (_, RecoveryEvent::MemberSealed { member, holdings }) => {
                self.asked().sealed(&member, holdings);
                self.on_member()
            }
            (_, RecoveryEvent::MemberUnreachable { member, reason }) => {
                self.asked().unreachable(&member, reason);
                self.on_member()
            }
            (Step::Gathering(_), event) => self.on_gathering(event),
            (Step::Reading, RecoveryEvent::RecordRead { record }) => self.on_record(record),
            (Step::Reading | Step::LookingForLoss, RecoveryEvent::ReadFailed) => {
                let was_unknown = self.unknown_rounds > 0;
                Some(self.fail(if was_unknown {
                    RecoveryFailure::Unknown
                } else {
                    RecoveryFailure::Unreadable
                }))
            }
            (Step::Judging { claimant }, RecoveryEvent::ClaimantLeaseRead { lease }) => {
                let claimant = *claimant;
                Some(self.on_claimant_lease(claimant, lease.as_ref()))
            }
            (Step::Judging { claimant }, RecoveryEvent::ReadFailed) => {
                let claimant = *claimant;
                Some(self.finish(RecoveryOutcome::Busy { claimant }))
            }
            (Step::Writing { .. }, RecoveryEvent::RecordAnswered(answer)) => self.on_answer(answer),
            (Step::LookingForLoss, RecoveryEvent::LossLookedFor { is_declared }) => {
                Some(self.on_loss_looked_for(is_declared))
            }
            // Whether the mark landed makes no difference to what was found.
            (Step::MarkingBlocked, RecoveryEvent::RecordAnswered(_)) => Some(self.finish_blocked()),
            (step, event) => unreachable!("event {event:?} does not answer step {step:?}"),
        }
    }

    fn asked(&mut self) -> &mut Witnesses {
        self.witnesses.as_mut().expect("members answer after they were asked")
    }

    /// An answer that no step waits for is kept for later.
    fn on_member(&mut self) -> Option<RecoveryEffect<V>> {
        if matches!(self.step, Step::Sealing) { self.proceed() } else { None }
    }

    /// Writes the record at the version last seen.
    pub(super) fn write(&mut self, next: LogRecord, guard: Guard<V>, step: Step) -> RecoveryEffect<V> {
        let missing = match (&next.recovery, &self.witnesses) {
            (Some(RecoveryMark { is_blocked: true, .. }), Some(witnesses)) => witnesses.missing(),
            _ => Vec::new(),
        };
        self.step = step;
        RecoveryEffect::WriteRecord { record: next, guard, missing }
    }

    pub(super) fn next_write_id(&mut self) -> WriteId {
        let id = self.write_id;
        self.write_id = WriteId::from_bits(id.bits().wrapping_add(1));
        id
    }

    fn on_answer(&mut self, answer: Answer<V>) -> Option<RecoveryEffect<V>> {
        let Step::Writing { next } = core::mem::replace(&mut self.step, Step::Finished) else {
            unreachable!("only a write is answered")
        };
        match answer {
            Answer::Applied(version) => {
                self.record = Some((next, version));
                return self.proceed();
            }
            Answer::Rejected => {
                self.contended_rounds += 1;
                if self.contended_rounds >= CONTENDED_ROUNDS_MAX {
                    return Some(self.fail(RecoveryFailure::Contended));
                }
            }
            Answer::Unknown => {
                self.unknown_rounds += 1;
                if self.unknown_rounds >= UNKNOWN_ROUNDS_MAX {
                    return Some(self.fail(RecoveryFailure::Unknown));
                }
            }
        }
        // A write whose answer was lost is recognised by what the record says: claimant or `sealed`.
        self.step = Step::Reading;
        Some(RecoveryEffect::ReadRecord)
    }

    pub(super) fn fail(&mut self, failure: RecoveryFailure) -> RecoveryEffect<V> {
        self.finish(RecoveryOutcome::Failed(failure))
    }

    pub(super) fn finish(&mut self, outcome: RecoveryOutcome) -> RecoveryEffect<V> {
        self.step = Step::Finished;
        // INV-REC-1.
        if let RecoveryOutcome::Recovered { record } = &outcome {
            assert!(
                record.state == LogState::Sealed || mutant::is(Mutant::AbsentLogIsNothing),
                "recovered means sealed"
            );
        }
        RecoveryEffect::Finish(outcome)
    }
}
