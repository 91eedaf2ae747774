use alloc::vec;

use super::support::*;
use crate::follower::{CallId, FollowerEffect, FollowerEvent, LogEntry, Refusal};
use crate::log_record::LogState;

fn seal(call: CallId) -> FollowerEvent {
    FollowerEvent::SealAsked { call }
}

#[test]
fn a_seal_refuses_at_once_and_is_answered_when_it_is_fsynced() {
    let mut disk = Disk::adopted(1);
    disk.append(ONE, 1, 1, 3);
    assert_eq!(disk.on(seal(CALL)), vec![]);
    assert_eq!(disk.append(ONE, 1, 4, 4), refused(ONE, Refusal::Sealed));
    assert!(!disk.log.state().is_sealed);
    let [FollowerEffect::AnswerSealed { call: CALL, state }] = disk.sync()[..] else { panic!() };
    assert_eq!((window(&state), state.is_sealed, state.is_complete), ((1, 1, 4), true, true));
}

#[test]
fn the_last_acknowledgement_before_a_seal_is_in_the_sealed_log() {
    let mut disk = Disk::adopted(1);
    disk.append(ONE, 1, 1, 3);
    disk.on(seal(CALL));
    let effects = disk.sync();
    assert_eq!(effects[0], durable(ONE, 1, 3));
    let FollowerEffect::AnswerSealed { state, .. } = &effects[1] else { panic!("{effects:?}") };
    assert_eq!(window(state), (1, 1, 4));
    assert_eq!(effects[2..], refused(ONE, Refusal::Sealed));
}

#[test]
fn a_seal_that_comes_while_the_record_is_read_wins() {
    let mut disk = Disk::new();
    disk.adopt(ONE, 1, 1);
    disk.on(seal(CALL));
    assert_eq!(disk.read(ONE, record(1)), refused(ONE, Refusal::Sealed));
    disk.sync();
    assert_eq!(disk.adopt(TWO, 1, 1), refused(TWO, Refusal::Sealed));
}

#[test]
fn a_session_never_seen_is_sealed_for_ever() {
    let mut disk = Disk::new();
    disk.on(seal(CALL));
    let [FollowerEffect::AnswerSealed { state, .. }] = disk.sync()[..] else { panic!() };
    assert_eq!(state.log_epoch.get(), 0);
    disk.crash(0);
    assert_eq!(disk.adopt(ONE, 1, 1), refused(ONE, Refusal::Sealed));
}

#[test]
fn every_caller_of_a_seal_is_answered() {
    let mut disk = Disk::adopted(1);
    disk.on(seal(CallId(1)));
    disk.on(seal(CallId(2)));
    assert_eq!(disk.written.iter().filter(|(_, entry)| *entry == LogEntry::Seal).count(), 1);
    let answers = disk.sync();
    assert_eq!(answers.len(), 3, "two calls and the stream: {answers:?}");
    assert!(matches!(disk.on(seal(CallId(3)))[..], [FollowerEffect::AnswerSealed { .. }]));
}

#[test]
fn a_seal_that_was_answered_survives_a_crash() {
    let mut disk = Disk::adopted(1);
    disk.append(ONE, 1, 1, 3);
    disk.on(seal(CALL));
    disk.sync();
    disk.crash(0);
    assert_eq!(disk.adopt(TWO, 1, 1), refused(TWO, Refusal::Sealed));
    assert_eq!(disk.append(TWO, 1, 4, 4), refused(TWO, Refusal::Sealed));
    assert_eq!(disk.window(), (1, 1, 4));
}

#[test]
fn a_session_whose_record_is_sealed_is_forgotten() {
    let mut disk = Disk::adopted(1);
    disk.append(ONE, 1, 1, 3);
    disk.sync();
    assert_eq!(disk.on(FollowerEvent::RecordSealed), vec![], "not while it has a stream");
    disk.on(FollowerEvent::StreamEnded { stream: ONE });
    assert_eq!(disk.on(FollowerEvent::RecordSealed), vec![]);
    assert_eq!(disk.on(FollowerEvent::RecordSealed), vec![], "once");
    assert_eq!(disk.adopt(TWO, 1, 1), refused(TWO, Refusal::Sealed), "it does not come back to life");
    assert_eq!(disk.on(seal(CALL)), vec![], "a seal waits for the disk");
    let effects = disk.sync();
    assert!(matches!(effects[..], [FollowerEffect::AnswerSealed { .. }, FollowerEffect::Forgotten]));
    disk.crash(0);
    disk.adopt(ONE, 1, 1);
    let sealed = crate::log_record::LogRecord { state: LogState::Sealed, ..record(1) };
    assert_eq!(disk.read(ONE, sealed), refused(ONE, Refusal::NotAMember), "the record bars it now");
}
