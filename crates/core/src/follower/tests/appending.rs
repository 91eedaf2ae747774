use alloc::vec;

use super::support::*;
use crate::follower::{FollowerEvent, FramesCheck, LogEntry, Refusal};
use holdfast_types::LogOffset;

#[test]
fn frames_are_acknowledged_when_they_are_fsynced() {
    let mut disk = Disk::adopted(1);
    assert_eq!(disk.append(ONE, 1, 1, 3), vec![]);
    assert_eq!(disk.append(ONE, 1, 4, 4), vec![]);
    assert_eq!(disk.window(), (1, 1, 1));
    assert_eq!(disk.sync(), vec![durable(ONE, 1, 4)], "one answer for both messages");
    assert_eq!(disk.window(), (1, 1, 5));
}

#[test]
fn a_resend_of_frames_that_are_not_fsynced_is_not_acknowledged() {
    let mut disk = Disk::adopted(1);
    disk.append(ONE, 1, 1, 3);
    assert_eq!(disk.append(ONE, 1, 1, 3), vec![], "on the same stream");
    assert_eq!(disk.adopt(TWO, 1, 1), vec![], "a new stream hears nothing either");
    assert_eq!(disk.append(TWO, 1, 1, 3), vec![]);
    assert_eq!(disk.written.len(), 2, "written once");
    assert_eq!(disk.sync(), vec![adopted(TWO, 1, 4)]);
    assert_eq!(disk.append(TWO, 1, 1, 3), vec![durable(TWO, 1, 3)], "now it is");
}

#[test]
fn an_acknowledgement_never_overtakes_the_adoption_of_its_stream() {
    let mut disk = Disk::adopted(1);
    disk.append(ONE, 1, 1, 3);
    let appended = disk.written.len();
    disk.adopt(TWO, 1, 2);
    assert_eq!(disk.sync_some(appended), vec![], "the adoption is not fsynced yet");
    assert_eq!(disk.append(TWO, 1, 1, 1), vec![]);
    assert_eq!(disk.sync(), vec![adopted(TWO, 1, 4)]);
}

#[test]
fn the_known_part_of_a_message_is_skipped() {
    let mut disk = Disk::adopted(1);
    disk.append(ONE, 1, 1, 3);
    disk.append(ONE, 1, 2, 5);
    let frames = LogEntry::Frames { first: LogOffset::new(4), last: LogOffset::new(5) };
    assert_eq!(disk.written.last().map(|(_, entry)| *entry), Some(frames));
    assert_eq!(disk.sync(), vec![durable(ONE, 1, 5)]);
}

#[test]
fn frames_that_do_not_follow_are_refused() {
    for (first, last, check) in
        [(3, 4, FramesCheck::Sound), (1, 4, FramesCheck::Scattered), (2, 1, FramesCheck::Sound)]
    {
        let mut disk = Disk::adopted(1);
        let answer = disk.append_checked(ONE, 1, (first, last), check, true);
        assert_eq!(answer, refused(ONE, Refusal::Gap));
        assert_eq!(disk.append(ONE, 1, 1, 1), refused(ONE, Refusal::NotAMember), "adopt again first");
    }
}

#[test]
fn frames_for_another_epoch_are_refused() {
    for log_epoch in [0, 1, 3] {
        let mut disk = Disk::adopted(2);
        assert_eq!(disk.append(ONE, log_epoch, 1, 1), refused(ONE, Refusal::NotAMember));
    }
}

#[test]
fn frames_with_a_wrong_crc_are_refused() {
    let mut disk = Disk::adopted(1);
    let answer = disk.append_checked(ONE, 1, (1, 1), FramesCheck::Corrupt, true);
    assert_eq!(answer, refused(ONE, Refusal::Corrupt));
    assert_eq!(disk.written.len(), 1);
}

#[test]
fn a_full_disk_refuses_what_is_new_only() {
    let mut disk = Disk::adopted(1);
    disk.append(ONE, 1, 1, 1);
    disk.sync();
    let known = disk.append_checked(ONE, 1, (1, 1), FramesCheck::Sound, false);
    assert_eq!(known, vec![durable(ONE, 1, 1)]);
    let new = disk.append_checked(ONE, 1, (2, 2), FramesCheck::Sound, false);
    assert_eq!(new, refused(ONE, Refusal::Full));
    assert_eq!(disk.window(), (1, 1, 2), "what is there stays");
}

#[test]
fn a_release_reaches_no_further_than_what_is_held() {
    let mut disk = Disk::adopted(1);
    disk.append(ONE, 1, 1, 5);
    disk.release(4);
    disk.release(2);
    disk.sync();
    assert_eq!(disk.window(), (1, 4, 6));
    disk.release(90);
    disk.sync();
    assert_eq!(disk.window(), (1, 6, 6));
    assert_eq!(disk.append(ONE, 1, 6, 6), vec![], "and the next offset is still the next");
}

#[test]
fn a_damaged_log_takes_nothing_any_more() {
    let mut disk = Disk::adopted(1);
    disk.append(ONE, 1, 1, 1);
    assert_eq!(disk.on(FollowerEvent::DamageFound), refused(ONE, Refusal::Damaged));
    assert_eq!(disk.on(FollowerEvent::DamageFound), vec![], "written once");
    assert_eq!(disk.adopt(TWO, 1, 1), refused(TWO, Refusal::Damaged));
    disk.sync();
    assert!(!disk.log.state().is_complete);
    disk.crash(0);
    assert!(!disk.log.state().is_complete, "for ever");
    assert_eq!(disk.window(), (1, 1, 2), "what is there can be read");
}
