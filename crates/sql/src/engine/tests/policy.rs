//! What a user's statement may not do, and what it is told.

use super::{Cell, cell, cell_with};
use crate::engine::{Budget, RowSink, Tail};
use crate::error::SqlFailure;
use crate::ffi::Statement;

fn refused(cell: &mut Cell, sql: &str) -> String {
    let failure = cell.run(sql).unwrap_err();
    assert_eq!(failure.code, "SQLITE_AUTH", "{sql}: {}", failure.message);
    failure.message
}

#[test]
fn what_reaches_other_files_or_code_is_refused_by_name() {
    let mut cell = cell();
    for (sql, says) in [
        ("ATTACH '/tmp/x.db' AS x", "ATTACH is not allowed"),
        ("ATTACH ':memory:' AS x", "ATTACH is not allowed"),
        ("ATTACH '' AS x", "ATTACH is not allowed"),
        ("DETACH main", "DETACH is not allowed"),
        ("VACUUM INTO 'copy.db'", "VACUUM INTO is not allowed"),
        ("SELECT load_extension('x')", "load_extension()"),
        ("SELECT fts3_tokenizer('simple')", "fts3_tokenizer()"),
        ("CREATE TEMP TABLE t(a)", "temporary tables"),
        ("CREATE TEMP VIEW v AS SELECT 1", "temporary tables"),
    ] {
        let message = refused(&mut cell, sql);
        assert!(message.contains(says), "{sql}: {message}");
    }
    assert!(!std::path::Path::new("copy.db").exists() && !cell.dir.path().join("copy.db").exists());
}

#[test]
fn what_the_replication_rests_on_is_refused() {
    let mut cell = cell();
    for sql in [
        "PRAGMA journal_mode=DELETE",
        "PRAGMA main.journal_mode = 'truncate'",
        "PRAGMA wal_checkpoint",
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "PRAGMA locking_mode=NORMAL",
        "PRAGMA synchronous=FULL",
        "PRAGMA wal_autocheckpoint=1",
        "PRAGMA mmap_size=1000000",
        "PRAGMA writable_schema=ON",
        "PRAGMA temp_store_directory='/tmp'",
        "PRAGMA max_page_count=100000",
        "PRAGMA database_list",
        "SELECT * FROM pragma_database_list",
        "PRAGMA page_size=1000",
    ] {
        let message = refused(&mut cell, sql);
        assert!(message.contains("PRAGMA"), "{sql}: {message}");
    }
    assert_eq!(cell.one::<String>("PRAGMA journal_mode"), "wal");
    for sql in
        ["PRAGMA journal_mode", "PRAGMA table_info(t)", "PRAGMA user_version=5", "PRAGMA integrity_check"]
    {
        cell.run(sql).unwrap();
    }
    cell.run("CREATE TABLE t(a); INSERT INTO t VALUES(1)").unwrap();
    assert_eq!(cell.one::<i64>("PRAGMA user_version"), 5);
}

#[test]
fn system_tables_are_out_of_reach() {
    let mut cell = cell();
    cell.engine.system(|connection| connection.execute_batch("CREATE TABLE _hf_meta(k, v)")).unwrap();
    cell.run("CREATE TABLE t(a)").unwrap();
    for sql in [
        "SELECT * FROM _hf_meta",
        "SELECT count(*) FROM _HF_META",
        "INSERT INTO _hf_meta VALUES(1, 2)",
        "UPDATE _hf_meta SET v = 1",
        "DELETE FROM _hf_meta",
        "DROP TABLE _hf_meta",
        "CREATE TABLE _hf_x(a)",
        "CREATE VIEW _hf_v AS SELECT 1",
        "CREATE INDEX _hf_i ON t(a)",
        "CREATE INDEX i ON _hf_meta(k)",
        "CREATE TRIGGER _hf_t AFTER INSERT ON t BEGIN SELECT 1; END",
        "ALTER TABLE t RENAME TO _hf_t",
        "ALTER TABLE _hf_meta RENAME TO meta",
        "WITH x AS (SELECT * FROM _hf_meta) SELECT * FROM x",
    ] {
        let message = refused(&mut cell, sql);
        assert!(message.contains("belong to the system"), "{sql}: {message}");
    }
    let schema = cell.run("UPDATE sqlite_schema SET name = 'x'").unwrap_err();
    assert!(schema.message.contains("may not be modified"), "{}", schema.message);
    cell.run("CREATE VIRTUAL TABLE f USING fts5(k, content='_hf_meta')").unwrap();
    let through = cell.run("SELECT * FROM f").unwrap_err();
    assert!(through.message.contains("belong to the system"), "{}", through.message);
}

#[test]
fn full_text_search_and_the_other_bundled_tables_work() {
    let mut cell = cell();
    cell.run(
        "CREATE VIRTUAL TABLE f USING fts5(x); INSERT INTO f VALUES('hello world');
         SELECT * FROM f WHERE f MATCH 'hello'; CREATE VIRTUAL TABLE r USING rtree(id, a, b);
         INSERT INTO r VALUES(1, 2, 3); SELECT * FROM json_each('[1]'); INSERT INTO f(f) VALUES('optimize');
         DROP TABLE f; VACUUM",
    )
    .unwrap();
}

#[test]
fn limits_are_errors_and_quick() {
    let mut cell = cell();
    let started = std::time::Instant::now();
    let columns: Vec<String> = (0..2_001).map(|n| format!("c{n}")).collect();
    let parameters = vec!["?"; 32_767].join(",");
    let pattern = "%a".repeat(25_000);
    for (sql, code) in [
        (format!("SELECT '{}'", "x".repeat(1 << 20)), "SQLITE_TOOBIG"),
        (format!("CREATE TABLE w({})", columns.join(",")), "SQLITE_ERROR"),
        (format!("SELECT 1 IN ({parameters})"), "SQLITE_ERROR"),
        (format!("SELECT hex(zeroblob(25000)) LIKE '{pattern}'"), "SQLITE_ERROR"),
        ("SELECT zeroblob(100000000)".into(), "SQLITE_TOOBIG"),
        ("SELECT 1\0".into(), "SQL_PARSE_ERROR"),
        (format!("SELECT {}1{}", "(".repeat(3_000), ")".repeat(3_000)), "SQLITE_ERROR"),
    ] {
        let failure = cell.run(&sql).unwrap_err();
        assert_eq!(failure.code, code, "{:.60}: {}", sql, failure.message);
    }
    assert!(started.elapsed().as_secs() < 2);
}

#[test]
fn a_statement_over_its_budget_is_interrupted_and_the_cell_goes_on() {
    let mut cell = cell_with(|options| options.statement_budget = std::time::Duration::from_millis(50));
    cell.run("CREATE TABLE t(a)").unwrap();
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let started = std::time::Instant::now();
    let failure = cell.run(endless).unwrap_err();
    assert!(started.elapsed().as_millis() < 1_000);
    assert_eq!(failure.code, "SQLITE_INTERRUPT");
    assert!(failure.message.contains("50 ms"), "{}", failure.message);
    cell.run("INSERT INTO t VALUES(1)").unwrap();
    let in_transaction =
        cell.run(&format!("BEGIN; INSERT INTO t VALUES(2); INSERT INTO t {endless}")).unwrap_err();
    assert!(
        in_transaction.message.ends_with("the transaction was rolled back"),
        "{}",
        in_transaction.message
    );
    assert!(!cell.engine.in_transaction());
    assert_eq!(cell.one::<i64>("SELECT count(*) FROM t"), 1);
}

#[test]
fn another_thread_can_interrupt() {
    let mut cell = cell();
    let interrupter = cell.engine.interrupter();
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        while is_done.try_recv().is_err() {
            interrupter.interrupt();
            std::thread::yield_now();
        }
    });
    let failure = cell
        .run("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")
        .unwrap_err();
    assert_eq!(
        (failure.code, failure.message.as_str()),
        ("SQLITE_INTERRUPT", "the statement was interrupted")
    );
    done.send(()).unwrap();
    thread.join().unwrap();
}

#[test]
fn a_full_database_fails_the_statement_alone() {
    let mut cell = cell_with(|options| options.db_bytes_max = Some(100 * 4096));
    cell.run("CREATE TABLE t(a, b)").unwrap();
    cell.run("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 85) INSERT INTO t SELECT i, hex(randomblob(1500)) FROM n")
        .unwrap();
    let failure = cell.run("CREATE INDEX i ON t(b)").unwrap_err();
    assert_eq!((failure.code, failure.status()), ("SQLITE_FULL", 507));
    assert!(failure.message.contains("409600 bytes"), "{}", failure.message);
    assert_eq!(cell.one::<i64>("SELECT count(*) FROM t"), 85);
    assert_eq!(cell.one::<i64>("SELECT count(*) FROM sqlite_schema WHERE name = 'i'"), 0);
    cell.run("DELETE FROM t WHERE a < 50; INSERT INTO t VALUES(1, 2)").unwrap();
    assert!(cell.engine.fault().is_none());
}

#[test]
fn a_reader_may_not_write_by_any_way() {
    let mut cell = cell();
    cell.run("CREATE TABLE t(a); CREATE INDEX i ON t(a); INSERT INTO t VALUES(1)").unwrap();
    let dirty = cell.engine.ticket();
    let budget = Budget::start(&cell.engine, true);
    let read = |cell: &mut Cell, sql: &str| cell.engine.execute(sql, Tail::Refuse, &budget, |_| Ok(()), None);
    for sql in [
        "INSERT INTO t VALUES(2)",
        "PRAGMA user_version=1",
        "VACUUM",
        "BEGIN IMMEDIATE",
        "ANALYZE",
        "DROP TABLE t",
    ] {
        let failure = read(&mut cell, sql).unwrap_err();
        assert_eq!((failure.code, failure.status()), ("READ_ONLY", 403), "{sql}");
    }
    let _ = read(&mut cell, "PRAGMA optimize(0x10002)");
    assert_eq!(cell.one::<i64>("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'sqlite_stat%'"), 0);
    assert_eq!(cell.engine.ticket(), dirty);
    for sql in ["BEGIN", "SELECT * FROM t", "COMMIT"] {
        read(&mut cell, sql).unwrap();
    }
}

/// Refuses the second row.
struct OneRow(u32);

impl RowSink for OneRow {
    fn columns(&mut self, _: &Statement<'_>) -> Result<(), SqlFailure> {
        Ok(())
    }
    fn row(&mut self, _: &Statement<'_>) -> Result<(), SqlFailure> {
        self.0 += 1;
        if self.0 > 1 { Err(SqlFailure::new("RESULT_TOO_LARGE", "too large")) } else { Ok(()) }
    }
}

#[test]
fn a_writing_statement_whose_result_is_too_large_leaves_nothing() {
    let mut cell = cell();
    cell.run("CREATE TABLE t(a)").unwrap();
    let budget = Budget::start(&cell.engine, false);
    let sql = "INSERT INTO t VALUES(1),(2),(3) RETURNING a";
    let failure =
        cell.engine.execute(sql, Tail::Refuse, &budget, |_| Ok(()), Some(&mut OneRow(0))).unwrap_err();
    assert_eq!(failure.code, "RESULT_TOO_LARGE");
    assert_eq!(cell.one::<i64>("SELECT count(*) FROM t"), 0);
    cell.run("INSERT INTO t VALUES(4)").unwrap();
    assert_eq!(cell.one::<i64>("SELECT count(*) FROM t"), 1);
}

#[test]
fn a_commit_that_fails_rolls_back() {
    let mut cell = cell();
    cell.run(
        "CREATE TABLE p(id PRIMARY KEY);
         CREATE TABLE c(pid REFERENCES p(id) DEFERRABLE INITIALLY DEFERRED)",
    )
    .unwrap();
    for end in ["COMMIT", "END"] {
        let failure = cell.run(&format!("BEGIN; INSERT INTO c VALUES('missing'); {end}")).unwrap_err();
        assert_eq!((failure.code, failure.extended), ("SQLITE_CONSTRAINT", 787));
        assert!(failure.message.ends_with("the transaction was rolled back"), "{}", failure.message);
        assert!(!cell.engine.in_transaction());
    }
    let failure = cell.run("SAVEPOINT s; INSERT INTO c VALUES('missing'); RELEASE s").unwrap_err();
    assert!(failure.message.ends_with("the transaction was rolled back"), "{}", failure.message);
    // Outside a transaction the statement is its own.
    assert_eq!(cell.run("INSERT INTO c VALUES('missing')").unwrap_err().code, "SQLITE_CONSTRAINT");
    cell.run("INSERT INTO p VALUES(1); INSERT INTO c VALUES(1)").unwrap();
    assert_eq!(cell.one::<i64>("SELECT count(*) FROM c"), 1);
    // A failed RELEASE of a savepoint that does not exist ends nothing.
    cell.run("BEGIN; RELEASE nothing").unwrap_err();
    assert!(cell.engine.in_transaction());
}

#[test]
fn settings_of_a_stream_leave_with_it() {
    let mut cell = cell();
    cell.run("PRAGMA foreign_keys=OFF; PRAGMA defer_foreign_keys=ON; PRAGMA recursive_triggers=OFF").unwrap();
    let session = cell.engine.leave_session().unwrap();
    assert_eq!(cell.one::<i64>("PRAGMA foreign_keys"), 1);
    assert_eq!(cell.one::<i64>("PRAGMA defer_foreign_keys"), 0);
    cell.engine.enter_session(&session).unwrap();
    assert_eq!(cell.one::<i64>("PRAGMA foreign_keys"), 0);
    assert_eq!(cell.one::<i64>("PRAGMA defer_foreign_keys"), 1);
    assert_eq!(cell.engine.leave_session().unwrap(), session);
    assert_eq!(cell.one::<i64>("PRAGMA foreign_keys"), 1);
}

#[test]
fn functions_on_long_values_take_linear_time() {
    let mut cell = cell();
    let started = std::time::Instant::now();
    let (long, needle) = ("hex(zeroblob(1000000))", "hex(zeroblob(500000)) || '1'");
    for sql in [
        format!("SELECT instr({long}, {needle})"),
        format!("SELECT length(replace({long}, {needle}, 'x'))"),
        format!("SELECT length(trim({long}, replace(hex(zeroblob(500000)), '0', 'ab') || 'c'))"),
        format!("SELECT {long} LIKE '%' || substr({needle}, -200) || '%'"),
        format!("SELECT unhex(replace({long}, '0', ' '), replace(hex(zeroblob(500000)), '0', 'xy') || ' ')"),
    ] {
        cell.run(&sql).unwrap();
    }
    assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
}

#[test]
fn the_functions_answer_as_those_of_sqlite() {
    let cell = cell();
    let plain = rusqlite::Connection::open_in_memory().unwrap();
    let values = [
        "NULL",
        "''",
        "' '",
        "'abc'",
        "'b'",
        "'äöü'",
        "'ö'",
        "'aXbXc'",
        "x''",
        "x'616263'",
        "x'62'",
        "x'c3'",
        "x'b6'",
        "1",
        "12.50",
        "-1e300",
        "'  a b  '",
        "'4142 43'",
        "'414'",
        "'61-62'",
        "'-'",
        "char(0)",
        "'a' || char(0) || 'b'",
    ];
    let mut count = 0;
    let mut check = |sql: String| {
        let read = |connection: &rusqlite::Connection| -> (String, rusqlite::types::Value) {
            connection
                .query_row(&format!("SELECT typeof({sql}), CAST({sql} AS BLOB)"), [], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
                .unwrap()
        };
        assert_eq!(cell.engine.system(|connection| read(connection)), read(&plain), "{sql}");
        count += 1;
    };
    for a in values {
        for function in ["trim", "ltrim", "rtrim", "unhex"] {
            check(format!("{function}({a})"));
        }
        for b in values {
            check(format!("instr({a}, {b})"));
            // Half a character as a set is where ours is another: it takes whole characters alone.
            for function in
                ["trim", "ltrim", "rtrim", "unhex"].iter().filter(|_| !["x'c3'", "x'b6'"].contains(&b))
            {
                check(format!("{function}({a}, {b})"));
            }
            for c in ["NULL", "''", "'ö'", "7", "x'ff'"] {
                check(format!("replace({a}, {b}, {c})"));
            }
        }
    }
    assert!(count > 5_000, "{count}");
}

#[test]
fn a_statement_that_takes_too_much_memory_fails_alone() {
    let mut cell = cell_with(|options| options.statement_memory_max = 32 << 20);
    cell.run("CREATE TABLE t(a)").unwrap();
    let columns = vec!["hex(zeroblob(8000000))"; 100].join(",");
    let failure = cell.run(&format!("SELECT {columns}")).unwrap_err();
    assert_eq!((failure.code, failure.status()), ("SQLITE_NOMEM", 400));
    assert!(failure.message.contains("33554432 bytes"), "{}", failure.message);
    cell.run("BEGIN; INSERT INTO t VALUES(1)").unwrap();
    let failure =
        cell.run(&format!("INSERT INTO t SELECT length({})", columns.replace(',', ") + length("))).err();
    assert!(failure.is_none_or(|failure| failure.code == "SQLITE_NOMEM"));
    cell.engine.roll_back().unwrap();
    for _ in 0..100 {
        cell.run("INSERT INTO t VALUES(zeroblob(1000000)); DELETE FROM t").unwrap();
    }
    assert!(cell.engine.fault().is_none());
}
