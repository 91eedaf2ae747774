//! The end of an activation: the epoch's opener is written, then the cell serves.

use holdfast_core::compaction::ChainSize;
use holdfast_core::gate::GateEvent;
use holdfast_core::lineage::OpenerView;
use holdfast_core::ownership::OwnerView;
use holdfast_core::retire::Kept;
use holdfast_types::Position;

use super::{Closing, Phase, Purpose, Residency, Slot, Step};
use crate::bucket::{Body, Cell, Key, OpId, Operation, Reply};
use crate::event::Outcome;
use crate::violation::Violation;
use crate::world::World;

const PATIENCE_MS: u64 = 2_500;
const RETRY_PAUSE_MS: u64 = 100;
/// Failed writes of the opener before the epoch is given up: the next activation claims another.
const FAILURES_MAX: u32 = 4;

/// An opener under way.
#[derive(Debug)]
pub(crate) struct Opening {
    owner: OwnerView,
    version: u64,
    base: Option<Position>,
    state: Vec<OpId>,
    files: usize,
    kept: Option<Kept>,
    failures: u32,
}

impl World {
    pub(crate) fn open_epoch(
        &mut self,
        index: usize,
        (cell, mut slot): (Cell, Slot),
        (owner, version): (OwnerView, u64),
        (base, state, files, kept): (Option<Position>, Vec<OpId>, usize, Option<Kept>),
    ) -> Result<(), Violation> {
        slot.phase = Phase::Opening(Opening { owner, version, base, state, files, kept, failures: 0 });
        self.put_opener(index, cell, slot, 0)
    }

    /// Always the same bytes: a late landing of an earlier try changes nothing.
    fn put_opener(&mut self, index: usize, cell: Cell, slot: Slot, pause_ms: u64) -> Result<(), Violation> {
        let Phase::Opening(opening) = &slot.phase else { unreachable!("an opener is under way") };
        let opener = Body::Opener(OpenerView { base: opening.base });
        let put = Operation::Put(Key::Opener(cell, opening.owner.epoch), opener);
        let purpose = Purpose::Cell(cell, slot.stay, Step::OpenEpoch);
        self.call(index, purpose, put, (pause_ms, PATIENCE_MS))?;
        self.put_slot(index, cell, slot);
        Ok(())
    }

    pub(crate) fn on_epoch_opened(
        &mut self,
        index: usize,
        cell: Cell,
        mut slot: Slot,
        reply: &Reply,
    ) -> Result<(), Violation> {
        let Phase::Opening(opening) = &mut slot.phase else { unreachable!("an opener is under way") };
        if !matches!(reply, Reply::Done) {
            opening.failures += 1;
            if opening.failures >= FAILURES_MAX {
                return self.drop_slot(index, slot, &Outcome::Refused);
            }
            return self.put_opener(index, cell, slot, RETRY_PAUSE_MS);
        }
        if !self.may_act(index) {
            return self.drop_slot(index, slot, &Outcome::Refused);
        }
        let Phase::Opening(opening) = slot.phase else { unreachable!("checked") };
        let Opening { owner, version, base, state, files, kept, .. } = opening;
        let chain = ChainSize { files: u64::try_from(files).expect("few files"), bytes: 0 };
        let mut residency = Residency::new(owner, version, base, (state, chain), self.plan.pace_ms);
        residency.kept = kept;
        let queue = slot.queue;
        let stay = slot.stay;
        let slot = Slot { stay, phase: Phase::Serving(Box::new(residency)), queue: Vec::new() };
        let rounds = self.log_of(index).map_or(0, |log| log.rounds());
        self.gate_event(index, cell, slot, GateEvent::PaceChanged { rounds })?;
        self.start_alarm(index, cell, stay)?;
        if self.rng.chance(500) {
            self.retire_soon(index, cell, stay);
        }
        for request in queue {
            // One event at a time; the cell may be gone after any of them.
            match self.take_slot(index, cell, stay) {
                Some(slot) => self.run_request(index, cell, slot, request)?,
                None => self.respond(request, Outcome::Refused),
            }
        }
        let is_draining = self.nodes[index].process.as_ref().is_some_and(|process| process.is_draining);
        if is_draining { self.close(index, cell, Closing::Release) } else { Ok(()) }
    }
}
