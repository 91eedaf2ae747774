//! A purge of a cell whose owner record is missing or cannot be read, by an operator's word. Such a record names no session, so
//! every session that lives is asked to let the cell go, and nobody can claim the cell meanwhile: a claim needs a record that
//! it can read, or that there is no history. A session that was not asked may go on by its followers, whatever its lease says
//! and whoever's clock is wrong: so every other log must be at its end, too. Only then is the record written, under the very
//! version that was found, at an epoch far above any that the history shows. Keeps INV-OWN-1 and INV-OWN-2: what a late
//! uploader brings is below the floor.

use alloc::vec::Vec;

use holdfast_types::{Epoch, Millis, NodeName, SessionId, WriteId};

use super::{Claimant, LeaseView, OwnerState, OwnerView};
use crate::mutant::{self, Mutant};
use crate::store::{Answer, Guard};

/// How far above the newest epoch that can be seen a forced purge goes. Epochs that were claimed and left nothing in the bucket
/// are not seen; each takes an activation, and no cell has 2^32 of them in a row that all fail.
pub const FORCED_EPOCH_GAP: u64 = 1 << 32;
/// Epochs for each millisecond since 1970: what an earlier forced purge took is below, though nothing of it may be left to be
/// seen. No cell is activated as often. Below 2^53 until 2039, so that it is the same number in JSON.
const EPOCHS_PER_MS: u64 = 1 << 12;
/// Writes that were refused or stayed unknown before giving up.
const ROUNDS_MAX: usize = 4;

/// What is found where the owner record should be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Sighting<V> {
    /// Nothing.
    Missing,
    /// An object that is no record, or one of a newer release.
    Unreadable {
        /// Its version.
        version: V,
    },
    /// A record.
    Readable {
        /// The record.
        owner: OwnerView,
        /// Its version.
        version: V,
    },
}

/// An event of a forced purge.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ForcedPurgeEvent<V> {
    /// The owner record was looked at.
    Seen(Sighting<V>),
    /// Every node's lease was read.
    LeasesRead {
        /// The nodes with a lease; none where it cannot be read.
        leases: Vec<(NodeName, Option<LeaseView>)>,
        /// The wall clock before the read began.
        wall_now: Millis,
    },
    /// The session that was asked does not hold the cell, or not any more.
    LetGo,
    /// The record of every node log was read.
    LogsRead {
        /// Those that are not sealed, or cannot be read.
        unsealed: Vec<(NodeName, SessionId)>,
    },
    /// It may still hold it: it refused, or did not answer.
    NotLetGo,
    /// The cell's history was listed.
    HistorySeen {
        /// The newest epoch that has an object.
        newest: Option<Epoch>,
        /// There is any object of the cell.
        is_there: bool,
    },
    /// The conditional write was answered.
    Answered(Answer<V>),
    /// The bucket could not be read.
    ReadFailed,
}

/// An effect of a forced purge. Exactly one is outstanding at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ForcedPurgeEffect<V> {
    /// Look at the owner record.
    LookAtOwner,
    /// Read the lease of every node.
    ReadLeases,
    /// Ask a session to let the cell go.
    AskToLetGo {
        /// Its node.
        node: NodeName,
        /// The session.
        session: SessionId,
    },
    /// Read the record of every node log.
    ReadLogs,
    /// List the cell's history.
    ListHistory,
    /// Write the owner record under the guard, and settle an open answer by reading back.
    WriteOwner {
        /// The record.
        owner: OwnerView,
        /// The condition.
        guard: Guard<V>,
    },
    /// It is over.
    Finish(ForcedPurgeOutcome),
}

/// How a forced purge ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ForcedPurgeOutcome {
    /// The cell is purged at this epoch.
    Purged(Epoch),
    /// There is a record that can be read: an ordinary purge knows more.
    Readable,
    /// There is neither a record nor history.
    NothingToPurge,
    /// Given up; nothing is purged, unless the failure says that this is unknown.
    Failed(ForcedPurgeFailure),
}

/// Why a forced purge was given up.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ForcedPurgeFailure {
    /// Disposition: retry.
    #[error(
        "node `{0}` lives and may own the cell: it did not let it go. Stop it, or try again once its lease has ended"
    )]
    StillHeld(NodeName),
    /// Disposition: reject.
    #[error(
        "the lease of node `{0}` cannot be read, so it may live and own the cell. Use the release that the node has, or \
         stop it and delete its lease"
    )]
    UnreadableLease(NodeName),
    /// Disposition: reject, until it is recovered.
    #[error(
        "the log of session {1} of node `{0}` is not at its end, so it may own the cell and acknowledge writes by its \
         followers. Recover it first: `holdfast log recover {0}`"
    )]
    UnsealedLog(NodeName, SessionId),
    /// Disposition: retry.
    #[error("the bucket could not be read")]
    Unreadable,
    /// Disposition: retry.
    #[error("somebody else writes the owner record again and again")]
    Contended,
    /// Disposition: retry.
    #[error("whether the owner record was written is unknown")]
    Unknown,
    /// Disposition: reject.
    #[error("no epoch is left above the newest of the cell's history")]
    EpochExhausted,
}

/// One forced purge.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ForcedPurge<V> {
    me: Claimant,
    /// The first attempt's; the n-th adds n.
    write_id_first: WriteId,
    attempts: Vec<OwnerView>,
    is_unknown: bool,
    /// When the leases were read, wall clock.
    wall: Millis,
    /// Sessions that do not hold the cell.
    let_go: Vec<SessionId>,
    step: Step<V>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Step<V> {
    Looking,
    /// What the record was found to be guards the write.
    ReadingLeases(Guard<V>),
    /// The first of the list was asked.
    Asking(Guard<V>, Vec<(NodeName, SessionId)>),
    ReadingLogs(Guard<V>),
    Listing(Guard<V>),
    Writing,
    Finished,
}

impl<V: Clone + core::fmt::Debug> ForcedPurge<V> {
    /// Begins. `write_id` is fresh randomness.
    #[must_use]
    pub fn start(me: Claimant, write_id: WriteId) -> (Self, ForcedPurgeEffect<V>) {
        let purge = Self {
            me,
            write_id_first: write_id,
            attempts: Vec::new(),
            is_unknown: false,
            wall: Millis::ZERO,
            let_go: Vec::new(),
            step: Step::Looking,
        };
        (purge, ForcedPurgeEffect::LookAtOwner)
    }

    /// Takes the answer to the last effect and says what is next.
    ///
    /// # Panics
    /// When the event does not answer the outstanding effect: a bug of the shell.
    pub fn on(&mut self, event: ForcedPurgeEvent<V>) -> ForcedPurgeEffect<V> {
        let step = core::mem::replace(&mut self.step, Step::Finished);
        match (step, event) {
            (Step::Looking, ForcedPurgeEvent::Seen(sighting)) => self.on_sighting(sighting),
            (Step::ReadingLeases(guard), ForcedPurgeEvent::LeasesRead { leases, wall_now }) => {
                self.on_leases(guard, leases, wall_now)
            }
            (Step::Asking(guard, mut asked), ForcedPurgeEvent::LetGo) => {
                let (_, session) = asked.remove(0);
                self.let_go.push(session);
                self.ask(guard, asked)
            }
            (Step::Asking(_, asked), ForcedPurgeEvent::NotLetGo) => {
                let (node, _) = asked.into_iter().next().expect("a session was asked");
                self.fail(ForcedPurgeFailure::StillHeld(node))
            }
            (Step::ReadingLogs(guard), ForcedPurgeEvent::LogsRead { unsealed }) => {
                self.on_logs(guard, unsealed)
            }
            (Step::Listing(guard), ForcedPurgeEvent::HistorySeen { newest, is_there }) => {
                self.on_history(guard, newest, is_there)
            }
            (Step::Writing, ForcedPurgeEvent::Answered(answer)) => self.on_answer(answer),
            (
                Step::Looking | Step::ReadingLeases(_) | Step::ReadingLogs(_) | Step::Listing(_),
                ForcedPurgeEvent::ReadFailed,
            ) => self.give_up(ForcedPurgeFailure::Unreadable),
            (step, event) => unreachable!("event {event:?} does not answer step {step:?}"),
        }
    }

    fn on_sighting(&mut self, sighting: Sighting<V>) -> ForcedPurgeEffect<V> {
        let guard = match sighting {
            Sighting::Readable { owner, version: _ } => {
                // An attempt whose answer was lost did land.
                let is_mine = self.attempts.iter().any(|mine| mine.write_id == owner.write_id);
                return self.finish(if is_mine {
                    ForcedPurgeOutcome::Purged(owner.epoch)
                } else {
                    ForcedPurgeOutcome::Readable
                });
            }
            Sighting::Missing => Guard::Absent,
            Sighting::Unreadable { version } => Guard::Match(version),
        };
        self.step = Step::ReadingLeases(guard);
        ForcedPurgeEffect::ReadLeases
    }

    fn on_leases(
        &mut self,
        guard: Guard<V>,
        leases: Vec<(NodeName, Option<LeaseView>)>,
        wall_now: Millis,
    ) -> ForcedPurgeEffect<V> {
        self.wall = wall_now;
        self.let_go.clear();
        let mut live = Vec::new();
        for (node, lease) in leases {
            let Some(lease) = lease else { return self.fail(ForcedPurgeFailure::UnreadableLease(node)) };
            if !lease.is_dead(wall_now, self.me.clock_skew_max_ms) {
                live.push((node, lease.session));
            }
        }
        if mutant::is(Mutant::ForceUnasked) {
            self.let_go.extend(live.drain(..).map(|(_, session)| session));
        }
        self.ask(guard, live)
    }

    fn ask(&mut self, guard: Guard<V>, live: Vec<(NodeName, SessionId)>) -> ForcedPurgeEffect<V> {
        let Some((node, session)) = live.first().cloned() else {
            self.step = Step::ReadingLogs(guard);
            return ForcedPurgeEffect::ReadLogs;
        };
        self.step = Step::Asking(guard, live);
        ForcedPurgeEffect::AskToLetGo { node, session }
    }

    fn on_logs(&mut self, guard: Guard<V>, unsealed: Vec<(NodeName, SessionId)>) -> ForcedPurgeEffect<V> {
        let other = unsealed.into_iter().find(|(_, session)| !self.let_go.contains(session));
        if let Some((node, session)) = other {
            return self.fail(ForcedPurgeFailure::UnsealedLog(node, session));
        }
        self.step = Step::Listing(guard);
        ForcedPurgeEffect::ListHistory
    }

    fn on_history(&mut self, guard: Guard<V>, newest: Option<Epoch>, is_there: bool) -> ForcedPurgeEffect<V> {
        if matches!(guard, Guard::Absent) && !is_there && self.attempts.is_empty() {
            return self.finish(ForcedPurgeOutcome::NothingToPurge);
        }
        let seen = newest.unwrap_or(Epoch::ZERO);
        let gap = if mutant::is(Mutant::ForceNextEpoch) { 1 } else { FORCED_EPOCH_GAP };
        let above = seen.get().checked_add(gap).filter(|epoch| *epoch < u64::MAX);
        let Some(above) = above else { return self.give_up(ForcedPurgeFailure::EpochExhausted) };
        let by_time = if mutant::is(Mutant::ForceNextEpoch) { Millis::ZERO } else { self.wall };
        let epoch = above.max(by_time.get().saturating_mul(EPOCHS_PER_MS).min(u64::MAX >> 2));
        let attempt = u128::try_from(self.attempts.len()).expect("a length fits 128 bits");
        let owner = OwnerView {
            node: self.me.node.clone(),
            session: self.me.session,
            epoch: Epoch::new(epoch),
            state: OwnerState::Purged,
            floor: Epoch::new(epoch),
            write_id: WriteId::from_bits(self.write_id_first.bits().wrapping_add(attempt)),
        };
        self.attempts.push(owner.clone());
        self.step = Step::Writing;
        ForcedPurgeEffect::WriteOwner { owner, guard }
    }

    fn on_answer(&mut self, answer: Answer<V>) -> ForcedPurgeEffect<V> {
        match answer {
            Answer::Applied(_) => {
                let epoch = self.attempts.last().expect("a write was attempted").epoch;
                return self.finish(ForcedPurgeOutcome::Purged(epoch));
            }
            Answer::Unknown => self.is_unknown = true,
            Answer::Rejected => {}
        }
        if self.attempts.len() >= ROUNDS_MAX {
            return self.give_up(ForcedPurgeFailure::Contended);
        }
        self.step = Step::Looking;
        ForcedPurgeEffect::LookAtOwner
    }

    /// After a write that nobody answered nothing is certain.
    fn give_up(&mut self, failure: ForcedPurgeFailure) -> ForcedPurgeEffect<V> {
        self.fail(if self.is_unknown { ForcedPurgeFailure::Unknown } else { failure })
    }

    fn fail(&mut self, failure: ForcedPurgeFailure) -> ForcedPurgeEffect<V> {
        self.finish(ForcedPurgeOutcome::Failed(failure))
    }

    fn finish(&mut self, outcome: ForcedPurgeOutcome) -> ForcedPurgeEffect<V> {
        self.step = Step::Finished;
        ForcedPurgeEffect::Finish(outcome)
    }
}

#[cfg(test)]
mod tests;
