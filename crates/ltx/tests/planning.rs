//! Plans against brute force: whenever a chain exists the cheapest is found, and an error names the true gap.
#![allow(clippy::unwrap_used)]

use holdfast_ltx::{PlanError, PlannedFile, REQUEST_COST_BYTES, plan_epoch};
use holdfast_types::Txid;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn file(level: u8, min: u64, max: u64, len: u64) -> PlannedFile {
    PlannedFile { level, min: Txid::new(min), max: Txid::new(max), len }
}

fn level_0(from: u64, to: u64) -> Vec<PlannedFile> {
    (from..=to).map(|txid| file(0, txid, txid, 300)).collect()
}

fn ranges(files: &[PlannedFile]) -> Vec<(u8, u64, u64)> {
    files.iter().map(|file| (file.level, file.min.get(), file.max.get())).collect()
}

/// Every position that is reached and its least cost, by relaxing all files until nothing changes.
fn reach(files: &[PlannedFile], start: u64, clip: u64) -> BTreeMap<u64, u64> {
    let mut costs = BTreeMap::from([(start, 0)]);
    loop {
        let before = costs.clone();
        for file in files.iter().filter(|file| file.max.get() <= clip) {
            let leading = costs.range(file.min.get() - 1..file.max.get()).map(|(_, cost)| *cost).min();
            if let Some(cost) = leading {
                let cost = cost + file.len + REQUEST_COST_BYTES;
                let known = costs.entry(file.max.get()).or_insert(cost);
                *known = cost.min(*known);
            }
        }
        if before == costs {
            return costs;
        }
    }
}

fn check(files: &[PlannedFile], from: u64, clip: Option<u64>) {
    let newest_listed = files.iter().map(|file| file.max.get()).max().unwrap_or(from);
    let target = clip.unwrap_or(newest_listed.max(from));
    let from_nothing = reach(files, 0, target);
    // What is there already is no use for a target before it.
    let from_position = if from <= target { reach(files, from, target) } else { BTreeMap::new() };
    let from_nothing_helps = target > 0 && from_nothing.contains_key(&target);
    match plan_epoch(files, Txid::new(from), clip.map(Txid::new)) {
        Ok(plan) => {
            assert_eq!(plan.end.get(), target);
            let mut position = if plan.starts_from_snapshot { 0 } else { from };
            for planned in &plan.files {
                assert!(files.contains(planned));
                assert!(planned.min.get() <= position + 1, "a gap in {:?}", ranges(&plan.files));
                assert!(planned.max.get() > position, "no way on in {:?}", ranges(&plan.files));
                position = planned.max.get();
            }
            assert_eq!(position, target);
            let cost: u64 = plan.files.iter().map(|file| file.len + REQUEST_COST_BYTES).sum();
            let best = from_nothing.get(&target).unwrap_or_else(|| &from_position[&target]);
            assert_eq!(cost, *best);
            assert_eq!(plan.starts_from_snapshot, from_nothing_helps);
        }
        Err(PlanError::Gap { missing, newest, target: named, .. }) => {
            assert!(!from_nothing_helps && !from_position.contains_key(&target));
            let best = *from_nothing.keys().chain(from_position.keys()).max().unwrap();
            assert_eq!((newest.get(), missing.get(), named.get()), (best, best + 1, target));
        }
        Err(error) => panic!("{error}"),
    }
}

prop_compose! {
    /// Full level 0 after `from`, some of it in longer files too, some compactions and snapshots, then some files deleted.
    fn any_listing()(from in 0_u64..6, more in 0_u64..25)(
        compactions in proptest::collection::vec((from + 1..=from + more + 1, 0_u64..9, 0_u64..5_000_000), 0..8),
        ranges in proptest::collection::vec((from + 1..=from + more + 1, 0_u32..4, 0_u64..900), 0..8),
        snapshots in proptest::collection::vec((from + 1..=from + more + 1, 0_u64..9_000_000), 0..4),
        deleted in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
        clip in proptest::option::of(0..=from + more + 2),
        from in Just(from), more in Just(more),
    ) -> (Vec<PlannedFile>, u64, Option<u64>) {
        let mut files = level_0(from + 1, from + more);
        files.extend(compactions.into_iter().map(|(min, span, len)| file(1, min, min + span, len)));
        files.extend(ranges.into_iter().map(|(min, exponent, len)| file(0, min, min + (1 << exponent) - 1, len)));
        files.extend(snapshots.into_iter().map(|(max, len)| file(9, 1, max, len)));
        for at in deleted {
            if !files.is_empty() {
                files.swap_remove(at.index(files.len()));
            }
        }
        (files, from, clip)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn a_plan_is_found_exactly_when_a_chain_exists((files, from, clip) in any_listing()) {
        check(&files, from, clip);
    }
}

#[test]
fn a_long_chain_restores_in_few_requests() {
    // 40,000 commits, a compaction for every 256, and snapshots where a compaction ends: elsewhere one would be followed
    // by level 0 up to the next compaction's start.
    let mut files = level_0(1, 40_000);
    files.extend((0..40_000 / 256).map(|at| file(1, at * 256 + 1, (at + 1) * 256, 70_000)));
    assert_eq!(plan_epoch(&files, Txid::ZERO, None).unwrap().files.len(), 156 + 64);
    files.extend((1..4).map(|at| file(9, 1, at * 39 * 256, 900_000)));
    let plan = plan_epoch(&files, Txid::ZERO, None).unwrap();
    assert_eq!(ranges(&plan.files)[0], (9, 1, 29_952));
    assert_eq!(plan.files.len(), 1 + 39 + 64);
}

#[test]
fn the_newest_snapshot_within_the_clip_is_taken() {
    let mut files = level_0(1, 20);
    files.extend([file(9, 1, 5, 900), file(9, 1, 12, 900), file(9, 1, 18, 900), file(1, 9, 16, 900)]);
    let plan = plan_epoch(&files, Txid::ZERO, Some(Txid::new(14))).unwrap();
    assert_eq!(ranges(&plan.files), [(9, 1, 12), (0, 13, 13), (0, 14, 14)]);
}

#[test]
fn a_file_that_straddles_the_clip_is_replaced_by_level_0() {
    let mut files = level_0(1, 10);
    files.extend([file(1, 1, 4, 500), file(1, 5, 9, 500)]);
    let plan = plan_epoch(&files, Txid::ZERO, Some(Txid::new(7))).unwrap();
    assert_eq!(ranges(&plan.files), [(1, 1, 4), (0, 5, 5), (0, 6, 6), (0, 7, 7)]);
    files.retain(|file| file.level == 1);
    let error = plan_epoch(&files, Txid::ZERO, Some(Txid::new(7))).unwrap_err();
    assert_eq!(
        error,
        PlanError::Gap {
            missing: Txid::new(5),
            newest: Txid::new(4),
            target: Txid::new(7),
            straddler: Some(file(1, 5, 9, 500)),
        }
    );
    assert!(error.to_string().contains("level 1 has 0000000000000005 to 0000000000000009"), "{error}");
}

#[test]
fn files_that_were_cut_differently_lead_on_from_each_other() {
    // An owner put 1 to 6 up in its pieces; whoever recovered it found 1 and 2 only, and cut what it had.
    let files =
        [file(0, 1, 2, 300), file(0, 3, 4, 300), file(0, 5, 6, 300), file(0, 3, 3, 200), file(0, 4, 7, 900)];
    let plan = plan_epoch(&files, Txid::ZERO, None).unwrap();
    assert_eq!(ranges(&plan.files), [(0, 1, 2), (0, 3, 3), (0, 4, 7)]);
    let plan = plan_epoch(&files, Txid::ZERO, Some(Txid::new(6))).unwrap();
    assert_eq!(ranges(&plan.files), [(0, 1, 2), (0, 3, 4), (0, 5, 6)], "the longer file is beyond the clip");
    let plan = plan_epoch(&files[4..], Txid::new(6), None).unwrap();
    assert_eq!(ranges(&plan.files), [(0, 4, 7)], "over what is there already");
}

#[test]
fn a_hole_in_level_0_is_bridged_or_named() {
    let mut files = level_0(1, 9);
    files.remove(4);
    let error = plan_epoch(&files, Txid::ZERO, None).unwrap_err();
    let (missing, newest) = (Txid::new(5), Txid::new(4));
    assert_eq!(error, PlanError::Gap { missing, newest, target: Txid::new(9), straddler: None });
    files.push(file(1, 3, 6, 100));
    assert_eq!(plan_epoch(&files, Txid::ZERO, None).unwrap().files.len(), 6);
}

#[test]
fn what_lies_beyond_the_clip_is_no_start() {
    let snapshot = file(9, 1, 4, 900);
    let plan = plan_epoch(&[snapshot], Txid::new(7), Some(Txid::new(4))).unwrap();
    assert_eq!((plan.files, plan.starts_from_snapshot), (vec![snapshot], true));
    for clip in [0, 3] {
        let error = plan_epoch(&[snapshot], Txid::new(7), Some(Txid::new(clip))).unwrap_err();
        let PlanError::Gap { missing, newest, .. } = error else { panic!("{error}") };
        assert_eq!((missing, newest), (Txid::new(1), Txid::ZERO));
    }
}

#[test]
fn a_listing_without_a_range_is_refused() {
    for (min, max) in [(0, 3), (5, 4)] {
        let error = plan_epoch(&[file(0, min, max, 1)], Txid::ZERO, None).unwrap_err();
        assert!(matches!(error, PlanError::Range { .. }));
    }
}
