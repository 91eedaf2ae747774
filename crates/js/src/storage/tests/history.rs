//! `sync`, bookmarks, and the wish for a restore: what is asked of the outside, and what the turn commits with it.

use holdfast_sql::{RestoreFate, RestoreWish};
use holdfast_types::{Epoch, Millis, Position, Txid};

use super::{Cell, run};
use crate::effect::{HistoryAsk, JsError, Op, OpAnswer, OpId};
use crate::testing::world::World;

/// The question that was asked last.
fn asked(world: &World) -> (OpId, HistoryAsk) {
    match world.ops().pop() {
        Some((op, Op::AskHistory(ask))) => (op, ask),
        other => panic!("{other:?}"),
    }
}

fn answer(world: &mut World, expected: &HistoryAsk, text: &'static str) {
    let (op, ask) = asked(world);
    assert_eq!(&ask, expected);
    world.complete(op, OpAnswer::Returned(text.into()));
}

#[test]
fn a_bookmark_is_of_the_turn_that_asks_for_it() {
    let cell = Cell::new();
    let mut world =
        cell.object("s.put('a', 1); const b = await s.getCurrentBookmark(); s.put('a', 2); return b");
    let event = world.get("https://object/");
    assert_eq!(asked(&world).1, HistoryAsk::Bookmark { restore: 0 });
    // The turn is over, and what it wrote is committed.
    assert_eq!(cell.engine.borrow_mut().cut(), Txid::new(1));
    answer(&mut world, &HistoryAsk::Bookmark { restore: 0 }, "here");
    assert_eq!(world.text(event), r#""here""#);
    assert_eq!(cell.engine.borrow().ticket(), Txid::new(2));
}

#[test]
fn an_object_that_never_wrote_has_a_state_to_name() {
    let cell = Cell::new();
    let mut world = cell.object("return s.getCurrentBookmark()");
    world.get("https://object/");
    assert_eq!(cell.engine.borrow().ticket(), Txid::new(1));
}

#[test]
fn a_time_is_a_number_or_a_date() {
    for (time, ms) in [("1500.9", 1_500), ("new Date(1500)", 1_500), ("-5", 0)] {
        let mut world = Cell::new().object(&format!("return s.getBookmarkForTime({time})"));
        let event = world.get("https://object/");
        answer(&mut world, &HistoryAsk::At(Millis::new(ms)), "then");
        assert_eq!(world.text(event), r#""then""#);
    }
    assert_eq!(
        run(
            "return [await error(() => s.getBookmarkForTime()), await error(() => s.getBookmarkForTime('now')), await error(() => s.getBookmarkForTime(NaN))]"
        ),
        r#"["TypeError: Failed to execute 'getBookmarkForTime' on 'DurableObjectStorage': parameter 1 is not of type 'date'.","TypeError: Failed to execute 'getBookmarkForTime' on 'DurableObjectStorage': parameter 1 is not of type 'date'.","TypeError: The value cannot be converted because it is not a valid Date."]"#
    );
}

#[test]
fn a_wish_is_committed_with_the_bookmark_that_undoes_it() {
    let cell = Cell::new();
    let mut world = cell.object("return s.onNextSessionRestoreBookmark('there')");
    let event = world.get("https://object/");
    assert!(!cell.engine.borrow().is_dirty(), "nothing is wished for before it is known to be there");
    answer(&mut world, &HistoryAsk::Find("there".to_owned()), "000000000000000300000000000000ff");
    let target = Position { epoch: Epoch::new(3), txid: Txid::new(255) };
    assert_eq!(cell.engine.borrow_mut().restore_wished(), Ok(Some(RestoreWish { number: 1, target })));
    answer(&mut world, &HistoryAsk::Bookmark { restore: 1 }, "back");
    assert_eq!(world.text(event), r#""back""#);
    // What becomes of it is the embedder's.
    assert_eq!(cell.engine.borrow_mut().restore_fate(1), Ok(RestoreFate::Pending));
}

#[test]
fn a_bookmark_that_leads_nowhere_is_an_error_and_no_wish() {
    let cell = Cell::new();
    let mut world = cell.object("return error(() => s.onNextSessionRestoreBookmark('nowhere'))");
    let event = world.get("https://object/");
    let (op, _) = asked(&world);
    world.complete(op, OpAnswer::Failed(JsError::new("this is not a bookmark")));
    assert_eq!(world.text(event), r#""Error: this is not a bookmark""#);
    assert_eq!(cell.engine.borrow_mut().restore_wished(), Ok(None));
    assert_eq!(
        run("return error(() => s.onNextSessionRestoreBookmark())"),
        r#""TypeError: Failed to execute 'onNextSessionRestoreBookmark' on 'DurableObjectStorage': parameter 1 is not of type 'string'.""#
    );
}

#[test]
fn a_transaction_has_no_state_of_its_own() {
    assert_eq!(
        run(
            "return s.transaction(async () => [await error(() => s.getCurrentBookmark()), await error(() => s.onNextSessionRestoreBookmark('x'))])"
        ),
        r#"["Error: Cannot call getCurrentBookmark() within a transaction","Error: Cannot call onNextSessionRestoreBookmark() within a transaction"]"#
    );
}

#[test]
fn sync_resolves_once_it_is_answered() {
    let mut world = Cell::new().object("s.put('a', 1); await s.sync(); return s.get('a')");
    let event = world.get("https://object/");
    assert!(world.response(event).is_none());
    answer(&mut world, &HistoryAsk::Sync, "");
    assert_eq!(world.text(event), "1");
}
