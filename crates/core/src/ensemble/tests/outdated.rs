use super::*;

fn stale(found: u64) -> MemberFailure {
    MemberFailure::StaleEpoch { found: LogEpoch::new(found) }
}

fn adopts(effects: &[Effect]) -> Vec<(&str, u64)> {
    let adopts = effects.iter().filter_map(|effect| match effect {
        NodeLogEffect::Adopt { member, log_epoch, .. } => Some((member.follower.as_str(), log_epoch.get())),
        _ => None,
    });
    adopts.collect()
}

/// `a` failed while `b` and it were to adopt epoch 1, and the record names `b` and `c` at epoch 2.
fn moved() -> World {
    let mut world = World::new();
    let effects = world.followers(vec![follower("a"), follower("b")]);
    world.apply(&effects);
    world.followers(vec![follower("a"), follower("b"), follower("c")]);
    let effects = world.failed("a", MemberFailure::Unreachable);
    world.land(&effects);
    world
}

#[test]
fn a_member_that_read_the_next_record_is_asked_with_its_epoch_once_the_write_is_answered() {
    let mut world = moved();
    // `b` looked for epoch 1 after the write of epoch 2 had landed.
    let effects = world.failed("b", stale(2));
    assert_eq!(effects, vec![NodeLogEffect::Close { member: member("b") }], "the answer is on its way");
    let effects = world.on(NodeLogEvent::RecordAnswered { answer: Answer::Applied(2) });
    assert_eq!(adopts(&effects), vec![("b", 2), ("c", 2)]);
    world.adopted("b", 2, 1);
    let effects = world.adopted("c", 2, 1);
    assert_eq!(names(&written(&effects).0), vec!["b", "c"], "nobody was left alone");
}

#[test]
fn a_member_whose_refusal_comes_after_the_answer_is_asked_again_at_once() {
    let mut world = moved();
    let effects = world.on(NodeLogEvent::RecordAnswered { answer: Answer::Applied(2) });
    assert_eq!(adopts(&effects), vec![("b", 2), ("c", 2)]);
    // The refusal of epoch 1 ended the stream, and with it the question for epoch 2.
    assert_eq!(adopts(&world.failed("b", stale(2))), vec![("b", 2)]);
}

#[test]
fn a_write_of_which_only_the_member_knows_is_looked_for() {
    let mut world = moved();
    let effects = world.on(NodeLogEvent::RecordAnswered { answer: Answer::Unknown });
    assert!(matches!(effects[..], [NodeLogEffect::ReadRecord { .. }]), "{effects:?}");
    // That read was before the write landed; the member's was after it.
    world.on(NodeLogEvent::RecordUnreadable);
    let effects = world.failed("b", stale(2));
    assert_eq!(effects, vec![NodeLogEffect::Close { member: member("b") }], "a read is under way");
    let record = world.bucket.clone();
    assert_eq!(adopts(&world.on(NodeLogEvent::RecordRead { record })), vec![("b", 2), ("c", 2)]);
}

#[test]
fn a_member_whose_record_cannot_be_found_is_given_up_in_time() {
    let mut world = moved();
    world.on(NodeLogEvent::RecordAnswered { answer: Answer::Applied(2) });
    let effects = world.failed("b", stale(9));
    assert!(effects.iter().any(|effect| matches!(effect, NodeLogEffect::ReadRecord { .. })), "{effects:?}");
    world.now = world.now.plus(3_000);
    let effects = world.on(NodeLogEvent::Tick);
    let evicted = |name: &str| {
        let (member, failure) = (member(name), MemberFailure::Unreachable);
        effects.contains(&NodeLogEffect::Evicted { member, failure })
    };
    assert!(evicted("b"), "{effects:?}");
}

#[test]
fn what_an_outdated_member_has_fsynced_still_counts() {
    let mut world = World::moving();
    world.adopted("c", 2, 1);
    let effects = world.failed("b", stale(2));
    assert_eq!(adopts(&effects), vec![("b", 2)]);
    world.durable("c", 2);
    let effects = world.adopted("b", 2, 3);
    assert!(written(&effects).0.active);
}
