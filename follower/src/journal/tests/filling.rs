//! The disk fills while the queue is as long as it may be: whatever was admitted is written, and seals go on.

use std::sync::Arc;

use super::sim_disk::{Faults, SimDisk};
use super::support::*;
use crate::journal::{Disk, Ends, FolderDisk};

/// Frames of session one until the disk is full, the queue as long as it may be all the time; gives the next offset.
fn fill(disk: &SimDisk, follower: &Follower, len: usize) -> u64 {
    let mut next = 1;
    while follower.journal.has_room() {
        assert!(next < 10_000, "the disk never fills");
        // The thread is held in a batch until no more is admitted.
        disk.hold_syncs(true);
        while follower.journal.has_room() && follower.append_if_room(session(1), 1, next, len) {
            next += 1;
        }
        disk.hold_syncs(false);
        follower.wait_told(session(1), |told| told.acknowledged + 1 == next || !follower.journal.has_room());
    }
    next
}

#[test]
fn a_disk_that_fills_under_a_long_queue_writes_what_was_admitted_and_takes_seals() {
    // Small frames take a page each when they come alone; large ones fill the segment by their bytes.
    for len in [10, 1_000, 4_000, 9_000, 20_000] {
        for segments in 2..5 {
            let space = segments * usize::try_from(SEGMENT_LEN).unwrap() + 4_000;
            let disk = Arc::new(SimDisk::with(Faults { space: Some(space), ..Faults::default() }));
            let follower = Follower::start(read(&disk));
            follower.adopt(session(1), 1, 1);
            follower.wait_told(session(1), |_| true);
            let next = fill(&disk, &follower, len);
            for number in 1..3 {
                follower.seal(session(number));
                follower.wait_told(session(number), |told| told.sealed);
            }
            let held = follower.told(session(1)).acknowledged;
            assert!(held + 2 >= next, "{held} of {next}: at most the last is refused");
            assert_eq!(follower.end(), Ends::Closed);
            for number in 3..5 {
                let follower = Follower::start(read(&disk));
                follower.seal(session(number));
                follower.wait_told(session(number), |told| told.sealed);
                assert_eq!(follower.end(), Ends::Closed);
            }
            let opened = read(&disk);
            assert!(!opened.is_damaged);
            assert_eq!(readable(&opened, session(1)), (1..=held).collect::<Vec<_>>());
        }
    }
}

#[test]
fn segments_are_given_up_later_when_the_manifest_finds_no_room() {
    let disk = Arc::new(SimDisk::default());
    let follower = Follower::start(read(&disk));
    follower.adopt(session(1), 1, 1);
    // The third segment keeps room: nothing needs a new one meanwhile.
    for offset in 1..8 {
        follower.append(session(1), 1, offset..offset + 1, 20_000);
        follower.wait_told(session(1), |told| told.acknowledged == offset);
    }
    let first = "segment-00000001".to_owned();
    disk.set(Faults { replace_is_full: true, ..Faults::default() });
    follower.release(session(1), 1, 8);
    for number in 2..5 {
        follower.seal(session(number));
        follower.wait_told(session(number), |told| told.sealed);
    }
    assert!(disk.names().contains(&first), "the manifest still names it");
    disk.set(Faults::default());
    while disk.names().contains(&first) {
        std::thread::yield_now();
    }
    assert_eq!(follower.end(), Ends::Closed);
    let opened = read(&disk);
    assert!(!opened.is_damaged);
    assert_eq!(state(&opened.logs, session(1)), (1, 8, 8, true, false));
}

#[test]
fn a_new_segment_waits_for_room_for_the_manifest() {
    let disk = Arc::new(SimDisk::default());
    let follower = Follower::start(read(&disk));
    follower.adopt(session(1), 1, 1);
    disk.set(Faults { replace_is_full: true, ..Faults::default() });
    for offset in 1..9 {
        follower.append(session(1), 1, offset..offset + 1, 20_000);
    }
    while follower.journal.has_room() {
        std::thread::yield_now();
    }
    disk.set(Faults::default());
    follower.wait_told(session(1), |told| told.acknowledged == 8);
    assert_eq!(follower.end(), Ends::Closed);
    assert_eq!(readable(&read(&disk), session(1)), (1..9).collect::<Vec<_>>());
}

#[test]
fn a_small_file_keeps_the_space_for_its_next_content() {
    let folder = tempfile::tempdir().unwrap();
    let disk = FolderDisk::open(folder.path()).unwrap();
    let lens = || ["a", "a.new"].map(|name| std::fs::metadata(folder.path().join(name)).unwrap().len());
    disk.replace("a", b"first").unwrap();
    let before = lens();
    // Four hundred segments more.
    for content in [vec![b'x'; 16_000], vec![b'y'; 3], vec![b'z'; 16_000]] {
        disk.replace("a", &content).unwrap();
        let read = disk.read("a").unwrap().unwrap();
        assert_eq!(read.trim_ascii_end(), content);
        assert_eq!(lens(), before, "no space is taken, and none is given back");
    }
}
