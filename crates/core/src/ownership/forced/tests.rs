use alloc::vec;

use super::*;
use crate::ownership::Protocol;

const V1: Protocol = Protocol { min: 1, max: 1 };

fn node(name: &str) -> NodeName {
    NodeName::parse(name).unwrap()
}

fn start() -> ForcedPurge<u64> {
    let me = Claimant {
        node: node("operator"),
        session: SessionId::from_bits(10),
        protocol: V1,
        clock_skew_max_ms: 500,
    };
    let (purge, effect) = ForcedPurge::start(me, WriteId::from_bits(1 << 64));
    assert_eq!(effect, ForcedPurgeEffect::LookAtOwner);
    purge
}

fn lease(name: &str, session: u128, expires: u64) -> (NodeName, Option<LeaseView>) {
    let lease =
        LeaseView { session: SessionId::from_bits(session), expires_ms: Millis::new(expires), protocol: V1 };
    (node(name), Some(lease))
}

fn sees(purge: &mut ForcedPurge<u64>, sighting: Sighting<u64>) {
    assert_eq!(purge.on(ForcedPurgeEvent::Seen(sighting)), ForcedPurgeEffect::ReadLeases);
}

fn leases(
    purge: &mut ForcedPurge<u64>,
    leases: Vec<(NodeName, Option<LeaseView>)>,
) -> ForcedPurgeEffect<u64> {
    purge.on(ForcedPurgeEvent::LeasesRead { leases, wall_now: Millis::new(10_000) })
}

fn history(purge: &mut ForcedPurge<u64>, newest: u64) -> ForcedPurgeEffect<u64> {
    purge.on(ForcedPurgeEvent::HistorySeen { newest: Some(Epoch::new(newest)), is_there: true })
}

#[track_caller]
fn written(effect: &ForcedPurgeEffect<u64>) -> (OwnerView, Guard<u64>) {
    match effect {
        ForcedPurgeEffect::WriteOwner { owner, guard } => (owner.clone(), guard.clone()),
        other => panic!("expected a write, got {other:?}"),
    }
}

fn finished(outcome: ForcedPurgeOutcome) -> ForcedPurgeEffect<u64> {
    ForcedPurgeEffect::Finish(outcome)
}

/// Nobody else's log is open.
fn logs(purge: &mut ForcedPurge<u64>) {
    let read = ForcedPurgeEvent::LogsRead { unsealed: vec![] };
    assert_eq!(purge.on(read), ForcedPurgeEffect::ListHistory);
}

/// To the first write, with nobody alive.
fn to_the_write(purge: &mut ForcedPurge<u64>, sighting: Sighting<u64>) -> (OwnerView, Guard<u64>) {
    sees(purge, sighting);
    assert_eq!(leases(purge, vec![lease("a", 1, 9_000)]), ForcedPurgeEffect::ReadLogs);
    logs(purge);
    written(&history(purge, 7))
}

#[test]
fn what_was_found_guards_the_purge_far_above_what_is_there() {
    let cases = [(Sighting::Missing, Guard::Absent), (Sighting::Unreadable { version: 5 }, Guard::Match(5))];
    for (sighting, expected) in cases {
        let mut purge = start();
        let (owner, guard) = to_the_write(&mut purge, sighting);
        assert_eq!(guard, expected);
        assert_eq!(owner.state, OwnerState::Purged);
        assert_eq!((owner.epoch, owner.floor), (Epoch::new(7 + (1 << 32)), Epoch::new(7 + (1 << 32))));
        let outcome = purge.on(ForcedPurgeEvent::Answered(Answer::Applied(6)));
        assert_eq!(outcome, finished(ForcedPurgeOutcome::Purged(owner.epoch)));
    }
}

#[test]
fn every_session_that_lives_lets_the_cell_go_before_anything_is_written() {
    let mut purge = start();
    sees(&mut purge, Sighting::Unreadable { version: 5 });
    // At the skew's edge it still lives; one millisecond further it is dead.
    let effect = leases(&mut purge, vec![lease("a", 1, 9_501), lease("b", 2, 9_500), lease("c", 3, 20_000)]);
    let asked = |name, session| ForcedPurgeEffect::AskToLetGo {
        node: node(name),
        session: SessionId::from_bits(session),
    };
    assert_eq!(effect, asked("a", 1));
    assert_eq!(purge.on(ForcedPurgeEvent::LetGo), asked("c", 3));
    assert_eq!(purge.on(ForcedPurgeEvent::LetGo), ForcedPurgeEffect::ReadLogs);
    // Those that let it go may go on with other cells.
    let unsealed = vec![(node("a"), SessionId::from_bits(1)), (node("c"), SessionId::from_bits(3))];
    assert_eq!(purge.on(ForcedPurgeEvent::LogsRead { unsealed }), ForcedPurgeEffect::ListHistory);
}

#[test]
fn a_log_of_a_session_that_was_not_asked_stops_it_whatever_its_lease_says() {
    // Its lease is over by this clock, is of another session, or is not there: by its followers it acknowledges all the same.
    for seen in [vec![lease("a", 1, 9_000)], vec![lease("a", 2, 20_000)], vec![]] {
        let mut purge = start();
        sees(&mut purge, Sighting::Missing);
        if let ForcedPurgeEffect::AskToLetGo { .. } = leases(&mut purge, seen) {
            assert_eq!(purge.on(ForcedPurgeEvent::LetGo), ForcedPurgeEffect::ReadLogs);
        }
        let unsealed = vec![(node("a"), SessionId::from_bits(1))];
        let failure = ForcedPurgeFailure::UnsealedLog(node("a"), SessionId::from_bits(1));
        let effect = purge.on(ForcedPurgeEvent::LogsRead { unsealed });
        assert_eq!(effect, finished(ForcedPurgeOutcome::Failed(failure)));
    }
}

#[test]
fn a_later_one_is_above_whatever_an_earlier_one_took() {
    let epoch_at = |wall: u64| {
        let mut purge = start();
        sees(&mut purge, Sighting::Unreadable { version: 5 });
        purge.on(ForcedPurgeEvent::LeasesRead { leases: vec![], wall_now: Millis::new(wall) });
        logs(&mut purge);
        // Nothing of the earlier one is left to be seen.
        written(&purge.on(ForcedPurgeEvent::HistorySeen { newest: None, is_there: true })).0.epoch
    };
    let first = epoch_at(1_796_000_000_000);
    assert!(epoch_at(1_796_000_000_001) > Epoch::new(first.get() + 4_000));
    assert!(first.get() < 1 << 53);
}

#[test]
fn one_that_does_not_let_go_or_whose_lease_says_nothing_stops_it() {
    let mut purge = start();
    sees(&mut purge, Sighting::Missing);
    leases(&mut purge, vec![lease("a", 1, 20_000)]);
    let failure = ForcedPurgeFailure::StillHeld(node("a"));
    assert_eq!(purge.on(ForcedPurgeEvent::NotLetGo), finished(ForcedPurgeOutcome::Failed(failure)));

    let mut purge = start();
    sees(&mut purge, Sighting::Missing);
    let failure = ForcedPurgeFailure::UnreadableLease(node("n"));
    let effect = leases(&mut purge, vec![lease("a", 1, 20_000), (node("n"), None)]);
    assert_eq!(effect, finished(ForcedPurgeOutcome::Failed(failure)));
}

#[test]
fn a_racing_owner_sends_it_back_to_the_beginning() {
    let mut purge = start();
    to_the_write(&mut purge, Sighting::Unreadable { version: 5 });
    let again = purge.on(ForcedPurgeEvent::Answered(Answer::Rejected));
    assert_eq!(again, ForcedPurgeEffect::LookAtOwner);
    // A node of a newer release has written its record meanwhile: everybody is asked anew.
    sees(&mut purge, Sighting::Unreadable { version: 6 });
    assert!(matches!(leases(&mut purge, vec![lease("b", 2, 20_000)]), ForcedPurgeEffect::AskToLetGo { .. }));
    assert_eq!(purge.on(ForcedPurgeEvent::LetGo), ForcedPurgeEffect::ReadLogs);
    logs(&mut purge);
    let (owner, guard) = written(&history(&mut purge, 9));
    assert_eq!((owner.epoch.get(), guard), (9 + (1 << 32), Guard::Match(6)));
}

#[test]
fn a_record_that_can_be_read_is_not_forced() {
    let owner = OwnerView {
        node: node("a"),
        session: SessionId::from_bits(1),
        epoch: Epoch::new(8),
        state: OwnerState::Owned,
        floor: Epoch::ZERO,
        write_id: WriteId::from_bits(3),
    };
    let readable = Sighting::Readable { owner, version: 9 };
    let mut purge = start();
    assert_eq!(purge.on(ForcedPurgeEvent::Seen(readable.clone())), finished(ForcedPurgeOutcome::Readable));
    // Nor one that came between.
    let mut purge = start();
    to_the_write(&mut purge, Sighting::Missing);
    purge.on(ForcedPurgeEvent::Answered(Answer::Rejected));
    assert_eq!(purge.on(ForcedPurgeEvent::Seen(readable)), finished(ForcedPurgeOutcome::Readable));
}

#[test]
fn a_write_whose_answer_is_lost_is_found_again() {
    let mut purge = start();
    let (owner, _) = to_the_write(&mut purge, Sighting::Missing);
    purge.on(ForcedPurgeEvent::Answered(Answer::Unknown));
    let seen = Sighting::Readable { owner: owner.clone(), version: 1 };
    assert_eq!(purge.on(ForcedPurgeEvent::Seen(seen)), finished(ForcedPurgeOutcome::Purged(owner.epoch)));

    let mut purge = start();
    to_the_write(&mut purge, Sighting::Missing);
    purge.on(ForcedPurgeEvent::Answered(Answer::Unknown));
    let failure = ForcedPurgeFailure::Unknown;
    assert_eq!(purge.on(ForcedPurgeEvent::ReadFailed), finished(ForcedPurgeOutcome::Failed(failure)));
}

#[test]
fn nothing_is_purged_where_nothing_is_and_no_epoch_wraps() {
    let mut purge = start();
    sees(&mut purge, Sighting::Missing);
    leases(&mut purge, vec![]);
    logs(&mut purge);
    let effect = purge.on(ForcedPurgeEvent::HistorySeen { newest: None, is_there: false });
    assert_eq!(effect, finished(ForcedPurgeOutcome::NothingToPurge));

    let mut purge = start();
    sees(&mut purge, Sighting::Unreadable { version: 1 });
    leases(&mut purge, vec![]);
    logs(&mut purge);
    let failure = ForcedPurgeFailure::EpochExhausted;
    assert_eq!(history(&mut purge, u64::MAX - 2), finished(ForcedPurgeOutcome::Failed(failure)));
}

#[test]
fn others_that_write_without_end_end_it() {
    let mut purge = start();
    for round in 0..4 {
        to_the_write(&mut purge, Sighting::Unreadable { version: round });
        let effect = purge.on(ForcedPurgeEvent::Answered(Answer::Rejected));
        let expected = if round < 3 {
            ForcedPurgeEffect::LookAtOwner
        } else {
            finished(ForcedPurgeOutcome::Failed(ForcedPurgeFailure::Contended))
        };
        assert_eq!(effect, expected);
    }
}
