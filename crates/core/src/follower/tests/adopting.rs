use alloc::vec;

use super::support::*;
use crate::follower::{FollowerEffect, FollowerEvent, Refusal};
use crate::log_record::{LogRecord, LogState};
use holdfast_types::{LogEpoch, LogOffset};

fn asked_with(record: LogRecord) -> alloc::vec::Vec<FollowerEffect> {
    let mut disk = Disk::new();
    assert_eq!(disk.adopt(ONE, 3, 1), vec![FollowerEffect::ReadRecord { stream: ONE }]);
    let answer = disk.read(ONE, record);
    if answer.is_empty() { disk.sync() } else { answer }
}

#[test]
fn a_log_epoch_is_adopted_as_the_record_names_it() {
    assert_eq!(asked_with(record(3)), vec![adopted(ONE, 3, 1)]);
}

#[test]
fn an_adoption_that_the_record_does_not_allow_is_refused() {
    let not_a_member = refused(ONE, Refusal::NotAMember);
    for state in [LogState::Recovering, LogState::Sealed] {
        assert_eq!(asked_with(LogRecord { state, ..record(3) }), not_a_member);
    }
    assert_eq!(asked_with(record(2)), not_a_member, "an older ensemble");
    let others = ensemble(3, vec![member("g", 1), member("h", 2)]);
    assert_eq!(asked_with(LogRecord { ensemble: others, ..record(3) }), not_a_member);
}

#[test]
fn a_member_that_is_asked_for_an_epoch_of_the_past_says_which_one_the_record_names() {
    let stale = refused(ONE, Refusal::StaleEpoch { found: LogEpoch::new(4) });
    assert_eq!(asked_with(record(4)), stale);
    let others = ensemble(4, vec![member("g", 1), member("f", 2)]);
    let answer = asked_with(LogRecord { ensemble: others, ..record(4) });
    assert_eq!(answer, refused(ONE, Refusal::NotAMember), "not on this disk");
    let answer = asked_with(LogRecord { state: LogState::Recovering, ..record(4) });
    assert_eq!(answer, refused(ONE, Refusal::NotAMember), "the session is dead");
}

#[test]
fn another_disk_under_the_same_name_is_not_the_member() {
    let other_disk = ensemble(3, vec![member("f", 2)]);
    let answer = asked_with(LogRecord { ensemble: other_disk, ..record(3) });
    assert_eq!(answer, refused(ONE, Refusal::NotAMember));
}

#[test]
fn a_record_that_is_absent_or_unreadable_adopts_nothing() {
    let mut disk = Disk::new();
    disk.adopt(ONE, 3, 1);
    let absent = FollowerEvent::RecordRead { stream: ONE, record: None };
    assert_eq!(disk.on(absent), refused(ONE, Refusal::NotAMember));
    disk.adopt(TWO, 3, 1);
    let unreadable = FollowerEvent::RecordUnreadable { stream: TWO };
    assert_eq!(disk.on(unreadable), refused(TWO, Refusal::RecordUnreadable));
    assert_eq!(disk.written, vec![]);
}

#[test]
fn an_adoption_is_answered_when_it_is_fsynced() {
    let mut disk = Disk::new();
    disk.adopt(ONE, 3, 5);
    assert_eq!(disk.read(ONE, record(3)), vec![]);
    assert_eq!(disk.window().0, 0, "not told before");
    assert_eq!(disk.sync(), vec![adopted(ONE, 3, 5)]);
    assert_eq!(disk.window(), (3, 5, 5));
}

#[test]
fn a_later_log_epoch_keeps_the_frames_from_its_start_on() {
    let mut disk = Disk::adopted(1);
    disk.append(ONE, 1, 1, 9);
    disk.sync();
    disk.adopt(ONE, 2, 4);
    assert_eq!(disk.read(ONE, record(2)), vec![]);
    assert_eq!(disk.sync(), vec![adopted(ONE, 2, 10)]);
    assert_eq!(disk.window(), (2, 4, 10));
}

#[test]
fn a_log_that_ends_before_the_start_goes_on_there_empty() {
    let mut disk = Disk::adopted(1);
    disk.append(ONE, 1, 1, 9);
    disk.sync();
    disk.adopt(ONE, 2, 50);
    disk.read(ONE, record(2));
    assert_eq!(disk.sync(), vec![adopted(ONE, 2, 50)]);
    assert_eq!(disk.window(), (2, 50, 50));
    assert_eq!(disk.append(ONE, 2, 50, 50), vec![]);
    assert_eq!(disk.sync(), vec![durable(ONE, 2, 50)]);
}

#[test]
fn a_new_stream_of_an_adopted_epoch_needs_no_record() {
    let mut disk = Disk::adopted(1);
    assert_eq!(disk.adopt(TWO, 1, 1), vec![adopted(TWO, 1, 1)]);
    assert_eq!(disk.append(ONE, 1, 1, 1), vec![], "the old stream is not listened to");
    assert_eq!(disk.written.len(), 1);
}

#[test]
fn an_older_log_epoch_is_refused() {
    let mut disk = Disk::adopted(2);
    assert_eq!(disk.adopt(TWO, 1, 1), refused(TWO, Refusal::NotAMember));
}

#[test]
fn a_draining_follower_takes_no_new_log_epoch() {
    let mut disk = Disk::adopted(1);
    let ask = |stream, log_epoch| FollowerEvent::AdoptAsked {
        stream,
        log_epoch: LogEpoch::new(log_epoch),
        start: LogOffset::new(1),
        is_draining: true,
    };
    assert_eq!(disk.on(ask(ONE, 2)), refused(ONE, Refusal::Draining));
    assert_eq!(disk.on(ask(TWO, 1)), vec![adopted(TWO, 1, 1)], "what it has it keeps serving");
}

#[test]
fn a_member_that_forgot_an_active_epoch_has_lost_frames() {
    let active = LogRecord { active: true, ..record(3) };
    assert_eq!(asked_with(active), refused(ONE, Refusal::Damaged));
    let prior = LogRecord { prior: Some(ensemble(2, vec![me()])), ..record(3) };
    assert_eq!(asked_with(prior), refused(ONE, Refusal::Damaged));
    let of_others = LogRecord { prior: Some(ensemble(2, vec![member("f", 2)])), ..record(3) };
    assert_eq!(asked_with(of_others), vec![adopted(ONE, 3, 1)]);
}

#[test]
fn a_record_that_comes_for_an_ended_stream_adopts_nothing() {
    let mut disk = Disk::new();
    disk.adopt(ONE, 3, 1);
    disk.on(FollowerEvent::StreamEnded { stream: ONE });
    assert_eq!(disk.read(ONE, record(3)), vec![]);
    disk.adopt(TWO, 3, 1);
    assert_eq!(disk.read(ONE, record(3)), vec![], "of another stream");
    assert_eq!(disk.written, vec![]);
}
