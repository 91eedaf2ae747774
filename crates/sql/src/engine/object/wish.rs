//! Restores to states of the past that the object itself wished for: rows of `_hf_restore`, which outlive the restores. The
//! table is made by the first wish, or by the first bookmark of an empty database. A number is never used twice, so a
//! bookmark can name the state that a restore took the place of before it has taken place.

use holdfast_types::{Epoch, Position, Txid};
use rusqlite::Connection;

use super::{Engine, from_sql, has_table, to_sql};
use crate::error::SqlFailure;

const CREATE: &str = "CREATE TABLE IF NOT EXISTS _hf_restore(\
    number INTEGER PRIMARY KEY, stage INTEGER NOT NULL, epoch INTEGER NOT NULL, txid INTEGER NOT NULL)";
const READ: &str = "SELECT number, stage, epoch, txid FROM _hf_restore ORDER BY number";
const PUT: &str = "INSERT INTO _hf_restore(number, stage, epoch, txid) VALUES(?1, ?2, ?3, ?4)";
const GIVE_UP: &str = "UPDATE _hf_restore SET stage = 2 WHERE stage = 0";

/// Restores that are remembered: a bookmark of what an earlier one took the place of is refused.
const REMEMBERED_MAX: u32 = 64;

/// Where a restore stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i64)]
enum Stage {
    /// Wished for; the position is where it leads.
    Wished = 0,
    /// Done; the position is where the database stood before it.
    Done = 1,
    /// It will not take place.
    GivenUp = 2,
}

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct Restore {
    number: u32,
    stage: Stage,
    position: Position,
}

/// A wish for a restore before the object's next session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoreWish {
    /// The number of the restore.
    pub number: u32,
    /// Where it leads.
    pub target: Position,
}

/// What became of a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreFate {
    /// It took the place of what was at this position.
    Replaced(Position),
    /// It has not taken place yet.
    Pending,
    /// It was given up, or is too long ago to be remembered, or never was.
    Unknown,
}

fn read(connection: &Connection) -> rusqlite::Result<Vec<Restore>> {
    if !has_table(connection, "_hf_restore")? {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare(READ)?;
    let rows = statement.query_map([], |row| {
        let stage = match row.get(1)? {
            0 => Stage::Wished,
            1 => Stage::Done,
            _ => Stage::GivenUp,
        };
        let position =
            Position { epoch: Epoch::new(from_sql(row.get(2)?)), txid: Txid::new(from_sql(row.get(3)?)) };
        Ok(Restore { number: row.get(0)?, stage, position })
    })?;
    rows.collect()
}

fn put(connection: &Connection, restore: &Restore) -> rusqlite::Result<usize> {
    let Restore { number, stage, position: Position { epoch, txid } } = *restore;
    connection.execute(PUT, (number, stage as i64, to_sql(epoch.get()), to_sql(txid.get())))
}

/// Has a database that is to take the place of one with these restores remember them. None is wished for any more: the one
/// that is `fulfilled` is done, from where the present database stands.
pub(in crate::engine) fn carry_restores_over(
    other: &Connection,
    present: Vec<Restore>,
    fulfilled: Option<(u32, Position)>,
) -> rusqlite::Result<()> {
    // What the other has is of the same history, and so in the present one, too; but not its wish.
    if !read(other)?.is_empty() {
        other.execute_batch("DELETE FROM _hf_restore")?;
    }
    if present.is_empty() {
        return Ok(());
    }
    other.execute_batch(CREATE)?;
    for mut restore in present {
        if restore.stage == Stage::Wished {
            restore.stage = Stage::GivenUp;
            if let Some((_, before)) = fulfilled.filter(|(number, _)| *number == restore.number) {
                restore = Restore { stage: Stage::Done, position: before, ..restore };
            }
        }
        put(other, &restore)?;
    }
    Ok(())
}

impl Engine {
    /// The restores that are remembered, what the open transaction did to them included, oldest first.
    pub(in crate::engine) fn restores(&mut self) -> Result<Vec<Restore>, SqlFailure> {
        self.storage(read)
    }

    /// Wishes for a restore, in the transaction of the turn and in place of an earlier wish. Answers its number.
    ///
    /// # Errors
    /// [`SqlFailure`].
    pub fn restore_wish(&mut self, target: Position) -> Result<u32, SqlFailure> {
        let last = self.restores()?.last().map_or(0, |restore| restore.number);
        let number = last.saturating_add(1);
        self.may_have_wish = true;
        self.kv_write(|connection| {
            connection.execute_batch(CREATE)?;
            connection.execute(GIVE_UP, [])?;
            let forgotten = number.saturating_sub(REMEMBERED_MAX);
            connection.execute("DELETE FROM _hf_restore WHERE number <= ?1", [forgotten])?;
            put(connection, &Restore { number, stage: Stage::Wished, position: target })
        })?;
        Ok(number)
    }

    /// Whether [`Engine::restore_wished`] may find something. Costs nothing.
    #[must_use]
    pub fn may_have_restore_wish(&self) -> bool {
        self.may_have_wish
    }

    /// The wish that is committed; not within a transaction.
    ///
    /// # Errors
    /// [`SqlFailure`] where the database cannot be read.
    pub fn restore_wished(&mut self) -> Result<Option<RestoreWish>, SqlFailure> {
        let found = self.restores()?.into_iter().find(|restore| restore.stage == Stage::Wished);
        self.may_have_wish = found.is_some();
        Ok(found.map(|Restore { number, position, stage: _ }| RestoreWish { number, target: position }))
    }

    /// Commits that the wish is given up, by itself; not within a transaction.
    ///
    /// # Errors
    /// [`SqlFailure`].
    pub fn restore_give_up(&mut self) -> Result<(), SqlFailure> {
        self.storage(|connection| connection.execute(GIVE_UP, []))?;
        self.may_have_wish = false;
        Ok(())
    }

    /// What became of a restore.
    ///
    /// # Errors
    /// [`SqlFailure`] where the database cannot be read.
    pub fn restore_fate(&mut self, number: u32) -> Result<RestoreFate, SqlFailure> {
        let found = self.restores()?.into_iter().find(|restore| restore.number == number);
        Ok(match found {
            Some(Restore { stage: Stage::Done, position, .. }) => RestoreFate::Replaced(position),
            Some(Restore { stage: Stage::Wished, .. }) => RestoreFate::Pending,
            Some(Restore { stage: Stage::GivenUp, .. }) | None => RestoreFate::Unknown,
        })
    }

    /// Has a database that was never written hold a transaction at the end of the turn, so that there is a state to name.
    ///
    /// # Errors
    /// [`SqlFailure`].
    pub fn restore_ensure_state(&mut self) -> Result<(), SqlFailure> {
        if self.position() != Txid::ZERO || self.is_dirty() {
            return Ok(());
        }
        self.kv_write(|connection| connection.execute_batch(CREATE).map(|()| 0)).map(drop)
    }
}
