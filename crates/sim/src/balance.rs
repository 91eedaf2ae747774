//! A fleet whose nodes are evened out by the real planner and donors of the core: nodes that join and come and go, two planners that
//! know loads of some rounds ago, donors that do a part of what they are asked. A world of its own, since nothing of it touches
//! what the other worlds check.

use holdfast_core::rebalance::{BEGIN_PERCENT, BEGIN_SLACK_CELLS, Load, Rebalance, Transfer, gives, shares};
use holdfast_types::NodeName;

use crate::rng::Rng;
use crate::violation::Violation;

/// Rounds with faults.
const ROUNDS: u64 = 60;
/// Rounds after them, in which all must become even.
const QUIET_ROUNDS: u64 = 80;
/// How old the loads may be that a planner knows, in rounds.
const AGE_MAX: usize = 3;

struct Fleet {
    rng: Rng,
    nodes: Vec<Load>,
    past: Vec<Vec<Load>>,
    planners: [Rebalance; 2],
}

fn node(index: usize) -> NodeName {
    NodeName::parse(&format!("n{index}")).expect("a name")
}

fn is_even(loads: &[Load]) -> bool {
    let within = |(load, share): (&Load, u64)| {
        load.cells.abs_diff(share) <= (share * BEGIN_PERCENT / 100).max(BEGIN_SLACK_CELLS)
    };
    loads.iter().zip(shares(loads)).all(within)
}

fn off(loads: &[Load]) -> u64 {
    loads.iter().zip(shares(loads)).map(|(load, share)| load.cells.abs_diff(share)).sum()
}

/// Runs a seed.
///
/// # Errors
/// What was violated.
pub fn run(seed: u64) -> Result<u64, Violation> {
    let mut rng = Rng::new(seed);
    let nodes = (0..rng.within(2, 6)).map(|_| (rng.within(1, 300), rng.within(0, 600))).enumerate();
    let load = |(index, (weight, cells)): (usize, (u64, u64))| Load {
        node: node(index),
        weight: u32::try_from(weight).expect("a small weight"),
        cells,
    };
    let nodes: Vec<Load> = nodes.map(load).collect();
    let mut fleet = Fleet { rng, past: vec![nodes.clone()], nodes, planners: Default::default() };
    let mut moved = 0;
    for round in 0..ROUNDS {
        if fleet.rng.chance(30) {
            let (joined, weight) = (node(fleet.nodes.len()), fleet.rng.within(1, 300));
            let weight = u32::try_from(weight).expect("a small weight");
            fleet.nodes.push(Load { node: joined, weight, cells: 0 });
            fleet.past.clear();
            fleet.past.push(fleet.nodes.clone());
        }
        if round % 8 == 0 {
            fleet.churn();
        }
        moved += fleet.round(true)?;
    }
    for _ in 0..QUIET_ROUNDS {
        moved += fleet.round(false)?;
    }
    if !is_even(&fleet.nodes) || fleet.round(false)? > 0 {
        return Err(Violation::new(
            "BALANCE-END",
            format_args!("it does not come to rest: {:?}", fleet.nodes),
        ));
    }
    Ok(moved)
}

impl Fleet {
    /// Some cells come and go, far too few to be worth a move.
    fn churn(&mut self) {
        let index = self.rng.index(self.nodes.len());
        let cells = self.rng.within(0, 4);
        let node = &mut self.nodes[index];
        node.cells = if self.rng.chance(500) { node.cells + cells } else { node.cells.saturating_sub(cells) };
        self.past.clear();
        self.past.push(self.nodes.clone());
    }

    fn round(&mut self, has_faults: bool) -> Result<u64, Violation> {
        let mut moved = 0;
        for planner in 0..self.planners.len() {
            let age = if has_faults { self.rng.index(AGE_MAX + 1) } else { 0 };
            let known = if has_faults {
                self.past[self.past.len().saturating_sub(1 + age)].clone()
            } else {
                self.nodes.clone()
            };
            let rested = !self.planners[planner].is_balancing();
            let transfers = self.planners[planner].plan(&known);
            if rested && is_even(&known) && !transfers.is_empty() {
                return Err(Violation::new("BALANCE-REST", format_args!("{transfers:?} for {known:?}")));
            }
            for transfer in transfers {
                moved += self.execute(&transfer, has_faults)?;
            }
        }
        self.past.push(self.nodes.clone());
        Ok(moved)
    }

    fn execute(&mut self, transfer: &Transfer, has_faults: bool) -> Result<u64, Violation> {
        let find = |name: &NodeName| {
            self.nodes.iter().position(|load| load.node == *name).expect("a node of the fleet")
        };
        let (from, to) = (find(&transfer.from), find(&transfer.to));
        let most = gives(self.nodes[from].cells, transfer.cells, transfer.keep);
        let cells = if has_faults { self.rng.within(0, most) } else { most };
        let before = off(&self.nodes);
        self.nodes[from].cells -= cells;
        self.nodes[to].cells += cells;
        if off(&self.nodes) > before {
            return Err(Violation::new("BALANCE-WORSE", format_args!("{transfer:?} for {:?}", self.nodes)));
        }
        Ok(cells)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fleets_come_to_rest_even() {
        let mut moved = 0;
        for seed in 0..500 {
            moved += run(seed).unwrap_or_else(|violation| panic!("seed {seed}: {violation:?}"));
        }
        assert!(moved > 10_000, "{moved}");
    }
}
