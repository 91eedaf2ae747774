//! `deleteAll`: everything of the handler goes; tables of the system stay.

use rusqlite::Connection;

use super::{Engine, has_table};
use crate::error::SqlFailure;

/// The handler's own part of the schema, in an order in which each can be dropped: virtual tables before ordinary ones,
/// because they take their own tables along.
const LISTED: &str = "SELECT type, name FROM sqlite_schema \
    WHERE type IN ('table', 'view', 'trigger') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
    AND name NOT LIKE '\\_hf\\_%' ESCAPE '\\' \
    ORDER BY CASE type WHEN 'trigger' THEN 0 WHEN 'view' THEN 1 ELSE 2 END, sql NOT LIKE 'CREATE VIRTUAL%'";

impl Engine {
    /// Removes the handler's tables, views, triggers, all keys and the alarm, in the transaction of the turn. Tables of the
    /// system (`_hf_…`) stay. [`Engine::object_shrink`] frees the space once it is committed.
    ///
    /// # Errors
    /// [`SqlFailure`]: nothing is removed.
    pub fn object_delete_all(&mut self) -> Result<(), SqlFailure> {
        const DEPTH: u32 = u32::MAX;
        self.object_savepoint(DEPTH)?;
        let removed = self.storage(|connection| {
            let deferred: bool = connection.query_row("PRAGMA defer_foreign_keys", [], |row| row.get(0))?;
            connection.execute_batch("PRAGMA defer_foreign_keys = ON")?;
            let removed = remove(connection);
            connection.execute_batch(&format!("PRAGMA defer_foreign_keys = {}", u8::from(deferred)))?;
            removed
        });
        let removed = removed.and_then(|()| self.alarm_delete());
        let ended = self.object_end_savepoint(DEPTH, removed.is_ok());
        removed.and(ended)
    }

    /// Gives the free pages of the database back to the disk. A no-op where there are none; not within a transaction.
    ///
    /// # Errors
    /// [`SqlFailure`]: the database is as it was.
    pub fn object_shrink(&mut self) -> Result<(), SqlFailure> {
        self.storage(|connection| {
            let free: u32 = connection.query_row("PRAGMA freelist_count", [], |row| row.get(0))?;
            if free > 0 { connection.execute_batch("VACUUM") } else { Ok(()) }
        })
    }
}

fn remove(connection: &Connection) -> rusqlite::Result<()> {
    let mut listed = connection.prepare(LISTED)?;
    let listed: Vec<(String, String)> =
        listed.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    for (kind, name) in listed {
        let name = name.replace('"', "\"\"");
        // What a virtual table took along is not there any more.
        connection.execute_batch(&format!("DROP {kind} IF EXISTS \"{name}\""))?;
    }
    for table in ["sqlite_stat1", "sqlite_stat4"] {
        if has_table(connection, table)? {
            connection.execute_batch(&format!("DROP TABLE {table}"))?;
        }
    }
    if has_table(connection, "sqlite_sequence")? {
        connection
            .execute_batch("DELETE FROM sqlite_sequence WHERE name NOT LIKE '\\_hf\\_%' ESCAPE '\\'")?;
    }
    if has_table(connection, "_hf_kv")? {
        connection.execute_batch("DELETE FROM _hf_kv")?;
    }
    Ok(())
}
