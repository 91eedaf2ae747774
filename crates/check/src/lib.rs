//! Exhaustive check of the real core at small sizes (design 11.1). Each model drives machines of `core` unchanged, in a
//! world of a few records, disks and messages in which every order of steps happens, and every answer may be lost within
//! a budget of faults. A model decides nothing that `core` decides; what it adds is the world, and properties named after
//! the invariants of design 10.
//!
//! Times stand still but for a few jumps, so that the states stay finite: whatever waits for a clock happens at any time.

pub mod gate;
pub mod node_log;
pub mod ownership;
pub mod part;
pub mod register;
pub mod verdict;
