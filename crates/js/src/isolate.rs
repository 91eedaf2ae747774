//! One JavaScript heap with one application in it. It belongs to its thread and never waits: it is entered for a turn,
//! runs until it has nothing left to do, and leaves effects for its embedder. A broken isolate runs nothing any more.

use std::rc::Rc;
use std::sync::Arc;

use holdfast_types::Millis;
use rquickjs::{Context, Runtime};

use crate::application::Application;
use crate::effect::{
    BrokenCause, Ending, EventCall, EventId, Now, OpAnswer, OpId, SocketEvent, SocketId, StartError, Turn,
};
use crate::web::sockets;

pub(crate) mod budget;
pub(crate) mod console;
pub(crate) mod databases;
mod errors;
pub(crate) mod events;
pub(crate) mod host;
pub(crate) mod kind;
mod limits;
pub(crate) mod modules;
pub(crate) mod objects;
pub(crate) mod ops;
pub(crate) mod r2;
pub(crate) mod scheduled;
mod start;
pub(crate) mod timers;
pub(crate) mod turn;

#[cfg(test)]
mod drop_tests;
#[cfg(test)]
mod endings_tests;
#[cfg(test)]
mod events_tests;
#[cfg(test)]
mod limits_tests;
#[cfg(test)]
mod tests;

pub use kind::{IsolateKind, Object};
pub use limits::Limits;
pub use objects::{id_from_name, is_id_of};
pub use scheduled::{CRON_CLASS, CRON_OBJECT};

use budget::Budget;
use host::Host;

/// A JavaScript heap with an application. Not `Send`: it stays on the thread that made it.
pub struct Isolate {
    // Before the runtime: a context is freed by its runtime.
    pub(crate) context: Context,
    pub(crate) runtime: Runtime,
    host: Rc<Host>,
    budget: Rc<Budget>,
    broken: Option<BrokenCause>,
}

impl Isolate {
    /// Loads the application, and runs its modules to the end. What it logs meanwhile comes with the first turn.
    ///
    /// # Errors
    /// [`StartError`]: the application does not start. Disposition: reject.
    pub fn new(
        code: &Arc<Application>,
        kind: IsolateKind,
        limits: Limits,
        now: Now,
    ) -> Result<Self, StartError> {
        start::start(code, kind, limits, now)
    }

    /// Begins an event. It may wait in front of the input gate, and others may begin before it is done.
    ///
    /// # Panics
    /// When the number was used before.
    pub fn dispatch(&mut self, now: Now, event: EventId, call: EventCall) -> Turn {
        self.turn(now, |ctx, jobs| {
            events::begin(ctx, event, call)?;
            jobs.run(ctx)
        })
    }

    /// Whether nothing is under way: no event, no timer, no operation, no socket of `accept()`, no TCP
    /// connection.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.host.has_no_event()
            && self.host.has_no_socket()
            && self.host.connections() == 0
            && self.next_deadline().is_none()
            && self.host.ops.borrow().is_empty()
    }

    /// TCP connections that are open or opening.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.host.connections()
    }

    /// Tells what came for a socket that was accepted by `accept()`.
    pub fn socket_event(&mut self, now: Now, socket: SocketId, event: SocketEvent) -> Turn {
        self.turn(now, |ctx, jobs| {
            sockets::receive(ctx, socket, event)?;
            jobs.run(ctx)
        })
    }

    /// Fires the timers that are due.
    pub fn wake(&mut self, now: Now) -> Turn {
        self.turn(now, timers::fire)
    }

    /// Answers an operation. An answer that nobody waits for any more does nothing.
    pub fn complete(&mut self, now: Now, op: OpId, answer: OpAnswer) -> Turn {
        self.turn(now, |ctx, jobs| {
            ops::settle(ctx, op, answer)?;
            jobs.run(ctx)
        })
    }

    /// Ends an event before it is done: the sources of bodies that it sends are told, and `Done` comes. A Worker's timers and
    /// operations of it are cancelled; a Durable Object goes on after its events, and must have answered this one. An event
    /// that is over already stays as it is.
    pub fn end_event(&mut self, now: Now, event: EventId, ending: Ending) -> Turn {
        self.turn(now, |ctx, jobs| {
            events::end(ctx, event, ending)?;
            jobs.run(ctx)
        })
    }

    /// The event that started an operation and waits for it, while it does. None for what the application's modules started.
    #[must_use]
    pub fn event_of(&self, op: OpId) -> Option<EventId> {
        self.host.ops.borrow().event_of(op)
    }

    /// When [`Isolate::wake`] is due next, on the monotonic clock.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Millis> {
        self.host.timers.borrow().next_deadline()
    }

    #[cfg(test)]
    pub(crate) fn kind(&self) -> &IsolateKind {
        &self.host.kind
    }

    /// Bytes that the heap has allocated, and what WebAssembly has. Walks the heap: not for every turn.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let heap = u64::try_from(self.runtime.memory_usage().malloc_size).unwrap_or(0);
        heap + u64::try_from(self.host.wasm.account.used()).unwrap_or(0)
    }
}
