use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::retire::KeptEpoch;
use holdfast_types::{Millis, WriteId};

fn epoch(number: u64) -> Epoch {
    Epoch::new(number)
}

fn position(epoch: u64, txid: u64) -> Position {
    Position { epoch: Epoch::new(epoch), txid: Txid::new(txid) }
}

fn asked(effect: &LineageEffect) -> Vec<Epoch> {
    match effect {
        LineageEffect::ReadOpeners(epochs) => epochs.clone(),
        other => panic!("expected a read of openers, got {other:?}"),
    }
}

fn opened(epoch: u64, base: Option<Position>) -> LineageEvent {
    LineageEvent::OpenersRead(vec![(Epoch::new(epoch), Some(OpenerView { base }))])
}

fn planned(start: SegmentStart, end: u64) -> LineageEvent {
    LineageEvent::EpochPlanned { start, end: Txid::new(end) }
}

fn segment(effect: &LineageEffect) -> Segment {
    match effect {
        LineageEffect::PlanEpoch(segment) => *segment,
        other => panic!("expected a plan, got {other:?}"),
    }
}

/// A walk of a history of which nothing is retired.
fn begin(mine: Epoch, floor: Epoch, local: Option<Position>) -> (Lineage, LineageEffect) {
    begin_with(mine, floor, local, None)
}

fn begin_with(
    mine: Epoch,
    floor: Epoch,
    local: Option<Position>,
    mark: Option<Mark>,
) -> (Lineage, LineageEffect) {
    let (mut walk, effect) = Lineage::start(mine, floor, local);
    assert_eq!(effect, LineageEffect::ReadMark);
    let effect = walk.on(LineageEvent::MarkRead(mark));
    (walk, effect)
}

/// The outcome, once the mark has been seen unchanged.
fn verified(walk: &mut Lineage, effect: &LineageEffect) -> LineageEffect {
    assert_eq!(effect, &LineageEffect::ReadMark);
    walk.on(LineageEvent::MarkRead(None))
}

fn chain(walk: &mut Lineage, effect: &LineageEffect) -> Chain {
    match verified(walk, effect) {
        LineageEffect::Finish(chain) => chain,
        other => panic!("expected a chain, got {other:?}"),
    }
}

fn mark(by: u64, start: Option<(u64, u64)>) -> Mark {
    let start =
        start.map(|(epoch, txid)| SnapshotAt { epoch: Epoch::new(epoch), txid: Txid::new(txid), len: 7 });
    Mark {
        write_id: WriteId::from_bits(1),
        by: Epoch::new(by),
        kept: Kept { start, epochs: vec![] },
        marked_ms: Millis::ZERO,
        is_swept: false,
    }
}

#[test]
fn the_first_epoch_restores_nothing() {
    let nothing = Chain { segments: vec![], end: None, kept: Some(Kept::default()), mark: None };
    for (mine, floor) in [(1, 0), (7, 7)] {
        let (_, effect) = Lineage::start(epoch(mine), epoch(floor), None);
        assert_eq!(effect, LineageEffect::Finish(nothing.clone()));
    }
}

#[test]
fn epochs_without_an_opener_are_skipped() {
    let (mut walk, effect) = begin(epoch(9), Epoch::ZERO, None);
    assert_eq!(asked(&effect), vec![epoch(8)]);
    let effect = walk.on(LineageEvent::OpenersRead(vec![(epoch(8), None)]));
    assert_eq!(asked(&effect), vec![epoch(7), epoch(6), epoch(5), epoch(4)]);
    let found = Some(OpenerView { base: None });
    let answer = vec![(epoch(7), None), (epoch(6), found), (epoch(5), found), (epoch(4), None)];
    let effect = walk.on(LineageEvent::OpenersRead(answer));
    assert_eq!(segment(&effect).epoch, epoch(6));
    assert!(segment(&effect).confirm_tail);
}

#[test]
fn each_predecessor_is_clipped_at_its_base() {
    let (mut walk, _) = begin(epoch(4), Epoch::ZERO, None);
    let effect = walk.on(opened(3, Some(position(2, 20))));
    assert_eq!(segment(&effect).clip, None);
    let effect = walk.on(planned(SegmentStart::Base, 30));
    assert_eq!(asked(&effect), vec![epoch(2)]);
    let effect = walk.on(opened(2, Some(position(1, 10))));
    assert_eq!(segment(&effect).clip, Some(Txid::new(20)));
    assert!(!segment(&effect).confirm_tail);
    walk.on(planned(SegmentStart::Base, 20));
    walk.on(opened(1, None));
    let effect = walk.on(planned(SegmentStart::Base, 10));
    let chain = chain(&mut walk, &effect);
    let parts: Vec<_> = chain.segments.iter().map(|s| (s.epoch.get(), s.after.get(), s.clip)).collect();
    assert_eq!(
        parts,
        vec![(1, 0, Some(Txid::new(10))), (2, 10, Some(Txid::new(20))), (3, 20, Some(Txid::new(30)))]
    );
    assert_eq!(chain.end, Some(position(3, 30)));
    let kept = [(1, 10), (2, 20), (3, 30)]
        .map(|(epoch, upto)| KeptEpoch { epoch: Epoch::new(epoch), upto: Txid::new(upto) });
    assert_eq!(chain.kept, Some(Kept { start: None, epochs: kept.to_vec() }));
}

#[test]
fn a_snapshot_ends_the_walk() {
    let (mut walk, _) = begin(epoch(4), Epoch::ZERO, None);
    walk.on(opened(3, Some(position(2, 20))));
    let start = SegmentStart::Snapshot(Some((Txid::new(28), 99)));
    let effect = walk.on(planned(start, 30));
    let chain = chain(&mut walk, &effect);
    assert_eq!(chain.segments.len(), 1);
    let start = SnapshotAt { epoch: epoch(3), txid: Txid::new(28), len: 99 };
    assert_eq!(chain.kept.unwrap().start, Some(start));
}

#[test]
fn an_epoch_that_wrote_nothing_is_not_the_next_base() {
    let (mut walk, _) = begin(epoch(4), Epoch::ZERO, None);
    walk.on(opened(3, Some(position(1, 20))));
    walk.on(planned(SegmentStart::Base, 20));
    walk.on(opened(1, None));
    let effect = walk.on(planned(SegmentStart::Base, 20));
    assert_eq!(chain(&mut walk, &effect).end, Some(position(1, 20)));
}

#[test]
fn a_purge_hides_what_lies_below_its_floor() {
    let (mut walk, effect) = begin(epoch(7), epoch(5), None);
    assert_eq!(asked(&effect), vec![epoch(6)]);
    let effect = walk.on(LineageEvent::OpenersRead(vec![(epoch(6), None)]));
    assert_eq!(asked(&effect), vec![epoch(5)]);
    let effect = walk.on(LineageEvent::OpenersRead(vec![(epoch(5), None)]));
    assert_eq!(chain(&mut walk, &effect).end, None);
}

#[test]
fn a_local_file_serves_only_where_it_lies_on_the_chain() {
    let (mut walk, _) = begin(epoch(4), Epoch::ZERO, Some(position(2, 15)));
    let effect = walk.on(opened(3, Some(position(2, 20))));
    assert_eq!(segment(&effect).local, None);
    walk.on(planned(SegmentStart::Base, 30));
    let effect = walk.on(opened(2, None));
    assert_eq!(segment(&effect).local, Some(Txid::new(15)));

    let (mut walk, _) = begin(epoch(4), Epoch::ZERO, Some(position(2, 25)));
    walk.on(opened(3, Some(position(2, 20))));
    walk.on(planned(SegmentStart::Base, 30));
    assert_eq!(segment(&walk.on(opened(2, None))).local, None, "past the clip");
}

#[test]
fn a_base_without_an_opener_is_an_error() {
    let (mut walk, _) = begin(epoch(4), Epoch::ZERO, None);
    walk.on(opened(3, Some(position(2, 20))));
    walk.on(planned(SegmentStart::Base, 30));
    let effect = walk.on(LineageEvent::OpenersRead(vec![(epoch(2), None)]));
    let error = LineageError::MissingOpener { missing: epoch(2), successor: epoch(3) };
    assert_eq!(verified(&mut walk, &effect), LineageEffect::Fail(error));
}

#[test]
fn nothing_below_the_mark_is_looked_at_and_its_snapshot_is_told() {
    let (mut walk, effect) = begin_with(epoch(9), Epoch::ZERO, None, Some(mark(7, Some((5, 30)))));
    assert_eq!(asked(&effect), vec![epoch(8)]);
    let effect = walk.on(LineageEvent::OpenersRead(vec![(epoch(8), None)]));
    assert_eq!(asked(&effect), vec![epoch(7)]);
    let effect = walk.on(opened(7, Some(position(5, 33))));
    assert_eq!(segment(&effect).snapshot, None, "it is of another epoch");
    walk.on(planned(SegmentStart::Base, 40));
    let segment = segment(&walk.on(opened(5, Some(position(2, 10)))));
    assert_eq!(segment.snapshot.map(|at| at.txid), Some(Txid::new(30)));
}

#[test]
fn a_lost_opener_above_the_mark_is_an_error_and_no_empty_cell() {
    let seen = Some(mark(7, None));
    let (mut walk, _) = begin_with(epoch(8), Epoch::ZERO, None, seen.clone());
    assert_eq!(walk.on(LineageEvent::OpenersRead(vec![(epoch(7), None)])), LineageEffect::ReadMark);
    let error = LineageError::RetiringOpenerLost { by: epoch(7) };
    assert_eq!(walk.on(LineageEvent::MarkRead(seen)), LineageEffect::Fail(error));
}

#[test]
fn a_claim_that_a_later_owner_has_overtaken_plans_nothing() {
    for by in [8, 9] {
        let (_, effect) = begin_with(epoch(8), Epoch::ZERO, None, Some(mark(by, None)));
        assert_eq!(effect, LineageEffect::Fail(LineageError::Superseded { by: epoch(by) }));
    }
    // A mark below the floor means nothing.
    let (mut walk, effect) = begin_with(epoch(11), epoch(10), None, Some(mark(9, Some((8, 5)))));
    assert_eq!(asked(&effect), vec![epoch(10)]);
    let effect = walk.on(LineageEvent::OpenersRead(vec![(epoch(10), None)]));
    assert_eq!(chain(&mut walk, &effect).end, None);
}

#[test]
fn a_mark_that_changed_during_the_walk_has_it_begun_anew() {
    let (mut walk, _) = begin(epoch(4), Epoch::ZERO, None);
    walk.on(opened(3, None));
    assert_eq!(walk.on(planned(SegmentStart::Base, 0)), LineageEffect::ReadMark);
    let seen = Some(mark(3, Some((3, 5))));
    assert_eq!(walk.on(LineageEvent::MarkRead(seen.clone())), LineageEffect::Forget);
    assert_eq!(asked(&walk.on(LineageEvent::Forgotten)), vec![epoch(3)]);
    assert_eq!(segment(&walk.on(opened(3, None))).snapshot.map(|at| at.txid), Some(Txid::new(5)));
    walk.on(planned(SegmentStart::Snapshot(Some((Txid::new(5), 7))), 5));
    let LineageEffect::Finish(chain) = walk.on(LineageEvent::MarkRead(seen.clone())) else {
        panic!("the mark is the same");
    };
    assert_eq!((chain.end, chain.mark), (Some(position(3, 5)), seen));
}

#[test]
fn what_is_missing_counts_only_where_nothing_was_retired_meanwhile() {
    let (mut walk, _) = begin(epoch(4), Epoch::ZERO, None);
    assert_eq!(walk.on(LineageEvent::Broken), LineageEffect::ReadMark);
    assert_eq!(walk.on(LineageEvent::MarkRead(None)), LineageEffect::GiveUp);
    let (mut walk, _) = begin(epoch(4), Epoch::ZERO, None);
    for by in 1..=3 {
        for start in [1, 2] {
            walk.on(LineageEvent::Broken);
            let effect = walk.on(LineageEvent::MarkRead(Some(mark(by, Some((by, start))))));
            if (by, start) == (3, 2) {
                assert_eq!(effect, LineageEffect::Fail(LineageError::Moving));
                return;
            }
            assert_eq!(effect, LineageEffect::Forget);
            walk.on(LineageEvent::Forgotten);
        }
    }
}
