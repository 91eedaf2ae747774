//! Clients: each sends one request at a time, to the node that it thinks owns the cell, and on purpose sometimes to
//! another.

use std::collections::BTreeMap;

use crate::bucket::Cell;
use crate::event::{Ask, Asker, Event, NodeEvent, Outcome, Request};
use crate::violation::Violation;
use crate::world::World;

/// A client waits this long for a response.
const PATIENCE_MS: u64 = 12_000;

/// A client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Client {
    routes: BTreeMap<Cell, usize>,
    waiting_for: Option<u64>,
}

impl World {
    pub(crate) fn on_think(&mut self, client: usize) {
        if self.quiescence.is_some() {
            return;
        }
        let cell = Cell(self.rng.byte() % self.plan.cells);
        let ask = match self.rng.below(20) {
            0..10 => Ask::Write(self.new_op()),
            10..19 => Ask::Read,
            _ => Ask::Touch,
        };
        let ask = if self.plan.has_alarms { self.alarm_ask() } else { ask };
        let strays = self.rng.chance(self.plan.strays);
        let route = self.clients[client].routes.get(&cell).copied().filter(|_| !strays);
        let index = route.unwrap_or_else(|| self.rng.index(self.nodes.len()));
        let id = self.name();
        self.clients[client].routes.insert(cell, index);
        self.clients[client].waiting_for = Some(id);
        self.send(index, Request { id, asker: Asker::Client(client), cell, ask, began_ms: self.now });
        self.after(PATIENCE_MS, Event::Impatience(client, id));
    }

    /// Something is under way on a node: a handler there writes right now.
    pub(crate) fn provoke(&mut self, index: usize) {
        if !self.plan.has_adversary || self.quiescence.is_some() || !self.rng.chance(400) {
            return;
        }
        for _ in 0..self.rng.within(1, 4) {
            let cell = Cell(self.rng.byte() % self.plan.cells);
            let (id, op) = (self.name(), self.new_op());
            let began_ms = self.now;
            let request = Request { id, asker: Asker::Adversary, cell, ask: Ask::Write(op), began_ms };
            let delay = self.rng.below(120);
            self.after(delay, Event::Node(index, None, NodeEvent::Request(request)));
        }
    }

    /// Sends a request on its way.
    pub(crate) fn send(&mut self, index: usize, request: Request) {
        self.trace.line(self.now, format_args!("{request:?} to n{index}"));
        if !self.rng.chance(self.weather.message_lost) {
            let delay = self.rng.within(1, 5);
            self.after(delay, Event::Node(index, None, NodeEvent::Request(request)));
        }
    }

    pub(crate) fn on_impatience(&mut self, client: usize, request: u64) {
        if self.clients[client].waiting_for == Some(request) {
            self.clients[client].waiting_for = None;
            self.clients[client].routes.clear();
            self.after(1, Event::Think(client));
        }
    }

    pub(crate) fn on_response(&mut self, request: &Request, outcome: Outcome) -> Result<(), Violation> {
        self.trace.line(self.now, format_args!("{}: {outcome:?}", request.id));
        self.check_response(request, &outcome)?;
        match request.asker {
            Asker::Client(client) => self.on_client_response(client, request, &outcome),
            Asker::Operator => self.on_operator_response(request, &outcome),
            Asker::Forcer => return self.on_forcer_response(request, &outcome),
            Asker::Adversary => {}
            Asker::Giver => self.tally.adopted += u64::from(matches!(outcome, Outcome::Ran(..))),
            Asker::Waker(waker) => self.on_waker_response(waker, request, &outcome),
            Asker::Probe => self.on_probed(request.cell, &outcome),
        }
        Ok(())
    }

    fn check_response(&mut self, request: &Request, outcome: &Outcome) -> Result<(), Violation> {
        let clients = &mut self.checkers.clients;
        match (outcome, request.ask) {
            (Outcome::Ran(epoch, state), ask) => {
                let is_recent = self.plan.clocks_in_bounds || request.asker == Asker::Probe;
                clients.on_read(request.cell, request.began_ms, state, is_recent)?;
                if let Ask::Write(op) = ask {
                    clients.on_acknowledged(request.cell, op, *epoch, self.now)?;
                }
            }
            (Outcome::NotOwner(_) | Outcome::Refused, Ask::Write(op)) => clients.on_refused(op),
            _ => {}
        }
        Ok(())
    }

    /// An operator follows the answer to the owner.
    fn on_operator_response(&mut self, request: &Request, outcome: &Outcome) {
        if let Outcome::NotOwner(name) = outcome
            && let Some(index) = self.nodes.iter().position(|node| &node.name == name)
            && self.now < request.began_ms + PATIENCE_MS
        {
            self.send(index, *request);
        }
    }

    fn on_client_response(&mut self, client: usize, request: &Request, outcome: &Outcome) {
        if self.clients[client].waiting_for != Some(request.id) {
            return;
        }
        self.clients[client].waiting_for = None;
        let pause = match outcome {
            Outcome::Ran(..) | Outcome::Purged | Outcome::LetGo | Outcome::Looked { .. } => {
                self.rng.within(5, 250)
            }
            Outcome::NotOwner(name) => {
                let named: Vec<usize> =
                    (0..self.nodes.len()).filter(|index| &self.nodes[*index].name == name).collect();
                let route = named[self.rng.index(named.len())];
                self.clients[client].routes.insert(request.cell, route);
                self.rng.within(1, 20)
            }
            Outcome::Refused | Outcome::Unknown => {
                self.clients[client].routes.remove(&request.cell);
                self.rng.within(20, 400)
            }
        };
        self.after(pause, Event::Think(client));
    }
}
