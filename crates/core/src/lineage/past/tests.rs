use alloc::vec::Vec;

use super::*;

fn epoch(number: u64) -> Epoch {
    Epoch::new(number)
}

fn position(epoch: u64, txid: u64) -> Position {
    Position { epoch: Epoch::new(epoch), txid: Txid::new(txid) }
}

fn to(epoch: u64, txid: u64) -> PastTarget {
    PastTarget::Position(position(epoch, txid))
}

/// An epoch: its number, its base, and its files with the time of their last transaction.
type History<'a> = &'a [(u64, Option<(u64, u64)>, &'a [(u64, u64)])];

/// Epoch 2 was taken over after its transaction 4, epoch 5 goes on; epochs 3 and 4 wrote nothing.
const HISTORY: History<'_> = &[
    (1, None, &[(1, 100), (2, 200)]),
    (2, Some((1, 2)), &[(3, 300), (4, 400), (5, 450), (6, 460)]),
    (5, Some((2, 4)), &[(5, 500), (8, 800)]),
];

/// What a walk found, what it planned, and how many times it read.
type Walked = (Result<Position, PastError>, Vec<(u64, u64, u64)>, usize);

/// What a walk does with a history of which nothing is missing but the files named.
fn walk(history: History<'_>, target: PastTarget, missing: &[(u64, u64)]) -> Walked {
    let of = |epoch: Epoch| history.iter().find(|(number, ..)| *number == epoch.get());
    let (mut past, mut effect) = Past::start(epoch(7), Epoch::ZERO, target);
    let (mut planned, mut times, mut listed) = (Vec::new(), 0, epoch(0));
    loop {
        let event = match effect {
            PastEffect::ReadOpeners(epochs) => PastEvent::OpenersRead(
                epochs
                    .into_iter()
                    .map(|epoch| {
                        let base = of(epoch).map(|(_, base, _)| *base);
                        let opener = base.map(|base| OpenerView { base: base.map(|(e, t)| position(e, t)) });
                        (epoch, opener)
                    })
                    .collect(),
            ),
            PastEffect::ListEnds(epoch) => {
                listed = epoch;
                let files = of(epoch).unwrap().2.iter().rev();
                PastEvent::EndsListed(files.map(|(txid, _)| Txid::new(*txid)).collect())
            }
            PastEffect::ReadTime(end) => {
                times += 1;
                let (_, time) = of(listed).unwrap().2.iter().find(|(txid, _)| *txid == end.get()).unwrap();
                PastEvent::TimeRead(Millis::new(*time))
            }
            PastEffect::PlanEpoch(segment) => {
                let (epoch, clip) = (segment.epoch.get(), segment.clip.unwrap().get());
                planned.push((epoch, segment.after.get(), clip));
                match missing.iter().any(|(of, txid)| *of == epoch && *txid <= clip) {
                    true => PastEvent::Missing,
                    false => PastEvent::EpochPlanned(SegmentStart::Base),
                }
            }
            PastEffect::Finish(found) => return (Ok(found), planned, times),
            PastEffect::Fail(error) => return (Err(error), planned, times),
        };
        effect = past.on(event);
    }
}

#[test]
fn a_position_is_found_with_all_that_leads_to_it() {
    let (found, planned, _) = walk(HISTORY, to(5, 8), &[]);
    assert_eq!((found, planned), (Ok(position(5, 8)), [(5, 4, 8), (2, 2, 4), (1, 0, 2)].to_vec()));
    let (found, planned, _) = walk(HISTORY, to(2, 3), &[]);
    assert_eq!((found, planned), (Ok(position(2, 3)), [(2, 2, 3), (1, 0, 2)].to_vec()));
}

#[test]
fn a_transaction_inside_of_a_file_is_found_before_it() {
    assert_eq!(walk(HISTORY, to(5, 7), &[]).0, Ok(position(5, 5)));
    let merged: History<'_> = &[(1, None, &[(2, 200)]), (2, Some((1, 2)), &[(4, 400)])];
    assert_eq!(walk(merged, to(2, 3), &[]).0, Ok(position(1, 2)));
    assert_eq!(walk(merged, to(1, 1), &[]).0, Err(PastError::NotInHistory(position(1, 1))));
}

#[test]
fn what_no_epoch_continued_is_no_history() {
    for (number, txid) in [(2, 5), (2, 6), (1, 3), (5, 4), (5, 9), (6, 9), (3, 4), (4, 1)] {
        let (found, planned, _) = walk(HISTORY, to(number, txid), &[]);
        assert_eq!((found, planned.len()), (Err(PastError::NotInHistory(position(number, txid))), 0));
    }
}

#[test]
fn a_time_finds_the_last_transaction_that_is_not_later() {
    let found = [
        (99, Err(PastError::Empty)),
        (100, Ok(position(1, 1))),
        (299, Ok(position(1, 2))),
        (300, Ok(position(2, 3))),
        // What epoch 2 wrote at 450 was given up.
        (499, Ok(position(2, 4))),
        (500, Ok(position(5, 5))),
        (9_999, Ok(position(5, 8))),
    ];
    for (time, expected) in found {
        assert_eq!(walk(HISTORY, PastTarget::Time(Millis::new(time)), &[]).0, expected, "{time}");
    }
}

#[test]
fn a_time_among_many_files_takes_few_reads() {
    let files: Vec<(u64, u64)> = (1..=1_000).map(|txid| (txid, txid * 10)).collect();
    let history: History<'_> = &[(1, None, &files)];
    for (time, txid) in [(10, 1), (5_005, 500), (10_000, 1_000), (99_999, 1_000)] {
        let (found, _, times) = walk(history, PastTarget::Time(Millis::new(time)), &[]);
        assert_eq!(found, Ok(position(1, txid)));
        assert!(times <= 10, "{times} reads");
    }
}

#[test]
fn what_is_missing_is_said_and_never_passed_over() {
    let (found, ..) = walk(HISTORY, to(5, 8), &[(2, 3)]);
    assert_eq!(found, Err(PastError::NotKept { before: epoch(3) }));
    // The opener of a base is gone.
    let retired = &HISTORY[1..];
    assert_eq!(walk(retired, to(1, 2), &[]).0, Err(PastError::NotKept { before: epoch(2) }));
    assert_eq!(walk(retired, to(2, 4), &[]).0, Err(PastError::NotKept { before: epoch(2) }));
}

#[test]
fn a_snapshot_ends_the_walk() {
    let (mut past, effect) = Past::start(epoch(3), Epoch::ZERO, to(2, 9));
    assert_eq!(effect, PastEffect::ReadOpeners(vec![epoch(2)]));
    let opener = OpenerView { base: Some(position(1, 2)) };
    let effect = past.on(PastEvent::OpenersRead(vec![(epoch(2), Some(opener))]));
    assert_eq!(effect, PastEffect::ListEnds(epoch(2)));
    let effect = past.on(PastEvent::EndsListed(vec![Txid::new(9)]));
    assert!(
        matches!(effect, PastEffect::PlanEpoch(Segment { clip: Some(clip), .. }) if clip == Txid::new(9))
    );
    let start = SegmentStart::Snapshot(Some((Txid::new(9), 5)));
    assert_eq!(past.on(PastEvent::EpochPlanned(start)), PastEffect::Finish(position(2, 9)));
}

#[test]
fn nothing_below_the_floor_is_looked_at() {
    let (mut past, effect) = Past::start(epoch(3), epoch(2), PastTarget::Time(Millis::new(5)));
    assert_eq!(effect, PastEffect::ReadOpeners(vec![epoch(2)]));
    let effect = past.on(PastEvent::OpenersRead(vec![(epoch(2), None)]));
    assert_eq!(effect, PastEffect::Fail(PastError::Empty));
}
