//! Statements that are kept for their next run.

use super::{Cell, cell};
use crate::engine::{Budget, RowSink, Summary, Tail};
use crate::error::SqlFailure;
use crate::ffi::{Column, Statement};

/// Takes columns and whole numbers.
#[derive(Default)]
struct Numbers {
    columns: Vec<String>,
    rows: Vec<Vec<i64>>,
}

impl RowSink for Numbers {
    fn columns(&mut self, statement: &Statement<'_>) -> Result<(), SqlFailure> {
        let names = (0..statement.column_count()).filter_map(|index| statement.column_name(index));
        self.columns = names.collect();
        Ok(())
    }

    fn row(&mut self, statement: &Statement<'_>) -> Result<(), SqlFailure> {
        let number = |index| match statement.column(index) {
            Column::Integer(number) => number,
            other => panic!("{other:?}"),
        };
        self.rows.push((0..statement.column_count()).map(number).collect());
        Ok(())
    }
}

fn read(cell: &mut Cell, sql: &str) -> Result<(Numbers, Summary), SqlFailure> {
    let budget = Budget::start(&cell.engine, false);
    let mut numbers = Numbers::default();
    let ran = cell.engine.execute(sql, Tail::Refuse, &budget, |_| Ok(()), Some(&mut numbers))?;
    Ok((numbers, ran.unwrap().0))
}

fn kept(cell: &Cell) -> usize {
    cell.engine.kept.borrow().len()
}

#[test]
fn a_statement_that_comes_again_is_kept_until_the_cell_is_idle() {
    let mut cell = cell();
    cell.run("CREATE TABLE t(n); INSERT INTO t VALUES(0)").unwrap();
    let sql = "UPDATE t SET n = n + 1";
    cell.run(sql).unwrap();
    assert_eq!(kept(&cell), 0, "once is no habit");
    for _ in 0..3 {
        cell.run(sql).unwrap();
        assert_eq!(kept(&cell), 1);
    }
    assert_eq!(cell.one::<i64>("SELECT n FROM t"), 4);
    cell.engine.trim();
    assert_eq!(kept(&cell), 0);
    assert_eq!(cell.engine.memory().statement_bytes, 0);
    cell.run(sql).unwrap();
    cell.run(sql).unwrap();
    let dir = cell.dir.path().to_path_buf();
    cell.engine.capture(holdfast_types::Millis::new(1)).unwrap().unwrap();
    cell.engine.close().unwrap();
    assert!(dir.join("cell.db").exists(), "closed with a statement that was kept");
}

#[test]
fn few_statements_are_kept_and_none_of_those_that_leave_more_than_rows() {
    let mut cell = cell();
    cell.run("CREATE TABLE t(n)").unwrap();
    for _ in 0..3 {
        for sql in [
            "BEGIN",
            "COMMIT",
            "SAVEPOINT s",
            "RELEASE s",
            "PRAGMA table_info(t)",
            "VACUUM",
            "ANALYZE",
            "REINDEX",
            "CREATE TABLE IF NOT EXISTS t(n)",
            "INSERT INTO t VALUES(1) RETURNING n",
        ] {
            cell.run(sql).unwrap();
            assert_eq!(kept(&cell), 0, "{sql}");
        }
    }
    for number in 0..40 {
        for _ in 0..2 {
            cell.run(&format!("SELECT {number}")).unwrap();
        }
    }
    assert_eq!(kept(&cell), 4);
    let long = format!("SELECT '{}'", "x".repeat(2_000));
    cell.engine.trim();
    for _ in 0..3 {
        cell.run(&long).unwrap();
    }
    assert_eq!(kept(&cell), 0, "its text is too long");
}

#[test]
fn a_statement_that_was_kept_sees_the_schema_of_now() {
    let mut cell = cell();
    cell.run("CREATE TABLE t(a); INSERT INTO t VALUES(1)").unwrap();
    let sql = "SELECT * FROM t";
    for _ in 0..3 {
        assert_eq!(read(&mut cell, sql).unwrap().0.columns, ["a"]);
    }
    assert_eq!(kept(&cell), 1);
    cell.run("ALTER TABLE t ADD COLUMN b DEFAULT 2").unwrap();
    let (numbers, _) = read(&mut cell, sql).unwrap();
    assert_eq!((numbers.columns, numbers.rows), (vec!["a".into(), "b".into()], vec![vec![1, 2]]));
    cell.run("DROP TABLE t").unwrap();
    let failure = read(&mut cell, sql).err().unwrap();
    assert!(failure.message.contains("no such table"), "{}", failure.message);
    cell.run("CREATE TABLE t(c); INSERT INTO t VALUES(7)").unwrap();
    let (numbers, _) = read(&mut cell, sql).unwrap();
    assert_eq!((numbers.columns, numbers.rows), (vec!["c".into()], vec![vec![7]]));
    // As it was before, by a rollback.
    cell.run("BEGIN; ALTER TABLE t ADD COLUMN d DEFAULT 8").unwrap();
    for _ in 0..3 {
        assert_eq!(read(&mut cell, sql).unwrap().0.rows, [[7, 8]]);
    }
    cell.run("ROLLBACK").unwrap();
    assert_eq!(read(&mut cell, sql).unwrap().0.rows, [[7]]);
}

#[test]
fn the_policy_holds_for_what_is_prepared_anew() {
    let mut cell = cell();
    cell.engine.system(|connection| connection.execute_batch("CREATE TABLE _hf_x(a)").unwrap());
    cell.run("CREATE VIEW v AS SELECT 1 AS a").unwrap();
    for _ in 0..3 {
        read(&mut cell, "SELECT a FROM v").unwrap();
    }
    assert_eq!(kept(&cell), 1);
    // No user can make such a view; whoever could must not read through it.
    cell.engine.system(|connection| {
        connection.execute_batch("DROP VIEW v; CREATE VIEW v AS SELECT a FROM _hf_x").unwrap();
    });
    let failure = read(&mut cell, "SELECT a FROM v").err().unwrap();
    assert_eq!(failure.code, "SQLITE_AUTH", "{}", failure.message);
}

#[test]
fn every_run_counts_for_itself_and_a_reader_never_writes() {
    let mut cell = cell();
    cell.run("CREATE TABLE t(n); INSERT INTO t VALUES(1),(2),(3)").unwrap();
    for _ in 0..4 {
        let (numbers, summary) = read(&mut cell, "SELECT count(*) FROM t WHERE n > 0").unwrap();
        assert_eq!(numbers.rows, [[3]]);
        assert_eq!(
            summary.rows_read,
            read(&mut cell, "SELECT count(*) FROM t WHERE n > 0").unwrap().1.rows_read
        );
    }
    let sql = "UPDATE t SET n = n + 1";
    for _ in 0..3 {
        assert_eq!(read(&mut cell, sql).unwrap().1.affected_rows, 3);
    }
    let budget = Budget::start(&cell.engine, true);
    let failure = cell.engine.execute(sql, Tail::Refuse, &budget, |_| Ok(()), None).unwrap_err();
    assert_eq!(failure.code, "READ_ONLY");
    assert_eq!(cell.one::<i64>("SELECT sum(n) FROM t"), 15);
}

#[test]
fn a_statement_that_fails_is_not_kept_and_runs_again() {
    let mut cell = cell();
    cell.run("CREATE TABLE t(n UNIQUE)").unwrap();
    let sql = "INSERT INTO t VALUES(1)";
    cell.run(sql).unwrap();
    for _ in 0..3 {
        assert_eq!(cell.run(sql).unwrap_err().code, "SQLITE_CONSTRAINT");
        assert_eq!(kept(&cell), 0);
    }
    cell.run("DELETE FROM t").unwrap();
    cell.run(sql).unwrap();
    assert_eq!(kept(&cell), 1);
}
