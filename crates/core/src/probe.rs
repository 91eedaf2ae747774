//! The start-up probe of a store (design 3.1): which steps to take, and what their answers say of the store. Stops at
//! once when a condition or a range is ignored, unsupported or answered with wrong bytes; begins anew with new objects
//! while the cause is unclear, at most three times. It must never pass a store whose conditions it has not seen hold.

mod effect;
mod event;
mod state;

pub use effect::{ProbeEffect, ProbeVerdict, StepOutcome, StoreFault};
pub use event::{ProbeAnswer, ProbeStep};
pub use state::{ATTEMPTS_MAX, Prober};

#[cfg(test)]
mod tests;
