//! A restore: the core's walk over the epochs, a plan of each epoch's files, and their application.

use holdfast_core::lineage::{
    Chain, Lineage, LineageEffect, LineageError, LineageEvent, OpenerView, Segment,
};
use holdfast_core::ownership::{OwnerView, Previous};
use holdfast_core::retire::Kept;
use holdfast_types::{Epoch, Position};

use super::plan::{EpochPlan, Listed, keys_after};
use super::{Asleep, LocalFile, Phase, Purpose, Slot, Step};
use crate::bucket::{Body, Cell, Key, Level, OpId, Operation, Reply};
use crate::event::Outcome;
use crate::violation::Violation;
use crate::world::World;

const PATIENCE_MS: u64 = 2_500;
/// Failed calls before an activation is given up.
const FAILURES_MAX: u32 = 6;
const RETRY_PAUSE_MS: u64 = 100;
/// Plans made anew because a file had gone.
const REPLANS_MAX: u32 = 6;

/// A restore under way.
#[derive(Debug)]
pub(crate) struct Restoring {
    pub(crate) owner: OwnerView,
    pub(crate) version: u64,
    lineage: Lineage,
    local: Option<LocalFile>,
    /// Newest first.
    plans: Vec<EpochPlan>,
    step: RestoreStep,
    asked: (Operation, Step),
    failures: u32,
    replans: u32,
    /// What was missing.
    missing: Option<Key>,
}

/// A database as it was found, and how many files it was found in.
struct Rebuilt {
    end: Option<Position>,
    state: Vec<OpId>,
    files: usize,
    kept: Option<Kept>,
}

#[derive(Debug)]
enum RestoreStep {
    Mark,
    Openers { left: Vec<Epoch>, read: Vec<(Epoch, Option<OpenerView>)> },
    Listing(Segment),
    Tail { segment: Segment, listed: Listed, plan: EpochPlan },
    Files(Chain),
}

impl World {
    pub(crate) fn start_restore(
        &mut self,
        index: usize,
        cell: Cell,
        mut slot: Slot,
        (owner, version, previous): (OwnerView, u64, Previous),
        asleep: Option<&Asleep>,
    ) -> Result<(), Violation> {
        let local = self.nodes[index].disk.remove(&cell);
        let position = local.as_ref().map(|local| local.position);
        if let (Some(asleep), Some(local)) = (asleep, &local)
            && previous.is_whole(asleep.slept, position)
        {
            let files = usize::try_from(asleep.files).expect("few files");
            let rebuilt = Rebuilt { end: position, state: local.state.clone(), files, kept: None };
            return self.on_rebuilt(index, cell, slot, (owner, version), rebuilt);
        }
        let (lineage, effect) = Lineage::start(owner.epoch, owner.floor, position);
        let step = RestoreStep::Openers { left: Vec::new(), read: Vec::new() };
        let asked = (Operation::GetAll(Vec::new()), Step::Files);
        let plans = Vec::new();
        slot.phase = Phase::Restoring(Box::new(Restoring {
            owner,
            version,
            lineage,
            local,
            plans,
            step,
            asked,
            failures: 0,
            replans: 0,
            missing: None,
        }));
        self.run_lineage_effect(index, cell, slot, effect)
    }

    fn run_lineage_effect(
        &mut self,
        index: usize,
        cell: Cell,
        mut slot: Slot,
        effect: LineageEffect,
    ) -> Result<(), Violation> {
        let Phase::Restoring(restoring) = &mut slot.phase else { unreachable!("a restore's effect") };
        match effect {
            LineageEffect::ReadMark => {
                restoring.step = RestoreStep::Mark;
                restoring.asked = (Operation::Get(Key::Retired(cell)), Step::Opener);
            }
            LineageEffect::Forget => {
                restoring.plans.clear();
                let effect = restoring.lineage.on(LineageEvent::Forgotten);
                return self.run_lineage_effect(index, cell, slot, effect);
            }
            LineageEffect::GiveUp => {
                let missing = restoring.missing.take().expect("something was missing");
                return self.on_missing(index, cell, slot, &missing);
            }
            LineageEffect::ReadOpeners(mut left) => {
                left.reverse();
                let first = *left.last().expect("at least one opener is asked for");
                restoring.step = RestoreStep::Openers { left, read: Vec::new() };
                restoring.asked = (Operation::Get(Key::Opener(cell, first)), Step::Opener);
            }
            LineageEffect::PlanEpoch(segment) => {
                restoring.step = RestoreStep::Listing(segment);
                restoring.asked = (Operation::List(cell, segment.epoch), Step::List);
            }
            LineageEffect::Finish(chain) => {
                restoring.plans.reverse();
                let files = restoring.plans.iter().flat_map(|plan| plan.files.clone()).collect();
                restoring.step = RestoreStep::Files(chain);
                restoring.asked = (Operation::GetAll(files), Step::Files);
            }
            LineageEffect::Fail(error) => {
                if matches!(error, LineageError::Moving) {
                    return self.drop_slot(index, slot, &Outcome::Refused);
                }
                return self.on_no_chain(index, cell, slot, &error.to_string());
            }
        }
        self.ask(index, cell, slot, 0)
    }

    fn ask(&mut self, index: usize, cell: Cell, slot: Slot, pause_ms: u64) -> Result<(), Violation> {
        let Phase::Restoring(restoring) = &slot.phase else { unreachable!("a restore asks") };
        let (operation, step) = restoring.asked.clone();
        self.call(index, Purpose::Cell(cell, slot.stay, step), operation, (pause_ms, PATIENCE_MS))?;
        self.put_slot(index, cell, slot);
        Ok(())
    }

    pub(crate) fn on_restore_reply(
        &mut self,
        index: usize,
        cell: Cell,
        mut slot: Slot,
        reply: Reply,
    ) -> Result<(), Violation> {
        let Phase::Restoring(restoring) = &mut slot.phase else { unreachable!("a restore's reply") };
        if matches!(reply, Reply::Failed) {
            restoring.failures += 1;
            if restoring.failures >= FAILURES_MAX {
                return self.drop_slot(index, slot, &Outcome::Refused);
            }
            return self.ask(index, cell, slot, RETRY_PAUSE_MS);
        }
        let placeholder = RestoreStep::Openers { left: Vec::new(), read: Vec::new() };
        let step = std::mem::replace(&mut restoring.step, placeholder);
        match (step, reply) {
            (RestoreStep::Mark, Reply::Object(found)) => {
                let mark = found.map(|(body, _)| match body {
                    Body::Retired(mark) => mark,
                    other => unreachable!("not a mark: {other:?}"),
                });
                let effect = restoring.lineage.on(LineageEvent::MarkRead(mark));
                self.run_lineage_effect(index, cell, slot, effect)
            }
            (RestoreStep::Openers { mut left, mut read }, Reply::Object(found)) => {
                let opener = found.map(|(body, _)| match body {
                    Body::Opener(opener) => opener,
                    other => unreachable!("not an opener: {other:?}"),
                });
                read.push((left.pop().expect("one was asked for"), opener));
                if let Some(next) = left.last() {
                    restoring.asked = (Operation::Get(Key::Opener(cell, *next)), Step::Opener);
                    restoring.step = RestoreStep::Openers { left, read };
                    return self.ask(index, cell, slot, 0);
                }
                let effect = restoring.lineage.on(LineageEvent::OpenersRead(read));
                self.run_lineage_effect(index, cell, slot, effect)
            }
            (RestoreStep::Listing(segment), Reply::Keys(keys)) => {
                let listed = Listed::new(&keys).starting_with(segment.snapshot);
                let plan = EpochPlan::start(cell, &segment, &listed);
                self.go_on_planning(index, cell, slot, (segment, listed, plan))
            }
            (RestoreStep::Tail { segment, listed, mut plan }, Reply::Objects(found)) => {
                let asked = keys_after(cell, &segment, plan.end);
                match asked.into_iter().zip(found).find(|(_, found)| found.is_some()) {
                    Some((key, _)) => {
                        plan.push(key);
                        self.go_on_planning(index, cell, slot, (segment, listed, plan))
                    }
                    None if segment.clip.is_none() => self.on_planned(index, cell, slot, plan),
                    None => {
                        let txid = plan.end.next();
                        restoring.missing = Some(Key::File(cell, segment.epoch, Level::Zero, txid, txid));
                        let effect = restoring.lineage.on(LineageEvent::Broken);
                        self.run_lineage_effect(index, cell, slot, effect)
                    }
                }
            }
            (RestoreStep::Files(chain), Reply::Objects(bodies)) => {
                self.on_files(index, cell, slot, &chain, bodies)
            }
            (step, reply) => unreachable!("{reply:?} does not answer {step:?}"),
        }
    }

    /// Extends an epoch's plan as far as the listing goes, then asks for the keys that can come next by name.
    fn go_on_planning(
        &mut self,
        index: usize,
        cell: Cell,
        mut slot: Slot,
        (segment, listed, mut plan): (Segment, Listed, EpochPlan),
    ) -> Result<(), Violation> {
        while segment.clip != Some(plan.end) {
            if let Some((level, min, max)) = listed.furthest_from(plan.end, segment.clip) {
                plan.push(Key::File(cell, segment.epoch, level, min, max));
            } else if segment.confirm_tail || segment.clip.is_some() {
                let Phase::Restoring(restoring) = &mut slot.phase else { unreachable!("a restore plans") };
                let keys = keys_after(cell, &segment, plan.end);
                restoring.asked = (Operation::GetAll(keys), Step::Tail);
                restoring.step = RestoreStep::Tail { segment, listed, plan };
                return self.ask(index, cell, slot, 0);
            } else {
                break;
            }
        }
        self.on_planned(index, cell, slot, plan)
    }

    fn on_planned(
        &mut self,
        index: usize,
        cell: Cell,
        mut slot: Slot,
        plan: EpochPlan,
    ) -> Result<(), Violation> {
        let Phase::Restoring(restoring) = &mut slot.phase else { unreachable!("a restore plans") };
        let event = LineageEvent::EpochPlanned { start: plan.start, end: plan.end };
        restoring.plans.push(plan);
        let effect = restoring.lineage.on(event);
        self.run_lineage_effect(index, cell, slot, effect)
    }

    fn on_files(
        &mut self,
        index: usize,
        cell: Cell,
        mut slot: Slot,
        chain: &Chain,
        bodies: Vec<Option<Body>>,
    ) -> Result<(), Violation> {
        let Phase::Restoring(restoring) = &mut slot.phase else { unreachable!("a restore's files") };
        let planned: Vec<Epoch> = restoring.plans.iter().map(|plan| plan.epoch).collect();
        let in_chain: Vec<Epoch> = chain.segments.iter().map(|segment| segment.epoch).collect();
        assert_eq!(planned, in_chain, "what was planned is the chain");
        let mut state = Vec::new();
        let mut bodies = bodies.into_iter();
        for plan in &restoring.plans {
            let local = restoring.local.as_ref();
            if let Err(missing) = plan.apply(&mut state, local, &mut bodies) {
                if restoring.replans >= REPLANS_MAX {
                    return self.on_missing(index, cell, slot, &missing);
                }
                // It was there when the plan was made: it is retired, and so is the plan.
                restoring.replans += 1;
                let (owner, local) = (&restoring.owner, restoring.local.as_ref());
                let position = local.map(|local| local.position);
                let (lineage, effect) = Lineage::start(owner.epoch, owner.floor, position);
                (restoring.lineage, restoring.plans) = (lineage, Vec::new());
                return self.run_lineage_effect(index, cell, slot, effect);
            }
        }
        let files = restoring.plans.iter().map(|plan| plan.files.len()).sum();
        let claimed = (restoring.owner.clone(), restoring.version);
        let kept = chain.kept.clone();
        self.on_rebuilt(index, cell, slot, claimed, Rebuilt { end: chain.end, state, files, kept })
    }

    fn on_rebuilt(
        &mut self,
        index: usize,
        cell: Cell,
        slot: Slot,
        (owner, version): (OwnerView, u64),
        Rebuilt { end, state, files, kept }: Rebuilt,
    ) -> Result<(), Violation> {
        self.trace.line(self.now, format_args!("n{index} restored {cell:?} {end:?} {state:?}"));
        self.checkers.chain.on_restored(cell, end, &state)?;
        self.checkers.durability.on_restored(cell, owner.epoch, &state)?;
        self.checkers.purge.on_seen(cell, owner.epoch, &state)?;
        self.open_epoch(index, (cell, slot), (owner, version), (end, state, files, kept))
    }

    /// A file that must be there is not. Another may hold the same, which a stale listing did not name: then the next
    /// attempt finds it.
    fn on_missing(&mut self, index: usize, cell: Cell, slot: Slot, missing: &Key) -> Result<(), Violation> {
        let Key::File(_, epoch, _, _, txid) = missing else { unreachable!("a file's key") };
        if self.bucket.has_transaction(cell, *epoch, *txid) {
            return self.drop_slot(index, slot, &Outcome::Refused);
        }
        self.on_no_chain(index, cell, slot, &format!("{missing:?} is missing"))
    }

    /// No chain. A newer claim's purge may have deleted what was being read; otherwise this must not happen.
    fn on_no_chain(&mut self, index: usize, cell: Cell, slot: Slot, why: &str) -> Result<(), Violation> {
        let Phase::Restoring(restoring) = &slot.phase else { unreachable!("a restore fails") };
        let epoch = restoring.owner.epoch;
        if self.epoch_now(cell) == epoch {
            self.checkers.chain.on_broken(cell, epoch, why)?;
        }
        self.drop_slot(index, slot, &Outcome::Refused)
    }
}
