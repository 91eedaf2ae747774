//! One round: look at the mark, finish the sweep of the one before, confirm the ownership, write the next.

use holdfast_types::{Epoch, Millis, NodeName, SessionId, WriteId};

use super::{KEPT_EPOCHS_MAX, Kept, Mark};
use crate::mutant::{self, Mutant};
use crate::ownership::OwnerView;
use crate::store::{Answer, Guard};

/// Pause after a mark that could not be written, in milliseconds: another wrote it, or nobody knows.
const RETRY_MS: u64 = 30_000;

/// Whose round it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RetireOwner {
    /// The node.
    pub node: NodeName,
    /// Its session.
    pub session: SessionId,
    /// The epoch.
    pub epoch: Epoch,
    /// What lies below was purged.
    pub floor: Epoch,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RetireEvent<V> {
    /// The mark was read, at this version.
    MarkRead {
        /// The mark; none where there is none.
        mark: Option<(Mark, V)>,
        /// The wall clock.
        wall_now: Millis,
    },
    /// The owner record was read.
    OwnerRead {
        /// The record; none where there is none.
        owner: Option<OwnerView>,
        /// The wall clock.
        wall_now: Millis,
    },
    /// The mark's write was answered.
    MarkAnswered(Answer<V>),
    /// Everything that the mark does not keep and that a listing named was deleted.
    Swept,
    /// The store failed. Whatever was done is as good as not done.
    Failed,
}

/// What the shell must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RetireEffect<V> {
    /// Read the mark.
    ReadMark,
    /// Read the owner record.
    ReadOwner,
    /// Write the mark.
    WriteMark {
        /// The mark.
        mark: Mark,
        /// The condition.
        guard: Guard<V>,
    },
    /// List the epochs up to the mark's, and delete what it does not keep.
    Sweep(Mark),
    /// The round is over.
    Finish(RetireOutcome),
}

/// How a round ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetireOutcome {
    /// There is nothing to retire.
    Nothing,
    /// A mark was written: it may be swept after so many milliseconds.
    Marked {
        /// From now on.
        wait_ms: u64,
    },
    /// A mark stands that may not be swept yet, or nobody knows: come back after so many milliseconds.
    Later {
        /// From now on.
        wait_ms: u64,
    },
    /// A mark was swept. More may be retired at once.
    Swept {
        /// Whether another round would mark something.
        has_more: bool,
    },
    /// Another owns the cell.
    Superseded,
    /// The store failed; try again later.
    Failed,
}

/// A round.
#[derive(Clone, Debug)]
pub struct Retire<V> {
    me: RetireOwner,
    kept: Option<Kept>,
    retention_ms: u64,
    /// Of the mark, and of the word that it was swept.
    write_ids: (WriteId, WriteId),
    step: Step<V>,
}

#[derive(Clone, Debug)]
enum Step<V> {
    ReadingMark,
    ReadingOwner {
        kept: Kept,
        guard: Guard<V>,
    },
    Marking {
        mark: Mark,
    },
    /// The version is none only in a broken variant.
    Sweeping {
        mark: Mark,
        version: Option<V>,
    },
    Closing {
        has_more: bool,
    },
    Finished,
}

impl<V: Clone> Retire<V> {
    /// Begins a round. The opener of `me.epoch` and everything that `kept` names are stored. `kept` is none where the chain
    /// is not known: then only the sweep of an earlier mark is finished.
    #[must_use]
    pub fn start(
        me: RetireOwner,
        kept: Option<Kept>,
        retention_ms: u64,
        write_ids: (WriteId, WriteId),
    ) -> (Self, RetireEffect<V>) {
        let kept = kept.map(|mut kept| {
            kept.epochs.retain(|kept| kept.epoch < me.epoch);
            kept
        });
        let kept = kept.filter(|kept| kept.epochs.len() <= KEPT_EPOCHS_MAX);
        (Self { me, kept, retention_ms, write_ids, step: Step::ReadingMark }, RetireEffect::ReadMark)
    }

    /// Takes the answer to the last effect and says what is next.
    ///
    /// # Panics
    /// When the event does not answer the outstanding effect: a bug of the shell.
    pub fn on(&mut self, event: RetireEvent<V>) -> RetireEffect<V> {
        let step = core::mem::replace(&mut self.step, Step::Finished);
        match (step, event) {
            (_, RetireEvent::Failed) => RetireEffect::Finish(RetireOutcome::Failed),
            (Step::ReadingMark, RetireEvent::MarkRead { mark, wall_now }) => self.on_mark(mark, wall_now),
            (Step::ReadingOwner { kept, guard }, RetireEvent::OwnerRead { owner, wall_now }) => {
                let RetireOwner { node, session, epoch, floor: _ } = &self.me;
                let is_mine = owner.is_some_and(|owner| owner.is_owned_by(node, *session, *epoch));
                if !is_mine && !mutant::is(Mutant::RetireWithoutOwner) {
                    return RetireEffect::Finish(RetireOutcome::Superseded);
                }
                self.mark(kept, guard, wall_now)
            }
            (Step::Marking { mark }, RetireEvent::MarkAnswered(answer)) => match answer {
                Answer::Applied(version) if self.retention_ms == 0 => self.sweep(mark, version),
                Answer::Applied(_) => {
                    RetireEffect::Finish(RetireOutcome::Marked { wait_ms: self.retention_ms })
                }
                Answer::Rejected | Answer::Unknown => {
                    RetireEffect::Finish(RetireOutcome::Later { wait_ms: RETRY_MS })
                }
            },
            (Step::Sweeping { mark, version }, RetireEvent::Swept) => {
                let Some(version) = version else { return RetireEffect::Finish(RetireOutcome::Nothing) };
                let has_more = self.next_of(&mark).is_some();
                self.step = Step::Closing { has_more };
                let mark = Mark { write_id: self.write_ids.1, is_swept: true, ..mark };
                RetireEffect::WriteMark { mark, guard: Guard::Match(version) }
            }
            (Step::Closing { has_more }, RetireEvent::MarkAnswered(answer)) => {
                RetireEffect::Finish(match answer {
                    Answer::Applied(_) => RetireOutcome::Swept { has_more },
                    // It will be swept once more, which finds nothing.
                    Answer::Rejected | Answer::Unknown => RetireOutcome::Later { wait_ms: RETRY_MS },
                })
            }
            _ => unreachable!("the event does not answer the step"),
        }
    }

    fn on_mark(&mut self, found: Option<(Mark, V)>, wall_now: Millis) -> RetireEffect<V> {
        let Some((mark, version)) = found else {
            let Some(kept) = self.kept.clone() else { return RetireEffect::Finish(RetireOutcome::Nothing) };
            self.step = Step::ReadingOwner { kept, guard: Guard::Absent };
            return RetireEffect::ReadOwner;
        };
        if mark.by > self.me.epoch {
            return RetireEffect::Finish(RetireOutcome::Superseded);
        }
        if !mark.is_swept && mark.by >= self.me.floor {
            let left = self.retention_ms.saturating_sub(wall_now.since(mark.marked_ms));
            return match left {
                0 => self.sweep(mark, version),
                wait_ms => RetireEffect::Finish(RetireOutcome::Later { wait_ms }),
            };
        }
        match self.next_of(&mark) {
            Some(kept) => {
                self.step = Step::ReadingOwner { kept, guard: Guard::Match(version) };
                RetireEffect::ReadOwner
            }
            None => RetireEffect::Finish(RetireOutcome::Nothing),
        }
    }

    /// What would be kept by a mark after this one; none where that is the same.
    fn next_of(&self, mark: &Mark) -> Option<Kept> {
        let kept = self.kept.clone()?;
        if mark.by < self.me.floor {
            return Some(kept);
        }
        let kept = kept.merged(&mark.kept, self.me.epoch)?;
        (mark.by < self.me.epoch || mark.kept != kept).then_some(kept)
    }

    fn mark(&mut self, kept: Kept, guard: Guard<V>, wall_now: Millis) -> RetireEffect<V> {
        let mark = Mark {
            write_id: self.write_ids.0,
            by: self.me.epoch,
            kept,
            marked_ms: wall_now,
            is_swept: false,
        };
        if mutant::is(Mutant::RetireWithoutMark) {
            self.step = Step::Sweeping { mark: mark.clone(), version: None };
            return RetireEffect::Sweep(mark);
        }
        self.step = Step::Marking { mark: mark.clone() };
        RetireEffect::WriteMark { mark, guard }
    }

    fn sweep(&mut self, mark: Mark, version: V) -> RetireEffect<V> {
        self.step = Step::Sweeping { mark: mark.clone(), version: Some(version) };
        RetireEffect::Sweep(mark)
    }
}
