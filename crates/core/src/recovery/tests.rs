use alloc::string::ToString;

use alloc::vec::Vec;

use holdfast_types::{FollowerName, Incarnation, LogEpoch, LogOffset, Millis, NodeName, SessionId, WriteId};

use super::*;
use crate::log_record::{Ensemble, LogRecord, LogState, MemberId, RecoveryMark};
use crate::store::{Answer, Guard};

mod bundles;
mod racing;
mod relieving;

const ME: SessionId = SessionId::from_bits(50);
const OTHER: SessionId = SessionId::from_bits(51);
const DEAD: SessionId = SessionId::from_bits(9);
const SKEW_MS: u64 = 500;
const NOW: Millis = Millis::new(1_000_000);

fn member(name: &str, incarnation: u128) -> MemberId {
    MemberId {
        follower: FollowerName::parse(name).unwrap(),
        incarnation: Incarnation::from_bits(incarnation),
    }
}

fn ensemble(log_epoch: u64, members: &[&MemberId]) -> Ensemble {
    Ensemble { log_epoch: LogEpoch::new(log_epoch), members: members.iter().copied().cloned().collect() }
}

fn a() -> MemberId {
    member("a", 1)
}

fn b() -> MemberId {
    member("b", 2)
}

/// Open, with `a` and `b` active at log epoch 3.
fn open() -> LogRecord {
    LogRecord {
        write_id: WriteId::from_bits(7 << 64),
        node: NodeName::parse("n").unwrap(),
        session: DEAD,
        state: LogState::Open,
        ensemble: ensemble(3, &[&a(), &b()]),
        active: true,
        prior: None,
        recovery: None,
        loss_declared: false,
        bundles_from: None,
    }
}

fn recovering(claimant: SessionId, silent_ms: u64, done_below: u64, is_blocked: bool) -> LogRecord {
    LogRecord {
        state: LogState::Recovering,
        recovery: Some(RecoveryMark {
            claimant,
            claimant_node: None,
            heartbeat_ms: NOW.minus(silent_ms),
            done_below: LogOffset::new(done_below),
            is_blocked,
        }),
        ..open()
    }
}

fn holdings(member: &MemberId, start: u64, end: u64) -> Holdings {
    Holdings {
        incarnation: member.incarnation,
        log_epoch: LogEpoch::new(3),
        start: LogOffset::new(start),
        end: LogOffset::new(end),
        is_complete: true,
        is_sealed: true,
    }
}

/// A machine and the version of the last write.
struct Run {
    machine: Recovery<u64>,
    effect: Option<RecoveryEffect<u64>>,
    version: u64,
    now: Millis,
}

impl Run {
    fn start() -> Self {
        let me = Recoverer {
            claimant: ME,
            claimant_node: Some(NodeName::parse("m").unwrap()),
            node: NodeName::parse("n").unwrap(),
            session: DEAD,
            clock_skew_max_ms: SKEW_MS,
        };
        let (machine, effect) = Recovery::start(me, WriteId::from_bits(1 << 64));
        assert_eq!(effect, RecoveryEffect::ReadRecord);
        Self { machine, effect: Some(effect), version: 5, now: NOW }
    }

    fn on(&mut self, event: RecoveryEvent<u64>) -> &mut Self {
        self.effect = self.machine.on(event, self.now);
        self
    }

    fn read(&mut self, record: LogRecord) -> &mut Self {
        let record = Some((record, self.version));
        self.on(RecoveryEvent::RecordRead { record })
    }

    fn from(record: LogRecord) -> Self {
        let mut run = Self::start();
        run.read(record);
        run
    }

    /// Applies the write that is outstanding, and says what it was.
    #[track_caller]
    fn applied(&mut self) -> LogRecord {
        let Some(RecoveryEffect::WriteRecord { record, guard, .. }) = self.effect.clone() else {
            panic!("expected a write, got {:?}", self.effect)
        };
        assert_eq!(guard, Guard::Match(self.version));
        self.version += 1;
        self.on(RecoveryEvent::RecordAnswered(Answer::Applied(self.version)));
        record
    }

    fn sealed(&mut self, member: MemberId, holdings: Holdings) -> &mut Self {
        self.on(RecoveryEvent::MemberSealed { member, holdings })
    }

    fn unreachable(&mut self, member: MemberId) -> &mut Self {
        self.on(RecoveryEvent::MemberUnreachable { member, reason: "refused".to_string() })
    }

    #[track_caller]
    fn outcome(&self) -> RecoveryOutcome {
        match &self.effect {
            Some(RecoveryEffect::Finish(outcome)) => outcome.clone(),
            other => panic!("expected an end, got {other:?}"),
        }
    }

    #[track_caller]
    fn asks(&self, members: &[&MemberId]) {
        let members: Vec<MemberId> = members.iter().copied().cloned().collect();
        assert_eq!(self.effect, Some(RecoveryEffect::SealMembers { members }));
    }

    #[track_caller]
    fn gathers(&self, member: &MemberId, start: u64, end: u64, is_whole: bool) {
        let (start, end) = (LogOffset::new(start), LogOffset::new(end));
        let gather = RecoveryEffect::Gather { member: member.clone(), start, end, is_whole };
        assert_eq!(self.effect, Some(gather));
    }

    /// Up to the seals of `a` and `b`.
    fn asking() -> Self {
        let mut run = Self::from(open());
        let record = run.applied();
        assert_eq!(record.state, LogState::Recovering);
        run.asks(&[&a(), &b()]);
        run
    }

    /// Up to gathering offsets 4 to 9 from `a`, while `b` has yet to answer.
    fn gathering() -> Self {
        let mut run = Self::asking();
        run.sealed(a(), holdings(&a(), 4, 10));
        run.gathers(&a(), 4, 10, true);
        run
    }

    #[track_caller]
    fn is_recovered(&mut self, loss_declared: bool) {
        let record = self.applied();
        assert_eq!((record.state, record.loss_declared), (LogState::Sealed, loss_declared));
        assert_eq!(self.outcome(), RecoveryOutcome::Recovered { record });
    }
}

#[test]
fn an_absent_log_is_sealed_so_that_it_can_never_begin() {
    let mut run = Run::start();
    run.on(RecoveryEvent::RecordRead { record: None });
    let Some(RecoveryEffect::WriteRecord { record, guard: Guard::Absent, .. }) = run.effect.clone() else {
        panic!("{:?}", run.effect)
    };
    assert_eq!((record.state, record.ensemble.log_epoch), (LogState::Sealed, LogEpoch::ZERO));
    assert_eq!(record.witnesses(), None);
    run.on(RecoveryEvent::RecordAnswered(Answer::Applied(1)));
    assert_eq!(run.outcome(), RecoveryOutcome::Recovered { record });
}

#[test]
fn a_log_that_begins_meanwhile_is_read_again() {
    let mut run = Run::start();
    run.on(RecoveryEvent::RecordRead { record: None });
    run.on(RecoveryEvent::RecordAnswered(Answer::Rejected));
    assert_eq!(run.effect, Some(RecoveryEffect::ReadRecord));
    run.read(open());
    run.applied();
    run.asks(&[&a(), &b()]);
}

#[test]
fn a_sealed_log_is_recovered() {
    let sealed = LogRecord { state: LogState::Sealed, ..open() };
    assert_eq!(Run::from(sealed.clone()).outcome(), RecoveryOutcome::Recovered { record: sealed });
}

#[test]
fn a_recovery_that_shows_progress_is_left_alone_and_a_silent_one_taken_over() {
    let run = Run::from(recovering(OTHER, RECOVERY_SILENCE_MS - 1, 6, false));
    assert_eq!(run.outcome(), RecoveryOutcome::Busy { claimant: OTHER });
    let mut run = Run::from(recovering(OTHER, RECOVERY_SILENCE_MS, 6, false));
    let mark = run.applied().recovery.unwrap();
    assert_eq!((mark.claimant, mark.heartbeat_ms, mark.done_below), (ME, NOW, LogOffset::new(6)));
    run.asks(&[&a(), &b()]);
    run.sealed(b(), holdings(&b(), 4, 10)).gathers(&b(), 6, 10, true);
}

#[test]
fn an_earlier_attempt_of_ones_own_goes_on_without_a_write() {
    let mut run = Run::from(recovering(ME, 10, 6, false));
    run.asks(&[&a(), &b()]);
    run.sealed(a(), holdings(&a(), 4, 10)).gathers(&a(), 6, 10, true);
}

#[test]
fn one_witness_suffices_and_sealed_is_written_only_after_its_frames_are_covered() {
    let mut run = Run::gathering();
    assert_eq!(run.unreachable(b()).effect, None);
    run.on(RecoveryEvent::Gathered).is_recovered(false);
}

#[test]
fn a_witness_that_holds_nothing_more_needs_no_gathering() {
    let mut run = Run::asking();
    run.sealed(b(), holdings(&b(), 10, 10)).is_recovered(false);
}

#[test]
fn without_an_ensemble_that_acknowledged_no_member_is_asked() {
    let none_active = LogRecord { active: false, ..open() };
    let empty = LogRecord { ensemble: ensemble(3, &[]), ..open() };
    for record in [none_active, empty] {
        let mut run = Run::from(record);
        run.applied();
        run.is_recovered(false);
    }
}

#[test]
fn while_an_ensemble_is_being_set_up_the_prior_one_is_asked() {
    let prior = ensemble(2, &[&a()]);
    let mut run = Run::from(LogRecord { active: false, prior: Some(prior), ..open() });
    run.applied();
    run.asks(&[&a()]);
    let at_prior = Holdings { log_epoch: LogEpoch::new(2), ..holdings(&a(), 1, 4) };
    run.sealed(a(), at_prior).gathers(&a(), 1, 4, true);
}

#[test]
fn who_cannot_show_everything_is_no_witness() {
    let whole = holdings(&a(), 1, 9);
    let doubts = [
        (Holdings { incarnation: Incarnation::from_bits(77), ..whole }, "another disk"),
        (Holdings { log_epoch: LogEpoch::new(2), ..whole }, "epoch 2 only"),
        (Holdings { log_epoch: LogEpoch::ZERO, ..whole }, "epoch 0 only"),
        (Holdings { is_complete: false, ..whole }, "damaged"),
        (Holdings { is_sealed: false, ..whole }, "did not seal"),
    ];
    for (holdings, why) in doubts {
        let mut run = Run::asking();
        assert_eq!(run.sealed(a(), holdings).effect, None);
        assert_eq!(run.unreachable(b()).effect, Some(RecoveryEffect::LookForLoss));
        run.on(RecoveryEvent::LossLookedFor { is_declared: false });
        let Some(RecoveryEffect::WriteRecord { record, missing, .. }) = run.effect.clone() else {
            panic!("{:?}", run.effect)
        };
        let mark = record.recovery.unwrap();
        assert!(mark.is_blocked && mark.claimant == ME && record.state == LogState::Recovering);
        assert_eq!(missing.len(), 2);
        assert!(missing[0].to_string().contains(why), "{}", missing[0]);
        for answer in [Answer::Applied(8), Answer::Rejected, Answer::Unknown] {
            let mut run = Run { machine: run.machine.clone(), effect: None, ..Run::start() };
            run.on(RecoveryEvent::RecordAnswered(answer));
            let log_epoch = LogEpoch::new(3);
            assert_eq!(run.outcome(), RecoveryOutcome::Blocked { log_epoch, missing: missing.clone() });
        }
    }
}

#[test]
fn a_blocked_recovery_is_taken_over_at_once_and_only_when_somebody_can_go_on() {
    let mut run = Run::from(recovering(OTHER, 10, 6, true));
    run.asks(&[&a(), &b()]);
    run.unreachable(a()).unreachable(b());
    run.on(RecoveryEvent::LossLookedFor { is_declared: false });
    assert!(matches!(run.outcome(), RecoveryOutcome::Blocked { .. }), "without a write");

    let mut run = Run::from(recovering(OTHER, 10, 6, true));
    run.sealed(b(), holdings(&b(), 4, 10));
    let mark = run.applied().recovery.unwrap();
    assert_eq!((mark.claimant, mark.is_blocked, mark.done_below), (ME, false, LogOffset::new(6)));
    run.gathers(&b(), 6, 10, true);
}

#[test]
fn a_blocked_mark_of_ones_own_is_lifted_before_gathering() {
    let mut run = Run::from(recovering(ME, 10, 6, true));
    run.sealed(b(), holdings(&b(), 4, 10));
    assert!(!run.applied().recovery.unwrap().is_blocked);
    run.gathers(&b(), 6, 10, true);
}

#[test]
fn progress_is_written_down_every_five_seconds() {
    let mut run = Run::gathering();
    run.now = NOW.plus(HEARTBEAT_INTERVAL_MS - 1);
    let progress = |offset| RecoveryEvent::Progress { done_below: LogOffset::new(offset) };
    assert_eq!(run.on(progress(6)).effect, None);
    run.now = NOW.plus(HEARTBEAT_INTERVAL_MS);
    let mark = run.on(progress(6)).applied().recovery.unwrap();
    assert_eq!((mark.done_below, mark.heartbeat_ms), (LogOffset::new(6), run.now));
    assert_eq!(run.effect, None);
    assert_eq!(run.on(progress(7)).effect, None, "not again so soon");
    run.on(RecoveryEvent::Gathered).is_recovered(false);
}

#[test]
fn who_loses_the_record_while_gathering_stops() {
    for answer in [Answer::Rejected, Answer::Unknown] {
        let heartbeat = || {
            let mut run = Run::gathering();
            run.now = NOW.plus(HEARTBEAT_INTERVAL_MS);
            run.on(RecoveryEvent::Progress { done_below: LogOffset::new(6) });
            run.on(RecoveryEvent::RecordAnswered(answer.clone()));
            assert_eq!(run.effect, Some(RecoveryEffect::ReadRecord));
            run
        };
        let taken = heartbeat().read(recovering(OTHER, 0, 6, false)).outcome();
        assert_eq!(taken, RecoveryOutcome::Superseded);
        let sealed = LogRecord { state: LogState::Sealed, ..open() };
        assert_eq!(heartbeat().read(sealed.clone()).outcome(), RecoveryOutcome::Recovered { record: sealed });
        let mut mine = heartbeat();
        assert_eq!(mine.read(recovering(ME, 0, 6, false)).effect, None);
        mine.on(RecoveryEvent::Gathered).is_recovered(false);
    }
}

#[test]
fn a_heartbeat_that_cannot_be_settled_is_read_back_later() {
    let mut run = Run::gathering();
    run.now = NOW.plus(HEARTBEAT_INTERVAL_MS);
    run.on(RecoveryEvent::Progress { done_below: LogOffset::new(6) });
    run.on(RecoveryEvent::RecordAnswered(Answer::Unknown));
    assert_eq!(run.on(RecoveryEvent::ReadFailed).effect, None);
    run.on(RecoveryEvent::Gathered);
    assert_eq!(run.effect, Some(RecoveryEffect::ReadRecord));
    run.read(recovering(ME, 0, 4, false)).is_recovered(false);
}

#[test]
fn a_witness_whose_frames_cannot_be_read_is_replaced_by_another() {
    let fault = || RecoveryEvent::GatherFailed(GatherFault::Member("cut".to_string()));
    let mut run = Run::gathering();
    run.on(RecoveryEvent::Progress { done_below: LogOffset::new(7) });
    assert_eq!(run.on(fault()).effect, None, "`b` has yet to answer");
    run.sealed(b(), holdings(&b(), 2, 10)).gathers(&b(), 7, 10, true);
    run.on(fault()).asks(&[&a(), &b()]);
    run.sealed(a(), holdings(&a(), 4, 10));
    run.on(fault()).unreachable(b()).asks(&[&a(), &b()]);
    run.unreachable(a()).sealed(b(), holdings(&b(), 4, 10));
    assert_eq!(run.on(fault()).effect, Some(RecoveryEffect::LookForLoss), "three rounds");
}

#[test]
fn a_bucket_that_fails_ends_the_attempt() {
    let mut run = Run::gathering();
    run.on(RecoveryEvent::GatherFailed(GatherFault::Here("503".to_string())));
    let failure = RecoveryFailure::Gather("503".to_string());
    assert_eq!(run.outcome(), RecoveryOutcome::Failed(failure));
}

#[test]
fn a_declared_loss_seals_with_what_the_best_of_the_rest_has() {
    let mut run = Run::asking();
    run.sealed(a(), Holdings { is_complete: false, ..holdings(&a(), 4, 8) });
    run.sealed(b(), Holdings { is_complete: false, ..holdings(&b(), 4, 10) });
    run.on(RecoveryEvent::LossLookedFor { is_declared: true }).gathers(&b(), 4, 10, false);
    run.now = NOW.plus(HEARTBEAT_INTERVAL_MS);
    run.on(RecoveryEvent::Progress { done_below: LogOffset::new(9) });
    let mark = run.applied().recovery.unwrap();
    assert_eq!(mark.done_below, LogOffset::ZERO, "a whole witness may still come and must not skip");
    run.on(RecoveryEvent::GatherFailed(GatherFault::Member("cut".to_string()))).gathers(&a(), 4, 8, false);
    run.on(RecoveryEvent::Gathered).is_recovered(true);
}

#[test]
fn a_declared_loss_of_everything_seals_at_once() {
    let mut run = Run::from(recovering(OTHER, 10, 6, true));
    run.unreachable(a()).sealed(b(), Holdings { is_sealed: false, ..holdings(&b(), 1, 9) });
    run.on(RecoveryEvent::LossLookedFor { is_declared: true });
    assert_eq!(run.applied().recovery.unwrap().claimant, ME);
    run.is_recovered(true);
}

#[test]
fn who_covered_everything_seals_whoever_holds_the_record() {
    let mut run = Run::gathering();
    run.on(RecoveryEvent::Gathered).on(RecoveryEvent::RecordAnswered(Answer::Rejected));
    run.read(recovering(OTHER, 0, 6, false)).is_recovered(false);
}

#[test]
fn a_lost_answer_is_recognised_by_what_the_record_says() {
    let mut run = Run::from(open());
    run.on(RecoveryEvent::RecordAnswered(Answer::Unknown));
    run.read(recovering(ME, 0, 0, false)).asks(&[&a(), &b()]);
    run.sealed(a(), holdings(&a(), 4, 10)).on(RecoveryEvent::Gathered);
    run.on(RecoveryEvent::RecordAnswered(Answer::Unknown));
    let sealed = LogRecord { state: LogState::Sealed, ..open() };
    assert_eq!(run.read(sealed.clone()).outcome(), RecoveryOutcome::Recovered { record: sealed });
}

#[test]
fn a_record_tells_where_its_recovery_stands() {
    let sealed = LogRecord { state: LogState::Sealed, ..recovering(OTHER, 0, 6, true) };
    for (record, standing) in [
        (open(), Standing::Pending),
        (recovering(OTHER, 0, 6, false), Standing::Pending),
        (recovering(OTHER, RECOVERY_SILENCE_MS, 6, true), Standing::Blocked),
        (sealed, Standing::Ended),
    ] {
        assert_eq!(Standing::of(Some(&record)), standing, "{record:?}");
    }
    assert_eq!(Standing::of(None), Standing::Pending);
}

#[test]
fn rounds_are_bounded() {
    let mut run = Run::from(open());
    for round in 1..=8 {
        run.on(RecoveryEvent::RecordAnswered(Answer::Rejected));
        if round < 8 {
            run.read(open());
        }
    }
    assert_eq!(run.outcome(), RecoveryOutcome::Failed(RecoveryFailure::Contended));
    let mut run = Run::from(open());
    for round in 1..=3 {
        run.on(RecoveryEvent::RecordAnswered(Answer::Unknown));
        if round < 3 {
            run.read(open());
        }
    }
    assert_eq!(run.outcome(), RecoveryOutcome::Failed(RecoveryFailure::Unknown));
}

#[test]
fn what_cannot_be_read_is_retried_later() {
    let outcome = Run::start().on(RecoveryEvent::ReadFailed).outcome();
    assert_eq!(outcome, RecoveryOutcome::Failed(RecoveryFailure::Unreadable));
    let mut run = Run::asking();
    run.unreachable(a()).unreachable(b()).on(RecoveryEvent::ReadFailed);
    assert_eq!(run.outcome(), RecoveryOutcome::Failed(RecoveryFailure::Unreadable), "not a loss");
}

#[test]
fn a_record_that_vanishes_or_is_anothers_is_damage() {
    let mut run = Run::from(open());
    run.on(RecoveryEvent::RecordAnswered(Answer::Rejected)).on(RecoveryEvent::RecordRead { record: None });
    assert_eq!(run.outcome(), RecoveryOutcome::Failed(RecoveryFailure::RecordGone));
    let outcome = Run::from(LogRecord { session: OTHER, ..open() }).outcome();
    assert_eq!(outcome, RecoveryOutcome::Failed(RecoveryFailure::OtherSession));
}
