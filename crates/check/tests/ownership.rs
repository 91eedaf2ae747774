//! The ownership's verdicts: everything within these bounds was visited.

use holdfast_check::ownership::{Bounds, OwnershipModel};
use holdfast_check::verdict::{Verdict, must_hold};

const PLAIN: Bounds =
    Bounds { nodes: 2, claims: 2, releases: 0, lost_answers: 0, restarts: 0, beyond_skew: false };

const fn pinned(generated: usize, unique: usize, depth: usize) -> Verdict {
    Verdict { generated, unique, depth }
}

#[test]
fn two_nodes_take_over_from_each_other_though_an_answer_is_lost() {
    let bounds = Bounds { lost_answers: 1, ..PLAIN };
    must_hold("ownership, lost answer", OwnershipModel(bounds), pinned(57_925, 22_624, 40));
}

#[test]
fn clocks_beyond_their_bound_cost_no_acknowledged_write() {
    let bounds = Bounds { lost_answers: 1, beyond_skew: true, ..PLAIN };
    must_hold("ownership, beyond the skew", OwnershipModel(bounds), pinned(180_591, 65_950, 45));
}

#[test]
fn three_nodes_contend() {
    let bounds = Bounds { nodes: 3, beyond_skew: true, ..PLAIN };
    must_hold("ownership, three nodes", OwnershipModel(bounds), pinned(144_697, 49_604, 36));
}

#[test]
fn a_released_cell_is_claimed_by_another_or_again() {
    let bounds = Bounds { claims: 3, releases: 1, ..PLAIN };
    must_hold("ownership, release", OwnershipModel(bounds), pinned(177_511, 78_232, 59));
}

#[test]
fn a_killed_session_leaves_writes_behind() {
    let bounds = Bounds { claims: 3, restarts: 1, ..PLAIN };
    must_hold("ownership, restart", OwnershipModel(bounds), pinned(575_289, 227_336, 54));
}
