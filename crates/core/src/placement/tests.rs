use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

use holdfast_types::{CellName, NodeName};
use proptest::prelude::*;

use super::*;

fn node(index: usize) -> NodeName {
    NodeName::parse(&format!("node-{index}")).unwrap()
}

fn cell(index: usize) -> CellName {
    CellName::parse(&format!("db:tenant-{index}")).unwrap()
}

fn idle(index: usize, weight: u32) -> Candidate {
    Candidate { node: node(index), weight, cells: 0, draining: false, live: true, protocol_ok: true }
}

fn fleet(weights: &[u32]) -> Vec<Candidate> {
    weights.iter().enumerate().map(|(index, weight)| idle(index, *weight)).collect()
}

fn shares(cells: usize, candidates: &[Candidate]) -> BTreeMap<NodeName, usize> {
    let mut shares = BTreeMap::new();
    for index in 0..cells {
        *shares.entry(place(&cell(index), candidates).unwrap().clone()).or_default() += 1;
    }
    shares
}

#[test]
fn only_a_live_compatible_node_that_does_not_drain_takes_a_cell() {
    assert_eq!(place(&cell(1), &[]), None);
    let good = idle(1, 100);
    let bad = [
        Candidate { draining: true, ..good.clone() },
        Candidate { live: false, ..good.clone() },
        Candidate { protocol_ok: false, ..good.clone() },
    ];
    assert_eq!(place(&cell(1), &bad), None);
    for candidate in bad {
        let pair = [candidate, Candidate { node: node(2), ..good.clone() }];
        assert_eq!(place(&cell(1), &pair), Some(&node(2)));
    }
}

#[test]
fn shares_follow_weights() {
    let shares = shares(20_000, &fleet(&[100, 100, 200]));
    for (index, expected) in [(0, 5_000), (1, 5_000), (2, 10_000)] {
        let got = shares[&node(index)];
        assert!(got.abs_diff(expected) < 300, "node {index}: {got} of {expected}");
    }
}

#[test]
fn a_weight_of_zero_is_not_a_way_to_hide() {
    assert_eq!(place(&cell(1), &[idle(1, 0)]), Some(&node(1)));
}

#[test]
fn a_loaded_node_is_passed_over_until_it_is_back_below_its_bound() {
    let mut candidates = fleet(&[100, 100, 100]);
    let favourite = place(&cell(7), &candidates).unwrap().clone();
    for candidate in &mut candidates {
        candidate.cells = if candidate.node == favourite { 1_000 } else { 400 };
    }
    assert_ne!(place(&cell(7), &candidates), Some(&favourite));
    for candidate in &mut candidates {
        candidate.cells = if candidate.node == favourite { 600 } else { 500 };
    }
    assert_eq!(place(&cell(7), &candidates), Some(&favourite));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_node_that_joins_only_takes(weights in proptest::collection::vec(1u32..400, 1..8), added in 1u32..400) {
        let before = fleet(&weights);
        let mut after = before.clone();
        after.push(idle(weights.len(), added));
        for index in 0..300 {
            let old = place(&cell(index), &before).unwrap();
            let new = place(&cell(index), &after).unwrap();
            prop_assert!(new == old || *new == node(weights.len()), "cell {index} moved between old nodes");
        }
    }

    #[test]
    fn a_node_that_leaves_only_gives(weights in proptest::collection::vec(1u32..400, 2..8), gone in 0usize..8) {
        let before = fleet(&weights);
        let gone = gone % weights.len();
        let mut after = before.clone();
        after[gone].live = false;
        for index in 0..300 {
            let old = place(&cell(index), &before).unwrap();
            let new = place(&cell(index), &after).unwrap();
            prop_assert!(new == old || *old == node(gone), "cell {index} moved although its node stayed");
            prop_assert!(*new != node(gone));
        }
    }

    #[test]
    fn the_order_of_the_candidates_decides_nothing(
        weights in proptest::collection::vec(1u32..400, 1..8), turn in 0usize..8, index in 0usize..10_000
    ) {
        let fleet = fleet(&weights);
        let mut turned = fleet.clone();
        turned.rotate_left(turn % weights.len());
        prop_assert_eq!(place(&cell(index), &fleet), place(&cell(index), &turned));
    }

    #[test]
    fn somebody_is_always_below_the_bound_and_the_bound_is_kept(
        nodes in proptest::collection::vec((0u32..400, 0u64..5_000), 1..8), index in 0usize..10_000
    ) {
        let candidates: Vec<Candidate> = nodes.iter().enumerate()
            .map(|(index, (weight, cells))| Candidate { cells: *cells, ..idle(index, *weight) })
            .collect();
        let total_weight = nodes.iter().map(|(weight, _)| u64::from((*weight).max(1))).sum();
        let total_cells = nodes.iter().map(|(_, cells)| *cells).sum();
        let chosen = place(&cell(index), &candidates);
        prop_assert!(chosen.is_some(), "live nodes, and none takes the cell");
        let chosen = candidates.iter().find(|candidate| Some(&candidate.node) == chosen).unwrap();
        prop_assert!(chosen.cells < load_bound(chosen.weight.max(1), total_weight, total_cells));
    }

    #[test]
    fn cells_placed_one_by_one_never_pile_up(weights in proptest::collection::vec(1u32..400, 1..6)) {
        let mut candidates = fleet(&weights);
        let total_weight: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
        for index in 0..500 {
            let chosen = place(&cell(index), &candidates).unwrap().clone();
            candidates.iter_mut().find(|candidate| candidate.node == chosen).unwrap().cells += 1;
        }
        for candidate in &candidates {
            prop_assert!(candidate.cells <= load_bound(candidate.weight, total_weight, 500));
        }
    }
}
