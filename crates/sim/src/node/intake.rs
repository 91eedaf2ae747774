//! A request arrives: it runs, waits for an activation, or is told where to go.

use holdfast_core::ownership::Intent;

use super::{Closing, Phase, Slot};
use crate::event::{Ask, Asker, Outcome, Request};
use crate::violation::Violation;
use crate::world::World;

/// Requests that wait for one activation.
const QUEUE_LEN_MAX: usize = 16;

impl World {
    pub(crate) fn on_request(&mut self, index: usize, request: Request) -> Result<(), Violation> {
        if !self.may_act(index) {
            self.respond(request, Outcome::Refused);
            return Ok(());
        }
        let process = self.nodes[index].process.as_mut().expect("checked");
        let is_draining = process.is_draining;
        let slot = process.cells.remove(&request.cell);
        match (slot, request.ask) {
            (None, Ask::LetGo) => self.respond(request, Outcome::LetGo),
            (None, _) if is_draining => self.respond(request, Outcome::Refused),
            (None, Ask::Purge) => self.start_claim(index, Intent::Purge, request)?,
            (None, _) => self.start_claim(index, Intent::Own, request)?,
            (Some(slot), Ask::LetGo) => self.on_let_go_of_slot(index, slot, request)?,
            (Some(slot), Ask::Purge) => self.on_purge_of_slot(index, slot, request)?,
            (Some(slot), _) => self.on_request_to_slot(index, slot, request)?,
        }
        Ok(())
    }

    fn on_request_to_slot(
        &mut self,
        index: usize,
        mut slot: Slot,
        request: Request,
    ) -> Result<(), Violation> {
        let cell = request.cell;
        let is_held = self.log_of(index).is_some_and(|log| log.holds_writes());
        match &slot.phase {
            Phase::Serving(residency)
                if residency.closing.is_none() && (!is_held || request.ask == Ask::Read) =>
            {
                return self.run_request(index, cell, slot, request);
            }
            Phase::Claiming(_) | Phase::Restoring(_) | Phase::Opening(_)
                if slot.queue.len() < QUEUE_LEN_MAX && request.asker != Asker::Operator =>
            {
                slot.queue.push(request);
            }
            _ => self.respond(request, Outcome::Refused),
        }
        self.put_slot(index, cell, slot);
        Ok(())
    }

    /// The first answer says that it still has the cell; once that is given up the next says so.
    fn on_let_go_of_slot(&mut self, index: usize, slot: Slot, request: Request) -> Result<(), Violation> {
        self.put_slot(index, request.cell, slot);
        self.respond(request, Outcome::Refused);
        self.close(index, request.cell, Closing::Release)
    }

    /// A purge of a cell that this process serves: the cell is given up in order, then the purge claims.
    fn on_purge_of_slot(&mut self, index: usize, slot: Slot, request: Request) -> Result<(), Violation> {
        let may_close = matches!(&slot.phase, Phase::Serving(residency) if residency.closing.is_none());
        self.put_slot(index, request.cell, slot);
        if may_close {
            return self.close(index, request.cell, Closing::Purge(request));
        }
        self.respond(request, Outcome::Refused);
        Ok(())
    }
}
