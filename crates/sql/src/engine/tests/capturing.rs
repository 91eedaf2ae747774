//! What is captured, applied elsewhere, is the same database.

use holdfast_types::{Millis, Txid};
use proptest::prelude::{Just, Strategy, prop_oneof};
use proptest::test_runner::{Config, TestRunner};

use super::{Cell, Mirror, assert_same_database, cell, cell_with, integrity, run};
use crate::engine::{CapturedBody, CloseError, Engine, OpenError};
use crate::options::EngineOptions;

/// Closes the cell and compares its file with the mirror's.
pub(super) fn assert_mirrored(mut cell: Cell, mut mirror: Mirror) {
    mirror.follow(&mut cell.engine);
    let position = cell.engine.position();
    let path = cell.engine.path().to_owned();
    let closed = cell.engine.close().unwrap();
    let (mirrored, mirror_position) = mirror.finish();
    assert_eq!((closed.txid, mirror_position), (position, position));
    assert_eq!(closed.len, std::fs::metadata(&mirrored).unwrap().len());
    assert!(!path.with_extension("db-wal").exists() && !path.with_extension("db-shm").exists());
    assert_same_database(&path, &mirrored);
    assert_eq!(integrity(&mirrored), "ok");
}

#[test]
fn several_commits_become_one_transaction() {
    let mut cell = cell();
    assert_eq!((cell.engine.ticket(), cell.engine.is_dirty()), (Txid::ZERO, false));
    assert!(cell.engine.capture(Millis::new(1)).unwrap().is_none());
    cell.run("CREATE TABLE t(a); INSERT INTO t VALUES(1); INSERT INTO t VALUES(2)").unwrap();
    assert_eq!((cell.engine.position(), cell.engine.ticket()), (Txid::ZERO, Txid::new(1)));
    assert!(cell.engine.uncaptured_bytes() > 0 && cell.engine.wal_bytes() > cell.engine.uncaptured_bytes());
    let captured = cell.engine.capture(Millis::new(1)).unwrap().unwrap();
    assert_eq!((captured.txid, captured.pages, captured.commit_pages), (Txid::new(1), 2, 2));
    assert_eq!((cell.engine.ticket(), cell.engine.is_dirty()), (Txid::new(1), false));
    assert_eq!(cell.engine.uncaptured_bytes(), 0);
    assert!(cell.engine.capture(Millis::new(1)).unwrap().is_none());
    let mut mirror = Mirror::new(cell.dir.path());
    mirror.apply(&captured);
    assert_mirrored(cell, mirror);
}

#[test]
fn a_transaction_without_changes_is_not_a_position() {
    let mut cell = cell();
    cell.run("CREATE TABLE t(a)").unwrap();
    cell.engine.capture(Millis::new(1)).unwrap().unwrap();
    cell.run("BEGIN IMMEDIATE; COMMIT; BEGIN; SELECT * FROM t; COMMIT; SELECT 1").unwrap();
    assert_eq!((cell.engine.ticket(), cell.engine.is_dirty()), (Txid::new(1), false));
    assert!(cell.engine.capture(Millis::new(1)).unwrap().is_none());
}

#[test]
fn a_commit_by_an_early_reset_is_noticed() {
    let mut cell = cell();
    cell.run("CREATE TABLE t(a)").unwrap();
    cell.engine.capture(Millis::new(1)).unwrap().unwrap();
    // query_row resets after the first row, so that SQLite does not count the frames with this statement.
    let row: i64 = cell
        .engine
        .connection()
        .query_row("INSERT INTO t VALUES(1),(2) RETURNING a", [], |row| row.get(0))
        .unwrap();
    assert_eq!(row, 1);
    assert!(cell.engine.is_dirty());
    assert_eq!(cell.engine.ticket(), Txid::new(2));
    assert_eq!(cell.engine.capture(Millis::new(1)).unwrap().unwrap().txid, Txid::new(2));
    assert!(!cell.engine.is_dirty());
}

#[test]
fn only_committed_frames_are_captured_while_a_transaction_is_open() {
    let mut cell = cell_with(|options| options.page_cache_kib = 16);
    let mut mirror = Mirror::new(cell.dir.path());
    cell.run("CREATE TABLE t(a, b)").unwrap();
    cell.run("BEGIN").unwrap();
    for n in 0..40 {
        cell.run(&format!("INSERT INTO t VALUES({n}, randomblob(6000))")).unwrap();
    }
    // The cache holds four pages: the transaction has spilled into the WAL behind the committed frames.
    let wal = std::fs::metadata(cell.dir.path().join("cell.db-wal")).unwrap().len();
    assert!(wal > cell.engine.wal_bytes() + 100_000, "no spill: {wal}");
    let captured = cell.engine.capture(Millis::new(1)).unwrap().unwrap();
    assert_eq!((captured.txid, captured.commit_pages), (Txid::new(1), 2));
    mirror.apply(&captured);
    assert!(!cell.engine.is_dirty() && cell.engine.in_transaction());
    assert!(!cell.engine.checkpoint().unwrap());
    cell.run("ROLLBACK; INSERT INTO t VALUES('after', NULL)").unwrap();
    mirror.follow(&mut cell.engine);
    assert_eq!(cell.one::<i64>("SELECT count(*) FROM t"), 1);
    assert_mirrored(cell, mirror);
}

#[test]
fn vacuum_and_shrinking_are_captured() {
    let mut cell = cell();
    let mut mirror = Mirror::new(cell.dir.path());
    cell.run("CREATE TABLE t(a, b); CREATE TABLE u(x)").unwrap();
    for n in 0..200 {
        cell.run(&format!("INSERT INTO t VALUES({n}, randomblob(3000))")).unwrap();
        mirror.follow(&mut cell.engine);
    }
    let before = cell.engine.size_bytes();
    cell.run("DELETE FROM t WHERE a >= 10").unwrap();
    mirror.follow(&mut cell.engine);
    cell.run("VACUUM").unwrap();
    mirror.follow(&mut cell.engine);
    assert!(cell.engine.size_bytes() * 4 < before);
    cell.run("PRAGMA auto_vacuum=INCREMENTAL; VACUUM").unwrap();
    cell.run("INSERT INTO u SELECT randomblob(9000) FROM t; DROP TABLE u; PRAGMA incremental_vacuum(5)")
        .unwrap();
    assert_mirrored(cell, mirror);
}

#[test]
fn vacuum_copies_system_tables_too() {
    let mut cell = cell();
    cell.engine
        .system(|connection| {
            connection.execute_batch("CREATE TABLE _hf_meta(k, v); INSERT INTO _hf_meta VALUES(1, 2)")
        })
        .unwrap();
    cell.run("CREATE TABLE t(a); VACUUM").unwrap();
    assert_eq!(cell.one::<i64>("SELECT v FROM _hf_meta"), 2);
}

#[test]
fn pages_that_were_never_written_are_in_the_first_transaction_all_the_same() {
    let mut cell = cell();
    let mut mirror = Mirror::new(cell.dir.path());
    // Dropped in the same transaction: its pages become free ones, which SQLite does not write.
    cell.run(
        "BEGIN; CREATE TABLE t(a); CREATE TABLE u(b); INSERT INTO t SELECT randomblob(3000) FROM generate_series_20;
         COMMIT",
    )
    .unwrap_err();
    cell.run("ROLLBACK").unwrap();
    cell.run(
        "BEGIN; CREATE TABLE t(a); CREATE TABLE u(b);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
         INSERT INTO t SELECT randomblob(3000) FROM n; DROP TABLE t; COMMIT",
    )
    .unwrap();
    mirror.follow(&mut cell.engine);
    assert!(cell.engine.size_bytes() > 300 * 4096);
    assert_mirrored(cell, mirror);
}

#[test]
fn every_page_size_works_from_the_first_write() {
    for bytes in [512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536] {
        let mut cell = cell();
        let mut mirror = Mirror::new(cell.dir.path());
        cell.run(&format!("PRAGMA page_size={bytes}; CREATE TABLE t(a, b)")).unwrap();
        assert_eq!((cell.engine.page_size(), cell.one::<i64>("PRAGMA page_size")), (bytes, i64::from(bytes)));
        for n in 0..100 {
            cell.run(&format!("INSERT INTO t VALUES({n}, hex(randomblob(100)))")).unwrap();
            mirror.follow(&mut cell.engine);
        }
        let refused = cell.run("PRAGMA page_size=4096").unwrap_err();
        assert_eq!(refused.code, "SQLITE_AUTH");
        assert!(refused.message.contains("before the first write"), "{}", refused.message);
        assert_mirrored(cell, mirror);
    }
}

#[test]
fn a_large_capture_goes_to_a_file_and_leaves_none() {
    let mut cell = cell_with(|options| options.memory_capture_max = 10_000);
    let mut mirror = Mirror::new(cell.dir.path());
    cell.run("CREATE TABLE t(a); INSERT INTO t VALUES(randomblob(100000))").unwrap();
    let captured = cell.engine.capture(Millis::new(1)).unwrap().unwrap();
    let CapturedBody::File(path) = &captured.body else { panic!("in memory") };
    let spooled = path.to_path_buf();
    assert_eq!(std::fs::metadata(&spooled).unwrap().len(), captured.len);
    mirror.apply(&captured);
    drop(captured);
    assert!(!spooled.exists());
    assert_mirrored(cell, mirror);
}

#[test]
fn the_wal_stays_bounded_under_sustained_writes() {
    let mut cell = cell_with(|options| options.checkpoint_bytes = 200_000);
    let mut mirror = Mirror::new(cell.dir.path());
    cell.run("CREATE TABLE t(a INTEGER PRIMARY KEY, b)").unwrap();
    let (mut longest, mut checkpoints) = (0, 0);
    for n in 0..2_000 {
        cell.run(&format!("INSERT OR REPLACE INTO t VALUES({}, randomblob(500))", n % 300)).unwrap();
        assert!(!cell.engine.checkpoint_due(), "due while dirty");
        mirror.follow(&mut cell.engine);
        longest = longest.max(std::fs::metadata(cell.dir.path().join("cell.db-wal")).unwrap().len());
        if cell.engine.checkpoint_due() {
            assert!(cell.engine.checkpoint().unwrap());
            assert_eq!(cell.engine.wal_bytes(), 0);
            checkpoints += 1;
        }
    }
    assert!(longest < 300_000 && checkpoints > 20, "longest {longest}, checkpoints {checkpoints}");
    assert_mirrored(cell, mirror);
}

#[test]
fn a_closed_database_opens_again_at_its_position() {
    let mut cell = cell();
    cell.run("CREATE TABLE t(a); INSERT INTO t VALUES(7)").unwrap();
    let path = cell.engine.path().to_owned();
    let options = EngineOptions::new(cell.dir.path());
    cell.engine.capture(Millis::new(1)).unwrap();
    let closed = cell.engine.close().unwrap();
    assert!(matches!(Engine::open(&path, Txid::ZERO, &options), Err(OpenError::NotEmpty { .. })));
    let mut engine = Engine::open(&path, closed.txid, &options).unwrap();
    assert_eq!((engine.position(), engine.ticket()), (Txid::new(1), Txid::new(1)));
    assert_eq!(engine.size_bytes(), closed.len);
    run(&mut engine, "INSERT INTO t VALUES(8)").unwrap();
    assert_eq!(engine.capture(Millis::new(1)).unwrap().unwrap().txid, Txid::new(2));
    engine.close().unwrap();
    assert_eq!(integrity(&path), "ok");
}

#[test]
fn an_unclean_end_is_refused() {
    let mut cell = cell();
    let options = EngineOptions::new(cell.dir.path());
    let path = cell.engine.path().to_owned();
    assert!(matches!(
        Engine::open(&cell.dir.path().join("other.db"), Txid::new(3), &options),
        Err(OpenError::Missing { .. })
    ));
    cell.run("CREATE TABLE t(a)").unwrap();
    assert!(matches!(cell.engine.close(), Err(CloseError::Dirty)));
    assert!(matches!(Engine::open(&path, Txid::new(1), &options), Err(OpenError::Leftover(_))));
}

#[test]
fn a_database_that_was_never_written_leaves_no_file() {
    let cell = cell();
    let path = cell.engine.path().to_owned();
    let closed = cell.engine.close().unwrap();
    assert_eq!((closed.txid, closed.len, path.exists()), (Txid::ZERO, 0, false));
    let engine = Engine::open(&path, Txid::ZERO, &EngineOptions::new(cell.dir.path())).unwrap();
    engine.discard().unwrap();
    assert_eq!(std::fs::read_dir(cell.dir.path()).unwrap().count(), 0);
}

#[test]
fn a_full_spool_leaves_the_commit_for_the_next_try() {
    let mut cell = cell_with(|options| options.memory_capture_max = 100);
    cell.run("CREATE TABLE t(a)").unwrap();
    let missing = cell.dir.path().join("missing");
    let spool = std::mem::replace(&mut cell.engine.options.spool_dir, missing);
    cell.engine.capture(Millis::new(1)).unwrap_err();
    assert_eq!((cell.engine.position(), cell.engine.is_dirty()), (Txid::ZERO, true));
    cell.engine.options.spool_dir = spool;
    assert_eq!(cell.engine.capture(Millis::new(1)).unwrap().unwrap().txid, Txid::new(1));
}

/// One step of a random workload.
#[derive(Clone, Debug)]
enum Step {
    Sql(String),
    Capture,
    Checkpoint,
}

fn step() -> impl Strategy<Value = Step> {
    let sql = |text: &str| Just(Step::Sql(text.to_owned()));
    prop_oneof![
        6 => (0..200_u32, 1..9_000_u32).prop_map(|(key, len)| Step::Sql(format!(
            "INSERT OR REPLACE INTO t VALUES({key}, randomblob({len}))"
        ))),
        2 => (0..200_u32).prop_map(|key| Step::Sql(format!("DELETE FROM t WHERE a BETWEEN {key} AND {}", key + 40))),
        1 => sql("UPDATE t SET b = zeroblob(length(b))"),
        1 => sql("BEGIN"),
        1 => sql("COMMIT"),
        1 => sql("ROLLBACK"),
        1 => sql("SAVEPOINT s"),
        1 => sql("ROLLBACK TO s"),
        1 => sql("RELEASE s"),
        1 => sql("VACUUM"),
        1 => sql("CREATE INDEX IF NOT EXISTS i ON t(b)"),
        1 => sql("DROP INDEX IF EXISTS i"),
        1 => sql("CREATE TABLE u AS SELECT * FROM t"),
        1 => sql("DROP TABLE IF EXISTS u"),
        4 => Just(Step::Capture),
        2 => Just(Step::Checkpoint),
    ]
}

#[test]
fn a_random_workload_is_mirrored() {
    let mut runner = TestRunner::new(Config { cases: 40, failure_persistence: None, ..Config::default() });
    runner
        .run(&(proptest::collection::vec(step(), 1..120), 16..64_u32), |(steps, cache)| {
            let mut cell = cell_with(|options| {
                options.page_cache_kib = cache;
                options.memory_capture_max = 40_000;
            });
            let mut mirror = Mirror::new(cell.dir.path());
            cell.run("CREATE TABLE t(a INTEGER PRIMARY KEY, b)").unwrap();
            for step in steps {
                match step {
                    // Many fail, as COMMIT without BEGIN does: they must leave no trace.
                    Step::Sql(sql) => drop(cell.run(&sql)),
                    Step::Capture => mirror.follow(&mut cell.engine),
                    Step::Checkpoint => drop(cell.engine.checkpoint().unwrap()),
                }
            }
            cell.engine.roll_back().unwrap();
            assert_mirrored(cell, mirror);
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_cut_divides_what_is_committed_into_two_transactions() {
    let mut cell = cell();
    let mut mirror = Mirror::new(cell.dir.path());
    cell.run("CREATE TABLE t(n)").unwrap();
    mirror.follow(&mut cell.engine);
    // Nothing is uncaptured: it ends here anyway.
    assert_eq!((cell.engine.cut(), cell.engine.ticket()), (Txid::new(1), Txid::new(1)));
    cell.run("INSERT INTO t VALUES(1)").unwrap();
    assert_eq!((cell.engine.cut(), cell.engine.cut()), (Txid::new(2), Txid::new(2)));
    cell.run("INSERT INTO t VALUES(2)").unwrap();
    assert_eq!((cell.engine.ticket(), cell.engine.cut()), (Txid::new(3), Txid::new(3)));
    cell.run("INSERT INTO t VALUES(3)").unwrap();
    assert_eq!(cell.engine.ticket(), Txid::new(4));
    assert!(!cell.engine.checkpoint().unwrap(), "what is cut holds the log where it is");
    let mut newest = Vec::new();
    while let Some(captured) = cell.engine.capture(Millis::new(1)).unwrap() {
        mirror.apply(&captured);
        let copy = cell.dir.path().join(format!("at-{}", captured.txid));
        std::fs::copy(cell.dir.path().join("mirror.db"), &copy).unwrap();
        let connection = rusqlite::Connection::open(&copy).unwrap();
        newest.push(connection.query_row("SELECT max(n) FROM t", [], |row| row.get::<_, u32>(0)).unwrap());
    }
    assert_eq!((newest, cell.engine.ticket()), ([1, 2, 3].to_vec(), Txid::new(4)));
    assert_mirrored(cell, mirror);
}

#[test]
fn a_cut_within_a_transaction_is_of_what_is_committed() {
    let mut cell = cell();
    cell.run("CREATE TABLE t(n)").unwrap();
    cell.run("BEGIN; INSERT INTO t VALUES(1)").unwrap();
    assert_eq!((cell.engine.cut(), cell.engine.ticket()), (Txid::new(1), Txid::new(1)));
    cell.run("COMMIT").unwrap();
    assert_eq!(cell.engine.ticket(), Txid::new(2));
}
