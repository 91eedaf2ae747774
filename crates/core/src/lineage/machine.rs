//! The walk from the newest opened epoch to the first file that is needed.

use alloc::vec;
use alloc::vec::Vec;

use holdfast_types::{Epoch, Position, Txid};

use super::{Chain, LineageEffect, LineageError, LineageEvent, OpenerView, Segment, SegmentStart};
use crate::mutant::{self, Mutant};
use crate::retire::{Kept, KeptEpoch, Mark, SnapshotAt};

/// Walks before giving up, where the mark changes with each.
const WALKS_MAX: u32 = 6;
/// Openers asked for at once while looking for the newest: 1, then 4, then 16 a round.
const BATCH_MAX: usize = 16;

/// A walk.
#[derive(Clone, Debug)]
pub struct Lineage {
    mine: Epoch,
    floor: Epoch,
    local: Option<Position>,
    /// What is retired; none also where that lies below the floor.
    mark: Option<Mark>,
    walks: u32,
    /// Newest first.
    segments: Vec<Segment>,
    end: Option<Position>,
    /// The snapshot that the walk ended with.
    start: Option<SnapshotAt>,
    step: Step,
}

#[derive(Clone, Debug)]
enum Step {
    /// Reading the mark before a walk.
    Marking,
    /// Reading the mark after it.
    Verifying(LineageEffect),
    /// The shell forgets a walk.
    Forgetting,
    /// Looking for the newest opened epoch below `below`.
    Seeking {
        below: Epoch,
        batch: usize,
    },
    /// Reading the opener of a base.
    Opening {
        successor: Epoch,
        base: Position,
    },
    /// Planning the last segment, whose opener says this.
    Planning {
        opener: OpenerView,
    },
    Finished,
}

impl Lineage {
    /// Begins. `mine` is the claimed epoch, `floor` what its record says, `local` the position of a clean local file.
    #[must_use]
    pub fn start(mine: Epoch, floor: Epoch, local: Option<Position>) -> (Self, LineageEffect) {
        let floor = if mutant::is(Mutant::IgnoreFloor) { Epoch::ZERO } else { floor };
        let mut walk = Self {
            mine,
            floor,
            local,
            mark: None,
            walks: 0,
            segments: Vec::new(),
            end: None,
            start: None,
            step: Step::Marking,
        };
        if mine.previous().is_none_or(|below| below < floor.max(Epoch::new(1))) {
            // The first epoch of a cell, or the first since a purge: there is nothing to look at.
            walk.step = Step::Finished;
            let kept = Some(Kept::default());
            let chain = Chain { segments: Vec::new(), end: None, kept, mark: None };
            return (walk, LineageEffect::Finish(chain));
        }
        (walk, LineageEffect::ReadMark)
    }

    /// Takes the answer to the last effect and says what is next.
    ///
    /// # Panics
    /// When the event does not answer the outstanding effect: a bug of the shell.
    pub fn on(&mut self, event: LineageEvent) -> LineageEffect {
        let step = core::mem::replace(&mut self.step, Step::Finished);
        match (step, event) {
            (Step::Marking, LineageEvent::MarkRead(mark)) => self.on_mark(mark),
            (Step::Verifying(outcome), LineageEvent::MarkRead(mark)) => self.on_verified(mark, outcome),
            (Step::Forgetting, LineageEvent::Forgotten) => self.walk(),
            (_, LineageEvent::Broken) => self.verify(LineageEffect::GiveUp),
            (Step::Seeking { below, batch }, LineageEvent::OpenersRead(openers)) => {
                self.on_sought(below, batch, &openers)
            }
            (Step::Opening { successor, base }, LineageEvent::OpenersRead(openers)) => match openers[..] {
                [(epoch, Some(opener))] if epoch == base.epoch => self.plan(epoch, opener, Some(base.txid)),
                _ => self.fail(LineageError::MissingOpener { missing: base.epoch, successor }),
            },
            (Step::Planning { opener }, LineageEvent::EpochPlanned { start, end }) => {
                self.on_planned(opener, start, end)
            }
            (step, event) => unreachable!("event {event:?} does not answer step {step:?}"),
        }
    }

    /// What is below the floor is nobody's.
    fn in_force(&self, mark: Option<Mark>) -> Option<Mark> {
        mark.filter(|mark| mark.by >= self.floor && !mutant::is(Mutant::IgnoreRetired))
    }

    fn on_mark(&mut self, mark: Option<Mark>) -> LineageEffect {
        self.mark = self.in_force(mark);
        self.walk()
    }

    fn walk(&mut self) -> LineageEffect {
        self.walks += 1;
        if let Some(by) = self.mark.as_ref().map(|mark| mark.by).filter(|by| *by >= self.mine) {
            return LineageEffect::Fail(LineageError::Superseded { by });
        }
        self.seek(self.mine, 1)
    }

    /// Nothing that the walk found counts before the mark has been seen unchanged.
    fn verify(&mut self, outcome: LineageEffect) -> LineageEffect {
        if mutant::is(Mutant::TrustFirstMark) {
            return outcome;
        }
        self.step = Step::Verifying(outcome);
        LineageEffect::ReadMark
    }

    fn on_verified(&mut self, mark: Option<Mark>, outcome: LineageEffect) -> LineageEffect {
        let mark = self.in_force(mark);
        let says = |mark: &Option<Mark>| mark.as_ref().map(|mark| (mark.by, mark.kept.clone()));
        if says(&mark) == says(&self.mark) {
            return outcome;
        }
        if self.walks >= WALKS_MAX {
            return LineageEffect::Fail(LineageError::Moving);
        }
        self.mark = mark;
        (self.segments, self.end, self.start) = (Vec::new(), None, None);
        self.step = Step::Forgetting;
        LineageEffect::Forget
    }

    fn fail(&mut self, error: LineageError) -> LineageEffect {
        self.verify(LineageEffect::Fail(error))
    }

    fn seek(&mut self, below: Epoch, batch: usize) -> LineageEffect {
        let retired = self.mark.as_ref().map(|mark| mark.by);
        let lowest = self.floor.max(Epoch::new(1)).max(retired.unwrap_or_default());
        let epochs: Vec<Epoch> = core::iter::successors(below.previous(), |epoch| epoch.previous())
            .take_while(|epoch| *epoch >= lowest)
            .take(batch)
            .collect();
        let Some(last) = epochs.last().copied() else {
            return match retired {
                Some(by) => self.fail(LineageError::RetiringOpenerLost { by }),
                None => self.finish(),
            };
        };
        self.step = Step::Seeking { below: last, batch: (batch * 4).min(BATCH_MAX) };
        LineageEffect::ReadOpeners(epochs)
    }

    fn on_sought(
        &mut self,
        below: Epoch,
        batch: usize,
        openers: &[(Epoch, Option<OpenerView>)],
    ) -> LineageEffect {
        match openers.iter().find_map(|(epoch, opener)| opener.map(|opener| (*epoch, opener))) {
            Some((epoch, opener)) => self.plan(epoch, opener, None),
            None => self.seek(below, batch),
        }
    }

    fn plan(&mut self, epoch: Epoch, opener: OpenerView, clip: Option<Txid>) -> LineageEffect {
        if let Some(base) = opener.base
            && base.epoch >= epoch
        {
            return self.fail(LineageError::BaseNotEarlier { epoch, base: base.epoch });
        }
        let clip = if mutant::is(Mutant::RestoreWithoutClipping) { None } else { clip };
        let after = opener.base.map_or(Txid::ZERO, |base| base.txid);
        let local = self.local.filter(|local| local.epoch == epoch && local.txid >= after);
        let local = local.map(|local| local.txid).filter(|txid| clip.is_none_or(|clip| *txid <= clip));
        let confirm_tail = clip.is_none() && !mutant::is(Mutant::TrustListing);
        let snapshot = self.mark.as_ref().and_then(|mark| mark.kept.start);
        let snapshot = snapshot.filter(|start| start.epoch == epoch);
        let segment = Segment { epoch, after, clip, confirm_tail, local, snapshot };
        self.segments.push(segment);
        self.step = Step::Planning { opener };
        LineageEffect::PlanEpoch(segment)
    }

    fn on_planned(&mut self, opener: OpenerView, start: SegmentStart, end: Txid) -> LineageEffect {
        let segment = self.segments.last_mut().expect("a segment is being planned");
        segment.clip = Some(end);
        let epoch = segment.epoch;
        if self.end.is_none() {
            // An epoch that wrote nothing is skipped over, so that idle wakes do not lengthen the chain.
            let wrote = end > segment.after;
            self.end = if wrote { Some(Position { epoch, txid: end }) } else { opener.base };
        }
        match (start, opener.base) {
            (SegmentStart::Base, Some(base)) => {
                self.step = Step::Opening { successor: epoch, base };
                return LineageEffect::ReadOpeners(vec![base.epoch]);
            }
            (SegmentStart::Local, _) => return self.finish_at(None),
            (SegmentStart::Snapshot(Some((txid, len))), _) => {
                self.start = Some(SnapshotAt { epoch, txid, len })
            }
            (SegmentStart::Base, None) | (SegmentStart::Snapshot(None), _) => {}
        }
        self.finish()
    }

    fn finish(&mut self) -> LineageEffect {
        let kept =
            |segment: &Segment| KeptEpoch { epoch: segment.epoch, upto: segment.clip.unwrap_or_default() };
        let epochs = self.segments.iter().rev().map(kept).collect();
        self.finish_at(Some(Kept { start: self.start, epochs }))
    }

    fn finish_at(&mut self, kept: Option<Kept>) -> LineageEffect {
        let mut segments = self.segments.clone();
        segments.reverse();
        let chain = Chain { segments, end: self.end, kept, mark: self.mark.clone() };
        self.verify(LineageEffect::Finish(chain))
    }
}
