use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::log_record::{LogRecord, LogState, MemberId};
use crate::store::{Answer, Guard};
use holdfast_types::{
    FollowerName, HostId, Incarnation, LogEpoch, LogOffset, Millis, NodeName, SessionId, WriteId, Zone,
};

mod bundling;
mod outdated;
mod suspicion;

type Effect = NodeLogEffect<u64>;

fn member(name: &str) -> MemberId {
    let bits = name.bytes().fold(7, |bits: u128, byte| bits * 31 + u128::from(byte));
    MemberId { follower: FollowerName::parse(name).unwrap(), incarnation: Incarnation::from_bits(bits) }
}

fn follower(name: &str) -> FollowerView {
    FollowerView {
        member: member(name),
        host: HostId::parse(name).unwrap(),
        zone: Zone::parse("z").unwrap(),
        free_bytes: 1 << 40,
        sessions: 0,
        draining: false,
        expires_ms: Millis::new(1_000_000),
    }
}

/// A log with a bucket of one record, and followers that do as they are told.
struct World {
    log: NodeLog<u64>,
    now: Millis,
    writes: u128,
    bucket: Option<(LogRecord, u64)>,
    proved_below: u64,
    by_ensemble: bool,
}

impl World {
    fn new() -> Self {
        let config = NodeLogConfig {
            node: NodeName::parse("n").unwrap(),
            session: SessionId::from_bits(5),
            host: HostId::parse("here").unwrap(),
            zone: Zone::parse("here").unwrap(),
            own_host_allowed: false,
            clock_skew_max_ms: 500,
        };
        Self {
            log: NodeLog::new(config),
            now: Millis::new(1),
            writes: 0,
            bucket: None,
            proved_below: 1,
            by_ensemble: false,
        }
    }

    fn on(&mut self, event: NodeLogEvent<u64>) -> Vec<Effect> {
        self.writes += 1;
        let effects = self.log.on(event, self.now, WriteId::from_bits(self.writes));
        for effect in &effects {
            match effect {
                NodeLogEffect::Proved(proof) => self.proved_below = proof.below().get(),
                NodeLogEffect::Durability { by_ensemble } => self.by_ensemble = *by_ensemble,
                _ => {}
            }
        }
        effects
    }

    fn followers(&mut self, followers: Vec<FollowerView>) -> Vec<Effect> {
        self.on(NodeLogEvent::FollowersRead { followers, wall_now: Millis::new(1_000) })
    }

    /// Applies the write among the effects, and answers it.
    fn apply(&mut self, effects: &[Effect]) -> Vec<Effect> {
        self.land(effects);
        let version = self.bucket.as_ref().map(|(_, version)| *version).unwrap();
        self.on(NodeLogEvent::RecordAnswered { answer: Answer::Applied(version) })
    }

    fn land(&mut self, effects: &[Effect]) {
        let (record, guard) = written(effects);
        let version = self.bucket.as_ref().map(|(_, version)| *version);
        let holds = match guard {
            Guard::Absent => version.is_none(),
            Guard::Match(wanted) => version == Some(wanted),
        };
        assert!(holds, "the write's guard holds");
        self.bucket = Some((record, version.unwrap_or(0) + 1));
    }

    fn adopted(&mut self, name: &str, log_epoch: u64, next: u64) -> Vec<Effect> {
        let log_epoch = LogEpoch::new(log_epoch);
        self.on(NodeLogEvent::Adopted { member: member(name), log_epoch, next: LogOffset::new(next) })
    }

    fn durable(&mut self, name: &str, offset: u64) -> Vec<Effect> {
        self.on(NodeLogEvent::Durable { member: member(name), offset: LogOffset::new(offset) })
    }

    fn failed(&mut self, name: &str, failure: MemberFailure) -> Vec<Effect> {
        self.on(NodeLogEvent::MemberFailed { member: member(name), failure })
    }

    fn append(&mut self) -> Option<u64> {
        self.log.append(self.now).map(LogOffset::get)
    }

    /// An active ensemble of `a` and `b` at log epoch 1.
    fn active() -> Self {
        let mut world = Self::new();
        let effects = world.followers(vec![follower("a"), follower("b")]);
        world.apply(&effects);
        world.adopted("a", 1, 1);
        let effects = world.adopted("b", 1, 1);
        assert!(!world.by_ensemble, "not before the record says active");
        world.apply(&effects);
        assert!(world.by_ensemble);
        world
    }

    /// `a` failed and the record names `b` and `c` at epoch 2, not yet active.
    fn moving() -> Self {
        let mut world = Self::active();
        assert_eq!((world.append(), world.append()), (Some(1), Some(2)));
        world.durable("a", 2);
        world.durable("b", 2);
        assert_eq!(world.proved_below, 3);
        world.followers(vec![follower("a"), follower("b"), follower("c")]);
        let effects = world.failed("a", MemberFailure::Unreachable);
        world.apply(&effects);
        world
    }
}

fn written(effects: &[Effect]) -> (LogRecord, Guard<u64>) {
    let write = effects.iter().find_map(|effect| match effect {
        NodeLogEffect::WriteRecord { record, guard, .. } => Some((record.clone(), guard.clone())),
        _ => None,
    });
    write.unwrap_or_else(|| panic!("no write in {effects:?}"))
}

fn names(record: &LogRecord) -> Vec<&str> {
    let mut names: Vec<&str> =
        record.ensemble.members.iter().map(|member| member.follower.as_str()).collect();
    names.sort_unstable();
    names
}

#[test]
fn an_ensemble_is_named_adopted_and_active_before_it_proves() {
    let mut world = World::new();
    assert_eq!(world.append(), None, "nobody to append to");
    let effects = world.followers(vec![follower("a"), follower("b"), follower("c")]);
    let (record, guard) = written(&effects);
    assert_eq!((record.active, record.ensemble.members.len(), guard), (false, 2, Guard::Absent));
    let effects = world.apply(&effects);
    assert!(effects.iter().all(|effect| matches!(effect, NodeLogEffect::Adopt { .. })), "{effects:?}");
    let first = record.ensemble.members[0].follower.as_str();
    let second = record.ensemble.members[1].follower.as_str();
    world.adopted(first, 1, 1);
    let effects = world.adopted(second, 1, 1);
    assert!(written(&effects).0.active);
    world.apply(&effects);
    assert_eq!(world.append(), Some(1));
    world.durable(first, 1);
    assert_eq!(world.proved_below, 1, "one member is not the ensemble");
    world.durable(second, 1);
    assert_eq!(world.proved_below, 2);
}

#[test]
fn a_session_never_recruits_its_own_host_a_draining_a_dead_or_a_full_follower() {
    let mut world = World::new();
    let own = FollowerView { host: HostId::parse("here").unwrap(), ..follower("own") };
    let draining = FollowerView { draining: true, ..follower("draining") };
    let dead = FollowerView { expires_ms: Millis::new(100), ..follower("dead") };
    let full = FollowerView { free_bytes: 1 << 20, ..follower("full") };
    let effects = world.followers(vec![own, draining, dead, full, follower("good")]);
    assert_eq!(names(&written(&effects).0), vec!["good"]);
}

#[test]
fn zones_come_before_load() {
    let mut world = World::new();
    let zone = |name: &str, zone: &str, sessions| FollowerView {
        zone: Zone::parse(zone).unwrap(),
        sessions,
        ..follower(name)
    };
    let effects = world.followers(vec![zone("a", "x", 0), zone("b", "x", 1), zone("c", "y", 9)]);
    assert_eq!(names(&written(&effects).0), vec!["a", "c"]);
}

#[test]
fn the_prior_ensemble_stays_in_the_record_until_the_new_one_holds_its_frames() {
    let mut world = World::moving();
    let record = world.log.record().unwrap().clone();
    assert_eq!((names(&record), record.active), (vec!["b", "c"], false));
    let prior = record.prior.as_ref().unwrap();
    assert_eq!((prior.log_epoch, prior.members.len()), (LogEpoch::new(1), 2));
    assert!(!world.by_ensemble, "a is gone: nothing is proved meanwhile");
    world.adopted("b", 2, 3);
    let effects = world.adopted("c", 2, 1);
    assert!(effects.contains(&NodeLogEffect::Stream {
        member: member("c"),
        log_epoch: LogEpoch::new(2),
        from: LogOffset::new(1)
    }));
    assert!(!effects.iter().any(|effect| matches!(effect, NodeLogEffect::WriteRecord { .. })));
    let effects = world.durable("c", 2);
    let (record, _) = written(&effects);
    assert_eq!((record.active, record.prior.clone()), (true, None));
    world.apply(&effects);
    assert!(world.by_ensemble);
}

#[test]
fn an_ensemble_grows_while_the_old_one_goes_on_proving_and_both_prove_during_the_switch() {
    let mut world = World::new();
    let effects = world.followers(vec![follower("a")]);
    world.apply(&effects);
    let effects = world.adopted("a", 1, 1);
    world.apply(&effects);
    world.append();
    world.durable("a", 1);
    let effects = world.followers(vec![follower("a"), follower("b")]);
    world.apply(&effects);
    assert!(world.by_ensemble);
    assert_eq!(world.append(), Some(2));
    world.adopted("a", 2, 2);
    world.durable("a", 2);
    assert_eq!(world.proved_below, 3, "the old ensemble is the one that a recovery would ask");
    world.adopted("b", 2, 1);
    let activation = world.durable("b", 2);
    assert!(written(&activation).0.active);
    assert_eq!(world.append(), Some(3));
    world.durable("a", 3);
    assert_eq!(world.proved_below, 3, "the activation may have landed: b is asked too");
    world.durable("b", 3);
    assert_eq!(world.proved_below, 4);
    world.apply(&activation);
}

#[test]
fn an_activation_without_an_answer_is_read_back() {
    let mut world = World::moving();
    world.adopted("b", 2, 3);
    world.adopted("c", 2, 3);
    let (record, version) = world.bucket.clone().unwrap();
    // The write to activate is on its way; its answer is lost and it lands only after the read.
    let effects = world.on(NodeLogEvent::RecordAnswered { answer: Answer::Unknown });
    assert_eq!(effects, vec![NodeLogEffect::ReadRecord { attempt: 0 }]);
    let effects = world.on(NodeLogEvent::RecordRead { record: Some((record, version)) });
    let again = written(&effects);
    assert_eq!((again.0.active, again.1), (true, Guard::Match(version)));
    let effects = world.on(NodeLogEvent::RecordAnswered { answer: Answer::Rejected });
    assert!(matches!(effects[..], [NodeLogEffect::ReadRecord { .. }]));
    let mut landed = again.0;
    landed.write_id = WriteId::from_bits(landed.write_id.bits());
    world.on(NodeLogEvent::RecordRead { record: Some((landed, version + 1)) });
    assert!(world.by_ensemble);
}

#[test]
fn a_record_that_somebody_else_wrote_or_removed_is_a_fence() {
    for found in [Some(LogState::Recovering), Some(LogState::Sealed), None] {
        let mut world = World::active();
        let effects = world.failed("a", MemberFailure::Sealed);
        let (record, version) = world.bucket.clone().unwrap();
        let theirs = LogRecord { write_id: WriteId::from_bits(1 << 100), ..record };
        let read = found.map(|state| (LogRecord { state, ..theirs.clone() }, version + 1));
        assert!(effects.contains(&NodeLogEffect::ReadRecord { attempt: 0 }), "{effects:?}");
        assert_eq!(world.on(NodeLogEvent::RecordRead { record: read }), vec![NodeLogEffect::Fence]);
        assert_eq!(world.append(), None);
    }
}

#[test]
fn without_followers_the_record_lets_go_of_them_once_the_bucket_has_everything() {
    let mut world = World::active();
    world.append();
    world.durable("a", 1);
    world.durable("b", 1);
    world.followers(vec![]);
    let effects = world.failed("a", MemberFailure::Unreachable);
    // b alone goes on, with what a and b hold as the prior.
    let effects = world.apply(&effects);
    assert!(matches!(effects[..], [NodeLogEffect::Adopt { .. }]));
    let effects = world.failed("b", MemberFailure::Unreachable);
    assert!(!effects.iter().any(|effect| matches!(effect, NodeLogEffect::WriteRecord { .. })));
    assert!(!world.by_ensemble);
    let effects = world.on(NodeLogEvent::Covered { below: LogOffset::new(2) });
    let (record, _) = written(&effects);
    assert_eq!((record.witnesses(), record.ensemble.members.len()), (None, 0));
}

#[test]
fn a_stalled_member_is_replaced_and_a_general_stall_blames_nobody() {
    let mut world = World::active();
    world.followers(vec![follower("a"), follower("b"), follower("c")]);
    world.append();
    world.durable("a", 1);
    world.now = Millis::new(500);
    let effects = world.on(NodeLogEvent::Tick);
    let evicted = NodeLogEffect::Evicted { member: member("b"), failure: MemberFailure::Slow };
    assert!(effects.contains(&evicted), "{effects:?}");
    assert_eq!(names(&written(&effects).0), vec!["a", "c"]);

    let mut world = World::active();
    world.append();
    world.now = Millis::new(500);
    let effects = world.on(NodeLogEvent::Tick);
    assert!(effects.contains(&NodeLogEffect::Durability { by_ensemble: false }), "{effects:?}");
    assert!(!effects.iter().any(|effect| matches!(effect, NodeLogEffect::Evicted { .. })));
    world.durable("a", 1);
    world.durable("b", 1);
    assert!(world.by_ensemble, "and goes on when they answer again");
}

#[test]
fn members_that_all_broke_are_adopted_again_under_a_new_epoch() {
    let mut world = World::active();
    world.append();
    world.durable("a", 1);
    world.durable("b", 1);
    let effects = world.failed("a", MemberFailure::Unreachable);
    world.apply(&effects);
    world.failed("b", MemberFailure::Unreachable);
    world.now = Millis::new(60_000);
    let effects = world.on(NodeLogEvent::Tick);
    let (record, _) = written(&effects);
    assert_eq!(record.ensemble.log_epoch, LogEpoch::new(3));
    assert_eq!(record.prior.as_ref().map(|prior| prior.log_epoch), Some(LogEpoch::new(1)));
}

#[test]
fn a_log_closes_only_when_the_bucket_has_everything() {
    let mut world = World::active();
    world.append();
    let effects = world.on(NodeLogEvent::Closing);
    assert!(!effects.iter().any(|effect| matches!(effect, NodeLogEffect::WriteRecord { .. })));
    assert_eq!(world.append(), None);
    let effects = world.on(NodeLogEvent::Covered { below: LogOffset::new(2) });
    assert_eq!(written(&effects).0.state, LogState::Sealed);
    assert_eq!(world.apply(&effects), vec![NodeLogEffect::Closed]);
}

#[test]
fn followers_drop_only_what_the_bucket_has() {
    let mut world = World::active();
    world.append();
    world.append();
    world.durable("a", 2);
    world.durable("b", 2);
    world.on(NodeLogEvent::Covered { below: LogOffset::new(2) });
    world.now = Millis::new(10);
    let effects = world.on(NodeLogEvent::Tick);
    assert!(effects.contains(&NodeLogEffect::Release { start: LogOffset::new(2) }));
}

#[test]
fn a_follower_that_was_away_and_came_back_is_tried_at_once() {
    let mut world = World::active();
    let effects = world.failed("a", MemberFailure::Unreachable);
    world.apply(&effects);
    let effects = world.adopted("b", 2, 1);
    world.apply(&effects);
    let effects = world.followers(vec![follower("a"), follower("b")]);
    assert!(!effects.iter().any(|effect| matches!(effect, NodeLogEffect::WriteRecord { .. })), "a waits");
    world.followers(vec![follower("b")]);
    let effects = world.followers(vec![follower("a"), follower("b")]);
    assert_eq!(names(&written(&effects).0), vec!["a", "b"]);
}

#[test]
fn an_acknowledgement_looks_for_no_better_ensemble_and_a_tick_does() {
    let mut world = World::active();
    world.followers(vec![follower("a"), follower("b"), follower("c")]);
    let effects = world.failed("a", MemberFailure::Unreachable);
    world.apply(&effects);
    let effects = world.failed("c", MemberFailure::Unreachable);
    world.apply(&effects);
    let effects = world.adopted("b", 3, 1);
    world.apply(&effects);
    assert_eq!(world.append(), Some(1));
    // `a` and `c` may be tried again.
    world.now = Millis::new(60_000);
    let effects = world.durable("b", 1);
    assert!(matches!(effects[..], [NodeLogEffect::Proved(_)]), "{effects:?}");
    let effects = world.on(NodeLogEvent::Tick);
    assert_eq!(written(&effects).0.ensemble.members.len(), 2);
}

#[test]
fn a_member_that_acknowledges_what_was_never_sent_is_replaced_at_once() {
    let mut world = World::active();
    world.followers(vec![follower("a"), follower("b"), follower("c")]);
    let effects = world.durable("a", 9);
    assert_eq!(names(&written(&effects).0), vec!["b", "c"]);
}
