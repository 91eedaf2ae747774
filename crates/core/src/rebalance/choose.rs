//! The donor: how many of its cells it gives, and which.

use alloc::vec::Vec;

use holdfast_types::{CellName, NodeName};

use crate::mutant::{self, Mutant};
use crate::placement::prefers;

/// How much a cell is used, in the order in which cells are given away: what nobody would notice first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Activity {
    /// Owned, not in memory.
    Asleep,
    /// In memory, and not used for a while.
    Idle,
    /// In use, with no event under way now.
    Between,
    /// Clients hold sockets of it, which a move closes.
    Sockets,
}

/// A cell that may be given away now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Movable {
    /// The cell.
    pub cell: CellName,
    /// How much it is used.
    pub activity: Activity,
}

/// How many cells a donor gives that owns so many, was asked for so many, and was told what its share is. By what it owns now, and
/// not as the planner believed: two planners with the same plan move no more than one.
#[must_use]
pub fn gives(owned: u64, asked: u64, keep: u64) -> u64 {
    if mutant::is(Mutant::GiveBelowShare) {
        return asked.min(owned);
    }
    asked.min(owned.saturating_sub(keep))
}

/// Which cells go from one node to another: the least used first, and among these those that placement would give to the taker
/// anyway, so that they stay with it. A node is a name and a weight.
#[must_use]
pub fn choose(
    mut cells: Vec<Movable>,
    from: (&NodeName, u32),
    to: (&NodeName, u32),
    count: usize,
) -> Vec<Movable> {
    let key = |movable: &Movable| {
        let stays = prefers(&movable.cell, from, to);
        (movable.activity, stays)
    };
    cells.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| a.cell.cmp(&b.cell)));
    cells.truncate(count);
    cells
}
