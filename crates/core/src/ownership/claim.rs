//! A claim: read the owner record, judge the owner by its lease, have a dead session's log recovered, then write the next
//! epoch under the version first read.

use alloc::vec::Vec;

use holdfast_types::{Epoch, Millis, WriteId};

use super::{
    ClaimEffect, ClaimEvent, ClaimFailure, ClaimOutcome, Claimant, Intent, LeaseView, OwnerState, OwnerView,
    Previous, is_session_dead,
};
use crate::mutant::{self, Mutant};
use crate::store::{Answer, Guard};

/// Claims whose outcome stayed unknown before giving up (design 4.1).
const UNKNOWN_ROUNDS_MAX: u32 = 3;
/// Claims lost to others before giving up: each means that somebody else got the cell.
const CONTENDED_ROUNDS_MAX: u32 = 8;

/// One claim of one cell by one session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim<V> {
    me: Claimant,
    intent: Intent,
    /// The first attempt's write id; the n-th attempt adds n. Random in its high bits, so no other write has it.
    write_id_first: WriteId,
    attempts: Vec<(OwnerView, Previous)>,
    unknown_rounds: u32,
    contended_rounds: u32,
    step: Step<V>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Step<V> {
    ReadingOwner,
    LookingForHistory,
    ReadingLease { owner: OwnerView, version: V },
    Recovering { owner: OwnerView, version: V },
    Writing,
    Finished,
}

impl<V: Clone + core::fmt::Debug> Claim<V> {
    /// Begins. `write_id` is fresh randomness.
    #[must_use]
    pub fn start(me: Claimant, intent: Intent, write_id: WriteId) -> (Self, ClaimEffect<V>) {
        let claim = Self {
            me,
            intent,
            write_id_first: write_id,
            attempts: Vec::new(),
            unknown_rounds: 0,
            contended_rounds: 0,
            step: Step::ReadingOwner,
        };
        (claim, ClaimEffect::ReadOwner)
    }

    /// Begins for a cell that this session let sleep; `owner` and `version` are its record as it was then. The record is not
    /// read: the version guards the write, and where somebody has changed it the claim goes on as any other.
    ///
    /// # Panics
    /// When the record is of another session: a bug of the shell.
    #[must_use]
    pub fn wake(me: Claimant, write_id: WriteId, (owner, version): (OwnerView, V)) -> (Self, ClaimEffect<V>) {
        assert!(
            owner.is_owned_by(&me.node, me.session, owner.epoch),
            "only its own cells sleep in a session"
        );
        let (mut claim, _) = Self::start(me, Intent::Own, write_id);
        let effect = claim.write(Some((&owner, version)), Previous::Asleep);
        (claim, effect)
    }

    /// Takes the answer to the last effect and says what is next.
    ///
    /// # Panics
    /// When the event does not answer the outstanding effect: a bug of the shell.
    pub fn on(&mut self, event: ClaimEvent<V>) -> ClaimEffect<V> {
        let step = core::mem::replace(&mut self.step, Step::Finished);
        match (step, event) {
            (Step::ReadingOwner, ClaimEvent::OwnerRead { owner }) => self.on_owner(owner),
            (Step::ReadingLease { owner, version }, ClaimEvent::LeaseRead { lease, wall_now }) => {
                self.on_lease(owner, version, lease.as_ref(), wall_now)
            }
            (Step::Recovering { owner, version }, ClaimEvent::LogRecovered) => {
                self.write(Some((&owner, version)), Previous::Dead)
            }
            (Step::Recovering { .. }, ClaimEvent::LogBlocked) => self.fail(ClaimFailure::RecoveryBlocked),
            (Step::LookingForHistory, ClaimEvent::HistoryLookedFor { is_there: false }) => {
                self.write(None, Previous::Absent)
            }
            // Epoch 1 again would overwrite the first epoch 1, and mix two databases.
            (Step::LookingForHistory, ClaimEvent::HistoryLookedFor { is_there: true }) => {
                self.fail(ClaimFailure::RecordLost)
            }
            (
                Step::ReadingOwner | Step::LookingForHistory | Step::ReadingLease { .. },
                ClaimEvent::ReadFailed,
            ) => self.fail(if self.unknown_rounds > 0 {
                ClaimFailure::Unknown
            } else {
                ClaimFailure::Unreadable
            }),
            (Step::Writing, ClaimEvent::ClaimAnswered(answer)) => self.on_answer(answer),
            (step, event) => unreachable!("event {event:?} does not answer step {step:?}"),
        }
    }

    fn on_owner(&mut self, owner: Option<(OwnerView, V)>) -> ClaimEffect<V> {
        let Some((owner, version)) = owner else {
            return match self.intent {
                Intent::Own => {
                    self.step = Step::LookingForHistory;
                    ClaimEffect::LookForHistory
                }
                Intent::Purge => self.finish(ClaimOutcome::NothingToPurge),
            };
        };
        if let Some((mine, previous)) = self.attempts.iter().find(|(mine, _)| mine.write_id == owner.write_id)
        {
            // An attempt whose answer was lost did land.
            let outcome = ClaimOutcome::Claimed { owner: mine.clone(), version, previous: *previous };
            return self.finish(outcome);
        }
        if mutant::is(Mutant::SkipClaimGuard)
            && let Some((mine, previous)) = self.attempts.last().cloned()
        {
            return self.finish(ClaimOutcome::Claimed { owner: mine, version, previous });
        }
        match owner.state {
            OwnerState::Released => self.write(Some((&owner, version)), Previous::Released),
            OwnerState::Purged => self.write(Some((&owner, version)), Previous::Purged),
            OwnerState::Owned if owner.node == self.me.node && owner.session == self.me.session => {
                self.write(Some((&owner, version)), Previous::LocalWake)
            }
            // This session holds the node's lease, so an older session of the node is dead.
            OwnerState::Owned if owner.node == self.me.node => self.recover(owner, version),
            OwnerState::Owned => {
                let node = owner.node.clone();
                self.step = Step::ReadingLease { owner, version };
                ClaimEffect::ReadLease { node }
            }
        }
    }

    fn on_lease(
        &mut self,
        owner: OwnerView,
        version: V,
        lease: Option<&LeaseView>,
        wall_now: Millis,
    ) -> ClaimEffect<V> {
        let live =
            lease.filter(|_| !is_session_dead(lease, owner.session, wall_now, self.me.clock_skew_max_ms));
        match live {
            Some(_) if mutant::is(Mutant::TakeOverLiveLease) => self.recover(owner, version),
            Some(lease) if !lease.protocol.is_compatible_with(self.me.protocol) => {
                self.finish(ClaimOutcome::Incompatible { node: owner.node, theirs: lease.protocol })
            }
            Some(_) => self.finish(ClaimOutcome::NotOwner { node: owner.node, session: owner.session }),
            None => self.recover(owner, version),
        }
    }

    fn recover(&mut self, owner: OwnerView, version: V) -> ClaimEffect<V> {
        let effect = ClaimEffect::RecoverLog { node: owner.node.clone(), session: owner.session };
        self.step = Step::Recovering { owner, version };
        effect
    }

    fn write(&mut self, before: Option<(&OwnerView, V)>, previous: Previous) -> ClaimEffect<V> {
        let (epoch_before, floor, guard) = match before {
            None => (Epoch::ZERO, Epoch::ZERO, Guard::Absent),
            Some((owner, version)) => (owner.epoch, owner.floor, Guard::Match(version)),
        };
        if epoch_before.get() == u64::MAX {
            return self.fail(ClaimFailure::EpochExhausted);
        }
        let is_wake = matches!(previous, Previous::LocalWake | Previous::Asleep);
        let keeps_epoch = is_wake && mutant::is(Mutant::ReuseEpochOnWake);
        let epoch = if keeps_epoch { epoch_before } else { epoch_before.next() };
        let (state, floor) = match self.intent {
            Intent::Own => (OwnerState::Owned, floor),
            Intent::Purge => (OwnerState::Purged, epoch),
        };
        let attempt = u128::try_from(self.attempts.len()).expect("a length fits 128 bits");
        let owner = OwnerView {
            node: self.me.node.clone(),
            session: self.me.session,
            epoch,
            state,
            floor,
            write_id: WriteId::from_bits(self.write_id_first.bits().wrapping_add(attempt)),
        };
        // INV-OWN-2.
        assert!(epoch > epoch_before || keeps_epoch, "an epoch only grows");
        self.attempts.push((owner.clone(), previous));
        self.step = Step::Writing;
        ClaimEffect::WriteOwner { owner, guard }
    }

    fn on_answer(&mut self, answer: Answer<V>) -> ClaimEffect<V> {
        match answer {
            Answer::Applied(version) => {
                let (owner, previous) = self.attempts.last().expect("a write was attempted").clone();
                self.finish(ClaimOutcome::Claimed { owner, version, previous })
            }
            Answer::Rejected => {
                self.contended_rounds += 1;
                if self.contended_rounds >= CONTENDED_ROUNDS_MAX {
                    return self.fail(ClaimFailure::Contended);
                }
                self.step = Step::ReadingOwner;
                ClaimEffect::ReadOwner
            }
            Answer::Unknown => {
                self.unknown_rounds += 1;
                if self.unknown_rounds >= UNKNOWN_ROUNDS_MAX {
                    return self.fail(ClaimFailure::Unknown);
                }
                self.step = Step::ReadingOwner;
                ClaimEffect::ReadOwner
            }
        }
    }

    fn fail(&mut self, failure: ClaimFailure) -> ClaimEffect<V> {
        self.finish(ClaimOutcome::Failed(failure))
    }

    fn finish(&mut self, outcome: ClaimOutcome<V>) -> ClaimEffect<V> {
        self.step = Step::Finished;
        ClaimEffect::Finish(outcome)
    }
}
