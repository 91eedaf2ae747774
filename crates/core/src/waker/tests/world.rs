//! A small world with alarms that are set, owners that die, a bucket and calls that fail: every alarm fires, none of those
//! whose owner died later than it should, and no armed alarm loses its entry (INV-WAKE-1, INV-WAKE-2).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use holdfast_types::{AlarmId, AlarmTime, CellName, Epoch, Millis, SessionId, WakeMinute};
use proptest::prelude::*;

use super::support::{START, cell, id, now, session};
use crate::waker::{DueEntry, HintOutcome, Retirement, Waker, WakerEffect, WakerEvent};

const TICK_MS: u64 = 5_000;
/// Lease lifetime and clock skew.
const DEAD_AFTER_MS: u64 = 10_500;
/// What opening a cell and its first turn may take besides.
const SLACK_MS: u64 = 3_000;
/// Four failures in a row, each with a pause that is twice the one before.
const FAILURES_MS: u64 = 1_000 + 2_000 + 4_000 + 8_000;
const HINTS_MAX: u32 = 8;
/// Setting, killing and failing end here; then everything must settle.
const STORM_MS: u64 = 90_000;
const END_MS: u64 = 240_000;
/// How often the world moves.
const STEP_MS: usize = 5;

struct Alarm {
    id: AlarmId,
    due: u64,
}

#[derive(Default)]
struct Cell {
    owner: Option<SessionId>,
    epoch: u64,
    seq: u64,
    armed: Option<Alarm>,
    retirement: Retirement,
}

/// A session's death, if any.
struct Node {
    session: SessionId,
    died: Option<u64>,
}

struct World {
    random: u64,
    has_faults: bool,
    waker: Waker,
    cells: BTreeMap<CellName, Cell>,
    nodes: Vec<Node>,
    sessions: u128,
    index: BTreeMap<String, DueEntry>,
    /// Answers on their way to the waker.
    answers: BTreeMap<(u64, u64), WakerEvent>,
    sent: u64,
    fired: usize,
    set: usize,
}

impl World {
    fn new(seed: u64, has_faults: bool) -> Self {
        let mut waker = Waker::new(4, HINTS_MAX);
        waker.on(WakerEvent::ShardsHeld(BTreeSet::from([0, 1, 2, 3])), now(0));
        let nodes = (1..=3).map(|number| Node { session: session(number), died: None }).collect();
        let cells = (0..24).map(|number| (cell(number), Cell::default())).collect();
        Self {
            random: seed,
            has_faults,
            waker,
            cells,
            nodes,
            sessions: 3,
            index: BTreeMap::new(),
            answers: BTreeMap::new(),
            sent: 0,
            fired: 0,
            set: 0,
        }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        crate::placement::mix(self.random) % below
    }

    fn key(entry: &DueEntry) -> String {
        format!("{}/{}/{}", entry.minute.to_hex(), entry.cell.to_key_segment(), entry.id.to_hex())
    }

    fn is_dead(&self, session: SessionId) -> bool {
        self.nodes.iter().find(|node| node.session == session).is_none_or(|node| node.died.is_some())
    }

    /// Whether its lease is over for a reader.
    fn is_over(&self, session: SessionId, ms: u64) -> bool {
        let node = self.nodes.iter().find(|node| node.session == session);
        // Its place is another's already.
        let Some(node) = node else { return true };
        node.died.is_some_and(|died| ms >= died + DEAD_AFTER_MS)
    }

    fn run(mut self) {
        for ms in (0..END_MS).step_by(STEP_MS) {
            if ms < STORM_MS {
                self.storm(ms);
            }
            self.fire(ms);
            let due: Vec<(u64, u64)> = self.answers.range(..=(ms, u64::MAX)).map(|(at, _)| *at).collect();
            for at in due {
                let event = self.answers.remove(&at).unwrap();
                self.tell(event, ms);
            }
            if ms % TICK_MS == 0 {
                self.read_sessions(ms);
                self.tell(WakerEvent::Tick, ms);
            }
            if self.waker.next_at().is_some_and(|at| at <= now(ms).monotonic) {
                self.tell(WakerEvent::TimeReached, ms);
            }
            assert!(self.waker.backlog(now(ms)).in_flight <= usize::try_from(HINTS_MAX).unwrap());
        }
        assert_eq!(self.fired, self.set, "an alarm never fired");
        assert!(self.index.is_empty(), "left in the index: {:?}", self.index.keys());
        assert_eq!(self.waker.backlog(now(END_MS)).cells, 0);
    }

    fn storm(&mut self, ms: u64) {
        // About one alarm in a quarter of a second, up to 40 s ahead or overdue at once.
        if self.random(50) == 0 {
            let number = usize::try_from(self.random(24)).unwrap();
            let ahead = self.random(40_000);
            self.set_alarm(&cell(number), ms, ahead);
        }
        if self.random(5_000) == 0 {
            let victim = usize::try_from(self.random(3)).unwrap();
            if self.nodes.iter().filter(|node| node.died.is_some()).count() < 1 {
                self.nodes[victim].died = Some(ms);
            }
        }
    }

    /// By an owner that lives, if the cell has one or could have one.
    fn set_alarm(&mut self, name: &CellName, ms: u64, ahead: u64) {
        let owner = self.cells[name].owner.filter(|owner| !self.is_over(*owner, ms));
        if owner.is_some_and(|owner| self.is_dead(owner)) {
            return;
        }
        if owner.is_none() {
            self.claim(name);
        }
        let known = self.cells.get_mut(name).unwrap();
        // One that is armed is replaced: its entry stays behind.
        match known.armed.take() {
            Some(Alarm { id, .. }) => known.retirement.mark = Some(id),
            None => self.set += 1,
        }
        known.seq += 1;
        let id = id(known.epoch, known.seq);
        known.armed = Some(Alarm { id, due: ms + ahead });
        let minute = WakeMinute::of(Millis::new(START + ms + ahead));
        let entry = DueEntry { minute, cell: name.clone(), id };
        self.index.insert(Self::key(&entry), entry);
    }

    /// A live node takes the cell.
    fn claim(&mut self, name: &CellName) -> SessionId {
        let live: Vec<SessionId> =
            self.nodes.iter().filter(|node| node.died.is_none()).map(|node| node.session).collect();
        let session = live[usize::try_from(self.random(live.len() as u64)).unwrap()];
        let known = self.cells.get_mut(name).unwrap();
        known.owner = Some(session);
        known.epoch += 1;
        session
    }

    /// Owners that live fire what is due, and retire it; now and then they do not get to delete the entry.
    fn fire(&mut self, ms: u64) {
        let names: Vec<CellName> = self.cells.keys().cloned().collect();
        for name in names {
            let owner = self.cells[&name].owner;
            if owner.is_none_or(|owner| self.is_dead(owner)) {
                continue;
            }
            let is_due = self.cells[&name].armed.as_ref().is_some_and(|alarm| alarm.due <= ms);
            if !is_due {
                continue;
            }
            let known = self.cells.get_mut(&name).unwrap();
            let alarm = known.armed.take().unwrap();
            known.retirement.mark = Some(alarm.id);
            known.retirement.armed = None;
            self.fired += 1;
            // Whoever had it may have died just before: all of its lease, a tick, and a little.
            let failures = if self.has_faults { FAILURES_MS } else { 0 };
            let explained = DEAD_AFTER_MS + TICK_MS + SLACK_MS + failures;
            assert!(ms <= alarm.due + explained, "an alarm of {name} was {} ms late", ms - alarm.due);
            if self.random(3) > 0 {
                let minute = WakeMinute::of(Millis::new(START + alarm.due));
                let entry = DueEntry { minute, cell: name.clone(), id: alarm.id };
                self.index.remove(&Self::key(&entry));
            }
        }
    }

    fn read_sessions(&mut self, ms: u64) {
        for slot in 0..self.nodes.len() {
            if self.is_over(self.nodes[slot].session, ms) {
                // Its cells are nobody's, and another process takes its place.
                self.sessions += 1;
                self.nodes[slot] = Node { session: session(self.sessions), died: None };
            }
        }
        let live = self.nodes.iter().map(|node| node.session).collect();
        self.tell(WakerEvent::SessionsRead(live), ms);
    }

    fn tell(&mut self, event: WakerEvent, ms: u64) {
        for effect in self.waker.on(event, now(ms)) {
            let (event, takes) = self.execute(effect, ms);
            self.sent += 1;
            self.answers.insert((ms + takes, self.sent), event);
        }
    }

    /// What comes of an effect, and after how many milliseconds.
    fn execute(&mut self, effect: WakerEffect, ms: u64) -> (WakerEvent, u64) {
        let fails = self.has_faults && ms < STORM_MS && self.random(20) == 0;
        let takes = 1 + self.random(40);
        let event = match effect {
            WakerEffect::List { .. } if fails => WakerEvent::ListFailed,
            WakerEffect::List { after, limit } => {
                // Short pages, so that passes have many.
                let after = after.unwrap_or_default();
                let rows: Vec<_> =
                    self.index.range(after.clone()..).filter(|(key, _)| **key > after).collect();
                let page: Vec<DueEntry> =
                    rows.iter().take(limit.min(5)).map(|(_, entry)| (*entry).clone()).collect();
                let next = rows.get(limit.min(5)).and_then(|_| page.last()).map(Self::key);
                WakerEvent::Listed { entries: page, next }
            }
            WakerEffect::ReadRetirement { cell, .. } => {
                let retirement = (!fails).then(|| self.cells[&cell].retirement);
                WakerEvent::RetirementRead { cell, retirement }
            }
            WakerEffect::Delete { cell, entries } => {
                for (minute, id) in entries {
                    let armed = self.cells[&cell].armed.as_ref().map(|alarm| alarm.id);
                    assert_ne!(armed, Some(id), "the entry of an armed alarm of {cell} is deleted");
                    if !fails {
                        self.index.remove(&Self::key(&DueEntry { minute, cell: cell.clone(), id }));
                    }
                }
                WakerEvent::Deleted { cell, all: !fails }
            }
            WakerEffect::Hint { cell, .. } => {
                let outcome = if fails { HintOutcome::Failed } else { self.hint(&cell, ms) };
                WakerEvent::Hinted { cell, outcome }
            }
        };
        (event, takes)
    }

    fn hint(&mut self, name: &CellName, ms: u64) -> HintOutcome {
        let owner = self.cells[name].owner;
        let session = match owner {
            Some(owner) if !self.is_dead(owner) => owner,
            Some(owner) if !self.is_over(owner, ms) => return HintOutcome::Failed,
            Some(_) | None => self.claim(name),
        };
        let known = &self.cells[name];
        let deadline = |alarm: &Alarm| AlarmTime::new(i64::try_from(START + alarm.due).unwrap());
        let armed = known.armed.as_ref().map(|alarm| (alarm.id, deadline(alarm)));
        HintOutcome::Looked { session, epoch: Epoch::new(known.epoch), armed }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn every_alarm_fires_in_time_whoever_dies(seed in any::<u64>()) {
        World::new(seed, false).run();
    }

    #[test]
    fn every_alarm_fires_although_the_bucket_and_calls_fail(seed in any::<u64>()) {
        World::new(seed, true).run();
    }
}
