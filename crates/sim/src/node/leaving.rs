//! A stay ends in order: a release, a sleep, a drain of the whole node.

use holdfast_core::alarm::AlarmEvent;
use holdfast_core::gate::GateEvent;
use holdfast_core::lease::LeaseRecord;
use holdfast_core::ownership::{Intent, Release, ReleaseEffect, ReleaseEvent, ReleaseOutcome};
use holdfast_core::store::{Answer, Guard};
use holdfast_types::{Millis, WriteId};

use super::residency::Output;
use super::{Asleep, LocalFile, PROTOCOL, Phase, Purpose, Settle, Slot, Step};
use crate::bucket::{Body, Cell, Key, Operation, Reply};
use crate::event::{Ask, Asker, Event, Outcome, Request, Timer};
use crate::violation::Violation;
use crate::world::World;

const PATIENCE_MS: u64 = 2_000;
const WRITE_PATIENCE_MS: u64 = 6_000;
/// Time for the bucket to get all of a closing cell.
const CLOSING_PATIENCE_MS: u64 = 10_000;

/// So many of the cells that are given up in order are announced to a node.
const TOLD_PER_MILLE: u64 = 600;
/// So many are announced before they are given up.
const LIES_PER_MILLE: u64 = 100;

/// How a stay ends once everything is covered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Closing {
    /// The ownership is given up.
    Release,
    /// The cell leaves memory and stays owned.
    Sleep,
    /// An operator purges it.
    Purge(Request),
}

/// A release under way.
#[derive(Debug)]
pub(crate) struct Releasing {
    release: Release,
    pub(crate) settle: Option<Settle>,
    local: Option<LocalFile>,
}

impl World {
    /// Stops a serving cell's intake; the rest follows when the bucket has all of it.
    pub(crate) fn close(&mut self, index: usize, cell: Cell, closing: Closing) -> Result<(), Violation> {
        let node = &self.nodes[index];
        let Some(process) = node.process.as_ref() else { return Ok(()) };
        let Some(Slot { phase: Phase::Serving(residency), stay, .. }) = process.cells.get(&cell) else {
            return Ok(());
        };
        if node.is_paused || residency.closing.is_some() || !self.may_act(index) {
            return Ok(());
        }
        let stay = *stay;
        if matches!(closing, Closing::Release) && self.rng.chance(LIES_PER_MILLE) {
            // It is not given up yet, and perhaps never.
            self.tell_successor(cell);
        }
        self.alarm_event(index, cell, stay, AlarmEvent::Stopped)?;
        let Some(mut slot) = self.take_slot(index, cell, stay) else { return Ok(()) };
        let Phase::Serving(residency) = &mut slot.phase else { unreachable!("just seen") };
        residency.closing = Some(closing);
        let ticket = residency.ticket();
        let output = residency.new_output(Output::Closing);
        let deadline = self.nodes[index].clock.read(self.now).monotonic.plus(CLOSING_PATIENCE_MS);
        self.start_timer_at(index, deadline, Timer::OutputDeadline(cell, stay));
        let ready = GateEvent::OutputReady { output, ticket, deadline, in_bucket: true };
        self.gate_event(index, cell, slot, ready)
    }

    /// The bucket has all of a closing stay.
    pub(crate) fn finish_closing(
        &mut self,
        index: usize,
        cell: Cell,
        mut slot: Slot,
    ) -> Result<(), Violation> {
        let Phase::Serving(residency) = slot.phase else { unreachable!("a closing cell serves") };
        let (owner, version) = (residency.owner.clone(), residency.version);
        let closing = residency.closing.expect("it closes");
        let files = residency.compaction.chain().files;
        let local = residency.into_local_file();
        match closing {
            Closing::Sleep => {
                if let (Some(local), Some(process)) = (&local, self.nodes[index].process.as_mut()) {
                    let asleep = Asleep { record: (owner, version), slept: local.position, files };
                    process.asleep.insert(cell, asleep);
                }
                self.leave_cell(index, cell, local)
            }
            Closing::Purge(request) => self.start_claim(index, Intent::Purge, request),
            Closing::Release => {
                let write_id = WriteId::from_bits(self.rng.wide_bits());
                let (release, effect) = Release::start(&owner, version, write_id);
                slot.phase = Phase::Releasing(Releasing { release, settle: None, local });
                self.run_release_effect(index, cell, slot, effect)
            }
        }
    }

    /// Any node is told to have the cell: the right one, another, or the one that gave it up.
    fn tell_successor(&mut self, cell: Cell) {
        let index = self.rng.index(self.nodes.len());
        let id = self.name();
        self.send(index, Request { id, asker: Asker::Giver, cell, ask: Ask::Read, began_ms: self.now });
    }

    fn leave_cell(&mut self, index: usize, cell: Cell, local: Option<LocalFile>) -> Result<(), Violation> {
        if let Some(local) = local {
            self.nodes[index].disk.insert(cell, local);
        }
        self.leave_when_drained(index)
    }

    pub(crate) fn on_release_answered(
        &mut self,
        index: usize,
        cell: Cell,
        slot: Slot,
        answer: Answer<u64>,
    ) -> Result<(), Violation> {
        self.release_event(index, cell, slot, ReleaseEvent::Answered(answer))
    }

    pub(crate) fn on_release_reply(
        &mut self,
        index: usize,
        cell: Cell,
        slot: Slot,
        reply: Reply,
    ) -> Result<(), Violation> {
        let event = match reply {
            Reply::Object(Some((Body::Owner(owner), version))) => {
                ReleaseEvent::OwnerRead { owner: Some((owner, version)) }
            }
            Reply::Object(None) => ReleaseEvent::OwnerRead { owner: None },
            _ => ReleaseEvent::ReadFailed,
        };
        self.release_event(index, cell, slot, event)
    }

    fn release_event(
        &mut self,
        index: usize,
        cell: Cell,
        mut slot: Slot,
        event: ReleaseEvent<u64>,
    ) -> Result<(), Violation> {
        if !self.may_act(index) {
            return self.drop_slot(index, slot, &Outcome::Refused);
        }
        let Phase::Releasing(releasing) = &mut slot.phase else { unreachable!("a release's event") };
        let effect = releasing.release.on(event);
        self.run_release_effect(index, cell, slot, effect)
    }

    fn run_release_effect(
        &mut self,
        index: usize,
        cell: Cell,
        mut slot: Slot,
        effect: ReleaseEffect<u64>,
    ) -> Result<(), Violation> {
        let Phase::Releasing(releasing) = &mut slot.phase else { unreachable!("a release's effect") };
        match effect {
            ReleaseEffect::WriteOwner { owner, guard } => {
                let purpose = Purpose::Cell(cell, slot.stay, Step::Settle);
                let write = (Key::Owner(cell), Body::Owner(owner), guard);
                releasing.settle = Some(self.start_settle(index, purpose, write, (0, WRITE_PATIENCE_MS))?);
            }
            ReleaseEffect::ReadOwner => {
                let purpose = Purpose::Cell(cell, slot.stay, Step::ReleaseOwner);
                self.call(index, purpose, Operation::Get(Key::Owner(cell)), (0, PATIENCE_MS))?;
            }
            ReleaseEffect::Finish(outcome) => {
                self.trace.line(self.now, format_args!("n{index} release of {cell:?}: {outcome:?}"));
                let local = releasing.local.take();
                if matches!(outcome, ReleaseOutcome::Released(_)) && self.rng.chance(TOLD_PER_MILLE) {
                    self.tell_successor(cell);
                }
                return self.leave_cell(index, cell, local);
            }
        }
        self.put_slot(index, cell, slot);
        Ok(())
    }

    /// A draining process without cells gives its lease up and ends.
    pub(crate) fn leave_when_drained(&mut self, index: usize) -> Result<(), Violation> {
        let node = &self.nodes[index];
        let Some(process) = node.process.as_ref() else { return Ok(()) };
        if !process.is_draining || !process.cells.is_empty() {
            return Ok(());
        }
        if process.log.as_ref().is_some_and(|log| !log.is_closed) {
            return self.close_log(index);
        }
        let session = process.session;
        if let (Some(version), true) = (process.keeper.version().copied(), self.may_act(index)) {
            let write_id = WriteId::from_bits(self.rng.wide_bits());
            let incarnation = self.nodes[index].incarnation;
            let record = LeaseRecord { write_id, session, incarnation, expires_ms: Millis::ZERO };
            let key = Key::Lease(self.nodes[index].name.clone());
            let write = Operation::PutIf(key, Body::Lease(record, PROTOCOL), Guard::Match(version));
            self.call(index, Purpose::Nobody, write, (0, PATIENCE_MS))?;
        }
        self.end_process(index);
        let delay = self.rng.within(200, 3_000);
        self.after(delay, Event::Start(index));
        Ok(())
    }
}
