//! All members slow at once: the owner suspects itself, and how that ends.

use alloc::borrow::ToOwned;
use alloc::string::String;

use super::*;

/// Ticks of 50 ms in which every member owes a frame.
const TICK_MS: u64 = 50;
const SUSPICION_MS: u64 = 10_000;
const STALL_MS: u64 = 400;

impl World {
    /// Ticks until something happens that is no release, for at most this long.
    fn tick_for(&mut self, ms: u64, every: u64) -> (u64, Vec<Effect>) {
        let began = self.now;
        while self.now.since(began) < ms {
            self.now = self.now.plus(every);
            let mut effects = self.on(NodeLogEvent::Tick);
            effects.retain(|effect| {
                !matches!(effect, NodeLogEffect::ReadFollowers | NodeLogEffect::Durability { .. })
            });
            if !effects.is_empty() {
                return (self.now.since(began), effects);
            }
        }
        (ms, Vec::new())
    }

    /// `a` and `b` are active and both have frame 1 and owe frame 2 for ever; `idle` are there besides.
    fn stalled(idle: &[&str]) -> Self {
        let mut world = Self::active();
        let mut there = vec![follower("a"), follower("b")];
        there.extend(idle.iter().map(|name| follower(name)));
        world.followers(there);
        world.on(NodeLogEvent::Tick);
        assert_eq!(world.append(), Some(1));
        world.durable("a", 1);
        world.durable("b", 1);
        assert_eq!(world.append(), Some(2));
        world
    }
}

fn evicted(effects: &[Effect]) -> Vec<&str> {
    let evicted = effects.iter().filter_map(|effect| match effect {
        NodeLogEffect::Evicted { member, .. } => Some(member.follower.as_str()),
        _ => None,
    });
    evicted.collect()
}

#[test]
fn all_slow_at_once_blames_nobody_until_it_has_lasted_and_then_one_makes_room() {
    let mut world = World::stalled(&["c", "d"]);
    let (after, effects) = world.tick_for(60_000, TICK_MS);
    assert!((SUSPICION_MS..SUSPICION_MS + 2 * STALL_MS).contains(&after), "{after}");
    let (record, _) = written(&effects);
    assert_eq!((record.ensemble.members.len(), record.active), (2, false));
    let kept: Vec<_> = names(&record).into_iter().filter(|name| ["a", "b"].contains(name)).collect();
    assert_eq!(kept.len(), 1, "one at a time: {:?}", names(&record));
    assert_eq!(record.prior.as_ref().map(|prior| prior.log_epoch.get()), Some(1));
    assert!(evicted(&effects).is_empty(), "the old ensemble proves until the new one is active");
}

#[test]
fn who_makes_room_goes_when_its_substitute_is_active_and_is_left_alone_for_long() {
    let mut world = World::stalled(&["c"]);
    let (_, effects) = world.tick_for(60_000, TICK_MS);
    let effects = world.apply(&effects);
    let epoch = world.log.record().unwrap().ensemble.log_epoch.get();
    let names: Vec<String> = names(world.log.record().unwrap()).into_iter().map(Into::into).collect();
    assert!(!effects.iter().any(|effect| matches!(effect, NodeLogEffect::Close { .. })), "{effects:?}");
    for name in &names {
        world.adopted(name, epoch, if name == "c" { 1 } else { 2 });
    }
    let mut effects = Vec::new();
    for name in &names {
        effects.extend(world.durable(name, 2));
    }
    let effects = world.apply(&effects);
    let gone = evicted(&effects);
    assert_eq!(gone.len(), 1);
    assert!(["a", "b"].contains(&gone[0]) && !names.iter().any(|name| name == gone[0]));
    let gone = gone[0].to_owned();
    let other = names.iter().find(|name| *name != "c").unwrap().clone();
    let effects = world.failed(&other, MemberFailure::Unreachable);
    assert_eq!(super::names(&written(&effects).0), vec!["c"], "`{gone}` is slow");
}

#[test]
fn a_substitute_that_cannot_be_reached_leaves_everything_as_it_was() {
    let mut world = World::stalled(&["c"]);
    let (_, effects) = world.tick_for(60_000, TICK_MS);
    world.apply(&effects);
    let effects = world.failed("c", MemberFailure::Unreachable);
    assert_eq!(names(&written(&effects).0), vec!["a", "b"]);
}

#[test]
fn a_suspicion_grows_with_each_replacement_that_did_not_help() {
    let mut world = World::stalled(&["c"]);
    let (_, effects) = world.tick_for(60_000, TICK_MS);
    world.apply(&effects);
    let effects = world.failed("c", MemberFailure::Unreachable);
    world.apply(&effects);
    let epoch = world.log.record().unwrap().ensemble.log_epoch.get();
    world.adopted("a", epoch, 2);
    world.adopted("b", epoch, 2);
    // `c` may be tried again after 2 s.
    world.followers(vec![follower("a"), follower("b"), follower("c")]);
    let mut waited = 0;
    loop {
        let (after, effects) = world.tick_for(60_000, TICK_MS);
        waited += after;
        if effects.iter().any(|effect| matches!(effect, NodeLogEffect::WriteRecord { .. })) {
            break;
        }
        assert!(waited < 60_000, "{effects:?}");
    }
    assert!(waited >= 2 * SUSPICION_MS, "{waited}");
}

#[test]
fn an_owner_that_is_late_itself_blames_nobody() {
    let mut world = World::stalled(&["c", "d"]);
    let (_, effects) = world.tick_for(120_000, 150);
    assert!(effects.is_empty(), "{effects:?}");
}

#[test]
fn without_an_idle_follower_slow_members_stay() {
    let mut world = World::stalled(&[]);
    let (_, effects) = world.tick_for(120_000, TICK_MS);
    assert!(effects.is_empty(), "{effects:?}");
    // And make room as soon as one comes.
    world.followers(vec![follower("a"), follower("b"), follower("c")]);
    let (_, effects) = world.tick_for(1_000, TICK_MS);
    assert!(names(&written(&effects).0).contains(&"c"));
}

#[test]
fn a_while_in_which_members_do_well_ends_the_suspicion() {
    let mut world = World::stalled(&["c"]);
    let (_, effects) = world.tick_for(SUSPICION_MS - 1_000, TICK_MS);
    assert!(effects.is_empty());
    world.durable("a", 2);
    world.durable("b", 2);
    // Their latency was bad: that is forgotten within a window, and another one ends the suspicion.
    let (_, effects) = world.tick_for(5_000, TICK_MS);
    assert!(effects.is_empty(), "{effects:?}");
    world.append();
    let (after, _) = world.tick_for(60_000, TICK_MS);
    assert!(after >= SUSPICION_MS, "{after}");
}

#[test]
fn a_member_that_was_given_up_while_its_record_was_written_is_not_asked() {
    let mut world = World::new();
    let effects = world.followers(vec![follower("a"), follower("b"), follower("c")]);
    let chosen: Vec<String> = names(&written(&effects).0).into_iter().map(Into::into).collect();
    world.apply(&effects);
    let (stays, goes) = (&chosen[0], &chosen[1]);
    let effects = world.failed(goes, MemberFailure::Unreachable);
    let next = written(&effects).0;
    // Of the new ensemble the one that was kept is given up before the write is answered.
    world.failed(stays, MemberFailure::Slow);
    let effects = world.apply(&effects);
    let asked = effects.iter().filter_map(|effect| match effect {
        NodeLogEffect::Adopt { member, .. } => Some(member.follower.as_str()),
        _ => None,
    });
    let asked: Vec<&str> = asked.collect();
    assert!(names(&next).contains(&stays.as_str()) && !asked.contains(&stays.as_str()), "{effects:?}");
    assert_eq!(names(&written(&effects).0), asked, "and another ensemble follows at once");
}

#[test]
fn of_two_that_stall_alike_the_first_to_answer_shows_nothing_of_the_other() {
    let mut world = World::stalled(&["c"]);
    // Both have done well until now.
    let late = |world: &mut World, ms: u64| {
        world.now = world.now.plus(ms);
        world.on(NodeLogEvent::Tick)
    };
    late(&mut world, 1_000);
    world.durable("a", 2);
    let effects = late(&mut world, 300);
    assert!(evicted(&effects).is_empty(), "{effects:?}");
    let effects = late(&mut world, 2_000);
    assert!(evicted(&effects).is_empty(), "{effects:?}");
    // Four times as long as `a` took is another matter, once `a`'s own lateness is forgotten.
    let effects = late(&mut world, 800);
    assert_eq!(evicted(&effects), ["b"]);
}

#[test]
fn a_stall_of_both_that_begins_a_tick_apart_blames_neither() {
    let mut world = World::stalled(&["c"]);
    world.durable("a", 2);
    world.now = Millis::new(40);
    world.durable("b", 2);
    assert_eq!(world.append(), Some(3));
    world.now = Millis::new(100);
    world.durable("a", 3);
    assert_eq!(world.append(), Some(4));
    // `b` owes frame 3 since 40 ms, `a` frame 4 since 100 ms: at the next tick only `b` is over the bound.
    world.now = Millis::new(460);
    let effects = world.on(NodeLogEvent::Tick);
    assert!(evicted(&effects).is_empty(), "{effects:?}");
}
