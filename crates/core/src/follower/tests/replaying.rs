use alloc::vec;
use alloc::vec::Vec;

use super::support::{me, window};
use crate::follower::{HeldLog, Holdings, LogEntry, LogReplay, SessionLog, Ticket};
use holdfast_types::{LogEpoch, LogOffset};

fn adopt(log_epoch: u64, start: u64) -> LogEntry {
    LogEntry::Adopt { log_epoch: LogEpoch::new(log_epoch), start: LogOffset::new(start) }
}

fn frames(first: u64, last: u64) -> LogEntry {
    LogEntry::Frames { first: LogOffset::new(first), last: LogOffset::new(last) }
}

fn release(start: u64) -> LogEntry {
    LogEntry::Release { start: LogOffset::new(start) }
}

fn carried(log_epoch: u64, start: u64, next: u64, is_sealed: bool) -> LogEntry {
    let (start, next) = (LogOffset::new(start), LogOffset::new(next));
    let holdings = Holdings { log_epoch: LogEpoch::new(log_epoch), start, next };
    LogEntry::Carried { holdings, is_sealed, is_damaged: false }
}

enum Read {
    Entry(u64, LogEntry),
    Hole,
}
use Read::{Entry, Hole};

fn replay(read: Vec<Read>) -> HeldLog {
    let mut replay = LogReplay::default();
    for item in read {
        match item {
            Entry(ticket, entry) => replay.apply(Ticket(ticket), &entry),
            Hole => replay.hole(),
        }
    }
    SessionLog::reopen(me(), &replay).0.state()
}

#[test]
fn what_was_written_is_read_back() {
    let state = replay(vec![
        Entry(1, adopt(1, 1)),
        Entry(2, frames(1, 4)),
        Entry(3, release(3)),
        Entry(4, adopt(2, 3)),
        Entry(5, LogEntry::Seal),
    ]);
    assert_eq!((window(&state), state.is_sealed, state.is_complete), ((2, 3, 5), true, true));
}

#[test]
fn a_missing_entry_is_noticed_by_its_number() {
    assert!(!replay(vec![Entry(2, adopt(1, 1))]).is_complete);
    let state = replay(vec![Entry(1, adopt(1, 1)), Entry(3, frames(3, 4))]);
    assert!(!state.is_complete);
    assert_eq!(window(&state), (1, 1, 5), "what is there is a floor");
}

#[test]
fn a_hole_makes_incomplete_whom_nothing_clears() {
    let read = || vec![Entry(1, adopt(1, 1)), Entry(2, frames(1, 2)), Hole];
    assert!(!replay(read()).is_complete);
    let mut goes_on = read();
    goes_on.push(Entry(3, frames(3, 3)));
    assert!(replay(goes_on).is_complete, "its next entry stands behind the hole");
    let mut lost = read();
    lost.push(Entry(4, LogEntry::Seal));
    assert!(!replay(lost).is_complete);
    let mut carried_on = read();
    carried_on.push(Entry(2, carried(1, 1, 3, false)));
    assert!(replay(carried_on).is_complete, "a carried entry says that there was no more");
}

#[test]
fn a_carried_entry_stands_for_what_was_given_up() {
    let state = replay(vec![Entry(9, carried(2, 5, 5, false)), Entry(10, frames(5, 6))]);
    assert_eq!((window(&state), state.is_complete), ((2, 5, 7), true));
    let state = replay(vec![Entry(9, carried(2, 5, 5, true))]);
    assert!(state.is_sealed && state.is_complete);
}

#[test]
fn frames_that_were_given_up_must_have_been_released() {
    let window_of_nine = || vec![Entry(9, carried(2, 5, 9, false)), Entry(10, frames(9, 9))];
    assert!(!replay(window_of_nine()).is_complete, "5 to 8 are gone");
    let mut released = window_of_nine();
    released.push(Entry(11, release(9)));
    let state = replay(released);
    assert_eq!((window(&state), state.is_complete), ((2, 9, 10), true));
}

#[test]
fn damage_that_was_found_is_written_down_once() {
    let mut read = LogReplay::default();
    read.apply(Ticket(1), &adopt(1, 1));
    read.hole();
    let (_, effects) = SessionLog::reopen(me(), &read);
    assert_eq!(effects.len(), 1, "{effects:?}");
    read.apply(Ticket(2), &LogEntry::Damage);
    let (log, effects) = SessionLog::reopen(me(), &read);
    assert!(effects.is_empty() && !log.state().is_complete);
}
