use alloc::vec;
use alloc::vec::Vec;

use super::*;

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

fn chain(effect: LineageEffect) -> Chain {
    match effect {
        LineageEffect::Finish(chain) => chain,
        other => panic!("expected a chain, got {other:?}"),
    }
}

#[test]
fn the_first_epoch_restores_nothing() {
    let (_, effect) = Lineage::start(epoch(1), Epoch::ZERO, None);
    assert_eq!(chain(effect), Chain { segments: vec![], end: None });
}

#[test]
fn epochs_without_an_opener_are_skipped() {
    let (mut walk, effect) = Lineage::start(epoch(9), Epoch::ZERO, None);
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
    let (mut walk, _) = Lineage::start(epoch(4), Epoch::ZERO, None);
    let effect = walk.on(opened(3, Some(position(2, 20))));
    assert_eq!(segment(&effect).clip, None);
    let effect = walk.on(planned(SegmentStart::Base, 30));
    assert_eq!(asked(&effect), vec![epoch(2)]);
    let effect = walk.on(opened(2, Some(position(1, 10))));
    assert_eq!(segment(&effect).clip, Some(Txid::new(20)));
    assert!(!segment(&effect).confirm_tail);
    walk.on(planned(SegmentStart::Base, 20));
    walk.on(opened(1, None));
    let chain = chain(walk.on(planned(SegmentStart::Base, 10)));
    let parts: Vec<_> = chain.segments.iter().map(|s| (s.epoch.get(), s.after.get(), s.clip)).collect();
    assert_eq!(
        parts,
        vec![(1, 0, Some(Txid::new(10))), (2, 10, Some(Txid::new(20))), (3, 20, Some(Txid::new(30)))]
    );
    assert_eq!(chain.end, Some(position(3, 30)));
}

#[test]
fn a_snapshot_ends_the_walk() {
    let (mut walk, _) = Lineage::start(epoch(4), Epoch::ZERO, None);
    walk.on(opened(3, Some(position(2, 20))));
    let chain = chain(walk.on(planned(SegmentStart::Snapshot, 30)));
    assert_eq!(chain.segments.len(), 1);
}

#[test]
fn an_epoch_that_wrote_nothing_is_not_the_next_base() {
    let (mut walk, _) = Lineage::start(epoch(4), Epoch::ZERO, None);
    walk.on(opened(3, Some(position(1, 20))));
    walk.on(planned(SegmentStart::Base, 20));
    walk.on(opened(1, None));
    assert_eq!(chain(walk.on(planned(SegmentStart::Base, 20))).end, Some(position(1, 20)));
}

#[test]
fn a_purge_hides_what_lies_below_its_floor() {
    let (mut walk, effect) = Lineage::start(epoch(7), epoch(5), None);
    assert_eq!(asked(&effect), vec![epoch(6)]);
    let effect = walk.on(LineageEvent::OpenersRead(vec![(epoch(6), None)]));
    assert_eq!(asked(&effect), vec![epoch(5)]);
    let effect = walk.on(LineageEvent::OpenersRead(vec![(epoch(5), None)]));
    assert_eq!(chain(effect).end, None);
}

#[test]
fn a_local_file_serves_only_where_it_lies_on_the_chain() {
    let (mut walk, _) = Lineage::start(epoch(4), Epoch::ZERO, Some(position(2, 15)));
    let effect = walk.on(opened(3, Some(position(2, 20))));
    assert_eq!(segment(&effect).local, None);
    walk.on(planned(SegmentStart::Base, 30));
    let effect = walk.on(opened(2, None));
    assert_eq!(segment(&effect).local, Some(Txid::new(15)));

    let (mut walk, _) = Lineage::start(epoch(4), Epoch::ZERO, Some(position(2, 25)));
    walk.on(opened(3, Some(position(2, 20))));
    walk.on(planned(SegmentStart::Base, 30));
    assert_eq!(segment(&walk.on(opened(2, None))).local, None, "past the clip");
}

#[test]
fn a_base_without_an_opener_is_an_error() {
    let (mut walk, _) = Lineage::start(epoch(4), Epoch::ZERO, None);
    walk.on(opened(3, Some(position(2, 20))));
    walk.on(planned(SegmentStart::Base, 30));
    let effect = walk.on(LineageEvent::OpenersRead(vec![(epoch(2), None)]));
    let error = LineageError::MissingOpener { missing: epoch(2), successor: epoch(3) };
    assert_eq!(effect, LineageEffect::Fail(error));
}
