//! The key-value part of a Durable Object's storage: `_hf_kv(key, value)`, ordered by the UTF-8 bytes of the key. The table is
//! made by the first write, so that an object without keys has none.

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension};

use super::{Engine, exec};
use crate::error::SqlFailure;

const CREATE: &str =
    "CREATE TABLE IF NOT EXISTS _hf_kv(key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID";
const PUT: &str =
    "INSERT INTO _hf_kv(key, value) VALUES(?1, ?2) ON CONFLICT(key) DO UPDATE SET value = excluded.value";

/// Bytes of keys and values that one list answers. 64 MiB: half of what an isolate may use.
pub const KV_LIST_LEN_MAX: usize = 64 << 20;

/// Which keys to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KvRange {
    /// The first key, as bytes.
    pub start: Vec<u8>,
    /// The key before which the list ends.
    pub end: Option<Vec<u8>>,
    /// From the last to the first.
    pub is_reverse: bool,
    /// How many at most.
    pub limit: Option<u32>,
}

/// A bound of a range, which need not be UTF-8.
struct Text<'a>(&'a [u8]);

impl ToSql for Text<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}

/// What `work` answers, or `missing` where the table is not there yet.
fn or_missing<T>(result: rusqlite::Result<T>, missing: T) -> rusqlite::Result<T> {
    match result {
        Err(error) if is_missing(&error) => Ok(missing),
        other => other,
    }
}

fn is_missing(error: &rusqlite::Error) -> bool {
    match error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message == "no such table: _hf_kv",
        rusqlite::Error::SqlInputError { msg, .. } => msg == "no such table: _hf_kv",
        _ => false,
    }
}

fn put(connection: &Connection, key: &str, value: &[u8]) -> rusqlite::Result<usize> {
    connection.prepare(PUT)?.execute((key, value))
}

impl Engine {
    /// The value of a key.
    ///
    /// # Errors
    /// [`SqlFailure`].
    pub fn kv_get(&mut self, key: &str) -> Result<Option<Vec<u8>>, SqlFailure> {
        self.storage(|connection| {
            let get = || {
                let mut statement = connection.prepare("SELECT value FROM _hf_kv WHERE key = ?1")?;
                statement.query_row([key], |row| row.get(0)).optional()
            };
            or_missing(get(), None)
        })
    }

    /// Sets the value of a key, in the transaction of the turn.
    ///
    /// # Errors
    /// [`SqlFailure`].
    pub fn kv_put(&mut self, key: &str, value: &[u8]) -> Result<(), SqlFailure> {
        self.kv_write(|connection| match put(connection, key, value) {
            Err(error) if is_missing(&error) => {
                connection.execute_batch(CREATE)?;
                put(connection, key, value)
            }
            other => other,
        })?;
        Ok(())
    }

    /// Removes a key, in the transaction of the turn. Answers whether it was there.
    ///
    /// # Errors
    /// [`SqlFailure`].
    pub fn kv_delete(&mut self, key: &str) -> Result<bool, SqlFailure> {
        let removed = self.kv_write(|connection| {
            let delete = || connection.prepare("DELETE FROM _hf_kv WHERE key = ?1")?.execute([key]);
            or_missing(delete(), 0)
        })?;
        Ok(removed > 0)
    }

    pub(super) fn kv_write(
        &mut self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<usize>,
    ) -> Result<usize, SqlFailure> {
        let had_transaction = self.in_transaction();
        self.object_begin()?;
        let written = self.storage(work);
        if had_transaction && !self.in_transaction() {
            self.is_object_lost.set(true);
        }
        written
    }

    /// The keys and values of a range, in the order of the keys' bytes.
    ///
    /// # Errors
    /// [`SqlFailure`]: among others where they take more than [`KV_LIST_LEN_MAX`] bytes.
    pub fn kv_list(&mut self, range: &KvRange) -> Result<Vec<(String, Vec<u8>)>, SqlFailure> {
        let end = if range.end.is_some() { "AND key < ?2" } else { "AND ?2 IS NULL" };
        let order = if range.is_reverse { "DESC" } else { "ASC" };
        let sql = format!(
            "SELECT key, value FROM _hf_kv WHERE key >= ?1 {end} ORDER BY key {order} LIMIT {}",
            range.limit.map_or(-1, i64::from)
        );
        let mut len = 0;
        let listed = self.storage(|connection| {
            let mut list = || {
                let mut statement = connection.prepare(&sql)?;
                let mut rows = statement.query((Text(&range.start), range.end.as_deref().map(Text)))?;
                let mut listed = Vec::new();
                while let Some(row) = rows.next()? {
                    let key = String::from_utf8_lossy(row.get_ref(0)?.as_bytes()?).into_owned();
                    let value: Vec<u8> = row.get(1)?;
                    len += key.len() + value.len();
                    if len > KV_LIST_LEN_MAX {
                        break;
                    }
                    listed.push((key, value));
                }
                Ok(listed)
            };
            or_missing(list(), Vec::new())
        })?;
        if len > KV_LIST_LEN_MAX {
            return Err(exec::too_large(KV_LIST_LEN_MAX));
        }
        Ok(listed)
    }
}
