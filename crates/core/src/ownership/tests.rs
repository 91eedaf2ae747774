use super::*;
use crate::store::{Answer, Guard};
use holdfast_types::{Epoch, Millis, NodeName, Position, SessionId, Txid, WriteId};

const V1: Protocol = Protocol { min: 1, max: 1 };

fn claimant() -> Claimant {
    Claimant {
        node: NodeName::parse("m").unwrap(),
        session: SessionId::from_bits(10),
        protocol: V1,
        clock_skew_max_ms: 500,
    }
}

fn owner(node: &str, session: u128, epoch: u64, state: OwnerState) -> OwnerView {
    OwnerView {
        node: NodeName::parse(node).unwrap(),
        session: SessionId::from_bits(session),
        epoch: Epoch::new(epoch),
        state,
        floor: Epoch::ZERO,
        write_id: WriteId::from_bits(u128::from(epoch) << 64),
    }
}

/// The owner record is absent, and so is everything else.
fn nothing_there(claim: &mut Claim<u64>) -> ClaimEffect<u64> {
    assert_eq!(claim.on(ClaimEvent::OwnerRead { owner: None }), ClaimEffect::LookForHistory);
    claim.on(ClaimEvent::HistoryLookedFor { is_there: false })
}

#[test]
fn data_without_an_owner_record_is_damage_and_never_a_new_cell() {
    let mut claim = start();
    claim.on(ClaimEvent::OwnerRead { owner: None });
    let effect = claim.on(ClaimEvent::HistoryLookedFor { is_there: true });
    assert_eq!(effect, ClaimEffect::Finish(ClaimOutcome::Failed(ClaimFailure::RecordLost)));
}

fn start() -> Claim<u64> {
    let (claim, effect) = Claim::start(claimant(), Intent::Own, WriteId::from_bits(1));
    assert_eq!(effect, ClaimEffect::ReadOwner);
    claim
}

fn lease(session: u128, expires: u64) -> LeaseView {
    LeaseView { session: SessionId::from_bits(session), expires_ms: Millis::new(expires), protocol: V1 }
}

#[track_caller]
fn written(effect: &ClaimEffect<u64>) -> (Epoch, Guard<u64>) {
    match effect {
        ClaimEffect::WriteOwner { owner, guard } => (owner.epoch, guard.clone()),
        other => panic!("expected a write, got {other:?}"),
    }
}

#[test]
fn an_absent_cell_is_created_at_epoch_one() {
    let mut claim = start();
    let effect = nothing_there(&mut claim);
    assert_eq!(written(&effect), (Epoch::new(1), Guard::Absent));
    let effect = claim.on(ClaimEvent::ClaimAnswered(Answer::Applied(5)));
    assert!(matches!(
        effect,
        ClaimEffect::Finish(ClaimOutcome::Claimed { version: 5, previous: Previous::Absent, .. })
    ));
}

#[test]
fn a_local_wake_advances_the_epoch() {
    let mut claim = start();
    let effect = claim.on(ClaimEvent::OwnerRead { owner: Some((owner("m", 10, 3, OwnerState::Owned), 7)) });
    assert_eq!(written(&effect), (Epoch::new(4), Guard::Match(7)));
}

#[test]
fn a_cell_that_sleeps_is_woken_without_a_read() {
    let asleep = (owner("m", 10, 3, OwnerState::Owned), 7);
    let (mut claim, effect) = Claim::wake(claimant(), WriteId::from_bits(1), asleep);
    assert_eq!(written(&effect), (Epoch::new(4), Guard::Match(7)));
    let effect = claim.on(ClaimEvent::ClaimAnswered(Answer::Applied(8)));
    let ClaimEffect::Finish(ClaimOutcome::Claimed { previous, version: 8, .. }) = effect else {
        panic!("{effect:?}")
    };
    let slept = Position { epoch: Epoch::new(3), txid: Txid::new(5) };
    assert!(previous.is_whole(slept, Some(slept)));
    let older = Position { txid: Txid::new(4), ..slept };
    assert!(!previous.is_whole(slept, Some(older)) && !previous.is_whole(slept, None));
}

#[test]
fn what_slept_is_no_more_than_a_hint_where_the_record_has_changed() {
    let asleep = (owner("m", 10, 3, OwnerState::Owned), 7);
    let (mut claim, _) = Claim::wake(claimant(), WriteId::from_bits(1), asleep);
    assert_eq!(claim.on(ClaimEvent::ClaimAnswered(Answer::Rejected)), ClaimEffect::ReadOwner);
    // Another owner came and went.
    let effect =
        claim.on(ClaimEvent::OwnerRead { owner: Some((owner("n", 20, 5, OwnerState::Released), 9)) });
    assert_eq!(written(&effect), (Epoch::new(6), Guard::Match(9)));
    let effect = claim.on(ClaimEvent::ClaimAnswered(Answer::Applied(10)));
    let ClaimEffect::Finish(ClaimOutcome::Claimed { previous, .. }) = effect else { panic!("{effect:?}") };
    let slept = Position { epoch: Epoch::new(3), txid: Txid::new(5) };
    assert!(previous == Previous::Released && !previous.is_whole(slept, Some(slept)));
}

#[test]
fn an_older_session_of_this_node_is_recovered_first() {
    let mut claim = start();
    let effect = claim.on(ClaimEvent::OwnerRead { owner: Some((owner("m", 9, 3, OwnerState::Owned), 7)) });
    let dead = SessionId::from_bits(9);
    assert_eq!(effect, ClaimEffect::RecoverLog { node: NodeName::parse("m").unwrap(), session: dead });
    assert_eq!(written(&claim.on(ClaimEvent::LogRecovered)), (Epoch::new(4), Guard::Match(7)));
}

#[test]
fn a_blocked_recovery_is_never_a_claim() {
    let mut claim = start();
    claim.on(ClaimEvent::OwnerRead { owner: Some((owner("m", 9, 3, OwnerState::Owned), 7)) });
    assert_eq!(
        claim.on(ClaimEvent::LogBlocked),
        ClaimEffect::Finish(ClaimOutcome::Failed(ClaimFailure::RecoveryBlocked))
    );
}

#[test]
fn a_live_owner_keeps_its_cell_until_expiry_and_skew() {
    for (now, dead) in [(0, false), (9_999, false), (10_499, false), (10_500, true)] {
        let mut claim = start();
        claim.on(ClaimEvent::OwnerRead { owner: Some((owner("n", 20, 3, OwnerState::Owned), 7)) });
        let effect =
            claim.on(ClaimEvent::LeaseRead { lease: Some(lease(20, 10_000)), wall_now: Millis::new(now) });
        assert_eq!(matches!(effect, ClaimEffect::RecoverLog { .. }), dead, "at {now}: {effect:?}");
        assert_eq!(matches!(effect, ClaimEffect::Finish(ClaimOutcome::NotOwner { .. })), !dead);
    }
}

#[test]
fn a_lease_that_names_another_session_means_that_the_owner_is_dead() {
    let mut claim = start();
    claim.on(ClaimEvent::OwnerRead { owner: Some((owner("n", 20, 3, OwnerState::Owned), 7)) });
    let effect = claim.on(ClaimEvent::LeaseRead { lease: Some(lease(21, 10_000)), wall_now: Millis::ZERO });
    assert!(matches!(effect, ClaimEffect::RecoverLog { .. }));
}

#[test]
fn a_live_owner_of_another_protocol_is_an_error_not_a_takeover() {
    let mut claim = start();
    claim.on(ClaimEvent::OwnerRead { owner: Some((owner("n", 20, 3, OwnerState::Owned), 7)) });
    let theirs = Protocol { min: 2, max: 3 };
    let lease = LeaseView { protocol: theirs, ..lease(20, 10_000) };
    let effect = claim.on(ClaimEvent::LeaseRead { lease: Some(lease), wall_now: Millis::ZERO });
    assert!(matches!(effect, ClaimEffect::Finish(ClaimOutcome::Incompatible { .. })));
}

#[test]
fn a_rejected_claim_starts_again_and_a_lost_answer_is_recognised() {
    let mut claim = start();
    nothing_there(&mut claim);
    assert_eq!(claim.on(ClaimEvent::ClaimAnswered(Answer::Rejected)), ClaimEffect::ReadOwner);
    let effect =
        claim.on(ClaimEvent::OwnerRead { owner: Some((owner("n", 20, 1, OwnerState::Released), 7)) });
    let ClaimEffect::WriteOwner { owner: attempt, .. } = effect else { panic!("{effect:?}") };
    assert_eq!(claim.on(ClaimEvent::ClaimAnswered(Answer::Unknown)), ClaimEffect::ReadOwner);
    let effect = claim.on(ClaimEvent::OwnerRead { owner: Some((attempt.clone(), 9)) });
    let outcome = ClaimOutcome::Claimed { owner: attempt, version: 9, previous: Previous::Released };
    assert_eq!(effect, ClaimEffect::Finish(outcome));
}

#[test]
fn three_unknown_answers_end_a_claim() {
    let mut claim = start();
    for round in 0..3 {
        nothing_there(&mut claim);
        let effect = claim.on(ClaimEvent::ClaimAnswered(Answer::Unknown));
        let given_up = ClaimEffect::Finish(ClaimOutcome::Failed(ClaimFailure::Unknown));
        assert_eq!(effect == given_up, round == 2, "{round}");
    }
}

#[test]
fn a_purge_raises_the_floor_and_a_later_claim_carries_it() {
    let (mut purge, _) = Claim::start(claimant(), Intent::Purge, WriteId::from_bits(1));
    let effect =
        purge.on(ClaimEvent::OwnerRead { owner: Some((owner("n", 20, 3, OwnerState::Released), 7)) });
    let ClaimEffect::WriteOwner { owner: purged, .. } = effect else { panic!("{effect:?}") };
    assert_eq!(
        (purged.state, purged.epoch, purged.floor),
        (OwnerState::Purged, Epoch::new(4), Epoch::new(4))
    );
    let mut claim = start();
    let effect = claim.on(ClaimEvent::OwnerRead { owner: Some((purged, 8)) });
    let ClaimEffect::WriteOwner { owner: claimed, .. } = effect else { panic!("{effect:?}") };
    assert_eq!((claimed.epoch, claimed.floor), (Epoch::new(5), Epoch::new(4)));
}

#[test]
fn a_release_after_a_takeover_changes_nothing() {
    let mine = owner("m", 10, 3, OwnerState::Owned);
    let (mut release, effect) = Release::start(&mine, 7_u64, WriteId::from_bits(2));
    assert!(matches!(effect, ReleaseEffect::WriteOwner { guard: Guard::Match(7), .. }));
    assert_eq!(release.on(ReleaseEvent::<u64>::Answered(Answer::Rejected)), ReleaseEffect::ReadOwner);
    let taken = owner("n", 20, 4, OwnerState::Owned);
    let effect = release.on(ReleaseEvent::OwnerRead { owner: Some((taken, 8)) });
    assert_eq!(effect, ReleaseEffect::Finish(ReleaseOutcome::AlreadyLost));
}
