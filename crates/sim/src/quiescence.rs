//! The end of a run: faults stop, processes go on or all start anew, and each cell is read once more. Then everything
//! that was ever acknowledged must be there, every cell must answer, every name must have its lease and every dead
//! session must be recovered, in bounded time. Except where no disk is left to recover from: that must stay so.

use std::collections::BTreeSet;

use holdfast_core::log_record::{LogRecord, LogState, MemberId};
use holdfast_core::ownership::OwnerState;
use holdfast_types::{NodeName, SessionId};

use crate::bucket::{Body, Cell, Key};
use crate::event::{Ask, Asker, Event, Outcome, Request};
use crate::violation::Violation;
use crate::weather::Weather;
use crate::world::World;

/// Virtual time in which every cell must answer after faults stopped: two clocks that are wrong by 30 s each way, a
/// lease, and a claim.
const PATIENCE_MS: u64 = 120_000;
/// Besides, where alarms end their processes: the pauses between their last runs, and a lease and a claim for each.
const POISON_PATIENCE_MS: u64 = 300_000;
const PROBE_EVERY_MS: u64 = 400;
/// How long a run goes on where cells cannot come back.
const BLOCKED_FOR_MS: u64 = 25_000;

/// Which cells have not answered yet.
#[derive(Clone, Debug)]
pub(crate) struct Quiescence {
    silent: BTreeSet<Cell>,
    /// Names whose node has not been seen with a lease.
    absent: BTreeSet<NodeName>,
    /// Dead sessions whose logs are not sealed and could be.
    unrecovered: Vec<SessionId>,
    until_ms: u64,
    not_before_ms: u64,
}

impl Quiescence {
    /// Whether all have answered.
    #[must_use]
    pub(crate) fn is_over(&self, now: u64) -> bool {
        let is_quiet = self.silent.is_empty() && self.absent.is_empty() && self.unrecovered.is_empty();
        is_quiet && now >= self.not_before_ms
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
        for index in 0..self.followers.len() {
            let follower = &mut self.followers[index];
            follower.pace.until_ms = follower.pace.until_ms.min(self.now);
            self.followers[index].full_until_ms = 0;
            let delay = self.rng.within(20, 1_500);
            self.after(delay, Event::ContinueFollower(index));
            self.after(delay, Event::StartFollower(index));
        }
        self.plan.link_slow = 0;
        let silent = (0..self.plan.cells).map(Cell).collect();
        let absent = self.nodes.iter().map(|node| node.name.clone()).collect();
        let (until_ms, not_before_ms) = (self.now + self.patience_ms(), self.now + PROBE_EVERY_MS);
        let unrecovered = Vec::new();
        self.quiescence = Some(Quiescence { silent, absent, unrecovered, until_ms, not_before_ms });
        self.after(PROBE_EVERY_MS, Event::Probe);
        Ok(())
    }

    fn patience_ms(&self) -> u64 {
        PATIENCE_MS + if self.plan.poisoned > 0 { POISON_PATIENCE_MS } else { 0 }
    }

    pub(crate) fn on_probe(&mut self) -> Result<(), Violation> {
        let present =
            self.nodes.iter().filter(|node| node.session().is_some_and(|of| self.has_authority(of)));
        let present: Vec<NodeName> = present.map(|node| node.name.clone()).collect();
        if self.plan.declares_loss {
            self.declare_losses_for_good();
        }
        if self.plan.has_alarms && self.await_alarms()? {
            return Ok(());
        }
        let unrecovered = self.unrecovered();
        let blocked = self.blocked_cells();
        let patience_ms = self.patience_ms();
        let Some(quiescence) = &mut self.quiescence else { return Ok(()) };
        quiescence.unrecovered = unrecovered;
        if !blocked.is_empty() {
            // Long enough to see that nobody gets past it.
            let began_ms = quiescence.until_ms - patience_ms;
            quiescence.not_before_ms = began_ms + BLOCKED_FOR_MS;
            quiescence.silent.retain(|cell| !blocked.contains(cell));
        }
        quiescence.absent.retain(|name| !present.contains(name));
        let silent: Vec<Cell> = quiescence.silent.iter().copied().collect();
        if self.now >= quiescence.until_ms {
            let absent: Vec<NodeName> = quiescence.absent.iter().cloned().collect();
            let unrecovered = quiescence.unrecovered.clone();
            self.checkers.clients.on_patience_over(&silent, &absent, &unrecovered)?;
        }
        for cell in silent.into_iter().chain(blocked) {
            let index = self.rng.index(self.nodes.len());
            let id = self.name();
            let request = Request { id, asker: Asker::Probe, cell, ask: Ask::Read, began_ms: self.now };
            self.send(index, request);
        }
        self.after(PROBE_EVERY_MS, Event::Probe);
        Ok(())
    }

    /// Whether alarms are still owed, or to be given up: until then nobody touches the cells but the waker.
    fn await_alarms(&mut self) -> Result<bool, Violation> {
        let now = self.true_wall();
        if self.checkers.alarms.owed(now).is_empty() && self.checkers.alarms.deadly().is_empty() {
            return Ok(false);
        }
        let until_ms = self.quiescence.as_ref().map_or(0, |quiescence| quiescence.until_ms);
        if self.now + self.patience_ms() / 2 >= until_ms {
            self.checkers.alarms.on_patience_over(now)?;
        }
        self.after(PROBE_EVERY_MS, Event::Probe);
        Ok(true)
    }

    fn is_alive(&self, session: SessionId) -> bool {
        self.nodes.iter().any(|node| node.session() == Some(session))
    }

    /// Whether no member of the ensemble that a recovery would ask has its disk whole: then only a person ends it.
    pub(crate) fn is_blocked_for_good(&self, record: &LogRecord) -> bool {
        let has_disk = |member: &MemberId| {
            self.followers.iter().any(|follower| &follower.member() == member && !follower.disk.is_harmed())
        };
        if self.bucket.peek(&Key::Loss(record.session)).is_some() {
            return false;
        }
        let members = record.witnesses().map_or(&[][..], |ensemble| &ensemble.members);
        record.state != LogState::Sealed && !members.is_empty() && !members.iter().any(has_disk)
    }

    pub(crate) fn unsealed_logs(&self) -> impl Iterator<Item = &LogRecord> {
        let logs = self.bucket.objects().filter_map(|(_, body)| match body {
            Body::Log(record) if record.state != LogState::Sealed => Some(record),
            _ => None,
        });
        logs.filter(|record| !self.is_alive(record.session))
    }

    fn unrecovered(&self) -> Vec<SessionId> {
        let waiting = self.unsealed_logs().filter(|record| !self.is_blocked_for_good(record));
        waiting.map(|record| record.session).collect()
    }

    /// Cells whose last owner's log cannot be recovered.
    fn blocked_cells(&self) -> BTreeSet<Cell> {
        let blocked: BTreeSet<SessionId> = self
            .unsealed_logs()
            .filter(|record| self.is_blocked_for_good(record))
            .map(|record| record.session)
            .collect();
        let owned =
            (0..self.plan.cells).map(Cell).filter(|cell| match self.bucket.peek(&Key::Owner(*cell)) {
                Some(Body::Owner(owner)) => {
                    owner.state == OwnerState::Owned && blocked.contains(&owner.session)
                }
                _ => false,
            });
        owned.collect()
    }

    pub(crate) fn on_probed(&mut self, cell: Cell, outcome: &Outcome) {
        if let (Outcome::Ran(..), Some(quiescence)) = (outcome, &mut self.quiescence) {
            quiescence.silent.remove(&cell);
        }
    }
}
