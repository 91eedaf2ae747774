use alloc::vec::Vec;

use holdfast_types::{Epoch, Millis, NodeName, SessionId, Txid, WriteId};

use super::*;
use crate::ownership::{OwnerState, OwnerView};
use crate::store::{Answer, Guard};

const RETENTION_MS: u64 = 60_000;

fn snapshot(epoch: u64, txid: u64) -> SnapshotAt {
    SnapshotAt { epoch: Epoch::new(epoch), txid: Txid::new(txid), len: 100 }
}

fn kept(start: Option<SnapshotAt>, epochs: &[(u64, u64)]) -> Kept {
    let epochs =
        epochs.iter().map(|(epoch, upto)| KeptEpoch { epoch: Epoch::new(*epoch), upto: Txid::new(*upto) });
    Kept { start, epochs: epochs.collect() }
}

fn mark(by: u64, kept: Kept, marked_ms: u64, is_swept: bool) -> Mark {
    Mark {
        write_id: WriteId::from_bits(9),
        by: Epoch::new(by),
        kept,
        marked_ms: Millis::new(marked_ms),
        is_swept,
    }
}

fn me(epoch: u64) -> RetireOwner {
    RetireOwner {
        node: NodeName::parse("n1").unwrap(),
        session: SessionId::from_bits(1),
        epoch: Epoch::new(epoch),
        floor: Epoch::new(2),
    }
}

fn record(epoch: u64) -> OwnerView {
    let RetireOwner { node, session, epoch, floor } = me(epoch);
    let write_id = WriteId::from_bits(3);
    OwnerView { node, session, epoch, state: OwnerState::Owned, floor, write_id }
}

fn start(epoch: u64, kept: Option<Kept>) -> Retire<u32> {
    let ids = (WriteId::from_bits(1), WriteId::from_bits(2));
    Retire::start(me(epoch), kept, RETENTION_MS, ids).0
}

fn mark_read(mark: Option<(Mark, u32)>, now: u64) -> RetireEvent<u32> {
    RetireEvent::MarkRead { mark, wall_now: Millis::new(now) }
}

fn owner_read(epoch: u64, now: u64) -> RetireEvent<u32> {
    RetireEvent::OwnerRead { owner: Some(record(epoch)), wall_now: Millis::new(now) }
}

#[test]
fn a_mark_keeps_what_restores_read_and_nothing_else() {
    use HistoryObject::{File, Opener, Snapshot};
    let mark = mark(9, kept(Some(snapshot(4, 50)), &[(4, 60), (7, 80)]), 0, false);
    let keeps = |epoch: u64, object| mark.keeps(Epoch::new(epoch), object);
    let at = Txid::new;
    for (epoch, object) in [
        (4, Opener),
        (4, Snapshot(at(50))),
        (4, File(at(51))),
        (4, File(at(60))),
        (7, Opener),
        (7, File(at(80))),
        (9, Opener),
        (9, File(at(1))),
        (10, File(at(1))),
    ] {
        assert!(keeps(epoch, object), "{epoch} {object:?}");
    }
    for (epoch, object) in [
        (3, Opener),
        (3, Snapshot(at(50))),
        (4, Snapshot(at(49))),
        (4, File(at(50))),
        (4, File(at(61))),
        (4, Snapshot(at(61))),
        (5, Opener),
        (5, File(at(70))),
        (7, File(at(81))),
        (8, Opener),
    ] {
        assert!(!keeps(epoch, object), "{epoch} {object:?}");
    }
}

#[test]
fn a_snapshot_of_the_epoch_itself_retires_every_predecessor() {
    use HistoryObject::{File, Opener, Snapshot};
    let mark = mark(9, kept(Some(snapshot(9, 90)), &[]), 0, false);
    assert!(!mark.keeps(Epoch::new(8), Opener));
    assert!(!mark.keeps(Epoch::new(9), File(Txid::new(90))));
    assert!(mark.keeps(Epoch::new(9), File(Txid::new(91))));
    assert!(mark.keeps(Epoch::new(9), Snapshot(Txid::new(90))));
}

#[test]
fn a_round_marks_waits_sweeps_and_says_so() {
    let want = kept(Some(snapshot(5, 40)), &[]);
    let mut round = start(5, Some(want.clone()));
    assert_eq!(round.on(mark_read(None, 1_000)), RetireEffect::ReadOwner);
    let RetireEffect::WriteMark { mark, guard: Guard::Absent } = round.on(owner_read(5, 1_000)) else {
        panic!("a mark is written");
    };
    assert_eq!((mark.by, &mark.kept, mark.marked_ms), (Epoch::new(5), &want, Millis::new(1_000)));
    let marked = RetireOutcome::Marked { wait_ms: RETENTION_MS };
    assert_eq!(round.on(RetireEvent::MarkAnswered(Answer::Applied(7))), RetireEffect::Finish(marked));

    let mut round = start(5, Some(want.clone()));
    let early = round.on(mark_read(Some((mark.clone(), 7)), 31_000));
    assert_eq!(early, RetireEffect::Finish(RetireOutcome::Later { wait_ms: 30_000 }));

    let mut round = start(5, Some(want.clone()));
    assert_eq!(round.on(mark_read(Some((mark.clone(), 7)), 61_000)), RetireEffect::Sweep(mark.clone()));
    let RetireEffect::WriteMark { mark: swept, guard: Guard::Match(7) } = round.on(RetireEvent::Swept) else {
        panic!("the mark says that it is swept");
    };
    assert!(swept.is_swept && swept.write_id != mark.write_id);
    let done = round.on(RetireEvent::MarkAnswered(Answer::Applied(8)));
    assert_eq!(done, RetireEffect::Finish(RetireOutcome::Swept { has_more: false }));

    let mut round = start(5, Some(want));
    assert_eq!(round.on(mark_read(Some((swept, 8)), 62_000)), RetireEffect::Finish(RetireOutcome::Nothing));
}

#[test]
fn the_next_owner_finishes_the_sweep_of_the_one_before() {
    let old = mark(5, kept(Some(snapshot(5, 40)), &[]), 0, false);
    let mut round = start(8, Some(kept(Some(snapshot(5, 40)), &[(5, 44)])));
    assert_eq!(round.on(mark_read(Some((old.clone(), 7)), RETENTION_MS)), RetireEffect::Sweep(old.clone()));
    round.on(RetireEvent::Swept);
    let done = round.on(RetireEvent::MarkAnswered(Answer::Applied(8)));
    assert_eq!(done, RetireEffect::Finish(RetireOutcome::Swept { has_more: true }));

    // Without the chain it can do that much, and no more.
    let mut round = start(8, None);
    assert_eq!(round.on(mark_read(Some((old.clone(), 7)), RETENTION_MS)), RetireEffect::Sweep(old.clone()));
    let mut round = start(8, None);
    let swept = Mark { is_swept: true, ..old };
    let answer = round.on(mark_read(Some((swept, 7)), RETENTION_MS));
    assert_eq!(answer, RetireEffect::Finish(RetireOutcome::Nothing));
}

#[test]
fn whoever_is_superseded_retires_nothing() {
    let want = kept(Some(snapshot(5, 40)), &[]);
    let newer = mark(6, kept(None, &[(5, 40)]), 0, true);
    let answer = start(5, Some(want.clone())).on(mark_read(Some((newer, 7)), 0));
    assert_eq!(answer, RetireEffect::Finish(RetireOutcome::Superseded));
    let mut round = start(5, Some(want));
    assert_eq!(round.on(mark_read(None, 0)), RetireEffect::ReadOwner);
    assert_eq!(round.on(owner_read(6, 0)), RetireEffect::Finish(RetireOutcome::Superseded));
}

#[test]
fn a_mark_never_goes_back_behind_the_snapshot_of_an_earlier_one() {
    // A snapshot that the chain does not have: the two are of different histories.
    let odd = mark(5, kept(Some(snapshot(5, 50)), &[]), 0, true);
    let mut round = start(6, Some(kept(None, &[(5, 44)])));
    assert_eq!(round.on(mark_read(Some((odd, 7)), 0)), RetireEffect::Finish(RetireOutcome::Nothing));

    // The previous owner marked a snapshot after this one had planned.
    let old = mark(5, kept(Some(snapshot(5, 40)), &[]), 0, true);
    let mut round = start(6, Some(kept(Some(snapshot(3, 20)), &[(3, 25), (5, 44)])));
    assert_eq!(round.on(mark_read(Some((old, 7)), 0)), RetireEffect::ReadOwner);
    let RetireEffect::WriteMark { mark, guard: Guard::Match(7) } = round.on(owner_read(6, 0)) else {
        panic!("a mark is written");
    };
    assert_eq!(mark.kept, kept(Some(snapshot(5, 40)), &[(5, 44)]));
}

#[test]
fn a_mark_from_before_a_purge_means_nothing() {
    let old = mark(1, kept(Some(snapshot(1, 50)), &[]), 0, false);
    let mut round = start(5, Some(kept(None, &[(3, 4)])));
    assert_eq!(round.on(mark_read(Some((old, 7)), 0)), RetireEffect::ReadOwner);
    let RetireEffect::WriteMark { mark, guard: Guard::Match(7) } = round.on(owner_read(5, 0)) else {
        panic!("a mark is written");
    };
    assert_eq!(mark.kept, kept(None, &[(3, 4)]));
}

#[test]
fn a_mark_that_somebody_else_wrote_meanwhile_is_looked_at_again() {
    for answer in [Answer::Rejected, Answer::Unknown] {
        let mut round = start(5, Some(kept(Some(snapshot(5, 40)), &[])));
        round.on(mark_read(None, 0));
        round.on(owner_read(5, 0));
        let effect = round.on(RetireEvent::MarkAnswered(answer));
        assert!(matches!(effect, RetireEffect::Finish(RetireOutcome::Later { .. })), "{effect:?}");
    }
    let mut round = start(5, Some(kept(None, &[])));
    assert_eq!(round.on(RetireEvent::Failed), RetireEffect::Finish(RetireOutcome::Failed));
}

#[test]
fn a_look_is_due_after_a_snapshot_an_unfinished_sweep_or_many_epochs() {
    let last = LastMark { by: Epoch::new(10), ..LastMark::default() };
    assert!(!is_due(Epoch::new(10 + EPOCHS_MAX - 1), last));
    assert!(is_due(Epoch::new(10 + EPOCHS_MAX), last));
    assert!(is_due(Epoch::new(11), LastMark { has_snapshot: true, ..last }));
    assert!(is_due(Epoch::new(11), LastMark { is_pending: true, ..last }));
    let long: Vec<_> = (1..=600).map(|epoch| (epoch, 1)).collect();
    let answer = start(601, Some(kept(None, &long))).on(mark_read(None, 0));
    assert_eq!(answer, RetireEffect::Finish(RetireOutcome::Nothing), "too long for a mark");
}
