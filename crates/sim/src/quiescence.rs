//! The end of a run: faults stop, processes go on or all start anew, and each cell is read once more. Then everything
//! that was ever acknowledged must be there, every cell must answer and every name must have its lease, in bounded time.

use std::collections::BTreeSet;

use holdfast_types::NodeName;

use crate::bucket::Cell;
use crate::event::{Ask, Asker, Event, Outcome, Request};
use crate::violation::Violation;
use crate::weather::Weather;
use crate::world::World;

/// Virtual time in which every cell must answer after faults stopped: two clocks that are wrong by 30 s each way, a
/// lease, and a claim.
const PATIENCE_MS: u64 = 120_000;
const PROBE_EVERY_MS: u64 = 400;

/// Which cells have not answered yet.
#[derive(Clone, Debug)]
pub(crate) struct Quiescence {
    silent: BTreeSet<Cell>,
    /// Names whose node has not been seen with a lease.
    absent: BTreeSet<NodeName>,
    until_ms: u64,
}

impl Quiescence {
    /// Whether all have answered.
    #[must_use]
    pub(crate) fn is_over(&self) -> bool {
        self.silent.is_empty() && self.absent.is_empty()
    }
}

impl World {
    pub(crate) fn on_faults_end(&mut self) -> Result<(), Violation> {
        self.trace.line(self.now, format_args!("faults end"));
        self.weather = Weather { list_stale_ms_max: self.weather.list_stale_ms_max, ..Weather::CALM };
        self.outage_until = 0;
        // Beyond the clocks' bound a live owner may have been taken over and not know it: its reads are old.
        let is_restart = self.rng.chance(500) || !self.plan.clocks_in_bounds;
        for index in 0..self.nodes.len() {
            if is_restart && self.nodes[index].process.is_some() {
                self.end_process(index);
            }
            let delay = self.rng.within(50, 1_500);
            self.after(delay, Event::Continue(index));
            self.after(delay, Event::Start(index));
        }
        let silent = (0..self.plan.cells).map(Cell).collect();
        let absent = self.nodes.iter().map(|node| node.name.clone()).collect();
        self.quiescence = Some(Quiescence { silent, absent, until_ms: self.now + PATIENCE_MS });
        self.after(PROBE_EVERY_MS, Event::Probe);
        Ok(())
    }

    pub(crate) fn on_probe(&mut self) -> Result<(), Violation> {
        let present =
            self.nodes.iter().filter(|node| node.session().is_some_and(|of| self.has_authority(of)));
        let present: Vec<NodeName> = present.map(|node| node.name.clone()).collect();
        let Some(quiescence) = &mut self.quiescence else { return Ok(()) };
        quiescence.absent.retain(|name| !present.contains(name));
        let silent: Vec<Cell> = quiescence.silent.iter().copied().collect();
        if self.now >= quiescence.until_ms {
            let absent: Vec<NodeName> = quiescence.absent.iter().cloned().collect();
            self.checkers.clients.on_patience_over(&silent, &absent)?;
        }
        for cell in silent {
            let index = self.rng.index(self.nodes.len());
            let id = self.name();
            let request = Request { id, asker: Asker::Probe, cell, ask: Ask::Read, began_ms: self.now };
            self.send(index, request);
        }
        self.after(PROBE_EVERY_MS, Event::Probe);
        Ok(())
    }

    pub(crate) fn on_probed(&mut self, cell: Cell, outcome: &Outcome) {
        if let (Outcome::Ran(..), Some(quiescence)) = (outcome, &mut self.quiescence) {
            quiescence.silent.remove(&cell);
        }
    }
}
