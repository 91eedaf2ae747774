//! Recovers the node logs of dead sessions (design 5.4): on behalf of activations and by a sweep. What to do is decided by
//! the core's [`Recovery`](holdfast_core::recovery::Recovery); this folder does it. One recovery of a log at a time in a
//! process, shared by all who need it. Keeps INV-REC-1 to INV-REC-3 as far as a shell can: it reports what it saw.

mod attempt;
mod followers;
mod gather;
mod held;
mod shared;
mod sweep;
mod witness;

pub use followers::Followers;
pub use shared::{Recoveries, RecoveryParts};
pub use sweep::{Sweep, list_logs};
pub use witness::LogWitness;

#[cfg(test)]
mod tests;
