//! Alarms of the simulated fleet: what an operation does with a cell's alarm, and a waker that lists the index and hints
//! cells. A cell's alarm is a function of its list of operations, so that whatever a restore brings back is the truth.

use std::collections::BTreeMap;

use holdfast_core::alarm::{AlarmState, Armed, EntryName};
use holdfast_types::{AlarmId, AlarmTime, Epoch, WakeMinute};

use crate::bucket::{Body, Cell, Key, OpId, Operation};
use crate::clock::NodeClock;
use crate::event::{Ask, Asker, Event, NodeEvent, Outcome, Request};
use crate::violation::Violation;
use crate::world::World;

/// Longest pause of the waker between two looks, in milliseconds.
const TICK_MS: (u64, u64) = (500, 2_500);

/// What an operation does with the alarm of its cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AlarmWrite {
    /// Installs one.
    Set(AlarmTime),
    /// Disarms.
    Delete,
    /// A handler has succeeded, or the alarm is given up.
    Consume(AlarmId),
    /// A run did not succeed.
    Record(Armed),
}

/// What operations do with alarms.
#[derive(Clone, Debug, Default)]
pub(crate) struct AlarmWrites {
    writes: BTreeMap<OpId, AlarmWrite>,
    /// Installations, once their operation has run.
    ids: BTreeMap<OpId, AlarmId>,
}

impl AlarmWrites {
    pub(crate) fn add(&mut self, op: OpId, write: AlarmWrite) {
        self.writes.insert(op, write);
    }

    /// The operation runs on a list, to whose end it is added next.
    pub(crate) fn ran(&mut self, op: OpId, state: &[OpId], epoch: Epoch) {
        if let Some(AlarmWrite::Set(_)) = self.writes.get(&op) {
            let seq = self.state(state).last.next();
            self.ids.insert(op, AlarmId { epoch, seq });
        }
    }

    pub(crate) fn concerns(&self, op: OpId) -> bool {
        self.writes.contains_key(&op)
    }

    /// The alarm of a list of operations.
    pub(crate) fn state(&self, ops: &[OpId]) -> AlarmState {
        let mut state = AlarmState::default();
        for op in ops {
            let is_armed = |id| state.armed.is_some_and(|armed| armed.id == id);
            match self.writes.get(op) {
                None => {}
                Some(AlarmWrite::Set(deadline)) => {
                    let id = self.ids[op];
                    state = AlarmState { last: id.seq, armed: Some(Armed::new(id, *deadline)) };
                }
                Some(AlarmWrite::Delete) => state.armed = None,
                Some(AlarmWrite::Consume(id)) if is_armed(*id) => state.armed = None,
                Some(AlarmWrite::Record(armed)) if is_armed(armed.id) => state.armed = Some(*armed),
                Some(AlarmWrite::Consume(_) | AlarmWrite::Record(_)) => {}
            }
        }
        state
    }
}

impl World {
    /// The true time as an alarm's time.
    pub(crate) fn true_wall(&self) -> AlarmTime {
        let truth = NodeClock { wall_ahead_ms: 0, drift_ppm: 0, monotonic_start_ms: 0 };
        AlarmTime::new(truth.read(self.now).wall.get().try_into().expect("a time of this century"))
    }

    /// What a client asks of a cell in a world with alarms.
    pub(crate) fn alarm_ask(&mut self) -> Ask {
        let op = self.new_op();
        let write = match self.rng.below(10) {
            0..4 => {
                let ahead = self.rng.below(9_000).cast_signed() - 1_000;
                Some(AlarmWrite::Set(AlarmTime::new(self.true_wall().get() + ahead)))
            }
            4..6 => Some(AlarmWrite::Delete),
            6..8 => None,
            _ => return Ask::Read,
        };
        if let Some(write) = write {
            self.alarm_writes.add(op, write);
        }
        Ask::Write(op)
    }

    /// The waker looks: it deletes what retired records prove obsolete, and hints the other cells of due minutes.
    pub(crate) fn on_waker_tick(&mut self) -> Result<(), Violation> {
        let pause = self.rng.within(TICK_MS.0, TICK_MS.1);
        self.after(pause, Event::WakerTick);
        let due = WakeMinute::new(self.true_wall().minute().get());
        let entries: Vec<(Cell, EntryName)> = self
            .bucket
            .objects()
            .filter_map(|(key, _)| match key {
                Key::WakeEntry(cell, entry) if entry.minute <= due => Some((*cell, *entry)),
                _ => None,
            })
            .collect();
        for (cell, entry) in entries {
            let is_obsolete = match self.bucket.peek(&Key::WakeRetired(cell)) {
                Some(Body::WakeRetired(mark)) => mark.is_obsolete(entry.id),
                _ => false,
            };
            if is_obsolete {
                let keys = vec![Key::WakeEntry(cell, entry)];
                self.bucket.apply(&Operation::Delete(keys.clone()), self.now, 0);
                self.observe_deleted(&keys)?;
            } else {
                self.hint(cell, entry);
            }
        }
        Ok(())
    }

    fn hint(&mut self, cell: Cell, entry: EntryName) {
        let owner = match self.bucket.peek(&Key::Owner(cell)) {
            Some(Body::Owner(owner)) => {
                self.nodes.iter().position(|node| node.session() == Some(owner.session))
            }
            _ => None,
        };
        let strays = self.rng.chance(200);
        let any = self.rng.index(self.nodes.len());
        let index = owner.filter(|_| !strays).unwrap_or(any);
        let id = self.name();
        self.send(
            index,
            Request { id, asker: Asker::Waker, cell, ask: Ask::Hint(entry), began_ms: self.now },
        );
    }

    /// A hint that met another node than the owner goes on to that.
    pub(crate) fn on_waker_response(&mut self, request: &Request, outcome: &Outcome) {
        if let Outcome::NotOwner(name) = outcome
            && self.now < request.began_ms + TICK_MS.1
            && let Some(index) = self.nodes.iter().position(|node| &node.name == name)
        {
            let delay = self.rng.within(1, 5);
            self.after(delay, Event::Node(index, None, NodeEvent::Request(*request)));
        }
    }
}
