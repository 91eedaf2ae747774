//! Shards among wakers.

use alloc::vec;
use alloc::vec::Vec;

use holdfast_types::Millis;

use super::support::{cell, session};
use crate::waker::{ShardAction, ShardHolder, ShardLease, plan_shards, shard_of};

const TTL: u64 = 15_000;

/// The leases of a fleet's wakers, written without races.
struct Leases(Vec<Option<ShardLease>>);

impl Leases {
    fn new(shards: usize) -> Self {
        Self(vec![None; shards])
    }

    fn tick(&mut self, me: u128, wall: u64) {
        let until = |ms| ShardHolder { session: session(me), expires_ms: Millis::new(ms) };
        for action in plan_shards(&self.0, session(me), Millis::new(wall)) {
            match action {
                ShardAction::Hold(shard) => {
                    let wish = self.0[usize::from(shard)].and_then(|lease| lease.wish);
                    let wish = wish.filter(|wish| wish.session != session(me));
                    self.0[usize::from(shard)] = Some(ShardLease { holder: until(wall + TTL), wish });
                }
                ShardAction::GiveUp(shard) => {
                    let lease = self.0[usize::from(shard)].as_mut().unwrap();
                    assert_eq!(lease.holder.session, session(me), "only the holder gives up");
                    lease.holder.expires_ms = Millis::ZERO;
                }
                ShardAction::Wish(shard) => {
                    self.0[usize::from(shard)].as_mut().unwrap().wish = Some(until(wall + TTL));
                }
            }
        }
    }

    fn held(&self, by: u128, wall: u64) -> usize {
        let live = |lease: &ShardLease| lease.holder.expires_ms > Millis::new(wall);
        self.0.iter().flatten().filter(|lease| live(lease) && lease.holder.session == session(by)).count()
    }
}

#[test]
fn one_waker_takes_everything_and_shares_it_with_those_that_come() {
    let mut leases = Leases::new(8);
    leases.tick(1, 0);
    assert_eq!(leases.held(1, 0), 8);
    for round in 1..6 {
        leases.tick(1, round * 5_000);
        leases.tick(2, round * 5_000);
    }
    assert_eq!((leases.held(1, 25_000), leases.held(2, 25_000)), (4, 4));
    for round in 6..16 {
        for me in 1..=3 {
            leases.tick(me, round * 5_000);
        }
    }
    for me in 1..=3 {
        assert!((2..=4).contains(&leases.held(me, 75_000)), "{me} holds {}", leases.held(me, 75_000));
    }
}

#[test]
fn the_shards_of_one_that_died_are_taken_once_its_leases_are_over() {
    let mut leases = Leases::new(8);
    leases.tick(1, 0);
    leases.tick(2, 14_999);
    assert_eq!(leases.held(2, 14_999), 0);
    leases.tick(2, 15_000);
    assert_eq!(leases.held(2, 15_000), 8);
}

#[test]
fn a_wish_of_one_that_died_keeps_a_shard_from_nobody_for_long() {
    let mut leases = Leases::new(2);
    leases.tick(1, 0);
    leases.tick(2, 5_000);
    // It gave a shard up for the second, which is gone since.
    leases.tick(1, 10_000);
    assert_eq!(leases.held(1, 10_000), 1);
    leases.tick(1, 20_000);
    assert_eq!(leases.held(1, 20_000), 2);
}

#[test]
fn more_wakers_than_shards_is_no_reason_to_pass_them_around() {
    let mut leases = Leases::new(2);
    for round in 0..10 {
        for me in 1..=5 {
            leases.tick(me, round * 5_000);
        }
        if round > 1 {
            assert_eq!(
                (leases.held(1, round * 5_000), leases.held(2, round * 5_000)),
                (1, 1),
                "round {round}"
            );
        }
    }
}

#[test]
fn cells_spread_over_the_shards() {
    let mut counts = [0_usize; 8];
    for number in 0..8_000 {
        counts[usize::from(shard_of(&cell(number), 8))] += 1;
    }
    assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
    // For ever: every waker must put a cell into the same shard.
    assert_eq!(shard_of(&cell(1), 1), 0);
    assert_eq!(
        (shard_of(&cell(1), 8), shard_of(&cell(2), 8)),
        (shard_of(&cell(1), 8), shard_of(&cell(2), 8))
    );
}
