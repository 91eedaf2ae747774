//! One JavaScript heap with one application in it. It belongs to its thread and never waits: it is entered for a turn,
//! runs until it has nothing left to do, and leaves effects for its embedder. A broken isolate runs nothing any more.

use std::rc::Rc;
use std::sync::Arc;

use holdfast_types::Millis;
use rquickjs::{Context, Runtime};

use crate::application::Application;
use crate::effect::{BrokenCause, Now, OpAnswer, OpId, StartError, Turn};

pub(crate) mod budget;
pub(crate) mod console;
mod errors;
pub(crate) mod host;
mod limits;
pub(crate) mod modules;
pub(crate) mod ops;
mod start;
pub(crate) mod timers;
mod turn;

#[cfg(test)]
mod tests;

pub use limits::Limits;

use budget::Budget;
use host::Host;

/// A JavaScript heap with an application. Not `Send`: it stays on the thread that made it.
pub struct Isolate {
    // Before the runtime: a context is freed by its runtime.
    pub(crate) context: Context,
    runtime: Runtime,
    host: Rc<Host>,
    budget: Rc<Budget>,
    broken: Option<BrokenCause>,
}

impl Isolate {
    /// Loads the application, and runs its modules to the end. What it logs meanwhile comes with the first turn.
    ///
    /// # Errors
    /// [`StartError`]: the application does not start. Disposition: reject.
    pub fn new(code: &Arc<Application>, limits: Limits, now: Now) -> Result<Self, StartError> {
        start::start(code, limits, now)
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

    /// When [`Isolate::wake`] is due next, on the monotonic clock.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Millis> {
        self.host.timers.borrow().next_deadline()
    }

    /// Bytes that the heap has allocated. Walks the heap: not for every turn.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        u64::try_from(self.runtime.memory_usage().malloc_size).unwrap_or(0)
    }
}
