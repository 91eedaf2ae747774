//! INV-WAKE-1 an acknowledged armed alarm has a wake entry that no DELETE removes; INV-WAKE-2 each armed alarm eventually
//! fires; INV-WAKE-3 an alarm ends at most 1 + 6 processes. Besides: none fires early, none while the one before runs, none after it was seen deleted or consumed.

use std::collections::BTreeMap;

use holdfast_core::alarm::{AlarmState, Armed, UNENDED_MAX};
use holdfast_types::{AlarmId, AlarmTime, Epoch};

use crate::bucket::Cell;
use crate::violation::{Violation, require};

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct AlarmChecker {
    /// What outputs revealed as armed, and for when.
    revealed: BTreeMap<(Cell, AlarmId), AlarmTime>,
    /// Runs that began.
    fired: BTreeMap<(Cell, AlarmId), u32>,
    /// Processes that a run has ended.
    killed: BTreeMap<(Cell, AlarmId), u32>,
    /// Installations that every later epoch knows to be over: of each cell the last one of a proved state, and what was armed
    /// in it.
    proved: BTreeMap<Cell, Vec<(AlarmId, Option<AlarmId>)>>,
    runs: u64,
    /// Entries that were deleted.
    deleted: u64,
}

impl AlarmChecker {
    /// A proof of an epoch covers a state.
    pub fn on_proved(&mut self, cell: Cell, epoch: Epoch, state: &AlarmState) {
        let mark = (AlarmId { epoch, seq: state.last }, state.armed.map(|armed| armed.id));
        let proved = self.proved.entry(cell).or_default();
        if proved.last() != Some(&mark) {
            proved.push(mark);
        }
    }

    fn is_over(&self, cell: Cell, id: AlarmId) -> bool {
        let proved = self.proved.get(&cell).into_iter().flatten();
        proved.into_iter().any(|(last, armed)| id <= *last && *armed != Some(id))
    }

    /// An output left that reveals a state. `has_entry` tells whether an installation's entry is in the bucket.
    ///
    /// # Errors
    /// INV-WAKE-1: it reveals an armed alarm without an entry.
    pub fn on_revealed(
        &mut self,
        cell: Cell,
        state: &AlarmState,
        has_entry: impl Fn(&Armed) -> bool,
    ) -> Result<(), Violation> {
        let Some(armed) = state.armed else { return Ok(()) };
        if self.is_over(cell, armed.id) {
            return Ok(());
        }
        self.revealed.insert((cell, armed.id), armed.deadline);
        require(
            has_entry(&armed),
            "INV-WAKE-1",
            format_args!("{cell:?}: alarm {} was revealed without its entry", armed.id),
        )
    }

    /// An entry is deleted.
    ///
    /// # Errors
    /// INV-WAKE-1: it may still be that of an armed alarm.
    pub fn on_deleted(&mut self, cell: Cell, id: AlarmId) -> Result<(), Violation> {
        self.deleted += 1;
        let text = format_args!("{cell:?}: the entry of {id} is deleted, which may be armed");
        require(self.is_over(cell, id), "INV-WAKE-1", text)
    }

    /// A run begins, by a clock that shows `wall`. `running` is what runs already; `in_bounds` tells whether clocks are.
    ///
    /// # Errors
    /// It is early, overlaps another, or is of an alarm that is over.
    pub fn on_fired(
        &mut self,
        cell: Cell,
        armed: &Armed,
        (wall, running, in_bounds): (AlarmTime, Option<AlarmId>, bool),
    ) -> Result<(), Violation> {
        self.runs += 1;
        *self.fired.entry((cell, armed.id)).or_default() += 1;
        let Armed { id, deadline, due, .. } = armed;
        let is_due = wall >= *deadline && wall >= *due;
        require(is_due, "ALARM-EARLY", format_args!("{cell:?}: {id} runs at {wall}, due at {due}"))?;
        require(running.is_none(), "ALARM-OVERLAP", format_args!("{cell:?}: {id} runs beside {running:?}"))?;
        let is_over = in_bounds && self.is_over(cell, *id);
        require(!is_over, "ALARM-OVER", format_args!("{cell:?}: {id} runs, which was deleted or consumed"))
    }

    /// How often it has run.
    #[must_use]
    pub fn starts(&self, cell: Cell, id: AlarmId) -> u32 {
        self.fired.get(&(cell, id)).copied().unwrap_or_default()
    }

    /// A run ends its process.
    ///
    /// # Errors
    /// INV-WAKE-3: it is one too many.
    pub fn on_killed(&mut self, cell: Cell, id: AlarmId) -> Result<(), Violation> {
        let killed = self.killed.entry((cell, id)).or_default();
        *killed += 1;
        let text = format_args!("{cell:?}: alarm {id} has ended {killed} processes");
        require(*killed <= 1 + UNENDED_MAX, "INV-WAKE-3", text)
    }

    /// An alarm is given up.
    ///
    /// # Errors
    /// INV-WAKE-2: it never ran.
    pub fn on_given_up(&self, cell: Cell, id: AlarmId) -> Result<(), Violation> {
        let text = format_args!("{cell:?}: alarm {id} is given up and never ran");
        require(self.starts(cell, id) > 0, "INV-WAKE-2", text)
    }

    /// What was revealed as armed for a time that has come, and has neither run nor been seen to be over.
    #[must_use]
    pub fn owed(&self, now: AlarmTime) -> Vec<(Cell, AlarmId)> {
        let due = self.revealed.iter().filter(|(_, deadline)| **deadline <= now).map(|(key, _)| *key);
        due.filter(|key| !self.fired.contains_key(key) && !self.is_over(key.0, key.1)).collect()
    }

    /// Alarms that have ended processes, and have neither succeeded nor been seen to be given up, replaced or deleted.
    #[must_use]
    pub fn deadly(&self) -> Vec<(Cell, AlarmId)> {
        self.killed.keys().filter(|key| !self.is_over(key.0, key.1)).copied().collect()
    }

    /// The time for every owed alarm to run after faults stopped is over.
    ///
    /// # Errors
    /// INV-WAKE-2: some did not. INV-WAKE-3: some end processes and were not given up.
    pub fn on_patience_over(&self, now: AlarmTime) -> Result<(), Violation> {
        let (owed, deadly) = (self.owed(now), self.deadly());
        require(owed.is_empty(), "INV-WAKE-2", format_args!("{owed:?} never ran"))?;
        require(deadly.is_empty(), "INV-WAKE-3", format_args!("{deadly:?} were not given up"))
    }

    /// Runs, and entries deleted, so far.
    #[must_use]
    pub const fn counts(&self) -> (u64, u64) {
        (self.runs, self.deleted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::AlarmSeq;

    const CELL: Cell = Cell(0);

    fn id(seq: u64) -> AlarmId {
        AlarmId { epoch: Epoch::new(1), seq: AlarmSeq::new(seq) }
    }

    fn state(last: u64, armed: Option<u64>) -> AlarmState {
        let armed = armed.map(|seq| Armed::new(id(seq), AlarmTime::new(100)));
        AlarmState { last: AlarmSeq::new(last), armed }
    }

    #[test]
    fn an_alarm_revealed_without_its_entry_is_noticed_unless_it_is_over() {
        let mut checker = AlarmChecker::default();
        checker.on_revealed(CELL, &state(1, Some(1)), |_| true).unwrap();
        let error = checker.on_revealed(CELL, &state(1, Some(1)), |_| false).unwrap_err();
        assert_eq!(error.invariant, "INV-WAKE-1");
        checker.on_proved(CELL, Epoch::new(1), &state(2, Some(2)));
        checker.on_revealed(CELL, &state(1, Some(1)), |_| false).unwrap();
    }

    #[test]
    fn a_deletion_is_allowed_only_of_what_a_proved_state_is_past() {
        let mut checker = AlarmChecker::default();
        assert!(checker.on_deleted(CELL, id(1)).is_err());
        checker.on_proved(CELL, Epoch::new(1), &state(2, Some(2)));
        checker.on_deleted(CELL, id(1)).unwrap();
        assert!(checker.on_deleted(CELL, id(2)).is_err());
        checker.on_proved(CELL, Epoch::new(2), &state(2, None));
        checker.on_deleted(CELL, id(2)).unwrap();
    }

    #[test]
    fn runs_that_are_early_overlap_or_come_after_the_end_are_noticed() {
        let mut checker = AlarmChecker::default();
        let armed = Armed::new(id(1), AlarmTime::new(100));
        let at = AlarmTime::new;
        checker.on_fired(CELL, &armed, (at(100), None, true)).unwrap();
        assert!(checker.on_fired(CELL, &armed, (at(99), None, true)).is_err());
        assert!(checker.on_fired(CELL, &armed, (at(100), Some(id(1)), true)).is_err());
        checker.on_proved(CELL, Epoch::new(1), &state(1, None));
        assert!(checker.on_fired(CELL, &armed, (at(100), None, true)).is_err());
        checker.on_fired(CELL, &armed, (at(100), None, false)).unwrap();
    }

    #[test]
    fn an_alarm_that_never_runs_is_noticed() {
        let mut checker = AlarmChecker::default();
        checker.on_revealed(CELL, &state(1, Some(1)), |_| true).unwrap();
        checker.on_patience_over(AlarmTime::new(99)).unwrap();
        assert_eq!(checker.on_patience_over(AlarmTime::new(100)).unwrap_err().invariant, "INV-WAKE-2");
        let armed = Armed::new(id(1), AlarmTime::new(100));
        checker.on_fired(CELL, &armed, (AlarmTime::new(100), None, true)).unwrap();
        checker.on_patience_over(AlarmTime::new(100)).unwrap();
    }

    #[test]
    fn an_alarm_that_ends_too_many_processes_is_noticed() {
        let mut checker = AlarmChecker::default();
        for _ in 0..=UNENDED_MAX {
            checker.on_killed(CELL, id(1)).unwrap();
        }
        checker.on_killed(CELL, id(2)).unwrap();
        assert_eq!(checker.on_killed(CELL, id(1)).unwrap_err().invariant, "INV-WAKE-3");
        assert_eq!(checker.deadly(), [(CELL, id(1)), (CELL, id(2))]);
        checker.on_proved(CELL, Epoch::new(1), &state(2, None));
        assert_eq!(checker.deadly(), []);
        assert_eq!(checker.on_given_up(CELL, id(1)).unwrap_err().invariant, "INV-WAKE-2");
    }
}
