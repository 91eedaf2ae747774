//! The gate's verdicts: everything within these bounds was visited.

use holdfast_check::gate::{Bounds, GateModel, Phase};
use holdfast_check::verdict::{Verdict, must_hold};

const PLAIN: Bounds = Bounds { writes: 2, reads: 0, closes: false, faults: 0, last_phase: Phase::Early };

#[test]
fn what_leaves_is_durable() {
    let bounds = Bounds { reads: 1, last_phase: Phase::Late, ..PLAIN };
    let pinned = Verdict { generated: 338_246, unique: 90_633, depth: 22 };
    must_hold("gate", GateModel::new(bounds), pinned);
}

#[test]
fn what_leaves_is_durable_whatever_fails_until_the_lease_ends() {
    let bounds = Bounds { faults: 1, last_phase: Phase::Fenced, ..PLAIN };
    let pinned = Verdict { generated: 1_139_544, unique: 257_461, depth: 23 };
    must_hold("gate, faults", GateModel::new(bounds), pinned);
}

#[test]
fn a_release_leaves_when_the_bucket_has_all() {
    let bounds = Bounds { closes: true, faults: 1, last_phase: Phase::Late, ..PLAIN };
    let pinned = Verdict { generated: 927_363, unique: 209_478, depth: 23 };
    must_hold("gate, release", GateModel::new(bounds), pinned);
}
