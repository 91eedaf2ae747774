//! The walk from the newest opened epoch to the first file that is needed.

use alloc::vec;
use alloc::vec::Vec;

use holdfast_types::{Epoch, Position, Txid};

use super::{Chain, LineageEffect, LineageError, LineageEvent, OpenerView, Segment, SegmentStart};
use crate::mutant::{self, Mutant};

/// Openers asked for at once while looking for the newest: 1, then 4, then 16 a round.
const BATCH_MAX: usize = 16;

/// A walk.
#[derive(Clone, Debug)]
pub struct Lineage {
    floor: Epoch,
    local: Option<Position>,
    /// Newest first.
    segments: Vec<Segment>,
    end: Option<Position>,
    step: Step,
}

#[derive(Clone, Debug)]
enum Step {
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
        let step = Step::Seeking { below: mine, batch: 1 };
        let mut walk = Self { floor, local, segments: Vec::new(), end: None, step };
        let effect = walk.seek(mine, 1);
        (walk, effect)
    }

    /// Takes the answer to the last effect and says what is next.
    ///
    /// # Panics
    /// When the event does not answer the outstanding effect: a bug of the shell.
    pub fn on(&mut self, event: LineageEvent) -> LineageEffect {
        let step = core::mem::replace(&mut self.step, Step::Finished);
        match (step, event) {
            (Step::Seeking { below, batch }, LineageEvent::OpenersRead(openers)) => {
                self.on_sought(below, batch, &openers)
            }
            (Step::Opening { successor, base }, LineageEvent::OpenersRead(openers)) => match openers[..] {
                [(epoch, Some(opener))] if epoch == base.epoch => self.plan(epoch, opener, Some(base.txid)),
                _ => LineageEffect::Fail(LineageError::MissingOpener { missing: base.epoch, successor }),
            },
            (Step::Planning { opener }, LineageEvent::EpochPlanned { start, end }) => {
                self.on_planned(opener, start, end)
            }
            (step, event) => unreachable!("event {event:?} does not answer step {step:?}"),
        }
    }

    fn seek(&mut self, below: Epoch, batch: usize) -> LineageEffect {
        let lowest = self.floor.max(Epoch::new(1));
        let epochs: Vec<Epoch> = core::iter::successors(below.previous(), |epoch| epoch.previous())
            .take_while(|epoch| *epoch >= lowest)
            .take(batch)
            .collect();
        let Some(last) = epochs.last().copied() else { return self.finish() };
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
            return LineageEffect::Fail(LineageError::BaseNotEarlier { epoch, base: base.epoch });
        }
        let clip = if mutant::is(Mutant::RestoreWithoutClipping) { None } else { clip };
        let after = opener.base.map_or(Txid::ZERO, |base| base.txid);
        let local = self.local.filter(|local| local.epoch == epoch && local.txid >= after);
        let local = local.map(|local| local.txid).filter(|txid| clip.is_none_or(|clip| *txid <= clip));
        let confirm_tail = clip.is_none() && !mutant::is(Mutant::TrustListing);
        let segment = Segment { epoch, after, clip, confirm_tail, local };
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
                LineageEffect::ReadOpeners(vec![base.epoch])
            }
            (SegmentStart::Base, None) | (SegmentStart::Snapshot | SegmentStart::Local, _) => self.finish(),
        }
    }

    fn finish(&mut self) -> LineageEffect {
        self.step = Step::Finished;
        self.segments.reverse();
        LineageEffect::Finish(Chain { segments: core::mem::take(&mut self.segments), end: self.end })
    }
}
