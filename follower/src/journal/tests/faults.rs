use std::sync::Arc;

use super::sim_disk::{Faults, SimDisk};
use super::support::*;
use crate::journal::Ends;

const FIRST: &str = "segment-00000001";

/// Two sessions, frames in turn, each message a batch of its own.
fn two_sessions(disk: &Arc<SimDisk>, offsets: std::ops::Range<u64>) -> Follower {
    let follower = Follower::start(read(disk));
    for number in [1, 2] {
        follower.adopt(session(number), 1, 1);
    }
    for offset in offsets {
        for number in [1, 2] {
            follower.append(session(number), 1, offset..offset + 1, 100);
            follower.wait_told(session(number), |told| told.acknowledged == offset);
        }
    }
    follower
}

#[test]
fn the_first_failed_fsync_is_the_last_thing_that_happens() {
    let disk = Arc::new(SimDisk::default());
    let follower = two_sessions(&disk, 1..3);
    disk.set(Faults { sync_fails_at: Some(disk.syncs() + 1), ..Faults::default() });
    follower.append(session(1), 1, 3..4, 100);
    let mut ends = follower.journal.ends();
    while *ends.borrow_and_update() == Ends::Running {
        std::thread::yield_now();
    }
    // The disk works again, as disks do after they dropped what they could not write.
    disk.set(Faults::default());
    follower.append(session(1), 1, 4..5, 100);
    follower.append(session(2), 1, 3..4, 100);
    let Ends::Poisoned(_) = follower.end() else { panic!("a failed fsync was survived") };
    assert_eq!((follower.told(session(1)).acknowledged, follower.told(session(2)).acknowledged), (2, 2));
    let opened = read(&Arc::new(disk.after_power_cut(|| false)));
    assert_eq!(state(&opened.logs, session(1)), (1, 1, 3, true, false));
    assert_eq!(readable(&opened, session(2)), [1, 2]);
}

#[test]
fn a_torn_end_is_cut_and_nothing_is_missing() {
    let disk = Arc::new(SimDisk::default());
    let follower = two_sessions(&disk, 1..3);
    disk.hold_syncs(true);
    follower.append(session(1), 1, 3..4, 1_000);
    // Killed while the batch is on its way: half of its sectors made it.
    let mut coin = false;
    let torn = || {
        coin = !coin;
        coin
    };
    let cut = Arc::new(disk.after_power_cut(torn));
    let opened = read(&cut);
    assert_eq!(state(&opened.logs, session(1)), (1, 1, 3, true, false));
    assert_eq!(readable(&opened, session(1)), [1, 2]);
    // The cut is remembered: what is written now does not make damage of it.
    drop(opened);
    assert!(!read(&cut).is_damaged);
    disk.hold_syncs(false);
    follower.end();
}

#[test]
fn what_a_killed_process_wrote_counts_when_it_is_fsynced_anew() {
    let disk = Arc::new(SimDisk::default());
    let follower = two_sessions(&disk, 1..3);
    disk.hold_syncs(true);
    follower.append(session(1), 1, 3..4, 100);
    while state(&read(&Arc::new(disk.after_kill())).logs, session(1)).2 < 4 {
        std::thread::yield_now();
    }
    let killed = Arc::new(disk.after_kill());
    let lost = Arc::new(killed.after_power_cut(|| false));
    assert_eq!(state(&read(&lost).logs, session(1)).2, 3, "it is in memory only");
    assert_eq!(state(&read(&killed).logs, session(1)).2, 4);
    let kept = Arc::new(killed.after_power_cut(|| false));
    let whole = (1, 1, 4, true, false);
    assert_eq!(state(&read(&kept).logs, session(1)), whole, "who read it has fsynced it");
    disk.hold_syncs(false);
    follower.end();
}

/// Where the body of a frame stands.
fn find(data: &[u8], offset: u8, after: usize) -> usize {
    let body = [offset; 100];
    after + data[after..].windows(100).position(|window| window == body).unwrap()
}

#[test]
fn damage_in_the_middle_is_told_from_a_torn_end() {
    let disk = Arc::new(SimDisk::default());
    two_sessions(&disk, 1..6).end();
    // The first frame 3 is session one's.
    disk.alter(FIRST, |data| {
        let at = find(data, 3, 0);
        data[at] ^= 1;
    });
    let opened = read(&disk);
    assert!(opened.is_damaged);
    let (.., end, is_complete, _) = state(&opened.logs, session(1));
    assert_eq!((end, is_complete), (6, false));
    assert_eq!(readable(&opened, session(1)), [1, 2, 4, 5], "what is there is a floor");
    assert_eq!(state(&opened.logs, session(2)), (1, 1, 6, true, false), "its numbers have no gap");
    drop(opened);
    let again = read(&disk);
    assert!(!state(&again.logs, session(1)).3, "for ever");
    assert!(state(&again.logs, session(2)).3);
}

#[test]
fn rot_in_the_last_batch_is_damage_once_it_is_marked() {
    let disk = Arc::new(SimDisk::default());
    two_sessions(&disk, 1..3).end();
    disk.alter(FIRST, |data| {
        let first = find(data, 2, 0);
        let last = find(data, 2, first + 100);
        data[last] ^= 1;
    });
    let opened = read(&disk);
    assert!(!state(&opened.logs, session(2)).3);
}

#[test]
fn a_segment_that_somebody_removed_makes_incomplete_whose_frames_it_had() {
    let disk = Arc::new(SimDisk::default());
    two_sessions(&disk, 1..3).end();
    // Session three lives in the second segment only.
    let follower = Follower::start(read(&disk));
    follower.adopt(session(3), 1, 1);
    follower.append(session(3), 1, 1..3, 100);
    follower.end();
    disk.remove_by_hand(FIRST);
    let opened = read(&disk);
    assert!(opened.is_damaged);
    for number in [1, 2] {
        assert!(!state(&opened.logs, session(number)).3, "session {number}");
        assert_eq!(state(&opened.logs, session(number)).2, 3, "what it had is known");
    }
    assert_eq!(state(&opened.logs, session(3)), (1, 1, 3, true, false));
    drop(opened);
    assert!(!state(&read(&disk).logs, session(1)).3, "for ever");
}

#[test]
fn a_newest_segment_that_somebody_removed_makes_everything_incomplete() {
    let disk = Arc::new(SimDisk::default());
    two_sessions(&disk, 1..3).end();
    let follower = Follower::start(read(&disk));
    follower.seal(session(1));
    follower.end();
    disk.remove_by_hand("segment-00000002");
    let opened = read(&disk);
    for number in [1, 2] {
        assert!(!state(&opened.logs, session(number)).3, "session {number}");
    }
}

#[test]
fn without_its_manifest_nothing_counts_as_complete() {
    let disk = Arc::new(SimDisk::default());
    two_sessions(&disk, 1..3).end();
    disk.remove_by_hand("segments.json");
    let opened = read(&disk);
    assert!(!state(&opened.logs, session(1)).3);
    assert_eq!(readable(&opened, session(1)), [1, 2]);
}

#[test]
fn bytes_of_another_disk_are_no_entries() {
    let disk = Arc::new(SimDisk::default());
    two_sessions(&disk, 1..3).end();
    let other = Arc::new(SimDisk::default());
    two_sessions(&other, 1..2).end();
    let disk: Arc<dyn crate::journal::Disk> = disk;
    let stranger = holdfast_types::Incarnation::from_bits(1);
    let opened = crate::journal::Opened::read(disk, stranger, options()).unwrap();
    assert!(opened.logs.is_empty());
}
