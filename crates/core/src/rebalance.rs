//! Evens the cells of a fleet out after nodes have joined (design 6.2): how many cells go from which node to which, and which
//! ones. Whoever plans is advisory: planners may be two, know loads of a moment ago, or lie. A move is a release and a claim like
//! any other, so that costs work and never a promise. What keeps it from going on for ever: a planner moves only from nodes above
//! their share to nodes below it, a donor never gives more than what it has above its share as it was told it, and nothing begins
//! before a node is clearly off.

mod choose;
mod plan;

pub use choose::{Activity, Movable, choose, gives};
pub use plan::{
    BEGIN_PERCENT, BEGIN_SLACK_CELLS, END_PERCENT, Load, MOVES_OF_NODE_MAX, Rebalance, Transfer, shares,
};

#[cfg(test)]
mod tests;
