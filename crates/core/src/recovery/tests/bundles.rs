//! A dead session whose record speaks of bundles: they are read, in the right order, before its log is sealed.

use super::*;

fn bundled(record: LogRecord) -> LogRecord {
    LogRecord { bundles_from: Some(LogOffset::new(2)), ..record }
}

impl Run {
    #[track_caller]
    fn gathers_bundles(&self, is_whole: bool) {
        let from = LogOffset::new(2);
        assert_eq!(self.effect, Some(RecoveryEffect::GatherBundles { from, is_whole }));
    }

    fn damaged(&mut self) -> &mut Self {
        let fault = GatherFault::Bundle("`log/n/…` is damaged".to_string());
        self.on(RecoveryEvent::GatherFailed(fault));
        assert_eq!(self.effect, Some(RecoveryEffect::LookForLoss));
        self
    }
}

#[test]
fn bundles_are_read_after_the_tail_of_a_sealed_witness() {
    let mut run = Run::from(bundled(open()));
    assert_eq!(run.applied().bundles_from, Some(LogOffset::new(2)));
    run.sealed(a(), holdings(&a(), 4, 10)).gathers(&a(), 4, 10, true);
    run.on(RecoveryEvent::Gathered).gathers_bundles(true);
    run.on(RecoveryEvent::Gathered).is_recovered(false);
}

#[test]
fn a_witness_without_a_frame_has_released_them_to_bundles() {
    let mut run = Run::from(bundled(open()));
    run.applied();
    run.sealed(a(), holdings(&a(), 10, 10)).gathers_bundles(true);
    run.on(RecoveryEvent::Gathered).is_recovered(false);
}

#[test]
fn bundles_are_read_where_no_follower_need_be_asked() {
    let mut run = Run::from(bundled(LogRecord { active: false, prior: None, ..open() }));
    assert_eq!(run.applied().state, LogState::Recovering, "the heartbeat needs the record");
    run.gathers_bundles(true);
    run.now = run.now.plus(HEARTBEAT_INTERVAL_MS);
    run.on(RecoveryEvent::Progress { done_below: LogOffset::ZERO });
    assert_eq!(run.applied().recovery.unwrap().claimant, ME);
    run.on(RecoveryEvent::Gathered).is_recovered(false);
}

#[test]
fn another_witness_is_followed_by_another_look_at_the_bundles() {
    let mut run = Run::from(bundled(open()));
    run.applied();
    run.sealed(a(), holdings(&a(), 4, 10));
    run.on(RecoveryEvent::GatherFailed(GatherFault::Member("cut".to_string())));
    // `b` was told until its seal to drop what a bundle holds.
    run.sealed(b(), holdings(&b(), 6, 10)).gathers(&b(), 6, 10, true);
    run.on(RecoveryEvent::Gathered).gathers_bundles(true);
}

#[test]
fn a_damaged_bundle_stops_the_recovery_until_a_person_declares_the_loss() {
    let mut run = Run::from(bundled(open()));
    run.applied();
    run.sealed(a(), holdings(&a(), 4, 10)).on(RecoveryEvent::Gathered).damaged();
    run.on(RecoveryEvent::LossLookedFor { is_declared: false });
    let RecoveryOutcome::Failed(RecoveryFailure::Gather(reason)) = run.outcome() else { panic!() };
    assert!(reason.contains("damaged"));

    let mut run = Run::from(bundled(open()));
    run.applied();
    run.sealed(a(), holdings(&a(), 4, 10)).on(RecoveryEvent::Gathered).damaged();
    run.on(RecoveryEvent::LossLookedFor { is_declared: true }).gathers_bundles(false);
    run.on(RecoveryEvent::Gathered).is_recovered(true);
}

#[test]
fn after_a_declared_loss_bundles_come_before_what_a_damaged_member_has() {
    let mut run = Run::from(bundled(open()));
    run.applied();
    run.sealed(a(), Holdings { is_complete: false, ..holdings(&a(), 4, 8) }).unreachable(b());
    run.on(RecoveryEvent::LossLookedFor { is_declared: true }).gathers_bundles(false);
    run.on(RecoveryEvent::Gathered).gathers(&a(), 4, 8, false);
    run.on(RecoveryEvent::Gathered).is_recovered(true);
}

#[test]
fn bundles_that_cannot_be_read_are_read_later() {
    let mut run = Run::from(bundled(open()));
    run.applied();
    run.sealed(a(), holdings(&a(), 10, 10));
    run.on(RecoveryEvent::GatherFailed(GatherFault::Here("no answer".to_string())));
    assert!(matches!(run.outcome(), RecoveryOutcome::Failed(RecoveryFailure::Gather(_))));
}
