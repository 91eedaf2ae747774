//! The retirement of a cell's history by its owner, round by round, as the core's machine asks.

use holdfast_core::ownership::OwnerView;
use holdfast_core::retire::{
    HistoryObject, Kept, Mark, Retire, RetireEffect, RetireEvent, RetireOutcome, RetireOwner, SnapshotAt,
};
use holdfast_core::store::Answer;
use holdfast_types::WriteId;

use super::{Phase, Purpose, Residency, Slot, Step};
use crate::bucket::{Body, Cell, Key, Level, Operation, Reply};
use crate::event::{Stay, Timer};
use crate::violation::Violation;
use crate::world::World;

const PATIENCE_MS: u64 = 2_500;
/// After a failure.
const RETRY_MS: u64 = 1_500;
/// Longest pause before a round.
const SOON_MS: u64 = 1_200;
/// Longest pause before the mark is written, where that is to be looked at.
const MARK_LATE_MS: u64 = 2_000;
/// Objects deleted with one call: few, so that much happens between two.
const BATCH: usize = 3;

/// A round under way.
#[derive(Debug)]
pub(crate) struct Retiring {
    round: Retire<u64>,
    asked: RetireEffect<u64>,
    /// What a sweep has still to delete.
    left: Vec<Key>,
}

impl World {
    /// Has a cell's history looked after before long.
    pub(crate) fn retire_soon(&mut self, index: usize, cell: Cell, stay: Stay) {
        let delay = if self.is_hasty() { 0 } else { self.rng.below(SOON_MS) };
        self.start_timer(index, delay, Timer::Retire(cell, stay));
    }

    /// Whether this step is taken without a pause.
    fn is_hasty(&mut self) -> bool {
        self.plan.retires_at_once && self.rng.chance(700)
    }

    pub(crate) fn on_retire_timer(&mut self, index: usize, cell: Cell, stay: Stay) -> Result<(), Violation> {
        let Some(mut slot) = self.take_slot(index, cell, stay) else { return Ok(()) };
        let may_act = self.may_act(index);
        let retention_ms = if self.is_hasty() { 0 } else { self.rng.below(3_000) };
        let Phase::Serving(residency) = &mut slot.phase else {
            self.put_slot(index, cell, slot);
            return Ok(());
        };
        if !may_act || residency.retiring.is_some() {
            self.put_slot(index, cell, slot);
            return Ok(());
        }
        let OwnerView { node, session, epoch, floor, .. } = residency.owner.clone();
        let me = RetireOwner { node, session, epoch, floor };
        let kept = kept_of(residency);
        let ids = (WriteId::from_bits(self.rng.wide_bits()), WriteId::from_bits(self.rng.wide_bits()));
        let (round, effect) = Retire::start(me, kept, retention_ms, ids);
        residency.retiring = Some(Box::new(Retiring { round, asked: effect.clone(), left: Vec::new() }));
        self.run_retire_effect(index, cell, slot, effect)
    }

    fn run_retire_effect(
        &mut self,
        index: usize,
        cell: Cell,
        mut slot: Slot,
        effect: RetireEffect<u64>,
    ) -> Result<(), Violation> {
        let Phase::Serving(residency) = &mut slot.phase else { unreachable!("a serving cell retires") };
        let retiring = residency.retiring.as_mut().expect("a round is under way");
        let operation = match &effect {
            RetireEffect::ReadMark => Operation::Get(Key::Retired(cell)),
            RetireEffect::ReadOwner => Operation::Get(Key::Owner(cell)),
            RetireEffect::WriteMark { mark, guard } => {
                Operation::PutIf(Key::Retired(cell), Body::Retired(mark.clone()), guard.clone())
            }
            RetireEffect::Sweep(mark) => Operation::ListBelow(cell, mark.by.next()),
            RetireEffect::Finish(outcome) => {
                let outcome = *outcome;
                residency.retiring = None;
                let stay = slot.stay;
                self.put_slot(index, cell, slot);
                self.on_retire_over(index, (cell, stay), outcome);
                return Ok(());
            }
        };
        retiring.asked = effect;
        let is_write = matches!(retiring.asked, RetireEffect::WriteMark { .. });
        // The mark is what others must see in time: sometimes it is long on its way.
        let pause = match is_write && self.plan.retires_at_once && self.rng.chance(500) {
            true => self.rng.below(MARK_LATE_MS),
            false if self.is_hasty() => 0,
            false => self.rng.below(60),
        };
        self.call(index, Purpose::Cell(cell, slot.stay, Step::Retire), operation, (pause, PATIENCE_MS))?;
        if self.nodes[index].is_pause_armed {
            self.pause_now(index);
        }
        self.put_slot(index, cell, slot);
        Ok(())
    }

    fn on_retire_over(&mut self, index: usize, (cell, stay): (Cell, Stay), outcome: RetireOutcome) {
        self.trace.line(self.now, format_args!("n{index} retires of {cell:?}: {outcome:?}"));
        let wait_ms = match outcome {
            RetireOutcome::Nothing | RetireOutcome::Superseded => return,
            RetireOutcome::Marked { wait_ms } => wait_ms,
            RetireOutcome::Later { wait_ms } => wait_ms.min(RETRY_MS),
            RetireOutcome::Swept { has_more } => {
                self.tally.swept += 1;
                if !has_more {
                    return;
                }
                0
            }
            RetireOutcome::Failed => RETRY_MS,
        };
        self.start_timer(index, wait_ms, Timer::Retire(cell, stay));
    }

    pub(crate) fn on_retire_reply(
        &mut self,
        index: usize,
        cell: Cell,
        mut slot: Slot,
        reply: Reply,
    ) -> Result<(), Violation> {
        let may_act = self.may_act(index);
        let wall_now = self.nodes[index].clock.read(self.now).wall;
        let Phase::Serving(residency) = &mut slot.phase else {
            self.put_slot(index, cell, slot);
            return Ok(());
        };
        let Some(retiring) = residency.retiring.as_mut().filter(|_| may_act) else {
            residency.retiring = None;
            self.put_slot(index, cell, slot);
            return Ok(());
        };
        let event = match (&retiring.asked, reply) {
            (RetireEffect::WriteMark { .. }, Reply::Applied(version)) => {
                RetireEvent::MarkAnswered(Answer::Applied(version))
            }
            (RetireEffect::WriteMark { .. }, Reply::Rejected) => RetireEvent::MarkAnswered(Answer::Rejected),
            (RetireEffect::WriteMark { .. }, Reply::Failed) => RetireEvent::MarkAnswered(Answer::Unknown),
            (_, Reply::Failed) => RetireEvent::Failed,
            (RetireEffect::ReadMark, Reply::Object(found)) => {
                let mark = found.map(|(body, version)| match body {
                    Body::Retired(mark) => (mark, version),
                    other => unreachable!("not a mark: {other:?}"),
                });
                RetireEvent::MarkRead { mark, wall_now }
            }
            (RetireEffect::ReadOwner, Reply::Object(Some((Body::Unreadable, _)))) => RetireEvent::Failed,
            (RetireEffect::ReadOwner, Reply::Object(found)) => {
                let owner = found.map(|(body, _)| match body {
                    Body::Owner(owner) => owner,
                    other => unreachable!("not an owner record: {other:?}"),
                });
                RetireEvent::OwnerRead { owner, wall_now }
            }
            (RetireEffect::Sweep(mark), Reply::Keys(keys)) => {
                retiring.left = keys.into_iter().filter(|key| !is_kept(mark, key)).collect();
                return self.delete_retired(index, cell, slot);
            }
            (RetireEffect::Sweep(_), Reply::Done) => return self.delete_retired(index, cell, slot),
            (asked, reply) => unreachable!("{reply:?} does not answer {asked:?}"),
        };
        let effect = retiring.round.on(event);
        self.run_retire_effect(index, cell, slot, effect)
    }

    /// Deletes some more of what a sweep found, in any order.
    fn delete_retired(&mut self, index: usize, cell: Cell, mut slot: Slot) -> Result<(), Violation> {
        let Phase::Serving(residency) = &mut slot.phase else { unreachable!("a serving cell retires") };
        let retiring = residency.retiring.as_mut().expect("a round is under way");
        if retiring.left.is_empty() {
            let effect = retiring.round.on(RetireEvent::Swept);
            return self.run_retire_effect(index, cell, slot, effect);
        }
        let mut keys = Vec::new();
        while keys.len() < BATCH && !retiring.left.is_empty() {
            let at = self.rng.index(retiring.left.len());
            keys.push(retiring.left.swap_remove(at));
        }
        self.tally.retired += u64::try_from(keys.len()).expect("few keys");
        let pause = if self.is_hasty() { 0 } else { self.rng.below(200) };
        let purpose = Purpose::Cell(cell, slot.stay, Step::Retire);
        self.call(index, purpose, Operation::Delete(keys), (pause, PATIENCE_MS))?;
        self.put_slot(index, cell, slot);
        Ok(())
    }
}

/// With the epoch's own snapshot nothing before it is needed. A snapshot here is of the database as it was, which may have
/// been ahead of what was uploaded: the product's is made of what is in the bucket.
fn kept_of(residency: &Residency) -> Option<Kept> {
    match residency.snapshot.filter(|at| residency.gate.uploaded() >= *at) {
        Some(txid) => {
            let start = SnapshotAt { epoch: residency.owner.epoch, txid, len: 0 };
            Some(Kept { start: Some(start), epochs: Vec::new() })
        }
        None => residency.kept.clone(),
    }
}

fn is_kept(mark: &Mark, key: &Key) -> bool {
    match key {
        Key::Opener(_, epoch) => mark.keeps(*epoch, HistoryObject::Opener),
        Key::File(_, epoch, Level::Snapshot, _, max) => mark.keeps(*epoch, HistoryObject::Snapshot(*max)),
        Key::File(_, epoch, Level::Zero | Level::One, _, max) => {
            mark.keeps(*epoch, HistoryObject::File(*max))
        }
        _ => true,
    }
}
