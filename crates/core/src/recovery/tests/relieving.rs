//! A recoverer that died is relieved at once, one that lives is left alone.

use super::*;
use crate::ownership::{LeaseView, Protocol};

fn other_node() -> NodeName {
    NodeName::parse("o").unwrap()
}

pub(super) fn lease(session: SessionId, expires_ms: Millis) -> LeaseView {
    LeaseView { session, expires_ms, protocol: Protocol { min: 1, max: 1 } }
}

/// `OTHER` of node `o` showed progress a moment ago.
fn recovered_by_another() -> LogRecord {
    let mut record = recovering(OTHER, 10, 6, false);
    record.recovery.as_mut().unwrap().claimant_node = Some(other_node());
    record
}

fn judging() -> Run {
    let run = Run::from(recovered_by_another());
    assert_eq!(run.effect, Some(RecoveryEffect::ReadClaimantLease { node: other_node() }));
    run
}

#[test]
fn a_recoverer_with_a_dead_lease_is_taken_over_where_it_was() {
    let expired = lease(OTHER, NOW.minus(SKEW_MS));
    let replaced = lease(SessionId::from_bits(52), NOW.plus(60_000));
    for lease in [Some(expired), Some(replaced), None] {
        let mut run = judging();
        run.on(RecoveryEvent::ClaimantLeaseRead { lease });
        let mark = run.applied().recovery.unwrap();
        assert_eq!((mark.claimant, mark.done_below), (ME, LogOffset::new(6)));
        assert_eq!(mark.claimant_node, Some(NodeName::parse("m").unwrap()));
        run.asks(&[&a(), &b()]);
        run.sealed(a(), holdings(&a(), 4, 10)).gathers(&a(), 6, 10, true);
    }
}

#[test]
fn a_recoverer_that_lives_or_may_live_is_left_alone() {
    let live = lease(OTHER, NOW.plus(1));
    let within_skew = lease(OTHER, NOW.minus(SKEW_MS - 1));
    for event in [
        RecoveryEvent::ClaimantLeaseRead { lease: Some(live) },
        RecoveryEvent::ClaimantLeaseRead { lease: Some(within_skew) },
        RecoveryEvent::ReadFailed,
    ] {
        assert_eq!(judging().on(event).outcome(), RecoveryOutcome::Busy { claimant: OTHER });
    }
    let of_a_tool = Run::from(recovering(OTHER, 10, 6, false)).outcome();
    assert_eq!(of_a_tool, RecoveryOutcome::Busy { claimant: OTHER }, "a tool has no lease");
}

#[test]
fn a_heartbeat_between_the_judgement_and_the_takeover_is_not_overwritten() {
    let mut run = judging();
    run.on(RecoveryEvent::ClaimantLeaseRead { lease: None });
    run.on(RecoveryEvent::RecordAnswered(Answer::Rejected));
    let mut later = recovered_by_another();
    later.recovery.as_mut().unwrap().done_below = LogOffset::new(8);
    run.read(later);
    run.on(RecoveryEvent::ClaimantLeaseRead { lease: None });
    assert_eq!(run.applied().recovery.unwrap().done_below, LogOffset::new(8));
}
