//! The time that a turn and an event may take: the thread's CPU time, so that a busy machine breaks no isolate. The
//! engine asks while it runs code; what it does not ask within (a few native loops) is bounded by the memory limit.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::effect::EventId;

/// The CPU time of this thread.
pub(super) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // Neither part of a time that a thread has used is negative, and nanoseconds are below 10^9.
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The running turn's end, and what each event has used.
#[derive(Default)]
pub(crate) struct Budget {
    deadline: Cell<Option<Duration>>,
    exceeded: Cell<bool>,
    /// The isolate is broken for another reason.
    stopped: Cell<bool>,
    used: RefCell<HashMap<EventId, Duration>>,
}

impl Budget {
    /// Starts the clock of a turn that may take `limit`.
    pub(crate) fn arm(&self, limit: Duration) {
        self.deadline.set(Some(cpu_time() + limit));
    }

    /// Stops the clock.
    pub(crate) fn disarm(&self) {
        self.deadline.set(None);
    }

    /// Whether the turn must stop now. Once it says so it stays so: the isolate is broken.
    pub(crate) fn must_stop(&self) -> bool {
        let late = self.deadline.get().is_some_and(|deadline| cpu_time() >= deadline);
        if late {
            self.exceeded.set(true);
        }
        self.exceeded.get() || self.stopped.get()
    }

    /// What the running turn has left; nothing where none runs.
    pub(crate) fn left(&self) -> Duration {
        self.deadline.get().map_or(Duration::ZERO, |deadline| deadline.saturating_sub(cpu_time()))
    }

    /// Stops whatever runs: the isolate is broken.
    pub(crate) fn stop(&self) {
        self.stopped.set(true);
    }

    /// Whether a turn or an event has used more than it may.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.exceeded.get()
    }

    /// Adds a turn's time to the event that ran in it.
    pub(crate) fn charge(&self, event: EventId, time: Duration, limit: Duration) {
        let mut used = self.used.borrow_mut();
        let total = used.entry(event).or_default();
        *total += time;
        if *total > limit {
            self.exceeded.set(true);
        }
    }

    /// How many events have used time and are not forgotten.
    #[cfg(test)]
    pub(crate) fn charged(&self) -> usize {
        self.used.borrow().len()
    }

    /// Forgets an event that is done.
    pub(crate) fn forget(&self, event: EventId) {
        self.used.borrow_mut().remove(&event);
    }
}
