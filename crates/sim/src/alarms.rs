//! Alarms of the simulated fleet: what an operation does with a cell's alarm. A cell's alarm is a function of its list of operations, so that whatever a restore brings back is the truth.

use std::collections::BTreeMap;

use holdfast_core::alarm::{AlarmState, Armed};
use holdfast_types::{AlarmId, AlarmTime, Epoch};

use crate::bucket::OpId;
use crate::clock::NodeClock;
use crate::event::Ask;
use crate::world::World;

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
    /// Installations whose handler ends its process from this run on.
    poisons: BTreeMap<OpId, u32>,
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

    /// From which run on the handler of an installation in this list ends its process.
    pub(crate) fn deadly_from(&self, ops: &[OpId], id: AlarmId) -> Option<u32> {
        let op = ops.iter().find(|op| self.ids.get(op) == Some(&id))?;
        self.poisons.get(op).copied()
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
        let is_poisoned = self.plan.poisoned > 0 && self.rng.chance(self.plan.poisoned);
        if is_poisoned && matches!(write, Some(AlarmWrite::Set(_))) {
            let from = self.rng.below(3) + 1;
            self.alarm_writes.poisons.insert(op, u32::try_from(from).expect("small"));
        }
        Ask::Write(op)
    }
}
