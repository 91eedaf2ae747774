//! Recovers the node logs of dead sessions (design 5.4): on behalf of activations, and when a waker's sweep asks. What to do is decided by
//! the core's [`Recovery`](holdfast_core::recovery::Recovery); this folder does it. One recovery of a log at a time in a
//! process, shared by all who need it. Keeps INV-REC-1 to INV-REC-3 as far as a shell can: it reports what it saw.

mod asked;
mod attempt;
mod followers;
mod gather;
mod held;
mod logs;
mod shared;
mod witness;

pub(crate) use asked::recover_dead;
pub use followers::Followers;
pub(crate) use logs::keep_reviewing;
pub use logs::list_logs;
pub use shared::{Recoveries, RecoveryParts};
pub use witness::LogWitness;

#[cfg(test)]
mod tests;
