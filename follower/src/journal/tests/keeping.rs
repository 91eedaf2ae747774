use std::sync::Arc;

use super::sim_disk::{Faults, SimDisk};
use super::support::*;
use crate::journal::{Disk, Ends, FolderDisk, Opened};

#[test]
fn what_was_acknowledged_is_read_back_from_a_real_folder() {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        let disk: Arc<dyn Disk> = Arc::new(FolderDisk::open(&folder.path().join("journal")).unwrap());
        Opened::read(disk, DISK, options()).unwrap()
    };
    let follower = Follower::start(open());
    follower.adopt(session(1), 1, 1);
    // Large bodies are written from where they are, small ones are copied.
    for offset in 1..30 {
        let len = if offset % 3 == 0 { 20_000 } else { 100 };
        follower.append(session(1), 1, offset..offset + 1, len);
    }
    assert_eq!(follower.end(), Ends::Closed);
    assert_eq!(follower.told(session(1)).acknowledged, 29);
    let opened = open();
    assert!(!opened.is_damaged);
    assert_eq!(state(&opened.logs, session(1)), (1, 1, 30, true, false));
    assert_eq!(readable(&opened, session(1)), (1..30).collect::<Vec<_>>());
    // And once more, from the segment that the first reopening began.
    let follower = Follower::start(opened);
    follower.seal(session(1));
    assert_eq!(follower.end(), Ends::Closed);
    assert_eq!(state(&open().logs, session(1)), (1, 1, 30, true, true));
}

#[test]
fn what_waits_together_is_one_fsync() {
    let disk = Arc::new(SimDisk::default());
    let follower = Follower::start(read(&disk));
    for number in 1..9 {
        follower.adopt(session(number), 1, 1);
    }
    follower.wait_told(session(8), |_| true);
    disk.hold_syncs(true);
    follower.append(session(1), 1, 1..2, 10);
    let before = disk.syncs();
    for number in 1..9 {
        for offset in 1..11 {
            follower.append(session(number), 1, offset..offset + 1, 10);
        }
    }
    disk.hold_syncs(false);
    for number in 1..9 {
        follower.wait_told(session(number), |told| told.acknowledged == 10);
    }
    assert!(disk.syncs() - before <= 3, "{} fsyncs for 80 frames of 8 sessions", disk.syncs() - before);
    assert_eq!(follower.end(), Ends::Closed);
}

#[test]
fn nothing_is_told_before_its_fsync() {
    let disk = Arc::new(SimDisk::default());
    let follower = Follower::start(read(&disk));
    follower.adopt(session(1), 1, 1);
    disk.hold_syncs(true);
    follower.append(session(1), 1, 1..4, 10);
    follower.append(session(1), 1, 1..4, 10);
    follower.seal(session(1));
    assert_eq!(follower.told(session(1)).acknowledged, 0);
    let cut = Arc::new(disk.after_power_cut(|| false));
    assert_eq!(state(&read(&cut).logs, session(1)).2, 1, "the power went, and nobody was promised anything");
    disk.hold_syncs(false);
    assert_eq!(follower.end(), Ends::Closed);
    assert!(follower.told(session(1)).sealed);
    assert_eq!(follower.told(session(1)).acknowledged, 3);
}

#[test]
fn segments_without_retained_frames_are_given_up_and_used_again() {
    let disk = Arc::new(SimDisk::default());
    let follower = Follower::start(read(&disk));
    follower.adopt(session(1), 1, 1);
    follower.adopt(session(2), 1, 1);
    follower.append(session(2), 1, 1..2, 100);
    for offset in 1..100 {
        follower.append(session(1), 1, offset..offset + 1, 20_000);
        follower.wait_told(session(1), |told| told.acknowledged == offset);
        follower.release(session(1), 1, offset + 1);
    }
    assert_eq!(follower.end(), Ends::Closed);
    let segments = disk.names().iter().filter(|name| name.starts_with("segment-")).count();
    assert!(segments < 12, "{segments} segments for 2 MB that are released");
    let opened = read(&disk);
    assert_eq!(state(&opened.logs, session(1)), (1, 100, 100, true, false));
    assert_eq!(state(&opened.logs, session(2)), (1, 1, 2, true, false));
    assert_eq!(readable(&opened, session(2)), [1], "in a segment of its own time, with younger ones gone");
    let names = disk.names();
    assert!(names.contains(&"segment-00000001".to_owned()), "{names:?}");
    assert!(!names.contains(&"segment-00000002".to_owned()), "{names:?}");
}

#[test]
fn a_batch_larger_than_a_segment_has_one_of_its_own() {
    let disk = Arc::new(SimDisk::default());
    let follower = Follower::start(read(&disk));
    follower.adopt(session(1), 1, 1);
    follower.append(session(1), 1, 1..2, 5 * usize::try_from(SEGMENT_LEN).unwrap());
    follower.append(session(1), 1, 2..3, 10);
    assert_eq!(follower.end(), Ends::Closed);
    assert_eq!(readable(&read(&disk), session(1)), [1, 2]);
}

#[test]
fn writes_that_are_taken_in_parts_are_finished() {
    let disk = Arc::new(SimDisk::with(Faults { short_writes: true, ..Faults::default() }));
    let follower = Follower::start(read(&disk));
    follower.adopt(session(1), 1, 1);
    follower.append(session(1), 1, 1..5, 10_000);
    assert_eq!(follower.end(), Ends::Closed);
    assert_eq!(readable(&read(&disk), session(1)), [1, 2, 3, 4]);
}

#[test]
fn a_full_disk_refuses_frames_and_takes_seals() {
    let space = 4 * usize::try_from(SEGMENT_LEN).unwrap();
    let disk = Arc::new(SimDisk::with(Faults { space: Some(space), ..Faults::default() }));
    let follower = Follower::start(read(&disk));
    follower.adopt(session(1), 1, 1);
    let mut next = 1;
    while follower.journal.has_room() {
        assert!(next < 100, "the disk never fills");
        follower.append(session(1), 1, next..next + 1, 10_000);
        // Also the one that takes the last space: a refusal ends the stream, which is then not told of what is on its way.
        follower.wait_told(session(1), |told| told.acknowledged == next);
        next += 1;
    }
    let held = next - 1;
    follower.append(session(1), 1, next..next + 1, 10);
    follower.adopt(session(2), 1, 1);
    follower.seal(session(2));
    follower.wait_told(session(2), |told| told.sealed);
    assert_eq!(follower.told(session(1)).acknowledged, held, "a frame in the space for seals");
    follower.end();
    // A restart finds no space at all, and another one: seals and tails go on.
    let follower = Follower::start(read(&disk));
    follower.seal(session(3));
    follower.wait_told(session(3), |told| told.sealed);
    follower.adopt(session(1), 1, 1);
    follower.append(session(1), 1, held + 1..held + 2, 10);
    follower.end();
    let opened = read(&disk);
    assert_eq!(readable(&opened, session(1)), (1..=held).collect::<Vec<_>>());
    for number in [2, 3] {
        assert!(state(&opened.logs, session(number)).4, "session {number} is sealed");
    }
    let follower = Follower::start(opened);
    assert!(!follower.journal.has_room());
    follower.adopt(session(1), 1, 1);
    // Space comes back with a release, and with it the frames.
    follower.release(session(1), 1, held + 1);
    follower.adopt(session(1), 2, held + 1);
    while !follower.journal.has_room() {
        std::thread::yield_now();
    }
    follower.append(session(1), 2, held + 1..held + 2, 10_000);
    follower.wait_told(session(1), |told| told.acknowledged == held + 1);
    assert_eq!(follower.end(), Ends::Closed);
    assert!(state(&read(&disk).logs, session(1)).3);
}
