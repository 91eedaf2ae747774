//! When rounds are bundled, what a bundle counts for, when it goes, and what it saves.

use super::*;
use crate::gate::{Gate, GateEffect, GateEvent, GateOwner, OutputId};
use crate::ownership::{OwnerState, OwnerView};
use holdfast_types::{Epoch, Txid};

fn offset(at: u64) -> LogOffset {
    LogOffset::new(at)
}

impl World {
    fn round(&mut self, cells: u64) -> Vec<Effect> {
        self.on(NodeLogEvent::Round { cells })
    }

    /// So many frames, proved by both members.
    fn proved(&mut self, frames: u64) {
        for _ in 0..frames {
            let offset = self.append().unwrap();
            self.durable("a", offset);
            self.durable("b", offset);
        }
    }

    fn covered(&mut self, below: u64) -> Vec<Effect> {
        self.on(NodeLogEvent::Covered { below: offset(below) })
    }

    fn bundled(&mut self, below: u64) -> Vec<Effect> {
        self.on(NodeLogEvent::Bundled { below: offset(below) })
    }

    /// The record speaks of bundles, and a cell's frames gather for eight rounds.
    fn bundling() -> Self {
        let mut world = Self::active();
        let effects = world.round(BUNDLE_CELLS_MIN);
        assert_eq!(bundles(&effects), vec![], "the record speaks first");
        let effects = world.apply(&effects);
        assert!(effects.contains(&NodeLogEffect::Rounds { rounds: DRAIN_ROUNDS }));
        assert!(!effects.iter().any(|effect| matches!(effect, NodeLogEffect::Active { .. })));
        world
    }
}

fn bundles(effects: &[Effect]) -> Vec<(u64, u64)> {
    let bounds = effects.iter().filter_map(|effect| match effect {
        NodeLogEffect::Bundle { first, below } => Some((first.get(), below.get())),
        _ => None,
    });
    bounds.collect()
}

fn deleted(effects: &[Effect]) -> Vec<u64> {
    let firsts = effects.iter().filter_map(|effect| match effect {
        NodeLogEffect::DeleteBundles { firsts } => Some(firsts.clone()),
        _ => None,
    });
    firsts.flatten().map(LogOffset::get).collect()
}

fn released(effects: &[Effect]) -> Option<u64> {
    effects.iter().find_map(|effect| match effect {
        NodeLogEffect::Release { start } => Some(start.get()),
        _ => None,
    })
}

#[test]
fn few_dirty_cells_are_not_bundled() {
    let mut world = World::active();
    world.proved(3);
    assert_eq!(world.round(BUNDLE_CELLS_MIN - 1), vec![]);
    assert_eq!(world.log.rounds(), 1);
}

#[test]
fn a_bundle_holds_what_is_proved_and_frees_it_at_followers() {
    let mut world = World::bundling();
    world.proved(4);
    world.append();
    assert_eq!(bundles(&world.round(64)), vec![(1, 5)], "the fifth frame is not proved");
    assert_eq!(bundles(&world.round(64)), vec![], "one at a time");
    assert_eq!(bundles(&world.bundled(3)), vec![(3, 5)], "one bundle does not hold the round");
    assert_eq!(released(&world.on(NodeLogEvent::Tick)), Some(3));
    assert_eq!(world.bundled(5), vec![]);
    assert_eq!((world.log.start(), world.log.covered_below()), (offset(5), offset(1)));
}

#[test]
fn a_bundle_goes_when_its_frames_are_covered_and_the_record_excludes_it() {
    let mut world = World::bundling();
    world.proved(4);
    world.round(64);
    world.bundled(3);
    world.bundled(5);
    assert_eq!(world.covered(4), vec![], "of the second bundle a frame is missing");
    let effects = world.covered(5);
    assert_eq!(deleted(&effects), Vec::<u64>::new(), "the record still names them");
    let (record, _) = written(&effects);
    assert_eq!((record.bundles_from, record.active), (Some(offset(5)), true));
    assert_eq!(deleted(&world.apply(&effects)), vec![1, 3]);
}

#[test]
fn drained_bundles_wait_for_others_before_the_record_is_written() {
    let mut world = World::bundling();
    for bundle in 0..9 {
        world.proved(1);
        world.round(64);
        world.bundled(bundle + 2);
    }
    for below in 2..9 {
        assert_eq!(world.covered(below), vec![], "{below}");
    }
    let effects = world.covered(9);
    assert_eq!(written(&effects).0.bundles_from, Some(offset(9)));
    assert_eq!(deleted(&world.apply(&effects)), (1..9).collect::<Vec<u64>>());
}

#[test]
fn a_log_with_bundles_ends_in_order_only_once_they_are_drained() {
    let mut world = World::bundling();
    world.proved(2);
    world.round(64);
    world.bundled(3);
    assert!(
        !world
            .on(NodeLogEvent::Closing)
            .iter()
            .any(|effect| matches!(effect, NodeLogEffect::WriteRecord { .. }))
    );
    let effects = world.covered(3);
    assert_eq!(written(&effects).0.state, LogState::Sealed);
    let effects = world.apply(&effects);
    assert_eq!(deleted(&effects), vec![1]);
    assert_eq!(effects.last(), Some(&NodeLogEffect::Closed));
}

#[test]
fn every_later_record_says_where_bundles_begin() {
    let mut world = World::bundling();
    world.proved(2);
    world.round(64);
    world.bundled(3);
    world.round(1);
    assert_eq!(world.log.rounds(), 1, "few cells are dirty");
    let effects = world.failed("a", MemberFailure::Unreachable);
    let (record, _) = written(&effects);
    assert_eq!(
        (record.bundles_from, record.prior),
        (Some(offset(1)), None),
        "the bucket stores all that was proved"
    );
}

#[test]
fn frames_beyond_too_many_undrained_bundles_stay_retained() {
    let mut world = World::bundling();
    let mut made = 0;
    for below in 2..100 {
        world.proved(1);
        if bundles(&world.round(64)).is_empty() {
            break;
        }
        made += 1;
        world.bundled(below);
    }
    assert_eq!((made, world.log.start()), (64, offset(65)));
    world.covered(2);
    assert_eq!(bundles(&world.round(64)), vec![(65, 66)]);
}

#[test]
fn a_round_whose_frames_are_all_covered_makes_no_bundle() {
    let mut world = World::bundling();
    world.proved(2);
    assert_eq!(bundles(&world.round(64)), vec![(1, 3)]);
    world.covered(3);
    world.on(NodeLogEvent::NothingToBundle);
    world.proved(1);
    assert_eq!(bundles(&world.round(64)), vec![(1, 4)], "it begins where the record says");
}

/// A cell's gate, and how many objects of level 0 it put.
struct Busy {
    gate: Gate,
    txid: u64,
    puts: u64,
}

impl Busy {
    fn new() -> Self {
        let node = NodeName::parse("n").unwrap();
        let owner = GateOwner { node, session: SessionId::from_bits(5), epoch: Epoch::new(1) };
        Self { gate: Gate::new(owner, Txid::ZERO, PACE_MS), txid: 0, puts: 0 }
    }

    fn on(&mut self, event: GateEvent, now: u64) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            for effect in self.gate.on(event, Millis::new(now), Millis::new(u64::MAX)) {
                match effect {
                    GateEffect::Upload { last, .. } => {
                        self.puts += 1;
                        events.push(GateEvent::Uploaded { last });
                    }
                    GateEffect::ReadOwner { .. } => events.push(GateEvent::OwnerRead { owner: Some(mine()) }),
                    _ => {}
                }
            }
        }
    }

    /// A write that followers prove at once.
    fn write(&mut self, offset: LogOffset, now: u64) {
        self.txid += 1;
        let (txid, deadline) = (Txid::new(self.txid), Millis::new(u64::MAX));
        let output = OutputId(self.txid);
        self.on(GateEvent::OutputReady { output, ticket: txid, deadline, in_bucket: false }, now);
        self.on(GateEvent::Captured { captured: Some((txid, Some(offset))), len: 1 }, now);
        let proof = EnsembleProof::new_for_tests(LogEpoch::new(1), offset.next());
        self.on(GateEvent::EnsembleProved { proof, offset, txid }, now);
    }
}

fn mine() -> OwnerView {
    OwnerView {
        node: NodeName::parse("n").unwrap(),
        session: SessionId::from_bits(5),
        epoch: Epoch::new(1),
        state: OwnerState::Owned,
        floor: Epoch::ZERO,
        write_id: WriteId::from_bits(1),
    }
}

const PACE_MS: u64 = 2_000;

/// Objects put by 500 cells in 32 rounds, of which each writes every `every_ms`: of level 0, bundles, and the record.
fn puts(every_ms: u64, is_bundled: bool) -> (u64, u64, u64) {
    const CELLS: u64 = 500;
    const ROUNDS: u64 = 32;
    let mut world = World::active();
    let mut cells: Vec<Busy> = (0..CELLS).map(|_| Busy::new()).collect();
    let (mut made, mut records, mut dirty) = (0, 0, 0);
    for now in (0..ROUNDS * PACE_MS).step_by(100) {
        if now % PACE_MS == 0 && is_bundled {
            let effects = world.round(core::mem::take(&mut dirty));
            world.apply_if_written(&effects, &mut records);
            if let [(_, below)] = bundles(&effects)[..] {
                made += 1;
                let effects = world.bundled(below);
                world.apply_if_written(&effects, &mut records);
            }
        }
        for (number, cell) in (0..).zip(&mut cells) {
            // Not all at the same moment.
            if (now + number * 100) % every_ms == 0 {
                let at = offset(world.append().unwrap());
                world.durable("a", at.get());
                world.durable("b", at.get());
                cell.write(at, now);
                dirty += 1;
            }
            cell.on(GateEvent::PaceChanged { rounds: world.log.rounds() }, now);
            cell.on(GateEvent::Tick, now);
        }
        // What waits longest bounds what is drained.
        if let Some(waits_ms) = u64::from(world.log.rounds()).checked_mul(PACE_MS) {
            let drained = now.saturating_sub(waits_ms + PACE_MS) / every_ms * CELLS;
            let effects = world.covered(drained.clamp(1, world.log.next().get()));
            world.apply_if_written(&effects, &mut records);
        }
    }
    (cells.iter().map(|cell| cell.puts).sum(), made, records)
}

impl World {
    fn apply_if_written(&mut self, effects: &[Effect], records: &mut u64) {
        if effects.iter().any(|effect| matches!(effect, NodeLogEffect::WriteRecord { .. })) {
            *records += 1;
            self.apply(effects);
        }
    }
}

#[test]
fn bundles_save_objects_where_cells_are_busy() {
    // Cells that write once a second.
    let (plain, _, _) = puts(1_000, false);
    let (own, made, records) = puts(1_000, true);
    assert!(own + made + records < plain / 4, "{plain} without; {own} + {made} + {records} with bundles");
    assert!(records <= made / 4 + 2, "{records} for {made} bundles");
}

#[test]
fn cells_that_rarely_write_cost_what_they_did() {
    // Cells that write once in forty seconds: 25 of 500 in a round.
    let (plain, _, _) = puts(40_000, false);
    assert_eq!(puts(40_000, true), (plain, 0, 0));
}
