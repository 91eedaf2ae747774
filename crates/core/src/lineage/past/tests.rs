use alloc::vec::Vec;

use super::*;

fn epoch(number: u64) -> Epoch {
    Epoch::new(number)
}

fn position(epoch: u64, txid: u64) -> Position {
    Position { epoch: Epoch::new(epoch), txid: Txid::new(txid) }
}

fn file(first: u64, last: u64) -> FileSpan {
    FileSpan { first: Some(Txid::new(first)), last: Txid::new(last) }
}

fn snapshot(last: u64) -> FileSpan {
    FileSpan { first: None, last: Txid::new(last) }
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
    go(history, Past::start(epoch(7), Epoch::ZERO, target), missing)
}

fn go(history: History<'_>, begun: (Past, PastEffect), missing: &[(u64, u64)]) -> Walked {
    let of = |epoch: Epoch| history.iter().find(|(number, ..)| *number == epoch.get());
    let (mut past, mut effect) = begun;
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
            PastEffect::ListFiles(epoch) => {
                listed = epoch;
                let (_, base, files) = of(epoch).unwrap();
                let firsts =
                    [base.map_or(0, |(_, txid)| txid)].into_iter().chain(files.iter().map(|file| file.0));
                let spans = firsts.zip(files.iter()).map(|(before, (last, _))| file(before + 1, *last));
                let is_there = |span: &FileSpan| !missing.contains(&(epoch.get(), span.last.get()));
                PastEvent::FilesListed(spans.filter(is_there).collect::<Vec<_>>().into_iter().rev().collect())
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
    for (number, txid) in [(2, 5), (2, 6), (1, 3), (5, 9), (6, 9), (6, 4), (3, 3), (4, 1), (2, 1)] {
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
fn a_cell_that_was_woken_and_only_read_stands_where_it_stood() {
    for (number, txid) in [(3, 4), (4, 4), (5, 4)] {
        let (found, planned, _) = walk(HISTORY, to(number, txid), &[]);
        assert_eq!((found, planned.len()), (Ok(position(2, 4)), 2));
    }
    assert_eq!(walk(HISTORY, to(2, 2), &[]).0, Ok(position(1, 2)));
}

/// What one listing of the newest epoch, 2 upon 1/2, says of a target.
fn of_listing(target: PastTarget, files: &[FileSpan]) -> PastEffect {
    let (mut past, _) = Past::start(epoch(3), Epoch::ZERO, target);
    past.on(PastEvent::OpenersRead(vec![(epoch(2), Some(OpenerView { base: Some(position(1, 2)) }))]));
    let mut effect = past.on(PastEvent::FilesListed(files.to_vec()));
    while let PastEffect::ReadTime(end) = effect {
        effect = past.on(PastEvent::TimeRead(Millis::new(end.get() * 100)));
    }
    effect
}

#[test]
fn a_half_swept_epoch_shows_no_older_state_in_place_of_one_that_is_gone() {
    let gone = PastEffect::Fail(PastError::NotKept { before: epoch(3) });
    let at = |time| PastTarget::Time(Millis::new(time));
    // Level 0 is swept up to 9, of level 1 one file is left, and the snapshot that all of it was given up for.
    let left = [file(3, 6), snapshot(9), file(10, 10)];
    for target in [to(2, 8), at(899), at(650)] {
        assert_eq!(of_listing(target, &left), gone, "{target:?}");
    }
    for target in [to(2, 6), to(2, 9), to(2, 10), at(900), at(1_000)] {
        assert!(matches!(of_listing(target, &left), PastEffect::PlanEpoch(_)), "{target:?}");
    }
    // Before the first file that is left, the base is not what was there.
    let left = [file(7, 9), file(10, 10)];
    for target in [to(2, 4), at(350)] {
        assert_eq!(of_listing(target, &left), gone, "{target:?}");
    }
    // Inside of a file that is there, the state before it is the newest.
    assert_eq!(of_listing(to(2, 4), &[file(3, 6)]), PastEffect::ReadOpeners(vec![epoch(1)]));
    assert_eq!(of_listing(at(350), &[file(3, 6)]), PastEffect::ReadOpeners(vec![epoch(1)]));
}

#[test]
fn a_first_epoch_of_which_the_beginning_is_swept_was_not_empty() {
    let missing = [(1, 1)];
    let history: History<'_> = &[(1, None, &[(1, 100), (2, 200), (3, 300)])];
    for target in [PastTarget::Time(Millis::new(99)), PastTarget::Time(Millis::new(150)), to(1, 1)] {
        assert_eq!(walk(history, target, &missing).0, Err(PastError::NotKept { before: epoch(2) }));
    }
    // All files of an epoch that was continued.
    let missing = [(2, 3), (2, 4), (2, 5), (2, 6)];
    for target in [PastTarget::Time(Millis::new(450)), PastTarget::Time(Millis::new(299)), to(2, 3)] {
        assert_eq!(walk(HISTORY, target, &missing).0, Err(PastError::NotKept { before: epoch(3) }));
    }
}

#[test]
fn a_snapshot_ends_the_walk() {
    let (mut past, effect) = Past::start(epoch(3), Epoch::ZERO, to(2, 9));
    assert_eq!(effect, PastEffect::ReadOpeners(vec![epoch(2)]));
    let opener = OpenerView { base: Some(position(1, 2)) };
    let effect = past.on(PastEvent::OpenersRead(vec![(epoch(2), Some(opener))]));
    assert_eq!(effect, PastEffect::ListFiles(epoch(2)));
    let effect = past.on(PastEvent::FilesListed(vec![snapshot(9)]));
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

#[test]
fn an_exact_position_is_found_or_the_nearest_named() {
    let of = |history, number, txid, missing: &[(u64, u64)]| {
        go(history, Past::start_exactly(epoch(7), Epoch::ZERO, position(number, txid)), missing).0
    };
    let exactly = |number, txid, missing: &[(u64, u64)]| of(HISTORY, number, txid, missing);
    assert_eq!(exactly(5, 5, &[]), Ok(position(5, 5)));
    assert_eq!(exactly(2, 4, &[]), Ok(position(2, 4)));
    assert_eq!(exactly(1, 2, &[]), Ok(position(1, 2)));
    let inexact = |asked, nearest| Err(PastError::Inexact { asked, nearest });
    assert_eq!(exactly(5, 7, &[]), inexact(position(5, 7), position(5, 5)));
    let merged: History<'_> = &[(1, None, &[(2, 200)]), (2, Some((1, 2)), &[(4, 400)])];
    assert_eq!(of(merged, 2, 3, &[]), inexact(position(2, 3), position(1, 2)));
    // What is named can be had.
    assert_eq!(exactly(5, 7, &[(5, 5)]), inexact(position(5, 7), position(2, 4)));
    assert_eq!(exactly(2, 5, &[]), Err(PastError::NotInHistory(position(2, 5))));
    assert_eq!(exactly(5, 9, &[]), Err(PastError::NotInHistory(position(5, 9))));
}
