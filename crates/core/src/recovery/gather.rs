//! The steps that bring frames into the cells' prefixes, with a heartbeat in the record: those of a witness, then those of
//! the session's bundles. In this order: a witness may have dropped what a bundle holds until the moment of its seal, so
//! only bundles that are read after it are all of them. A heartbeat that is refused means that another recoverer took
//! over, or finished.

use alloc::boxed::Box;

use holdfast_types::{LogOffset, Millis};

use super::machine::{Recovery, Step};
use super::witness::doubt;
use super::{
    GatherFault, HEARTBEAT_INTERVAL_MS, Holdings, RecoveryEffect, RecoveryEvent, RecoveryFailure,
    RecoveryOutcome,
};
use crate::log_record::{LogRecord, LogState, MemberId};
use crate::mutant::{self, Mutant};
use crate::store::Answer;

/// A gathering under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Gathering {
    source: Source,
    end: LogOffset,
    /// The member is a witness: its progress holds for every witness. Of what is left after a declared loss nothing may
    /// be concluded for a member that is still to come.
    is_whole: bool,
    done_below: LogOffset,
    heartbeat_at: Millis,
    record: RecordAccess,
    ended: Option<Result<(), GatherFault>>,
}

/// Where frames are gathered from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Source {
    Member(MemberId),
    Bundles,
}

/// What is outstanding at the record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum RecordAccess {
    None,
    Writing {
        next: Box<LogRecord>,
    },
    Reading,
    /// Its version is not known: a write was answered by nobody.
    Stale,
}

impl<V: Clone + core::fmt::Debug> Recovery<V> {
    pub(super) fn gather(
        &mut self,
        member: MemberId,
        holdings: Holdings,
        is_whole: bool,
    ) -> RecoveryEffect<V> {
        let log_epoch = self.witnesses.as_ref().expect("members were asked").log_epoch;
        // INV-REC-2: only a witness makes coverage.
        assert!(
            !is_whole
                || doubt(&member, log_epoch, holdings).is_none()
                || mutant::is(Mutant::IncompleteWitness),
            "coverage needs a witness"
        );
        let (start, end) = (self.done_below().max(holdings.start), holdings.end);
        if is_whole && mutant::is(Mutant::SealBeforeCoverage) {
            return self.seal();
        }
        if is_whole && start >= end {
            return self.gather_from_bundles();
        }
        let start = if is_whole { start } else { holdings.start };
        self.step = Step::Gathering(Gathering {
            source: Source::Member(member.clone()),
            end,
            is_whole,
            done_below: self.done_below(),
            heartbeat_at: self.now,
            record: RecordAccess::None,
            ended: None,
        });
        RecoveryEffect::Gather { member, start, end, is_whole }
    }

    /// Where the session's bundles begin, if it has any.
    pub(super) fn bundles_from(&self) -> Option<LogOffset> {
        let (record, _) = self.record.as_ref().expect("the record was read");
        record.bundles_from.filter(|_| !mutant::is(Mutant::IgnoreBundles))
    }

    /// What followers alone held is in the cells' prefixes: what is left is in bundles.
    pub(super) fn gather_from_bundles(&mut self) -> RecoveryEffect<V> {
        match self.bundles_from() {
            Some(from) if !(mutant::is(Mutant::ReadBundlesBeforeSeal) && self.are_bundles_read) => {
                if !self.is_held() {
                    return self.hold();
                }
                self.gather_bundles(from, !self.is_loss_declared)
            }
            _ => {
                self.is_covered = true;
                self.seal()
            }
        }
    }

    pub(super) fn gather_bundles(&mut self, from: LogOffset, is_whole: bool) -> RecoveryEffect<V> {
        self.step = Step::Gathering(Gathering {
            source: Source::Bundles,
            end: LogOffset::ZERO,
            is_whole,
            done_below: self.done_below(),
            heartbeat_at: self.now,
            record: RecordAccess::None,
            ended: None,
        });
        RecoveryEffect::GatherBundles { from, is_whole }
    }

    pub(super) fn on_gathering(&mut self, event: RecoveryEvent<V>) -> Option<RecoveryEffect<V>> {
        let Step::Gathering(mut gathering) = core::mem::replace(&mut self.step, Step::Finished) else {
            unreachable!("a gathering is under way")
        };
        match event {
            RecoveryEvent::Progress { done_below } => gathering.note(done_below),
            RecoveryEvent::Gathered => gathering.ended = Some(Ok(())),
            RecoveryEvent::GatherFailed(fault) => gathering.ended = Some(Err(fault)),
            RecoveryEvent::RecordAnswered(answer) => match (gathering.record, answer) {
                (RecordAccess::Writing { next }, Answer::Applied(version)) => {
                    self.record = Some((*next, version));
                    gathering.record = RecordAccess::None;
                }
                (RecordAccess::Writing { .. }, Answer::Rejected | Answer::Unknown) => {
                    gathering.record = RecordAccess::Stale;
                }
                (access, answer) => unreachable!("{answer:?} answers no write, but {access:?}"),
            },
            RecoveryEvent::ReadFailed => {
                // The next progress reads again; an end without the record's version is none.
                if gathering.ended.is_some() {
                    return Some(self.fail(RecoveryFailure::Unreadable));
                }
                gathering.record = RecordAccess::Stale;
                self.step = Step::Gathering(gathering);
                return None;
            }
            RecoveryEvent::RecordRead { record } => match record {
                Some((record, version)) if record.state == LogState::Sealed => {
                    self.record = Some((record.clone(), version));
                    return Some(self.finish(RecoveryOutcome::Recovered { record }));
                }
                Some((record, version)) => {
                    self.record = Some((record, version));
                    if !self.is_held() {
                        return Some(self.finish(RecoveryOutcome::Superseded));
                    }
                    gathering.record = RecordAccess::None;
                }
                None => return Some(self.fail(RecoveryFailure::RecordGone)),
            },
            event => unreachable!("event {event:?} does not belong to a gathering"),
        }
        self.go_on_gathering(gathering)
    }

    fn go_on_gathering(&mut self, mut gathering: Gathering) -> Option<RecoveryEffect<V>> {
        match (&gathering.record, gathering.ended.is_some()) {
            (RecordAccess::Stale, _) => {
                gathering.record = RecordAccess::Reading;
                self.step = Step::Gathering(gathering);
                Some(RecoveryEffect::ReadRecord)
            }
            (RecordAccess::None, true) => self.on_gathering_ended(gathering),
            (RecordAccess::None, false)
                if self.now.since(gathering.heartbeat_at) >= HEARTBEAT_INTERVAL_MS =>
            {
                let (next, guard) = self.marked(gathering.done_below, false);
                gathering.heartbeat_at = self.now;
                gathering.record = RecordAccess::Writing { next: Box::new(next.clone()) };
                Some(self.write(next, guard, Step::Gathering(gathering)))
            }
            (RecordAccess::None | RecordAccess::Writing { .. } | RecordAccess::Reading, _) => {
                self.step = Step::Gathering(gathering);
                None
            }
        }
    }

    fn on_gathering_ended(&mut self, gathering: Gathering) -> Option<RecoveryEffect<V>> {
        match (gathering.ended.expect("it ended"), gathering.source) {
            (Ok(()), Source::Member(_)) if gathering.is_whole => Some(self.gather_from_bundles()),
            (Ok(()), Source::Member(_)) => Some(self.seal()),
            (Ok(()), Source::Bundles) if mutant::is(Mutant::ReadBundlesBeforeSeal) => {
                self.are_bundles_read = true;
                self.proceed()
            }
            (Ok(()), Source::Bundles) if gathering.is_whole => {
                self.is_covered = true;
                Some(self.seal())
            }
            (Ok(()), Source::Bundles) => {
                self.are_bundles_read = true;
                Some(self.gather_what_is_left())
            }
            (Err(GatherFault::Here(reason)), _) => Some(self.fail(RecoveryFailure::Gather(reason))),
            (Err(GatherFault::Bundle(reason)), _) => {
                self.damage = Some(reason);
                self.step = Step::LookingForLoss;
                Some(RecoveryEffect::LookForLoss)
            }
            (Err(GatherFault::Member(reason)), source) => {
                let Source::Member(member) = source else { unreachable!("no member was asked") };
                let witnesses = self.witnesses.as_mut().expect("members were asked");
                witnesses.tail_failed(&member, reason);
                // What was brought so far is there: the next witness continues.
                if let Some((LogRecord { recovery: Some(mark), .. }, _)) = &mut self.record {
                    mark.done_below = gathering.done_below;
                }
                self.proceed()
            }
        }
    }
}

impl Gathering {
    fn note(&mut self, done_below: LogOffset) {
        assert!(done_below <= self.end, "no more was asked for");
        if self.is_whole {
            self.done_below = self.done_below.max(done_below);
        }
    }
}
