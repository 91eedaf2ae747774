//! The storage of Durable Objects, below JavaScript.

use std::time::Duration;

use super::cell;
use crate::error::SqlFailure;
use crate::{ExecLimits, ExecRows, KvRange, SqlValue};

const LIMITS: ExecLimits = ExecLimits { time: Duration::from_secs(20), result_bytes: 1 << 20 };

fn exec(cell: &mut super::Cell, sql: &str) -> Result<ExecRows, SqlFailure> {
    cell.engine.object_exec(sql, &[], LIMITS)
}

#[test]
fn the_first_write_begins_the_transaction_and_the_commit_is_one_capture() {
    let mut cell = cell();
    exec(&mut cell, "SELECT 1").unwrap();
    assert!(!cell.engine.in_transaction());
    exec(&mut cell, "CREATE TABLE t(a)").unwrap();
    cell.engine.kv_put("k", b"v").unwrap();
    assert!(cell.engine.in_transaction());
    assert!(!cell.engine.is_dirty(), "nothing is committed yet");
    cell.engine.object_commit().unwrap();
    assert!(!cell.engine.in_transaction() && cell.engine.is_dirty());
    assert_eq!(cell.engine.kv_get("k").unwrap(), Some(b"v".to_vec()));
}

#[test]
fn a_commit_that_fails_leaves_no_transaction_and_nothing_of_it() {
    let mut cell = cell();
    let sql =
        "CREATE TABLE p(id PRIMARY KEY); CREATE TABLE c(pid REFERENCES p(id) DEFERRABLE INITIALLY DEFERRED)";
    exec(&mut cell, sql).unwrap();
    cell.engine.object_commit().unwrap();
    exec(&mut cell, "INSERT INTO c VALUES (1)").unwrap();
    assert_eq!(cell.engine.object_commit().unwrap_err().extended, 787);
    assert!(!cell.engine.in_transaction());
    assert_eq!(cell.one::<i64>("SELECT count(*) FROM c"), 0);
}

#[test]
fn savepoints_undo_their_own_part_the_table_of_keys_included() {
    let mut cell = cell();
    cell.engine.object_savepoint(1).unwrap();
    cell.engine.kv_put("a", b"1").unwrap();
    cell.engine.object_end_savepoint(1, false).unwrap();
    assert_eq!(cell.engine.kv_get("a").unwrap(), None);
    cell.engine.kv_put("b", b"2").unwrap();
    cell.engine.object_commit().unwrap();
    let all = cell.engine.kv_list(&KvRange::default()).unwrap();
    assert_eq!(all, [("b".to_owned(), b"2".to_vec())]);
}

#[test]
fn what_sqlite_rolls_back_by_itself_is_told() {
    let mut cell = cell();
    exec(&mut cell, "CREATE TABLE t(a UNIQUE); INSERT INTO t VALUES (1)").unwrap();
    assert!(exec(&mut cell, "INSERT OR ROLLBACK INTO t VALUES (1)").is_err());
    assert!(cell.engine.is_object_transaction_lost());
    cell.engine.object_roll_back();
    assert!(!cell.engine.is_object_transaction_lost());
    // A first statement that fails loses nothing else.
    exec(&mut cell, "CREATE TABLE t(a UNIQUE); INSERT INTO t VALUES (1)").unwrap();
    cell.engine.object_commit().unwrap();
    assert!(exec(&mut cell, "INSERT OR ROLLBACK INTO t VALUES (1)").is_err());
    assert!(!cell.engine.is_object_transaction_lost());
}

#[test]
fn rows_are_bounded_and_a_bound_ends_the_statement() {
    let mut cell = cell();
    let limits = ExecLimits { result_bytes: 1000, ..LIMITS };
    let sql = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c";
    let failure = cell.engine.object_exec(sql, &[], limits).unwrap_err();
    assert_eq!(failure.code, "RESULT_TOO_LARGE");
    let rows =
        cell.engine.object_exec("SELECT ?1, 'é', x'01', NULL", &[SqlValue::Real(1.5)], limits).unwrap();
    let expected = [SqlValue::Real(1.5), SqlValue::Text("é".into()), SqlValue::Blob(vec![1]), SqlValue::Null];
    assert_eq!(rows.values, expected);
}

#[test]
fn transactions_and_pragmas_of_the_storage_are_refused_to_objects_alone() {
    let mut cell = cell();
    for sql in [
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT x",
        "RELEASE x",
        "PRAGMA user_version",
        "PRAGMA page_size=512",
    ] {
        assert_eq!(exec(&mut cell, sql).unwrap_err().code, "SQLITE_AUTH", "{sql}");
    }
    cell.run("BEGIN; PRAGMA user_version; COMMIT").unwrap();
}
