//! The choice among candidates.

use holdfast_types::{CellName, NodeName};

use super::bound::load_bound;
use super::hash::Wait;

/// A node as its lease describes it, judged by whoever read the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The node.
    pub node: NodeName,
    /// Relative capacity; 0 counts as 1.
    pub weight: u32,
    /// Cells owned, as of its last renewal.
    pub cells: u64,
    /// Takes no new ownership.
    pub draining: bool,
    /// Its lease is live.
    pub live: bool,
    /// It speaks a protocol version that the caller speaks.
    pub protocol_ok: bool,
}

impl Candidate {
    fn may_take(&self) -> bool {
        self.live && self.protocol_ok && !self.draining
    }

    fn weight(&self) -> u32 {
        self.weight.max(1)
    }
}

/// The node that an unowned cell goes to: of those that may take it and are within the load bound, the one that
/// rendezvous hashing prefers. `None` when no node may take it.
#[must_use]
pub fn place<'a>(cell: &CellName, candidates: &'a [Candidate]) -> Option<&'a NodeName> {
    let takers = || candidates.iter().filter(|candidate| candidate.may_take());
    let total_weight = takers().map(|taker| u64::from(taker.weight())).sum();
    let total_cells = takers().fold(0_u64, |sum, taker| sum.saturating_add(taker.cells));
    let below = takers().filter(|taker| taker.cells < load_bound(taker.weight(), total_weight, total_cells));
    let mut best: Option<(Wait, &NodeName)> = None;
    for taker in below {
        let wait = Wait::new(cell, &taker.node, taker.weight());
        // Equal waits are decided by name, so that the order of the candidates decides nothing.
        let is_better = best.is_none_or(|(shortest, node)| {
            wait.is_shorter_than(shortest) || (!shortest.is_shorter_than(wait) && taker.node < *node)
        });
        if is_better {
            best = Some((wait, &taker.node));
        }
    }
    best.map(|(_, node)| node)
}

/// Whether rendezvous hashing gives a cell to the first of two nodes, loads aside. A node with a weight each.
#[must_use]
pub fn prefers(
    cell: &CellName,
    (first, first_weight): (&NodeName, u32),
    (other, other_weight): (&NodeName, u32),
) -> bool {
    let (wait, other_wait) = (Wait::new(cell, first, first_weight), Wait::new(cell, other, other_weight));
    wait.is_shorter_than(other_wait) || (!other_wait.is_shorter_than(wait) && first < other)
}
