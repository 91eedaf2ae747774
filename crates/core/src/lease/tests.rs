use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::store::{Answer, Guard};
use holdfast_types::{Incarnation, Millis, SessionId, WriteId};

const TIMING: LeaseTiming = LeaseTiming::with_ttl(9_000, 500);
const WALL: u64 = 1_000_000;

fn at(ms: u64) -> Now {
    Now { monotonic: Millis::new(ms), wall: Millis::new(WALL + ms) }
}

fn id(bits: u128) -> WriteId {
    WriteId::from_bits(bits)
}

/// This session.
const ME: u128 = 77;

fn record(write_id: u128, incarnation: u128, expires: u64) -> LeaseRecord {
    LeaseRecord {
        write_id: id(write_id),
        session: SessionId::from_bits(ME),
        incarnation: Incarnation::from_bits(incarnation),
        expires_ms: Millis::new(expires),
    }
}

fn start() -> LeaseKeeper<u64> {
    let (keeper, effects) = LeaseKeeper::start(TIMING, SessionId::from_bits(ME), Incarnation::from_bits(7));
    assert_eq!(effects, vec![LeaseEffect::Read]);
    keeper
}

fn held() -> LeaseKeeper<u64> {
    let mut keeper = start();
    let effects = keeper.on(LeaseEvent::Read { record: None, now: at(0), write_id: id(1) });
    assert!(matches!(effects[..], [LeaseEffect::Write { guard: Guard::Absent, deadline_ms: 3_000, .. }]));
    let effects = keeper.on(LeaseEvent::Written { answer: Answer::Applied(1), now: at(10), jitter: 0 });
    assert_eq!(
        effects,
        vec![LeaseEffect::Authority { until: Millis::new(9_000) }, LeaseEffect::WakeAt(Millis::new(3_000))]
    );
    keeper
}

fn fence(effects: &[LeaseEffect<u64>]) -> Option<FenceCause> {
    effects.iter().find_map(|effect| match effect {
        LeaseEffect::Fence(cause) => Some(*cause),
        _ => None,
    })
}

#[test]
fn authority_is_anchored_before_the_write() {
    let mut keeper = held();
    keeper.on(LeaseEvent::Woke { now: at(3_000), write_id: id(2) });
    let effects = keeper.on(LeaseEvent::Written { answer: Answer::Applied(2), now: at(5_900), jitter: 0 });
    assert_eq!(effects[0], LeaseEffect::Authority { until: Millis::new(12_000) });
}

#[test]
fn a_restart_on_the_same_directory_replaces_its_lease_at_once() {
    let mut keeper = start();
    let there = record(99, 7, WALL + 8_000);
    let effects = keeper.on(LeaseEvent::Read { record: Some((there, 4)), now: at(0), write_id: id(1) });
    assert!(matches!(effects[..], [LeaseEffect::Write { guard: Guard::Match(4), .. }]));
}

#[test]
fn another_directory_waits_until_the_lease_is_dead() {
    let mut keeper = start();
    let there = record(99, 8, WALL + 8_000);
    let read = |ms| LeaseEvent::Read { record: Some((there.clone(), 4)), now: at(ms), write_id: id(1) };
    let effects = keeper.on(read(0));
    assert_eq!(effects[1], LeaseEffect::WakeAt(Millis::new(8_500)));
    assert_eq!(keeper.on(LeaseEvent::Woke { now: at(8_500), write_id: id(1) }), vec![LeaseEffect::Read]);
    assert!(matches!(keeper.on(read(8_500))[..], [LeaseEffect::Write { .. }]));
}

#[test]
fn an_outage_of_a_second_and_a_half_fences_nobody() {
    let mut keeper = held();
    let mut effects = keeper.on(LeaseEvent::Woke { now: at(3_000), write_id: id(2) });
    let mut now = 3_000;
    let mut tries = 0;
    while now < 4_500 {
        assert_eq!(fence(&effects), None);
        effects = match effects[..] {
            [LeaseEffect::Write { .. }] => {
                keeper.on(LeaseEvent::Written { answer: Answer::Unknown, now: at(now), jitter: 0 })
            }
            [LeaseEffect::Read] => keeper.on(LeaseEvent::ReadFailed { now: at(now), jitter: 0 }),
            [LeaseEffect::WakeAt(then)] => {
                now = then.get();
                tries += 1;
                keeper.on(LeaseEvent::Woke { now: at(now), write_id: id(3) })
            }
            ref other => panic!("{other:?}"),
        };
    }
    assert!(tries >= 4, "retries come soon: {tries}");
    // The store is back: the record is the one last confirmed, and the renewal goes through.
    let there = record(1, 7, WALL + 9_000);
    let effects = keeper.on(LeaseEvent::Read { record: Some((there, 1)), now: at(now), write_id: id(9) });
    assert!(matches!(effects[..], [LeaseEffect::Write { guard: Guard::Match(1), .. }]), "{effects:?}");
}

#[test]
fn a_renewal_whose_answer_was_lost_is_found_again() {
    let mut keeper = held();
    keeper.on(LeaseEvent::Woke { now: at(3_000), write_id: id(2) });
    keeper.on(LeaseEvent::Written { answer: Answer::Unknown, now: at(3_500), jitter: 0 });
    keeper.on(LeaseEvent::Woke { now: at(3_600), write_id: id(3) });
    let there = record(2, 7, WALL + 12_000);
    let effects = keeper.on(LeaseEvent::Read { record: Some((there, 2)), now: at(3_700), write_id: id(4) });
    assert_eq!(effects[0], LeaseEffect::Authority { until: Millis::new(12_000) });
}

#[test]
fn a_first_lease_that_is_seen_only_after_its_end_is_written_again() {
    let mut keeper = start();
    keeper.on(LeaseEvent::Read { record: None, now: at(0), write_id: id(1) });
    keeper.on(LeaseEvent::Written { answer: Answer::Unknown, now: at(3_000), jitter: 0 });
    let read = |ms, write_id| LeaseEvent::Read {
        record: Some((record(1, 7, WALL + 9_000), 4)),
        now: at(ms),
        write_id: id(write_id),
    };
    keeper.on(LeaseEvent::Woke { now: at(9_500), write_id: id(2) });
    assert_eq!(keeper.on(read(9_600, 2)), vec![LeaseEffect::WakeAt(Millis::new(9_600))]);
    keeper.on(LeaseEvent::Woke { now: at(9_600), write_id: id(3) });
    let effects = keeper.on(read(9_700, 3));
    assert!(matches!(effects[..], [LeaseEffect::Write { guard: Guard::Match(4), .. }]), "{effects:?}");
}

#[test]
fn a_renewal_that_lands_after_the_end_is_a_fence() {
    let mut keeper = held();
    keeper.on(LeaseEvent::Woke { now: at(8_900), write_id: id(2) });
    let effects = keeper.on(LeaseEvent::Written { answer: Answer::Applied(2), now: at(9_000), jitter: 0 });
    assert_eq!(fence(&effects), Some(FenceCause::Expired));
    assert_eq!(keeper.on(LeaseEvent::Woke { now: at(9_001), write_id: id(3) }), Vec::new());
}

#[test]
fn each_fence_names_its_cause() {
    let rejected = |now| LeaseEvent::Written { answer: Answer::Rejected, now, jitter: 0 };
    let read = |record| LeaseEvent::Read { record, now: at(3_200), write_id: id(3) };
    for (record, cause) in [
        (None, FenceCause::RecordMissing),
        (Some((record(50, 8, WALL + 9_000), 5)), FenceCause::RecordMismatch),
        // Not even a record that carries my write id, where it names another session.
        (
            Some((LeaseRecord { session: SessionId::from_bits(78), ..record(1, 7, WALL + 9_000) }, 5)),
            FenceCause::RecordMismatch,
        ),
    ] {
        let mut keeper = held();
        keeper.on(LeaseEvent::Woke { now: at(3_000), write_id: id(2) });
        assert_eq!(keeper.on(rejected(at(3_100))), vec![LeaseEffect::Read]);
        assert_eq!(fence(&keeper.on(read(record))), Some(cause));
    }
    let mut keeper = held();
    assert_eq!(
        fence(&keeper.on(LeaseEvent::Woke { now: at(9_000), write_id: id(2) })),
        Some(FenceCause::Expired)
    );
}
