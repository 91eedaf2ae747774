//! The planner: loads in, transfers out.

use alloc::vec::Vec;

use holdfast_types::NodeName;

use crate::mutant::{self, Mutant};
use crate::placement::LOAD_SLACK_CELLS;

/// Cells begin to move when a node is off its share by more than this part of it.
pub const BEGIN_PERCENT: u64 = 5;
/// So many cells off are no reason to begin, whatever part of the share they are: placement lets nodes differ by as many.
pub const BEGIN_SLACK_CELLS: u64 = LOAD_SLACK_CELLS;
/// Once begun, cells move until every node is within this part of its share, and within a cell of it where that is less than one.
/// Below [`BEGIN_PERCENT`], so that what comes and goes by itself does not begin it again at once.
pub const END_PERCENT: u64 = 2;
/// Cells that one node gives in one round, and cells that one takes.
pub const MOVES_OF_NODE_MAX: u64 = 64;

/// A node that may give and take cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// The node.
    pub node: NodeName,
    /// Relative capacity; 0 counts as 1.
    pub weight: u32,
    /// Cells that it owns.
    pub cells: u64,
}

/// Cells that one node is to give to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Who gives.
    pub from: NodeName,
    /// Who takes.
    pub to: NodeName,
    /// How many.
    pub cells: u64,
    /// What the giver keeps at least: its share.
    pub keep: u64,
}

/// One planner.
#[derive(Clone, Debug, Default)]
pub struct Rebalance {
    is_balancing: bool,
}

/// How far a node is off its share: above it in `above`, below it in `below`.
struct Offset<'a> {
    load: &'a Load,
    share: u64,
    above: u64,
    below: u64,
}

impl Offset<'_> {
    fn exceeds(&self, percent: u64, slack: u64) -> bool {
        self.above.max(self.below) > (self.share.saturating_mul(percent) / 100).max(slack)
    }
}

/// What each node should own, in the order given: in proportion to the weights, and together exactly all cells. What cannot be
/// divided goes to those whose share was cut most, and among these by name.
#[must_use]
pub fn shares(loads: &[Load]) -> Vec<u64> {
    let weight = |load: &Load| u128::from(load.weight.max(1));
    let total_cells: u128 = loads.iter().map(|load| u128::from(load.cells)).sum();
    let total_weight: u128 = loads.iter().map(weight).sum::<u128>().max(1);
    let whole = |load: &Load| total_cells * weight(load) / total_weight;
    let mut shares: Vec<u128> = loads.iter().map(whole).collect();
    let mut left = total_cells - shares.iter().sum::<u128>();
    let mut by_remainder: Vec<usize> = (0..loads.len()).collect();
    by_remainder.sort_by_key(|&index| {
        let remainder = total_cells * weight(&loads[index]) % total_weight;
        (core::cmp::Reverse(remainder), &loads[index].node)
    });
    for index in by_remainder {
        if left == 0 {
            break;
        }
        shares[index] += 1;
        left -= 1;
    }
    shares.into_iter().map(|share| u64::try_from(share).unwrap_or(u64::MAX)).collect()
}

impl Rebalance {
    /// Whether cells are on the move.
    #[must_use]
    pub const fn is_balancing(&self) -> bool {
        self.is_balancing
    }

    /// Stops, until a node is clearly off again: moving was forbidden, or another plans now.
    pub const fn stop(&mut self) {
        self.is_balancing = false;
    }

    /// One round: what is to move, for nodes with these loads; nodes that take no cells are not among them. Empty when all is even
    /// enough. At most [`MOVES_OF_NODE_MAX`] cells from each node and to each.
    #[must_use]
    pub fn plan(&mut self, loads: &[Load]) -> Vec<Transfer> {
        let mut offsets: Vec<Offset<'_>> = loads
            .iter()
            .zip(shares(loads))
            .map(|(load, share)| Offset {
                load,
                share,
                above: load.cells.saturating_sub(share),
                below: share.saturating_sub(load.cells),
            })
            .collect();
        let (percent, slack) = match self.is_balancing {
            false if mutant::is(Mutant::RebalanceAtOnce) => (0, 0),
            false => (BEGIN_PERCENT, BEGIN_SLACK_CELLS),
            true => (END_PERCENT, 1),
        };
        self.is_balancing = offsets.iter().any(|offset| offset.exceeds(percent, slack));
        if !self.is_balancing {
            return Vec::new();
        }
        for offset in &mut offsets {
            offset.above = offset.above.min(MOVES_OF_NODE_MAX);
            offset.below = offset.below.min(MOVES_OF_NODE_MAX);
        }
        pair(&mut offsets)
    }
}

/// Pairs who has most with who lacks most.
fn pair(offsets: &mut [Offset<'_>]) -> Vec<Transfer> {
    let mut transfers = Vec::new();
    loop {
        let most = |amount: fn(&Offset<'_>) -> u64| {
            let found = (0..offsets.len()).max_by_key(|&index| {
                (amount(&offsets[index]), core::cmp::Reverse(&offsets[index].load.node))
            });
            found.filter(|&index| amount(&offsets[index]) > 0)
        };
        let (Some(from), Some(to)) = (most(|offset| offset.above), most(|offset| offset.below)) else {
            return transfers;
        };
        let cells = offsets[from].above.min(offsets[to].below);
        offsets[from].above -= cells;
        offsets[to].below -= cells;
        let (giver, taker) = (&offsets[from], &offsets[to]);
        transfers.push(Transfer {
            from: giver.load.node.clone(),
            to: taker.load.node.clone(),
            cells,
            keep: giver.share,
        });
    }
}
