//! Another database in the place of this one.

use std::path::PathBuf;

use holdfast_types::{AlarmSeq, AlarmTime, Epoch, Millis, Position, Txid};
use rusqlite::Connection;

use super::capturing::assert_mirrored;
use super::{Cell, Mirror, cell, cell_with, integrity};
use crate::engine::{ReplaceError, RestoreFate, RestoreWish};

/// A cell with this many rows, what captures made of it, and a copy of its file.
fn with_past(mut cell: Cell, rows: u32) -> (Cell, Mirror, PathBuf) {
    let mut mirror = Mirror::new(cell.dir.path());
    cell.run("CREATE TABLE t(n INTEGER PRIMARY KEY, b)").unwrap();
    fill(&mut cell, rows);
    mirror.follow(&mut cell.engine);
    let past = cell.dir.path().join("past.db");
    std::fs::copy(cell.dir.path().join("mirror.db"), &past).unwrap();
    (cell, mirror, past)
}

fn fill(cell: &mut Cell, rows: u32) {
    let filled = format!(
        "WITH c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < {rows}) \
         INSERT INTO t SELECT (SELECT coalesce(max(n), 0) FROM t) + i, randomblob(500) FROM c"
    );
    cell.run(&filled).unwrap();
}

fn rows(cell: &Cell) -> u32 {
    cell.one("SELECT count(*) FROM t")
}

#[test]
fn a_past_comes_back_as_one_transaction() {
    // The present is larger than the past, and smaller.
    for (past_rows, later) in
        [(100, "CREATE TABLE other(x); INSERT INTO other VALUES(1)"), (300, "DELETE FROM t; VACUUM")]
    {
        let (mut cell, mut mirror, past) = with_past(cell(), past_rows);
        let sum: i64 = cell.one("SELECT sum(n) FROM t");
        cell.run(later).unwrap();
        if past_rows == 100 {
            fill(&mut cell, 500);
        }
        mirror.follow(&mut cell.engine);
        let before = cell.engine.position();
        cell.engine.replace(&past, None).unwrap();
        assert_eq!((cell.engine.ticket(), cell.engine.is_dirty()), (before.next(), true));
        assert_eq!((rows(&cell), cell.one::<i64>("SELECT sum(n) FROM t")), (past_rows, sum));
        assert_eq!(cell.one::<u32>("SELECT count(*) FROM sqlite_schema WHERE name = 'other'"), 0);
        mirror.follow(&mut cell.engine);
        assert_eq!(cell.engine.position(), before.next());
        fill(&mut cell, 3);
        assert_eq!(rows(&cell), past_rows + 3);
        assert_mirrored(cell, mirror);
    }
}

#[test]
fn a_past_that_does_not_fit_leaves_everything_as_it_was() {
    let (mut cell, mut mirror, past) =
        with_past(cell_with(|options| options.db_bytes_max = Some(60 * 4096)), 200);
    cell.run("DELETE FROM t WHERE n > 10; VACUUM").unwrap();
    mirror.follow(&mut cell.engine);
    // The bound is lower now than when the past was the present.
    let bound = |connection: &Connection| connection.query_row("PRAGMA max_page_count=20", [], |_| Ok(()));
    cell.engine.system(bound).unwrap();
    let error = cell.engine.replace(&past, None).unwrap_err();
    assert!(
        matches!(&error, ReplaceError::Sqlite(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull)),
        "{error}"
    );
    assert_eq!((rows(&cell), cell.engine.is_dirty(), cell.engine.fault()), (10, false, None));
    cell.run("INSERT INTO t VALUES(77, 'after')").unwrap();
    mirror.follow(&mut cell.engine);
    assert_mirrored(cell, mirror);
}

#[test]
fn nothing_is_replaced_in_an_open_transaction_or_by_what_is_no_database() {
    let (mut cell, _, past) = with_past(cell(), 5);
    cell.run("BEGIN; INSERT INTO t VALUES(77, 'mine')").unwrap();
    assert!(matches!(cell.engine.replace(&past, None), Err(ReplaceError::InTransaction)));
    cell.run("COMMIT").unwrap();
    std::fs::write(&past, vec![7; 8_192]).unwrap();
    assert!(matches!(cell.engine.replace(&past, None), Err(ReplaceError::Sqlite(_))));
    assert_eq!((rows(&cell), cell.engine.fault()), (6, None));
    let other = cell.dir.path().join("other.db");
    let connection = Connection::open(&other).unwrap();
    connection.execute_batch("PRAGMA page_size=8192; CREATE TABLE t(n)").unwrap();
    drop(connection);
    let refused = cell.engine.replace(&other, None);
    assert!(matches!(refused, Err(ReplaceError::PageSize { ours: 4_096, theirs: 8_192 })), "{refused:?}");
    assert_eq!(integrity(&other), "ok");
}

#[test]
fn an_alarm_of_the_past_is_installed_anew_and_no_number_is_used_twice() {
    let set = |cell: &mut Cell, epoch: u64, deadline: i64| {
        cell.engine.set_alarm_epoch(Epoch::new(epoch));
        cell.engine.object_begin().unwrap();
        cell.engine.alarm_set(AlarmTime::new(deadline)).unwrap();
        cell.engine.object_commit().unwrap();
        cell.engine.take_alarm_change().unwrap();
    };
    // Armed then, and again since.
    let mut armed = cell();
    set(&mut armed, 1, 1_000);
    let (mut armed, _, past) = with_past(armed, 1);
    set(&mut armed, 1, 2_000);
    set(&mut armed, 3, 3_000);
    armed.engine.replace(&past, None).unwrap();
    let state = armed.engine.take_alarm_change().unwrap().expect("it has changed");
    let now = state.armed.unwrap();
    assert_eq!((state.last, now.id.seq, now.id.epoch), (AlarmSeq::new(4), AlarmSeq::new(4), Epoch::new(3)));
    assert_eq!((now.deadline, now.due, now.attempts), (AlarmTime::new(1_000), AlarmTime::new(1_000), 0));
    // None then, and one since.
    let (mut none, _, past) = with_past(cell(), 1);
    set(&mut none, 2, 5_000);
    none.engine.replace(&past, None).unwrap();
    let state = none.engine.take_alarm_change().unwrap().expect("it has changed");
    assert_eq!((state.last, state.armed), (AlarmSeq::new(1), None));
    assert!(
        none.engine.capture(Millis::new(1)).unwrap().is_some_and(|captured| captured.txid > Txid::new(1))
    );
}

fn wish(cell: &mut Cell, txid: u64) -> u32 {
    let number = cell.engine.restore_wish(position(txid)).unwrap();
    cell.engine.object_commit().unwrap();
    number
}

fn position(txid: u64) -> Position {
    Position { epoch: Epoch::new(3), txid: Txid::new(txid) }
}

#[test]
fn a_wish_ends_with_its_restore_which_is_remembered_across_others() {
    let mut cell = cell();
    assert_eq!(cell.engine.restore_wished(), Ok(None));
    assert!(!cell.engine.may_have_restore_wish());
    assert_eq!(wish(&mut cell, 7), 1);
    let (mut cell, _, past) = with_past(cell, 3);
    let again = cell.dir.path().join("again.db");
    std::fs::copy(&past, &again).unwrap();
    // The past has the first wish, the present another in its place.
    assert_eq!(wish(&mut cell, 8), 2);
    assert_eq!(cell.engine.restore_wished(), Ok(Some(RestoreWish { number: 2, target: position(8) })));
    let fates = |cell: &mut Cell| [1, 2, 3].map(|number| cell.engine.restore_fate(number).unwrap());
    use RestoreFate::{Pending, Replaced, Unknown};
    assert_eq!(fates(&mut cell), [Unknown, Pending, Unknown]);
    cell.engine.replace(&past, Some((2, position(20)))).unwrap();
    assert_eq!(fates(&mut cell), [Unknown, Replaced(position(20)), Unknown]);
    assert_eq!(cell.engine.restore_wished(), Ok(None));
    // Another that nobody wished for ends a wish as well.
    assert_eq!(wish(&mut cell, 9), 3);
    cell.engine.replace(&again, None).unwrap();
    assert_eq!(fates(&mut cell), [Unknown, Replaced(position(20)), Unknown]);
    assert_eq!((cell.engine.restore_wished(), wish(&mut cell, 1)), (Ok(None), 4));
}

#[test]
fn a_wish_that_is_given_up_or_rolled_back_is_none() {
    let mut cell = cell();
    cell.engine.restore_wish(position(7)).unwrap();
    cell.engine.object_roll_back();
    assert!(cell.engine.may_have_restore_wish(), "nobody has looked");
    assert_eq!((cell.engine.restore_wished(), cell.engine.may_have_restore_wish()), (Ok(None), false));
    assert_eq!(wish(&mut cell, 7), 1);
    cell.engine.restore_give_up().unwrap();
    assert_eq!(
        (cell.engine.restore_wished(), cell.engine.restore_fate(1)),
        (Ok(None), Ok(RestoreFate::Unknown))
    );
    for number in 2..=70 {
        assert_eq!(wish(&mut cell, 7), number);
    }
    assert_eq!(cell.one::<u32>("SELECT count(*) FROM _hf_restore"), 64);
    cell.engine.object_delete_all().unwrap();
    cell.engine.object_commit().unwrap();
    assert!(cell.engine.restore_wished().unwrap().is_some(), "`deleteAll` is of the state that goes");
}

#[test]
fn a_database_that_was_never_written_has_a_state_once_it_is_asked_for() {
    let mut cell = cell();
    cell.engine.restore_ensure_state().unwrap();
    cell.engine.object_commit().unwrap();
    assert_eq!((cell.engine.cut(), cell.engine.is_dirty()), (Txid::new(1), true));
    cell.engine.restore_ensure_state().unwrap();
    cell.engine.object_commit().unwrap();
    assert_eq!(cell.engine.ticket(), Txid::new(1));
}
