//! Passes over the index, hints and the clean-up, one decision at a time.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::support::*;
use crate::waker::{
    BACKLOG_ENTRIES_MAX, HintOutcome, PAGE_LEN, PAGE_LEN_FIRST, Retirement, WakerEffect, WakerEvent,
};

#[test]
fn a_pass_ends_at_the_first_entry_that_is_not_due() {
    let mut waker = waker(64);
    let effects = waker.on(WakerEvent::Tick, now(0));
    assert_eq!(effects, vec![WakerEffect::List { after: None, limit: PAGE_LEN_FIRST }]);
    assert!(waker.on(WakerEvent::Tick, now(0)).is_empty(), "one pass at a time");
    // Two pages are due, and one entry of a later minute ends it although the index goes on.
    let page = |from: usize, len: usize| (from..from + len).map(|n| entry(n, id(1, 1))).collect::<Vec<_>>();
    let listed = WakerEvent::Listed { entries: page(0, 4), next: Some("k4".into()) };
    let effects = waker.on(listed, now(0));
    assert_eq!(effects[0], WakerEffect::List { after: Some("k4".into()), limit: PAGE_LEN });
    let entries = vec![entry(4, id(1, 1)), entry_at(1, 5, id(1, 1))];
    let effects = waker.on(WakerEvent::Listed { entries, next: Some("k6".into()) }, now(0));
    assert!(!effects.iter().any(|effect| matches!(effect, WakerEffect::List { .. })), "{effects:?}");
    assert_eq!(waker.backlog(now(0)).cells, 5);
    // The next minute.
    assert_eq!(waker.on(WakerEvent::Tick, now(60_000))[0], WakerEffect::List { after: None, limit: 64 });
}

#[test]
fn an_index_with_nothing_due_costs_one_listing_a_tick() {
    let mut waker = waker(64);
    for tick in 0..5 {
        let entries = (0..64).map(|n| entry_at(1, n, id(1, 1))).collect();
        assert_eq!(waker.on(WakerEvent::Tick, now(tick * 5_000)).len(), 1);
        let listed = WakerEvent::Listed { entries, next: Some("far".into()) };
        assert!(waker.on(listed, now(tick * 5_000)).is_empty());
    }
    assert_eq!(waker.backlog(now(0)).entries, 0);
}

#[test]
fn a_page_that_cannot_be_read_is_read_at_the_next_tick() {
    let mut waker = waker(64);
    waker.on(WakerEvent::Tick, now(0));
    let listed = WakerEvent::Listed { entries: vec![entry(1, id(1, 1))], next: Some("k".into()) };
    waker.on(listed, now(0));
    assert!(waker.on(WakerEvent::ListFailed, now(0)).is_empty());
    let effects = waker.on(WakerEvent::Tick, now(5_000));
    assert_eq!(effects, vec![WakerEffect::List { after: Some("k".into()), limit: PAGE_LEN }]);
}

#[test]
fn what_is_retired_is_deleted_and_nobody_is_woken() {
    let mut waker = waker(64);
    let entries = [entry(1, id(1, 1)), entry(1, id(1, 2)), entry_at(0, 1, id(2, 1))];
    let effects = pass(&mut waker, &entries, 0);
    assert_eq!(reads(&effects), [cell(1)]);
    // The second is armed: it stays, although it is below the mark.
    let retirement = Retirement { mark: Some(id(2, 1)), armed: Some(id(1, 2)), ..Retirement::default() };
    let read = WakerEvent::RetirementRead { cell: cell(1), retirement: Some(retirement) };
    let minute = entries[0].minute;
    let deletes = vec![(minute, id(1, 1)), (minute, id(2, 1))];
    assert_eq!(waker.on(read, now(0)), vec![WakerEffect::Delete { cell: cell(1), entries: deletes }]);
    let effects = waker.on(WakerEvent::Deleted { cell: cell(1), all: true }, now(0));
    assert_eq!(effects, vec![WakerEffect::Hint { cell: cell(1), minute, id: id(1, 2) }]);
    hinted(&mut waker, cell(1), looked(1, None), 0);
    // When all is retired, nobody is asked.
    let effects = waker.on(WakerEvent::TimeReached, now(2_000));
    assert_eq!(reads(&effects), [cell(1)]);
    let retirement = Retirement { mark: Some(id(2, 1)), ..Retirement::default() };
    let read = WakerEvent::RetirementRead { cell: cell(1), retirement: Some(retirement) };
    let deletes = vec![(minute, id(1, 2))];
    assert_eq!(waker.on(read, now(2_000)), vec![WakerEffect::Delete { cell: cell(1), entries: deletes }]);
    assert!(waker.on(WakerEvent::Deleted { cell: cell(1), all: true }, now(2_000)).is_empty());
    assert_eq!(waker.backlog(now(2_000)).cells, 0);
}

#[test]
fn a_delete_that_failed_is_repeated() {
    let mut waker = waker(64);
    pass(&mut waker, &[entry(1, id(1, 1))], 0);
    let retirement = Some(Retirement { mark: Some(id(1, 1)), ..Retirement::default() });
    let read = WakerEvent::RetirementRead { cell: cell(1), retirement };
    assert_eq!(waker.on(read.clone(), now(0)).len(), 1);
    assert!(waker.on(WakerEvent::Deleted { cell: cell(1), all: false }, now(0)).is_empty());
    assert_eq!(reads(&waker.on(WakerEvent::TimeReached, now(1_000))), [cell(1)]);
    assert!(matches!(waker.on(read, now(1_000))[..], [WakerEffect::Delete { .. }]));
}

#[test]
fn an_owner_that_looked_is_left_alone_until_its_alarm_should_have_fired() {
    let mut waker = waker(64);
    live(&mut waker, &[7], 0);
    let entries = [entry(1, id(1, 1))];
    pass(&mut waker, &entries, 0);
    not_retired(&mut waker, cell(1), 0);
    hinted(&mut waker, cell(1), looked(7, Some((id(1, 1), 40_000))), 0);
    for tick in 1..8 {
        assert!(reads(&pass(&mut waker, &entries, tick * 5_000)).is_empty(), "tick {tick}");
        assert!(live(&mut waker, &[7], tick * 5_000).is_empty());
    }
    // Three seconds after the deadline it is looked at again, then after six, twelve …
    for at in [43_000, 49_000, 61_000] {
        assert!(waker.on(WakerEvent::TimeReached, now(at - 1)).is_empty());
        assert_eq!(reads(&waker.on(WakerEvent::TimeReached, now(at))), [cell(1)]);
        not_retired(&mut waker, cell(1), at);
        hinted(&mut waker, cell(1), looked(7, Some((id(1, 1), 40_000))), at);
    }
}

#[test]
fn an_owner_that_dies_orphans_its_cells_at_once() {
    let mut waker = waker(64);
    live(&mut waker, &[7, 8], 0);
    pass(&mut waker, &[entry(1, id(1, 1)), entry(2, id(1, 1)), entry(3, id(1, 1))], 0);
    for (number, outcome) in [
        (1, looked(7, Some((id(1, 1), 4_000)))),
        (2, looked(8, Some((id(1, 1), 59_000)))),
        (3, HintOutcome::Failed),
    ] {
        not_retired(&mut waker, cell(number), 0);
        hinted(&mut waker, cell(number), outcome, 0);
    }
    // The one that nobody answered for may have been its, too.
    assert_eq!(reads(&live(&mut waker, &[8], 500)), [cell(1), cell(3)]);
}

#[test]
fn orphans_are_opened_in_the_order_in_which_their_alarms_are_due_and_not_long_before() {
    let mut waker = waker(64);
    live(&mut waker, &[7], 0);
    let mut entries: Vec<_> = (1..=4).map(|number| entry(number, id(1, 1))).collect();
    pass(&mut waker, &entries, 0);
    for (number, due) in [(1, 40_000), (2, 9_000), (3, 7_000), (4, 50_000)] {
        not_retired(&mut waker, cell(number), 0);
        hinted(&mut waker, cell(number), looked(7, Some((id(1, 1), due))), 0);
    }
    // What the owner installed since may be due at any time.
    entries.push(entry(4, id(1, 2)));
    assert!(reads(&pass(&mut waker, &entries, 5_000)).is_empty());
    assert_eq!(reads(&live(&mut waker, &[], 9_500)), [cell(3), cell(2), cell(4)]);
    assert!(reads(&waker.on(WakerEvent::TimeReached, now(34_999))).is_empty());
    assert_eq!(reads(&waker.on(WakerEvent::TimeReached, now(35_000))), [cell(1)]);
}

#[test]
fn a_new_installation_is_news_unless_its_owner_has_just_looked() {
    let mut waker = waker(64);
    live(&mut waker, &[7], 0);
    pass(&mut waker, &[entry(1, id(1, 1))], 0);
    not_retired(&mut waker, cell(1), 0);
    hinted(&mut waker, cell(1), looked(7, Some((id(1, 1), 30_000))), 0);
    // Epoch 1 looked, and epoch 1 installed another since: it has a timer.
    assert!(reads(&pass(&mut waker, &[entry(1, id(1, 1)), entry(1, id(1, 2))], 5_000)).is_empty());
    // Epoch 2 is another owner.
    let entries = [entry(1, id(1, 2)), entry(1, id(2, 3))];
    assert_eq!(reads(&pass(&mut waker, &entries, 10_000)), [cell(1)]);
}

/// One that rings every ten seconds is asked about each ring, and never waits longer than for its first.
#[test]
fn a_cell_that_goes_on_ringing_is_not_left_alone_for_long() {
    let mut waker = waker(64);
    live(&mut waker, &[7], 0);
    for ring in 1..8 {
        let (at, due) = ((ring - 1) * 13_000, (ring - 1) * 13_000 + 10_000);
        let effects = pass(&mut waker, &[entry(1, id(1, ring))], at);
        assert_eq!(reads(&effects), [cell(1)], "ring {ring}");
        not_retired(&mut waker, cell(1), at);
        hinted(&mut waker, cell(1), looked(7, Some((id(1, ring), due))), at);
    }
}

#[test]
fn failures_back_off_by_doubling_and_overload_makes_room() {
    let mut waker = waker(64);
    pass(&mut waker, &[entry(1, id(1, 1))], 0);
    let mut at = 0;
    for pause in [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] {
        not_retired(&mut waker, cell(1), at);
        hinted(&mut waker, cell(1), HintOutcome::Failed, at);
        assert!(waker.on(WakerEvent::TimeReached, now(at + pause - 1)).is_empty());
        at += pause;
        assert_eq!(reads(&waker.on(WakerEvent::TimeReached, now(at))), [cell(1)], "after {pause}");
    }
    assert_eq!(waker.backlog(now(at)).window, 8);
    not_retired(&mut waker, cell(1), at);
    hinted(&mut waker, cell(1), HintOutcome::Overloaded { retry_after_ms: 500 }, at);
    assert_eq!(waker.backlog(now(at)).window, 4);
}

#[test]
fn cells_that_nobody_can_open_hold_up_none_that_can_be() {
    let mut waker = waker(8);
    let all: Vec<_> = (0..100).map(|number| entry(number, id(1, 1))).collect();
    let mut waiting = reads(&pass(&mut waker, &all, 0));
    while let Some(next) = waiting.pop() {
        not_retired(&mut waker, next.clone(), 0);
        waiting.extend(reads(&hinted(&mut waker, next, HintOutcome::Failed, 0)));
    }
    // All hundred are overdue again, each holds its place for a while, and half of the places are left.
    let stuck = reads(&waker.on(WakerEvent::TimeReached, now(5_000)));
    assert_eq!(stuck.len(), 4);
    assert_eq!(waker.next_at(), None, "nothing can be begun");
    // One that is new is looked at at once, although they have waited for longer.
    let mut index = all.clone();
    index.push(entry(1_000, id(1, 1)));
    assert_eq!(reads(&pass(&mut waker, &index, 60_000)), [cell(1_000)]);
    // So it is after somebody died, which has all of them tried again.
    live(&mut waker, &[7], 60_000);
    assert!(reads(&live(&mut waker, &[], 60_000)).is_empty());
    index.push(entry(1_001, id(1, 1)));
    assert_eq!(reads(&pass(&mut waker, &index, 61_000)), [cell(1_001)]);
    // One that could be opened after all makes room for another, and is one of those that can.
    not_retired(&mut waker, stuck[0].clone(), 61_000);
    let effects = hinted(&mut waker, stuck[0].clone(), looked(1, None), 61_000);
    assert_eq!(reads(&effects).len(), 1);
}

#[test]
fn a_cell_that_does_not_exist_has_its_floor_looked_at() {
    let mut waker = waker(64);
    pass(&mut waker, &[entry(1, id(1, 1))], 0);
    not_retired(&mut waker, cell(1), 0);
    hinted(&mut waker, cell(1), HintOutcome::Missing, 0);
    let effects = waker.on(WakerEvent::TimeReached, now(2_000));
    assert_eq!(effects, vec![WakerEffect::ReadRetirement { cell: cell(1), with_floor: true }]);
}

#[test]
fn a_fleet_that_boots_is_not_run_over() {
    let mut waker = waker(16);
    let all: Vec<_> = (0..3_000).map(|number| entry(number, id(1, 1))).collect();
    let mut waiting = reads(&pass(&mut waker, &all, 0));
    let mut asked = BTreeSet::new();
    while let Some(next) = waiting.pop() {
        assert!(waker.backlog(now(0)).in_flight <= 16);
        not_retired(&mut waker, next.clone(), 0);
        assert!(asked.insert(next.clone()));
        waiting.extend(reads(&hinted(&mut waker, next, looked(1, None), 0)));
    }
    assert_eq!(asked.len(), 3_000);
}

#[test]
fn what_vanished_from_the_index_is_forgotten() {
    let mut waker = waker(64);
    pass(&mut waker, &[entry(1, id(1, 1)), entry(2, id(1, 1))], 0);
    for number in [1, 2] {
        not_retired(&mut waker, cell(number), 0);
        hinted(&mut waker, cell(number), looked(1, None), 0);
    }
    pass(&mut waker, &[entry(2, id(1, 1))], 1_000);
    assert_eq!(waker.backlog(now(1_000)).entries, 1);
    assert_eq!(reads(&waker.on(WakerEvent::TimeReached, now(2_000))), [cell(2)]);
}

#[test]
fn memory_is_bounded_and_every_entry_gets_its_turn() {
    let mut waker = waker(1);
    let total = BACKLOG_ENTRIES_MAX + 3_000;
    let mut index = (0..total).map(|number| entry(number, id(1, 1)));
    let mut after: Option<String> = None;
    let mut effects = waker.on(WakerEvent::Tick, now(0));
    let mut listed = 0;
    while effects.iter().any(|effect| matches!(effect, WakerEffect::List { .. })) {
        let entries: Vec<_> = index.by_ref().take(1_000).collect();
        listed += entries.len();
        after = Some(format!("k{listed}"));
        effects = waker.on(WakerEvent::Listed { entries, next: after.clone() }, now(0));
    }
    assert_eq!(listed, BACKLOG_ENTRIES_MAX + 1_000);
    assert_eq!(waker.backlog(now(0)).entries, BACKLOG_ENTRIES_MAX);
    // There was no room for the last page: the pass goes on with it, and not from the start.
    let before = format!("k{BACKLOG_ENTRIES_MAX}");
    assert_ne!(after, Some(before.clone()));
    let effects = waker.on(WakerEvent::Tick, now(5_000));
    assert_eq!(effects, vec![WakerEffect::List { after: Some(before), limit: PAGE_LEN }]);
}
