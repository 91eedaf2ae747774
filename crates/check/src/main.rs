//! Configurations that take longer than CI has: each visited to its end, and compared with its pinned verdict. With a word
//! as argument only those whose name holds it.

use std::process::ExitCode;
use std::time::Instant;

use holdfast_check::gate::{self, GateModel, Phase};
use holdfast_check::node_log::{self, BUNDLED, CALM, GROWTH, LONE, MOVE, NodeLogModel, SPARE};
use holdfast_check::verdict::{Findings, Verdict, explore};

const GATE: gate::Bounds =
    gate::Bounds { writes: 2, reads: 1, closes: true, faults: 2, last_phase: Phase::Fenced };
const NODE_LOG: node_log::Bounds = node_log::Bounds { recoverers: 1, ..CALM };

type Case = (&'static str, fn() -> Findings, Verdict);

macro_rules! node_log {
    ($($field:ident: $value:expr),*) => {
        || explore(NodeLogModel(node_log::Bounds { $($field: $value,)* ..NODE_LOG }))
    };
}

const CASES: &[Case] = &[
    ("gate", || explore(GateModel::new(GATE)), pinned(37_536_429, 7_495_674, 26)),
    ("node log, uploads", node_log!(uploads: true), pinned(499_208, 118_123, 51)),
    (
        "node log, broken link and quarantine",
        node_log!(followers: 1, views: LONE, ticks: true, broken_links: 1, leaps: 1),
        pinned(754_660, 179_175, 66),
    ),
    ("node log, broken link", node_log!(broken_links: 1), pinned(597_467, 202_087, 65)),
    (
        "node log, crash and seal without answer",
        node_log!(crashes: 1, unanswered_seals: 1),
        pinned(1_086_751, 348_876, 64),
    ),
    (
        "node log, race and lost answer",
        node_log!(followers: 1, views: LONE, recoverers: 2, lost_answers: 1),
        pinned(1_510_674, 561_353, 59),
    ),
    ("node log, move among three", node_log!(followers: 3, views: MOVE), pinned(4_575_690, 1_330_253, 78)),
    (
        "node log, spare follower",
        node_log!(followers: 3, views: SPARE, broken_links: 1),
        pinned(8_224_011, 2_350_393, 78),
    ),
    (
        "node log, close and lost answer",
        node_log!(followers: 1, views: LONE, uploads: true, frames: 2, closes: true, lost_answers: 1),
        pinned(8_385_466, 2_187_554, 57),
    ),
    (
        "node log, two bundles and close",
        node_log!(followers: 1, views: LONE, uploads: true, frames: 2, rounds: BUNDLED, closes: true),
        pinned(28_743_516, 6_629_079, 78),
    ),
    (
        "node log, bundle of two and lost answer",
        node_log!(
            followers: 1, views: LONE, uploads: true, frames: 2, rounds: BUNDLED, bundle_frames: 2, lost_answers: 1
        ),
        pinned(49_840_770, 11_129_519, 73),
    ),
    (
        "node log, bundle and growth",
        node_log!(views: GROWTH, uploads: true, rounds: BUNDLED),
        pinned(0, 0, 0),
    ),
];

const fn pinned(generated: usize, unique: usize, depth: usize) -> Verdict {
    Verdict { generated, unique, depth }
}

fn main() -> ExitCode {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let mut is_right = true;
    for (name, run, pinned) in CASES.iter().filter(|(name, ..)| name.contains(&filter)) {
        let began = Instant::now();
        let Findings { visited, violated, unreached } = run();
        println!("{name}: {visited:?} in {} s", began.elapsed().as_secs());
        for (property, path) in &violated {
            println!("  {property} does not hold after these steps:\n{path}");
        }
        if !unreached.is_empty() {
            println!("  nothing shows that {unreached:?}");
        }
        if visited != *pinned {
            println!("  reviewed was {pinned:?}");
        }
        is_right &= violated.is_empty() && unreached.is_empty() && visited == *pinned;
    }
    if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
