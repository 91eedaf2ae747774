//! Faults: which strikes when, and what it does.

use holdfast_types::Incarnation;

use crate::bucket::{Cell, Key, Operation};
use crate::event::{Ask, Asker, Event, Request, Timer};
use crate::node::Closing;
use crate::scenario::Fault;
use crate::violation::Violation;
use crate::world::World;

mod followers;
mod operator;

/// How long a drain may take before the process ends anyway.
const DRAIN_PATIENCE_MS: u64 = 8_000;

impl World {
    pub(crate) fn on_fault(&mut self) -> Result<(), Violation> {
        let total: u64 = self.plan.faults.iter().map(|(_, weight)| weight).sum();
        if self.quiescence.is_some() || total == 0 {
            return Ok(());
        }
        let pause = self.rng.within(50, self.plan.fault_every_ms_max);
        self.after(pause, Event::Fault);
        let mut ticket = self.rng.below(total);
        for (fault, weight) in self.plan.faults.clone() {
            if ticket < weight {
                return self.strike(fault);
            }
            ticket -= weight;
        }
        unreachable!("a ticket is below the total of the weights")
    }

    fn strike(&mut self, fault: Fault) -> Result<(), Violation> {
        let index = self.rng.index(self.nodes.len());
        let follower = if self.followers.is_empty() { 0 } else { self.rng.index(self.followers.len()) };
        let cell = Cell(self.rng.byte() % self.plan.cells);
        self.trace.line(self.now, format_args!("fault {fault:?} n{index} f{follower} {cell:?}"));
        match fault {
            Fault::Crash => self.crash(index),
            Fault::Pause => self.pause(index),
            Fault::Outage => self.begin_outage(),
            Fault::Drain => return self.drain(index),
            Fault::Release => return self.close(index, cell, Closing::Release),
            Fault::Sleep => return self.close(index, cell, Closing::Sleep),
            Fault::Purge => {
                let id = self.name();
                let request =
                    Request { id, asker: Asker::Operator, cell, ask: Ask::Purge, began_ms: self.now };
                self.send(index, request);
            }
            Fault::HarmOwnerRecord => self.harm_owner_record(cell),
            Fault::EraseLease => {
                let key = Key::Lease(self.nodes[index].name.clone());
                self.bucket.apply(&Operation::Delete(vec![key]), self.now, 0);
            }
            Fault::DeclareLoss => self.declare_a_loss(),
            Fault::ClockStep => {
                let off = self.plan.wall_off_ms_max;
                self.nodes[index].clock.wall_ahead_ms = wall_ahead(&mut self.rng, off);
            }
            _ => self.strike_followers(fault, index, follower),
        }
        Ok(())
    }

    fn begin_outage(&mut self) {
        // Two in a row must not become one long outage.
        let rested = self.now > self.outage_until + 4_000;
        if rested {
            self.outage_until = self.now + self.rng.within(50, self.plan.outage_ms_max);
        }
    }

    /// Ends a process without a word; it comes back, mostly on the same directory.
    pub(crate) fn crash(&mut self, index: usize) {
        if self.nodes[index].process.is_none() {
            return;
        }
        self.end_process(index);
        if self.rng.chance(200) {
            self.nodes[index].incarnation = Incarnation::from_bits(self.rng.wide_bits());
            self.nodes[index].disk.clear();
        }
        let delay = self.rng.within(50, 6_000);
        self.after(delay, Event::Start(index));
    }

    /// Stops a process now, or at the next moment that matters: while the read is under way that proves a write or
    /// shows another's lease.
    fn pause(&mut self, index: usize) {
        if self.rng.chance(300) {
            self.nodes[index].is_pause_armed = true;
        } else {
            self.pause_now(index);
        }
    }

    pub(crate) fn pause_now(&mut self, index: usize) {
        let is_long = self.rng.chance(600);
        let span = if is_long { self.rng.within(4_000, 25_000) } else { self.rng.within(20, 3_000) };
        let node = &mut self.nodes[index];
        node.is_pause_armed = false;
        if node.process.is_some() && !node.is_paused {
            node.is_paused = true;
            self.after(span, Event::Continue(index));
        }
    }

    pub(crate) fn on_continue(&mut self, index: usize) {
        self.trace.line(self.now, format_args!("n{index} continues"));
        let node = &mut self.nodes[index];
        node.is_paused = false;
        for event in std::mem::take(&mut node.deferred) {
            // In any order: nothing says what a process looks at first.
            let delay = self.rng.below(3);
            self.after(delay, event);
        }
    }

    fn drain(&mut self, index: usize) -> Result<(), Violation> {
        let Some(process) = self.nodes[index].process.as_mut() else { return Ok(()) };
        if process.is_draining || !process.keeper.is_held() {
            return Ok(());
        }
        process.is_draining = true;
        let cells: Vec<Cell> = process.cells.keys().copied().collect();
        self.start_timer(index, DRAIN_PATIENCE_MS, Timer::DrainPatience);
        for cell in cells {
            self.close(index, cell, Closing::Release)?;
        }
        self.leave_when_drained(index)
    }
}

/// A wall clock's error within a bound, to either side.
pub(crate) fn wall_ahead(rng: &mut crate::rng::Rng, off_max: u64) -> i64 {
    let ahead = i64::try_from(rng.below(2 * off_max + 1)).expect("a small span");
    ahead - i64::try_from(off_max).expect("a small span")
}
