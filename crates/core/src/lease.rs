//! A node's lease: how a session acquires it, keeps it, and stops by itself when it cannot (design 4.1). The lease
//! protects liveness; acknowledged writes are protected by proofs. Keeps INV-FENCE-1 together with the gate.
//!
//! Two clocks: *published* ends are wall clock times, for readers; the owner's own *authority* is judged by its monotonic
//! clock alone, anchored before the write that published the end, so that a stepped wall clock changes nothing.

mod effect;
mod event;
mod keeper;
mod state;

pub use effect::{FenceCause, LeaseEffect};
pub use event::{LeaseEvent, LeaseRecord};
pub use keeper::LeaseKeeper;
pub use state::{LeaseTiming, Now};

#[cfg(test)]
mod tests;
