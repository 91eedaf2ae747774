//! The alarm of a cell: the one row of `_hf_alarm`, part of whatever transaction is open. The row stays when nothing is
//! armed, because the number of an installation is never used twice. The table is made by the first installation.

use holdfast_core::alarm::{AlarmState, Armed};
use holdfast_types::{AlarmId, AlarmSeq, AlarmTime, Epoch};
use rusqlite::{Connection, OptionalExtension, Row};

use super::{Engine, failure_of, from_sql, has_table, to_sql};
use crate::error::SqlFailure;

const CREATE: &str = "CREATE TABLE IF NOT EXISTS _hf_alarm(\
    id INTEGER PRIMARY KEY CHECK(id = 0), last INTEGER NOT NULL, epoch INTEGER, seq INTEGER, deadline INTEGER, \
    due INTEGER, attempts INTEGER, failures INTEGER)";
const READ: &str = "SELECT last, epoch, seq, deadline, due, attempts, failures FROM _hf_alarm";
const INSTALL: &str = "INSERT OR REPLACE INTO _hf_alarm(id, last, epoch, seq, deadline, due, attempts, failures) \
    VALUES(0, ?1, ?2, ?1, ?3, ?3, 0, 0)";
const CLEAR: &str = "UPDATE _hf_alarm SET epoch = NULL, seq = NULL, deadline = NULL, due = NULL, attempts = NULL, \
    failures = NULL";
const RECORD: &str =
    "UPDATE _hf_alarm SET due = ?1, attempts = ?2, failures = ?3 WHERE epoch = ?4 AND seq = ?5";

/// What the engine knows of the alarm besides its row.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::engine) struct AlarmContext {
    /// The epoch that installs.
    epoch: Epoch,
    /// The installation whose handler runs.
    running: Option<AlarmId>,
    /// Whether the row may have changed since it was last told.
    is_touched: bool,
}

impl AlarmContext {
    pub(in crate::engine) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The row may have changed.
    pub(in crate::engine) fn touch(&mut self) {
        self.is_touched = true;
    }
}

fn state_of(row: &Row<'_>) -> rusqlite::Result<AlarmState> {
    let last = AlarmSeq::new(from_sql(row.get(0)?));
    let Some(deadline) = row.get::<_, Option<i64>>(3)? else { return Ok(AlarmState { last, armed: None }) };
    let id = AlarmId { epoch: Epoch::new(from_sql(row.get(1)?)), seq: AlarmSeq::new(from_sql(row.get(2)?)) };
    let armed = Armed {
        id,
        deadline: AlarmTime::new(deadline),
        due: AlarmTime::new(row.get(4)?),
        attempts: row.get(5)?,
        failures: row.get(6)?,
    };
    Ok(AlarmState { last, armed: Some(armed) })
}

fn read(connection: &Connection) -> rusqlite::Result<AlarmState> {
    if !has_table(connection, "_hf_alarm")? {
        return Ok(AlarmState::default());
    }
    Ok(connection.query_row(READ, [], state_of).optional()?.unwrap_or_default())
}

/// Has a database that is to take the place of one with this alarm go on with its numbers: what is armed there is installed
/// anew.
pub(in crate::engine) fn carry_alarm_over(
    other: &Connection,
    present: AlarmState,
    epoch: Epoch,
) -> rusqlite::Result<()> {
    let past = read(other)?;
    if (past, present) == Default::default() {
        return Ok(());
    }
    let last = past.last.max(present.last);
    other.execute_batch(CREATE)?;
    match past.armed {
        Some(armed) => {
            other.execute(INSTALL, (to_sql(last.next().get()), to_sql(epoch.get()), armed.deadline.get()))?
        }
        None => {
            other.execute("INSERT OR REPLACE INTO _hf_alarm(id, last) VALUES(0, ?1)", [to_sql(last.get())])?
        }
    };
    Ok(())
}

impl Engine {
    /// The epoch that alarms are installed in from now on.
    pub fn set_alarm_epoch(&mut self, epoch: Epoch) {
        self.alarm.epoch = epoch;
    }

    /// The handler of this installation runs from now on, or none does.
    pub fn set_alarm_running(&mut self, running: Option<AlarmId>) {
        self.alarm.running = running;
    }

    /// The alarm, what the open transaction did to it included.
    ///
    /// # Errors
    /// [`SqlFailure`] where the database cannot be read.
    pub fn alarm_state(&mut self) -> Result<AlarmState, SqlFailure> {
        self.storage(read)
    }

    /// The deadline of the alarm, as its object sees it: none while the handler runs that it called.
    ///
    /// # Errors
    /// [`SqlFailure`] where the database cannot be read.
    pub fn alarm_deadline(&mut self) -> Result<Option<AlarmTime>, SqlFailure> {
        let running = self.alarm.running;
        let armed = self.alarm_state()?.armed.filter(|armed| Some(armed.id) != running);
        Ok(armed.map(|armed| armed.deadline))
    }

    /// Installs an alarm in the transaction of the turn, in place of the one that is armed. The same deadline once more is
    /// no installation.
    ///
    /// # Errors
    /// [`SqlFailure`].
    pub fn alarm_set(&mut self, deadline: AlarmTime) -> Result<(), SqlFailure> {
        let (AlarmContext { epoch, running, .. }, AlarmState { last, armed }) =
            (self.alarm, self.alarm_state()?);
        let is_fresh = |armed: &Armed| armed.attempts == 0 && armed.failures == 0;
        let is_same =
            |armed: &Armed| armed.deadline == deadline && is_fresh(armed) && Some(armed.id) != running;
        if armed.as_ref().is_some_and(is_same) {
            return Ok(());
        }
        let values = (to_sql(last.next().get()), to_sql(epoch.get()), deadline.get());
        self.alarm_write(|connection| {
            connection.execute_batch(CREATE)?;
            connection.execute(INSTALL, values)
        })
    }

    /// Disarms in the transaction of the turn. A no-op where nothing is armed.
    ///
    /// # Errors
    /// [`SqlFailure`].
    pub fn alarm_delete(&mut self) -> Result<(), SqlFailure> {
        if self.alarm_state()?.armed.is_none() {
            return Ok(());
        }
        self.alarm_write(|connection| connection.execute(CLEAR, []))
    }

    /// The handler has succeeded: consumes its installation in the transaction of the turn, unless the handler put another
    /// in its place.
    ///
    /// # Errors
    /// [`SqlFailure`].
    pub fn alarm_consume(&mut self) -> Result<(), SqlFailure> {
        let armed = self.alarm_state()?.armed.map(|armed| armed.id);
        if armed.is_none() || armed != self.alarm.running {
            return Ok(());
        }
        self.alarm_delete()
    }

    fn alarm_write(
        &mut self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<usize>,
    ) -> Result<(), SqlFailure> {
        self.alarm.is_touched = true;
        self.kv_write(work).map(drop)
    }

    /// Commits what is counted of runs, by itself; not within a transaction. A no-op where another installation is armed.
    ///
    /// # Errors
    /// [`SqlFailure`].
    pub fn alarm_record(&mut self, armed: &Armed) -> Result<(), SqlFailure> {
        let Armed { id, deadline: _, due, attempts, failures } = *armed;
        let values = (due.get(), attempts, failures, to_sql(id.epoch.get()), to_sql(id.seq.get()));
        self.alarm.is_touched = true;
        self.storage(|connection| connection.execute(RECORD, values)).map(drop)
    }

    /// Commits that an installation is given up, by itself; not within a transaction. A no-op where another is armed.
    ///
    /// # Errors
    /// [`SqlFailure`].
    pub fn alarm_abandon(&mut self, id: AlarmId) -> Result<(), SqlFailure> {
        let values = (to_sql(id.epoch.get()), to_sql(id.seq.get()));
        self.alarm.is_touched = true;
        let abandon = format!("{CLEAR} WHERE epoch = ?1 AND seq = ?2");
        self.storage(|connection| connection.execute(&abandon, values)).map(drop)
    }

    /// The committed alarm, where it may have changed since the last call; none while a transaction is open.
    ///
    /// # Errors
    /// [`SqlFailure`] where the database cannot be read.
    pub fn take_alarm_change(&mut self) -> Result<Option<AlarmState>, SqlFailure> {
        if !self.alarm.is_touched || self.in_transaction() {
            return Ok(None);
        }
        self.alarm.is_touched = false;
        self.system(read).map(Some).map_err(|error| failure_of(&error))
    }
}
