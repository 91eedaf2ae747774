//! The wakers of the simulated fleet: the real machine, on its own clock, with the store's and the network's weather. Two
//! look after the same index; they die, forget everything, and disagree about who looks after what.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_core::alarm::EntryName;
use holdfast_core::waker::{DueEntry, HintOutcome, Retirement, Waker, WakerEffect, WakerEvent};
use holdfast_types::{AlarmId, CellName, Millis, SessionId, WakeMinute};

use crate::bucket::{Body, Cell, Key, Operation};
use crate::clock::NodeClock;
use crate::event::{Ask, Asker, Event, NodeEvent, Outcome, Request};
use crate::rng::Rng;
use crate::violation::Violation;
use crate::world::World;

/// Wakers.
const WAKERS: usize = 2;
/// Shards of the index.
const SHARDS: u16 = 2;
/// Cells that a waker opens at once.
const HINTS_MAX: u32 = 8;
/// Pause between two looks, in milliseconds.
const TICK_MS: (u64, u64) = (500, 2_500);
/// A hint that was not answered by then has failed.
const HINT_PATIENCE_MS: u64 = 3_000;
/// A DELETE may land this late.
const LATE_MS_MAX: u64 = 20_000;

/// A waker.
#[derive(Debug)]
pub(crate) struct SimWaker {
    machine: Waker,
    clock: NodeClock,
    /// Its process; what belongs to an earlier one is dropped.
    life: u64,
    /// When it is told that time has passed.
    timer: Option<Millis>,
    /// Hints that were not answered yet, by their requests.
    hints: BTreeMap<u64, CellName>,
}

/// What happens to a waker.
#[derive(Clone, Debug)]
pub(crate) enum WakerInput {
    /// It is time to look at the index.
    Tick,
    /// Time has passed.
    TimeReached,
    /// The store does what it asked for.
    Do(WakerEffect),
    /// It is told what became of that.
    Told(WakerEvent),
    /// A hint was not answered in time.
    HintOver(u64),
}

impl SimWaker {
    fn new(rng: &mut Rng) -> Self {
        let clock = NodeClock {
            wall_ahead_ms: rng.below(401).cast_signed() - 200,
            drift_ppm: rng.below(401).cast_signed() - 200,
            monotonic_start_ms: rng.below(100_000),
        };
        let machine = Waker::new(SHARDS, HINTS_MAX);
        Self { machine, clock, life: 0, timer: None, hints: BTreeMap::new() }
    }

    /// All of a fleet.
    pub(crate) fn all(rng: &mut Rng) -> Vec<Self> {
        (0..WAKERS).map(|_| Self::new(rng)).collect()
    }
}

fn name_of(cell: Cell) -> CellName {
    CellName::new("Cell", &cell.0.to_string()).expect("digits are a name")
}

fn cell_of(name: &CellName) -> Cell {
    Cell(name.name().parse().expect("the name of a cell of this fleet"))
}

impl World {
    pub(crate) fn start_wakers(&mut self) {
        for index in 0..self.wakers.len() {
            let delay = self.rng.within(500, 1_500);
            self.after(delay, Event::Waker(index, 0, WakerInput::Tick));
        }
    }

    pub(crate) fn on_waker(&mut self, index: usize, life: u64, input: WakerInput) -> Result<(), Violation> {
        if self.wakers[index].life != life {
            // The process has gone, but what it sent to the store may land.
            return match input {
                WakerInput::Do(WakerEffect::Delete { cell, entries }) => self.delete_entries(&cell, &entries),
                _ => Ok(()),
            };
        }
        match input {
            WakerInput::Tick => self.waker_tick(index),
            WakerInput::TimeReached => {
                self.wakers[index].timer = None;
                self.tell_waker(index, WakerEvent::TimeReached);
            }
            WakerInput::Do(effect) => return self.waker_does(index, effect),
            WakerInput::Told(event) => self.tell_waker(index, event),
            WakerInput::HintOver(request) => self.hint_answered(index, request, HintOutcome::Failed),
        }
        Ok(())
    }

    fn has_faults(&self) -> bool {
        self.quiescence.is_none()
    }

    fn waker_tick(&mut self, index: usize) {
        if self.has_faults() && self.rng.chance(30) {
            self.trace.line(self.now, format_args!("w{index} dies"));
            let life = self.wakers[index].life + 1;
            self.wakers[index] = SimWaker { life, ..SimWaker::new(&mut self.rng) };
            let delay = self.rng.within(100, 8_000);
            return self.after(delay, Event::Waker(index, life, WakerInput::Tick));
        }
        let pause = self.rng.within(TICK_MS.0, TICK_MS.1);
        let life = self.wakers[index].life;
        self.after(pause, Event::Waker(index, life, WakerInput::Tick));
        // Leases of shards move while there are faults; in the end each shard has somebody.
        let held: BTreeSet<u16> =
            (0..SHARDS).filter(|_| !self.has_faults() || self.rng.chance(800)).collect();
        self.tell_waker(index, WakerEvent::ShardsHeld(held));
        if !self.has_faults() || self.rng.chance(700) {
            let now = self.wakers[index].clock.read(self.now).wall;
            let live = self.bucket.objects().filter_map(|(_, body)| match body {
                Body::Lease(lease, _) if lease.expires_ms > now => Some(lease.session),
                _ => None,
            });
            let live: BTreeSet<SessionId> = live.collect();
            self.tell_waker(index, WakerEvent::SessionsRead(live));
        }
        self.tell_waker(index, WakerEvent::Tick);
    }

    fn tell_waker(&mut self, index: usize, event: WakerEvent) {
        let waker = &mut self.wakers[index];
        let (life, now) = (waker.life, waker.clock.read(self.now));
        let effects = waker.machine.on(event, now);
        let next = waker.machine.next_at().filter(|at| waker.timer.is_none_or(|timer| *at < timer));
        if let Some(at) = next {
            waker.timer = Some(at);
            let delay = waker.clock.true_at(at).saturating_sub(self.now).max(1);
            self.after(delay, Event::Waker(index, life, WakerInput::TimeReached));
        }
        for effect in effects {
            self.trace.line(self.now, format_args!("w{index} {effect:?}"));
            if let WakerEffect::Hint { cell, minute, id } = effect {
                self.hint(index, cell, EntryName { minute, id });
                continue;
            }
            let delay = self.rng.within(1, 60);
            self.after(delay, Event::Waker(index, life, WakerInput::Do(effect)));
        }
    }

    /// The store does what a waker asked for; or it does not, or too late, or nobody hears of it.
    fn waker_does(&mut self, index: usize, effect: WakerEffect) -> Result<(), Violation> {
        let life = self.wakers[index].life;
        let fails = self.has_faults() && self.rng.chance(100);
        let event = match effect {
            WakerEffect::List { .. } if fails => WakerEvent::ListFailed,
            WakerEffect::List { after, limit } => self.list_entries(after.as_deref(), limit),
            WakerEffect::ReadRetirement { cell, with_floor } => {
                let retirement = (!fails).then(|| self.retirement_of(&cell, with_floor));
                WakerEvent::RetirementRead { cell, retirement }
            }
            WakerEffect::Delete { cell, entries } if fails => {
                if self.rng.chance(500) {
                    let late = WakerEffect::Delete { cell: cell.clone(), entries };
                    let delay = self.rng.within(1, LATE_MS_MAX);
                    // As from a process that has gone: nobody waits for it.
                    self.after(delay, Event::Waker(index, u64::MAX, WakerInput::Do(late)));
                }
                WakerEvent::Deleted { cell, all: false }
            }
            WakerEffect::Delete { cell, entries } => {
                self.delete_entries(&cell, &entries)?;
                WakerEvent::Deleted { cell, all: true }
            }
            WakerEffect::Hint { .. } => unreachable!("the store is not asked to hint"),
        };
        let delay = self.rng.within(1, 60);
        self.after(delay, Event::Waker(index, life, WakerInput::Told(event)));
        Ok(())
    }

    /// A page in the order of the keys of the product.
    fn list_entries(&self, after: Option<&str>, limit: usize) -> WakerEvent {
        let rows = self.bucket.objects().filter_map(|(key, _)| match key {
            Key::WakeEntry(cell, EntryName { minute, id }) => {
                let entry = DueEntry { minute: *minute, cell: name_of(*cell), id: *id };
                let (epoch, seq) = (id.epoch.get(), id.seq.get());
                Some((format!("{:020}/{}/{epoch:016x}-{seq:016x}", minute.get(), entry.cell), entry))
            }
            _ => None,
        });
        let rows: BTreeMap<_, _> = rows.collect();
        let mut rows = rows.into_iter().filter(|(key, _)| after.is_none_or(|after| key.as_str() > after));
        let page: Vec<(String, DueEntry)> = rows.by_ref().take(limit).collect();
        let next = rows.next().and(page.last().map(|(key, _)| key.clone()));
        WakerEvent::Listed { entries: page.into_iter().map(|(_, entry)| entry).collect(), next }
    }

    fn retirement_of(&self, name: &CellName, with_floor: bool) -> Retirement {
        let cell = cell_of(name);
        let mut retirement = Retirement::default();
        if let Some(Body::WakeRetired(mark)) = self.bucket.peek(&Key::WakeRetired(cell)) {
            (retirement.mark, retirement.armed) = (Some(mark.through), mark.armed);
        }
        if with_floor && let Some(Body::Owner(owner)) = self.bucket.peek(&Key::Owner(cell)) {
            retirement.floor = owner.floor;
        }
        retirement
    }

    fn delete_entries(
        &mut self,
        name: &CellName,
        entries: &[(WakeMinute, AlarmId)],
    ) -> Result<(), Violation> {
        let cell = cell_of(name);
        let key = |(minute, id): &(_, _)| Key::WakeEntry(cell, EntryName { minute: *minute, id: *id });
        let keys: Vec<Key> = entries.iter().map(key).collect();
        self.bucket.apply(&Operation::Delete(keys.clone()), self.now, 0);
        self.observe_deleted(&keys)
    }

    /// Asks the owner, or, by an old route, anybody.
    fn hint(&mut self, index: usize, name: CellName, entry: EntryName) {
        let cell = cell_of(&name);
        let owner = match self.bucket.peek(&Key::Owner(cell)) {
            Some(Body::Owner(owner)) => {
                self.nodes.iter().position(|node| node.session() == Some(owner.session))
            }
            _ => None,
        };
        let strays = self.rng.chance(200);
        let any = self.rng.index(self.nodes.len());
        let node = owner.filter(|_| !strays).unwrap_or(any);
        let id = self.name();
        let life = self.wakers[index].life;
        self.wakers[index].hints.insert(id, name);
        self.after(HINT_PATIENCE_MS, Event::Waker(index, life, WakerInput::HintOver(id)));
        let asker = Asker::Waker(index);
        self.send(node, Request { id, asker, cell, ask: Ask::Hint(entry), began_ms: self.now });
    }

    /// A hint that met another node than the owner goes on to that.
    pub(crate) fn on_waker_response(&mut self, index: usize, request: &Request, outcome: &Outcome) {
        let outcome = match outcome {
            Outcome::Looked { session, epoch, armed } => {
                HintOutcome::Looked { session: *session, epoch: *epoch, armed: *armed }
            }
            Outcome::NotOwner(name) => {
                if let Some(node) = self.nodes.iter().position(|node| &node.name == name) {
                    let delay = self.rng.within(1, 5);
                    self.after(delay, Event::Node(node, None, NodeEvent::Request(*request)));
                    return;
                }
                HintOutcome::Failed
            }
            Outcome::Purged => HintOutcome::Missing,
            Outcome::Refused if self.rng.chance(300) => HintOutcome::Overloaded { retry_after_ms: 500 },
            Outcome::Refused | Outcome::Unknown | Outcome::LetGo | Outcome::Ran(..) => HintOutcome::Failed,
        };
        self.hint_answered(index, request.id, outcome);
    }

    /// One that nobody waits for any more changes nothing.
    fn hint_answered(&mut self, index: usize, request: u64, outcome: HintOutcome) {
        if let Some(cell) = self.wakers[index].hints.remove(&request) {
            self.tell_waker(index, WakerEvent::Hinted { cell, outcome });
        }
    }
}
