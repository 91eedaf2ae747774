//! The power fails at any operation of the disk: whatever was told is there afterwards.

use std::sync::Arc;

use proptest::prelude::*;

use super::sim_disk::{Faults, SimDisk};
use super::support::*;

#[derive(Clone, Debug)]
enum Step {
    Adopt,
    Append { frames: u64, len: usize },
    Release { keep: u64 },
    Seal,
    Wait,
}

fn step() -> impl Strategy<Value = (u128, Step)> {
    let step = prop_oneof![
        2 => Just(Step::Adopt),
        10 => (1..4_u64, 0..30_000_usize).prop_map(|(frames, len)| Step::Append { frames, len }),
        4 => (0..4_u64).prop_map(|keep| Step::Release { keep }),
        1 => Just(Step::Seal),
        4 => Just(Step::Wait),
    ];
    (1..4_u128, step)
}

#[derive(Clone, Copy, Default)]
struct Owner {
    log_epoch: u64,
    next: u64,
    released: u64,
}

fn take(follower: &Follower, number: u128, owner: &mut Owner, step: &Step) {
    let session = session(number);
    match *step {
        Step::Adopt => {
            owner.log_epoch += 1;
            owner.next = owner.next.max(1);
            follower.adopt(session, owner.log_epoch, owner.released.max(1));
        }
        Step::Append { frames, len } if owner.log_epoch > 0 => {
            follower.append(session, owner.log_epoch, owner.next..owner.next + frames, len);
            owner.next += frames;
        }
        Step::Release { keep } if owner.log_epoch > 0 => {
            let start = (follower.told(session).acknowledged + 1).saturating_sub(keep);
            owner.released = owner.released.max(start);
            follower.release(session, owner.log_epoch, start);
        }
        Step::Seal => follower.seal(session),
        // Lets the thread have its turn: where batches end is part of what is tried.
        Step::Wait => std::thread::yield_now(),
        Step::Append { .. } | Step::Release { .. } => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn what_was_told_survives_a_power_cut_at_any_operation(
        steps in prop::collection::vec(step(), 1..60),
        lives in prop::collection::vec(5..120_usize, 1..3),
        coins in any::<u64>(),
    ) {
        let mut disk = Arc::new(SimDisk::default());
        let mut owners = [Owner::default(); 4];
        let mut coins = coins | 1;
        let mut coin = move || {
            coins ^= coins << 13;
            coins ^= coins >> 7;
            coins ^= coins << 17;
            coins & 1 == 1
        };
        for life in lives {
            let opened = read(&disk);
            disk.set(Faults { power_fails_at: Some(life), ..Faults::default() });
            let follower = Follower::start(opened);
            for owner in &mut owners {
                // A new stream, at a new log epoch, from what is retained.
                owner.log_epoch += u64::from(owner.log_epoch > 0);
            }
            for number in 1..4 {
                let owner = owners[usize::try_from(number).unwrap()];
                if owner.log_epoch > 0 {
                    follower.adopt(session(number), owner.log_epoch, owner.released.max(1));
                    let told = follower.told(session(number));
                    owners[usize::try_from(number).unwrap()].next = (told.acknowledged + 1).max(owner.released.max(1));
                }
            }
            for (number, step) in &steps {
                take(&follower, *number, &mut owners[usize::try_from(*number).unwrap()], step);
            }
            follower.end();
            let cut = Arc::new(disk.after_power_cut(&mut coin));
            let opened = read(&cut);
            prop_assert!(!opened.is_damaged);
            for number in 1..4 {
                let told = follower.told(session(number));
                let (_, start, end, is_complete, is_sealed) = state(&opened.logs, session(number));
                prop_assert!(is_complete, "session {number} lost something");
                prop_assert!(end > told.acknowledged, "told {told:?}, held up to {end}");
                prop_assert!(is_sealed || !told.sealed);
                let frames = readable(&opened, session(number));
                prop_assert_eq!(frames, (start..end).collect::<Vec<_>>());
            }
            disk = cut;
        }
    }
}
