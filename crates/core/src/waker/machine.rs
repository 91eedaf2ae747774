//! The machine. It goes over the due part of the index page by page, remembers a bounded part of what it found, and opens
//! as many cells at a time as the fleet bears. A pass that finds no room stops where it is and goes on at the next tick, so
//! that no number of entries that stay keeps others from their turn.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use holdfast_types::{AlarmId, CellName, Millis, SessionId, WakeMinute};

use super::cell::{DueCell, Entry, State};
use super::queue::Queue;
use super::window::Window;
use super::{DueEntry, HintOutcome, Retirement, WakerEffect, WakerEvent, shard_of};
use crate::lease::Now;

/// Entries remembered at most; each takes some tens of bytes, and a cell's name.
pub const BACKLOG_ENTRIES_MAX: usize = 200_000;
/// Entries of one cell remembered, and deleted, at once: a page of the clean-up.
pub const CELL_ENTRIES_MAX: usize = 128;
/// Rows of the first page of a pass: mostly nothing is due.
pub const PAGE_LEN_FIRST: usize = 64;
/// Rows of every other page.
pub const PAGE_LEN: usize = 1_000;
/// A cell that waits at least this long may be forgotten for one that is due; a later pass finds it again.
const FORGETTABLE_MS: u64 = 10_000;

/// Where a pass over the index is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Pass {
    /// The next tick begins one.
    Idle,
    /// A page is being read.
    Listing,
    /// There was no room, or the bucket did not answer: the next tick goes on after this key.
    Paused(Option<String>),
}

/// One waker.
#[derive(Clone, Debug)]
pub struct Waker {
    /// Into how many shards the index is divided.
    shards: u16,
    /// Those that are ours.
    held: BTreeSet<u16>,
    cells: BTreeMap<CellName, DueCell>,
    /// Cells that wait, by when they are looked at.
    queue: Queue,
    entries: usize,
    /// Entries that were new, ever.
    noted: u64,
    in_flight: usize,
    window: Window,
    pass: Pass,
    /// Where the page that is being read begins.
    cursor: Option<String>,
    pass_number: u64,
    live: BTreeSet<SessionId>,
}

/// How much is due, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Cells with due entries.
    pub cells: usize,
    /// Their entries.
    pub entries: usize,
    /// Cells that are being looked at now.
    pub in_flight: usize,
    /// Cells that may be looked at now at most.
    pub window: u32,
    /// Cells whose oldest entry was due more than a minute ago.
    pub overdue: usize,
    /// How long ago the oldest was due, in milliseconds.
    pub oldest_ms: u64,
    /// Entries that were new to it, ever.
    pub noted: u64,
}

impl Waker {
    /// A waker that looks after no shard yet, and opens at most `hints_max` cells at once.
    #[must_use]
    pub fn new(shards: u16, hints_max: u32) -> Self {
        Self {
            shards: shards.max(1),
            held: BTreeSet::new(),
            cells: BTreeMap::new(),
            queue: Queue::default(),
            entries: 0,
            noted: 0,
            in_flight: 0,
            window: Window::new(hints_max),
            pass: Pass::Idle,
            cursor: None,
            pass_number: 0,
            live: BTreeSet::new(),
        }
    }

    /// Takes an event and says what to do.
    pub fn on(&mut self, event: WakerEvent, now: Now) -> Vec<WakerEffect> {
        let mut effects = Vec::new();
        match event {
            WakerEvent::Tick => effects.extend(self.begin_or_resume()),
            WakerEvent::TimeReached => {}
            WakerEvent::Listed { entries, next } => effects.extend(self.listed(entries, next, now)),
            WakerEvent::ListFailed => self.pass = Pass::Paused(self.cursor.take()),
            WakerEvent::RetirementRead { cell, retirement } => {
                effects.extend(self.retirement_read(cell, retirement, now));
            }
            WakerEvent::Deleted { cell, all } => effects.extend(self.deleted(cell, all, now)),
            WakerEvent::Hinted { cell, outcome } => self.hinted(cell, outcome, now),
            WakerEvent::SessionsRead(live) => self.sessions_read(live, now),
            WakerEvent::ShardsHeld(shards) => self.shards_held(shards),
        }
        self.dispatch(now, &mut effects);
        effects
    }

    /// When `TimeReached` is to come, by the monotonic clock; none while nothing waits, or while there is no room.
    #[must_use]
    pub fn next_at(&self) -> Option<Millis> {
        if !self.window.has_room(self.in_flight) {
            return None;
        }
        self.queue.next_at(self.window.size())
    }

    /// How much is due.
    #[must_use]
    pub fn backlog(&self, now: Now) -> Backlog {
        let mut backlog = Backlog {
            cells: self.cells.len(),
            entries: self.entries,
            in_flight: self.in_flight,
            window: self.window.size(),
            noted: self.noted,
            ..Backlog::default()
        };
        for oldest in self.cells.values().filter_map(DueCell::oldest) {
            // An entry tells the minute alone: it was due at its end at the latest.
            let age_ms = now.wall.since(WakeMinute::new(oldest.get().saturating_add(1)).begins());
            backlog.overdue += usize::from(age_ms > 60_000);
            backlog.oldest_ms = backlog.oldest_ms.max(age_ms);
        }
        backlog
    }

    fn begin_or_resume(&mut self) -> Option<WakerEffect> {
        if self.held.is_empty() {
            return None;
        }
        let (after, limit) = match &mut self.pass {
            Pass::Listing => return None,
            Pass::Idle => {
                self.pass_number += 1;
                (None, PAGE_LEN_FIRST)
            }
            Pass::Paused(after) => (after.take(), PAGE_LEN),
        };
        Some(self.list(after, limit))
    }

    fn list(&mut self, after: Option<String>, limit: usize) -> WakerEffect {
        self.pass = Pass::Listing;
        self.cursor.clone_from(&after);
        WakerEffect::List { after, limit }
    }

    fn listed(&mut self, entries: Vec<DueEntry>, next: Option<String>, now: Now) -> Option<WakerEffect> {
        assert!(self.pass == Pass::Listing, "a page came that nobody asked for");
        let due = WakeMinute::of(now.wall);
        let mut is_over = next.is_none();
        for entry in entries {
            if entry.minute > due {
                is_over = true;
                break;
            }
            if self.held.contains(&shard_of(&entry.cell, self.shards)) && !self.note(entry, now) {
                // The page is read again: what was noted of it is only seen twice.
                self.pass = Pass::Paused(self.cursor.take());
                return None;
            }
        }
        if is_over {
            self.end_pass();
            return None;
        }
        Some(self.list(next, PAGE_LEN))
    }

    /// Remembers a due entry. False: there is no room.
    fn note(&mut self, entry: DueEntry, now: Now) -> bool {
        let DueEntry { minute, cell, id } = entry;
        let entry = Entry { minute, id, pass: self.pass_number };
        if let Some(known) = self.cells.get_mut(&cell)
            && let Some(seen) = known.entries.iter_mut().find(|seen| seen.id == id)
        {
            seen.pass = entry.pass;
            return true;
        }
        if self.entries >= BACKLOG_ENTRIES_MAX && !self.forget_one(&cell, now) {
            return false;
        }
        let Some(known) = self.cells.get_mut(&cell) else {
            self.entries += 1;
            self.noted += 1;
            self.queue.insert(now.monotonic, cell.clone(), false);
            self.cells.insert(cell, DueCell::new(entry, now));
            return true;
        };
        if known.entries.len() >= CELL_ENTRIES_MAX {
            // Those before it are dealt with first; a later pass finds it.
            return true;
        }
        let is_newest = known.newest().is_none_or(|newest| newest.id < id);
        known.entries.push(entry);
        self.entries += 1;
        self.noted += 1;
        // Whoever looked and lives has a timer of its own for what it installed since, in the same epoch.
        let has_owner = known.looked.is_some_and(|(_, epoch)| epoch == id.epoch);
        if is_newest && !has_owner {
            known.begin_anew();
            self.wait(&cell, now.monotonic);
        }
        true
    }

    /// Forgets the cell that is looked at last of all, for the sake of another.
    fn forget_one(&mut self, but: &CellName, now: Now) -> bool {
        let last =
            self.queue.last().filter(|(at, cell)| cell != but && at.since(now.monotonic) >= FORGETTABLE_MS);
        let Some((_, cell)) = last.cloned() else { return false };
        self.drop_cell(&cell);
        true
    }

    /// Puts a waiting cell into the queue anew.
    fn wait(&mut self, cell: &CellName, at: Millis) {
        let Some(known) = self.cells.get_mut(cell) else { return };
        if let State::Waiting(before) = known.state {
            self.queue.remove(before, cell);
            known.state = State::Waiting(at);
            self.queue.insert(at, cell.clone(), known.has_failed);
        }
    }

    /// Ends a look at a cell: it waits from now on.
    fn rest(&mut self, cell: CellName, at: Millis) {
        self.in_flight -= 1;
        self.queue.ended(&cell);
        let Some(known) = self.cells.get_mut(&cell) else { return };
        let is_ours = self.held.contains(&shard_of(&cell, self.shards));
        if known.entries.is_empty() || !is_ours {
            self.entries -= known.entries.len();
            self.cells.remove(&cell);
            return;
        }
        known.state = State::Waiting(at);
        self.queue.insert(at, cell, known.has_failed);
    }

    fn drop_cell(&mut self, cell: &CellName) {
        let Some(known) = self.cells.remove(cell) else { return };
        self.entries -= known.entries.len();
        if let State::Waiting(at) = known.state {
            self.queue.remove(at, cell);
        }
    }

    /// The index was seen from its first entry to its last that is due: what was not seen is gone.
    fn end_pass(&mut self) {
        self.pass = Pass::Idle;
        self.cursor = None;
        let mut gone = Vec::new();
        for (cell, known) in &mut self.cells {
            if !matches!(known.state, State::Waiting(_)) {
                continue;
            }
            let before = known.entries.len();
            known.entries.retain(|entry| entry.pass == self.pass_number);
            self.entries -= before - known.entries.len();
            if known.entries.is_empty() {
                gone.push(cell.clone());
            }
        }
        for cell in gone {
            self.drop_cell(&cell);
        }
    }

    /// Looks at the cells whose time has come, as many as there is room for.
    fn dispatch(&mut self, now: Now, effects: &mut Vec<WakerEffect>) {
        while self.window.has_room(self.in_flight) {
            let Some(cell) = self.queue.begin(now.monotonic, self.window.size()) else { break };
            let known = self.cells.get_mut(&cell).expect("what waits is known");
            known.state = State::Reading;
            self.in_flight += 1;
            effects.push(WakerEffect::ReadRetirement { cell, with_floor: known.is_missing });
        }
    }

    fn retirement_read(
        &mut self,
        cell: CellName,
        retirement: Option<Retirement>,
        now: Now,
    ) -> Option<WakerEffect> {
        let known = self.cells.get_mut(&cell).expect("a cell that is being looked at is known");
        assert!(known.state == State::Reading, "nobody reads what is retired of {cell}");
        let Some(retirement) = retirement else {
            let at = known.after_failure(now);
            self.rest(cell, at);
            return None;
        };
        let obsolete = known.entries.iter().filter(|entry| retirement.proves_obsolete(entry.id));
        let obsolete: Vec<(WakeMinute, AlarmId)> = obsolete.map(|entry| (entry.minute, entry.id)).collect();
        if obsolete.is_empty() {
            return self.hint(cell, now);
        }
        known.state = State::Deleting(obsolete.iter().map(|(_, id)| *id).collect());
        Some(WakerEffect::Delete { cell, entries: obsolete })
    }

    fn deleted(&mut self, cell: CellName, all: bool, now: Now) -> Option<WakerEffect> {
        let known = self.cells.get_mut(&cell).expect("a cell that is being looked at is known");
        let State::Deleting(obsolete) = &known.state else { panic!("nothing of {cell} is being deleted") };
        if !all {
            let at = known.after_failure(now);
            self.rest(cell, at);
            return None;
        }
        let before = known.entries.len();
        known.entries.retain(|entry| !obsolete.contains(&entry.id));
        self.entries -= before - known.entries.len();
        self.hint(cell, now)
    }

    /// Has the owner look, where an entry is left and the shard is still ours.
    fn hint(&mut self, cell: CellName, now: Now) -> Option<WakerEffect> {
        let is_ours = self.held.contains(&shard_of(&cell, self.shards));
        let known = self.cells.get_mut(&cell).expect("a cell that is being looked at is known");
        match known.newest().filter(|_| is_ours) {
            Some(Entry { minute, id, pass: _ }) => {
                known.state = State::Hinting;
                known.ask(id);
                Some(WakerEffect::Hint { cell, minute, id })
            }
            None => {
                self.rest(cell, now.monotonic);
                None
            }
        }
    }

    fn hinted(&mut self, cell: CellName, outcome: HintOutcome, now: Now) {
        match outcome {
            HintOutcome::Looked { .. } => self.window.grow(),
            HintOutcome::Overloaded { .. } => self.window.shrink(now.monotonic),
            HintOutcome::Missing | HintOutcome::Failed => {}
        }
        let known = self.cells.get_mut(&cell).expect("a cell that is being looked at is known");
        assert!(known.state == State::Hinting, "nobody was asked to look at {cell}");
        let at = known.after_hint(outcome, now);
        self.rest(cell, at);
    }

    /// Cells whose last owner is gone are looked at as soon as their alarms need it; at once those that nobody could be asked
    /// about, since whoever did not answer may be the one that is gone.
    fn sessions_read(&mut self, live: BTreeSet<SessionId>, now: Now) {
        let somebody_left = self.live.difference(&live).next().is_some();
        self.live = live;
        let mut orphans = Vec::new();
        for (cell, known) in &mut self.cells {
            if known.looked.is_some_and(|(session, _)| !self.live.contains(&session)) {
                orphans.push((cell.clone(), known.orphaned(now)));
            } else if somebody_left && known.has_failed {
                known.try_anew();
                orphans.push((cell.clone(), now.monotonic));
            }
        }
        for (cell, at) in orphans {
            self.wait(&cell, at);
        }
    }

    fn shards_held(&mut self, shards: BTreeSet<u16>) {
        // What is new to us may stand before the place that a pass has reached.
        let is_more = !shards.is_subset(&self.held);
        self.held = shards;
        let (held, shards) = (&self.held, self.shards);
        let lost = self.cells.iter().filter(|(cell, known)| {
            matches!(known.state, State::Waiting(_)) && !held.contains(&shard_of(cell, shards))
        });
        let lost: Vec<CellName> = lost.map(|(cell, _)| cell.clone()).collect();
        for cell in lost {
            self.drop_cell(&cell);
        }
        if is_more && matches!(self.pass, Pass::Paused(_)) {
            self.pass = Pass::Idle;
        }
    }
}
