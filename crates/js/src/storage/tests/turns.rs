//! What a turn leaves: one transaction, committed or not at all.

use std::cell::RefCell;
use std::rc::Rc;

use holdfast_sql::{Engine, EngineOptions};
use holdfast_types::{Millis, Txid};

use super::Cell;
use crate::effect::BrokenCause;

const VIOLATED: &str = "Durable Object was reset and rolled back to its last known good state because the application left the database in a state where constraints were violated: FOREIGN KEY constraint failed: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_FOREIGNKEY)";

#[test]
fn a_turn_that_only_reads_leaves_nothing_to_capture() {
    let cell = Cell::new();
    cell.run("await s.get('a'); await s.list(); sql.exec('SELECT 1'); return sql.databaseSize");
    assert!(!cell.engine.borrow().is_dirty());
    assert_eq!(cell.engine.borrow().ticket(), Txid::ZERO);
}

#[test]
fn all_writes_of_a_turn_are_one_captured_transaction() {
    let cell = Cell::new();
    cell.run("await s.put('a', 1); sql.exec('CREATE TABLE t(a)'); await s.put('b', 2); sql.exec('SELECT 1; INSERT INTO t VALUES (1);')");
    let mut engine = cell.engine.borrow_mut();
    assert!(engine.is_dirty());
    assert_eq!(engine.ticket(), Txid::ZERO.next());
    let captured = engine.capture(Millis::new(1)).unwrap().unwrap();
    assert_eq!(captured.txid, Txid::ZERO.next());
    assert!(!engine.is_dirty());
}

#[test]
fn writes_before_a_throw_are_committed_and_seen_after_a_reopen() {
    let cell = Cell::new();
    let mut world = cell.object("sql.exec('CREATE TABLE t(a)'); sql.exec('INSERT INTO t VALUES (7)'); await s.put('k', 'v'); throw new Error('done')");
    let event = world.get("https://object/");
    assert_eq!(world.failed(event), "Error: done");
    assert!(cell.engine.borrow().is_dirty());
    drop(world);
    let Cell { engine, folder } = cell;
    let mut engine = Rc::into_inner(engine).expect("the isolate is gone").into_inner();
    let position = engine.capture(Millis::new(1)).unwrap().unwrap().txid;
    assert!(engine.checkpoint().unwrap());
    engine.close().unwrap();
    let path = folder.path().join("db");
    let engine = Engine::open(&path, position, &EngineOptions::new(folder.path())).unwrap();
    let cell = Cell { engine: Rc::new(RefCell::new(engine)), folder };
    assert_eq!(cell.run("return [sql.exec('SELECT a FROM t').one().a, await s.get('k')]"), r#"[7,"v"]"#);
}

#[test]
fn a_commit_that_fails_breaks_the_turn_and_the_next_isolate_works() {
    let cell = Cell::new();
    cell.run("sql.exec('CREATE TABLE p(id PRIMARY KEY)'); sql.exec('CREATE TABLE c(pid REFERENCES p(id) DEFERRABLE INITIALLY DEFERRED)')");
    let mut world =
        cell.object("sql.exec(\"INSERT INTO c VALUES ('missing')\"); await s.put('a', 1); return 'success'");
    let event = world.get("https://object/");
    assert_eq!(world.broken, Some(BrokenCause::StorageFailed(VIOLATED.to_owned())));
    assert!(world.response(event).is_none(), "{:?}", world.effects);
    assert!(!cell.engine.borrow().in_transaction());
    assert_eq!(
        cell.run("sql.exec('INSERT INTO p VALUES (1)'); sql.exec('INSERT INTO c VALUES (1)'); return [await s.get('a'), sql.exec('SELECT count(*) AS n FROM c').one().n]"),
        r#"["undefined",1]"#
    );
}

#[test]
fn foreign_keys_can_be_deferred_within_a_turn() {
    let cell = Cell::new();
    cell.run("sql.exec('CREATE TABLE p(id PRIMARY KEY); CREATE TABLE c(pid REFERENCES p(id))')");
    assert_eq!(
        cell.run("const told = await error(() => sql.exec('INSERT INTO c VALUES (1)'));
            sql.exec('PRAGMA defer_foreign_keys=ON'); sql.exec('INSERT INTO c VALUES (1)'); sql.exec('INSERT INTO p VALUES (1)');
            return told"),
        r#""Error: FOREIGN KEY constraint failed: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_FOREIGNKEY)""#
    );
    // It ends with the turn.
    assert!(
        cell.run("return await error(() => sql.exec('INSERT INTO c VALUES (2)'))").contains("FOREIGNKEY")
    );
    let mut world =
        cell.object("sql.exec('PRAGMA defer_foreign_keys=ON'); sql.exec('INSERT INTO c VALUES (3)')");
    world.get("https://object/");
    assert_eq!(world.broken, Some(BrokenCause::StorageFailed(VIOLATED.to_owned())));
    assert_eq!(cell.one("SELECT count(*) FROM c"), 1);
}

#[test]
fn a_turn_that_lost_more_than_a_statement_breaks() {
    let cell = Cell::new();
    cell.run("sql.exec('CREATE TABLE t(a UNIQUE); INSERT INTO t VALUES (1)')");
    let mut world = cell.object("await s.put('a', 1); await error(() => sql.exec('INSERT OR ROLLBACK INTO t VALUES (1)')); await s.put('b', 2); return 'success'");
    let event = world.get("https://object/");
    assert!(
        matches!(&world.broken, Some(BrokenCause::StorageFailed(reason)) if reason.contains("rolled back the writes of the turn")),
        "{:?}",
        world.broken
    );
    assert!(world.response(event).is_none());
    assert_eq!(cell.run("return (await s.list()).size"), "0");
}

#[test]
fn an_isolate_that_breaks_or_goes_leaves_no_open_transaction() {
    let cell = Cell::new();
    let mut world = cell.object("await s.put('a', 1); this.ctx.abort('enough')");
    world.get("https://object/");
    assert!(world.broken.is_some());
    assert!(!cell.engine.borrow().in_transaction());
    let mut world = cell
        .object("await s.transaction(async txn => { await txn.put('a', 1); await scheduler.wait(1000); })");
    world.get("https://object/");
    assert!(cell.engine.borrow().in_transaction());
    drop(world);
    assert!(!cell.engine.borrow().in_transaction());
    assert_eq!(cell.run("return (await s.list()).size"), "0");
}

#[test]
fn no_other_event_enters_while_a_transaction_is_open() {
    let cell = Cell::new();
    let mut world = cell.object(
        "if (request.url.endsWith('b')) return [await s.get('k'), await s.get('after')];
        await s.transaction(async txn => { await txn.put('k', 1); await scheduler.wait(10); await txn.put('k', 2); });
        await s.put('after', 3);
        return 'a'",
    );
    let first = world.get("https://object/a");
    let second = world.get("https://object/b");
    assert!(world.response(second).is_none());
    world.wait();
    assert_eq!(world.text(first), "\"a\"");
    assert_eq!(world.text(second), "[2,3]");
}

#[test]
fn a_transaction_that_waits_for_too_long_breaks_the_object() {
    let cell = Cell::new();
    let mut world = cell
        .object("await s.transaction(async txn => { await txn.put('a', 1); await new Promise(() => {}); })");
    world.get("https://object/");
    world.wait();
    assert!(
        matches!(&world.broken, Some(BrokenCause::StorageFailed(reason)) if reason.contains("waited for too long")),
        "{:?}",
        world.broken
    );
    assert!(!cell.engine.borrow().in_transaction());
}

#[test]
fn a_full_database_fails_the_statement_and_leaves_the_cell_usable() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = EngineOptions::new(folder.path());
    options.db_bytes_max = Some(200_000);
    let engine = Engine::open(&folder.path().join("db"), Txid::ZERO, &options).unwrap();
    let cell = Cell { engine: Rc::new(RefCell::new(engine)), folder };
    cell.run("sql.exec('CREATE TABLE t(a)')");
    let mut world =
        cell.object("return await error(() => sql.exec('INSERT INTO t VALUES (zeroblob(300000))'))");
    let event = world.get("https://object/");
    if world.broken.is_none() {
        assert!(world.text(event).contains("SQLITE_FULL"), "{}", world.text(event));
    }
    assert_eq!(
        cell.run(
            "sql.exec('INSERT INTO t VALUES (1)'); return sql.exec('SELECT count(*) AS n FROM t').one().n"
        ),
        "1"
    );
}

#[test]
fn an_object_without_keys_reads_as_empty() {
    let cell = Cell::new();
    assert_eq!(
        cell.run(
            "return [await s.get('a'), (await s.list()).size, await s.delete('a'), s.kv.list().next().done]"
        ),
        r#"["undefined",0,false,true]"#
    );
}
