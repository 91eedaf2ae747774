//! Which node an unowned cell goes to: weighted rendezvous hashing with a bound on load (design 6.2). It depends on
//! names, weights and published loads alone, so that every ingress decides alike and a restarted node gets its cells back.
//! It must never look at a clock, and it claims nothing: the node does.

mod bound;
mod hash;
mod place;

pub(crate) use hash::mix;

pub use bound::{LOAD_FACTOR_PERCENT, LOAD_SLACK_CELLS, load_bound};
pub use place::{Candidate, place, prefers};

#[cfg(test)]
mod tests;
