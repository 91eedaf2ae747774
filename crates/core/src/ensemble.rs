//! A session's node log (design 5.1, 5.2): which followers form its ensemble, what they have fsynced, and when that proves a
//! frame durable. Keeps INV-LOG-1, INV-LOG-3 and the session's side of INV-REC-2.
//!
//! A frame is proved when every member of *every ensemble that a recovery might ask* has fsynced it. Usually that is one
//! ensemble. While the record is being changed it may be two: the one that the record named before and the one that it
//! will name, since a write without an answer may have landed. So an ensemble grows, shrinks and moves without a gap in
//! which nothing is acknowledged and without a moment in which a recovery would ask the wrong followers.
//!
//! With many dirty cells the frames of a round are stored together, in a bundle. *Stored* means that a recovery finds the
//! frame in the bucket: in its cell's prefix, or in a bundle that the record does not exclude. It frees the memory of the
//! session and the space of the followers. *Covered* means in its cell's prefix, and nothing else: what ends a log, a
//! bundle or a cell's stay asks for that.
//!
//! Bounds are exclusive (`below`) wherever they are not named otherwise.

mod bundles;
mod change;
mod effect;
mod event;
mod health;
mod machine;
mod members;
mod outdated;
mod proof;
mod record;
mod recruit;
mod state;
mod storing;
mod suspicion;

pub use bundles::{BUNDLE_CELLS_MIN, DRAIN_ROUNDS};
pub use effect::NodeLogEffect;
pub use event::{MemberFailure, NodeLogEvent};
pub use machine::NodeLog;
pub use proof::EnsembleProof;
pub use state::{FollowerView, NodeLogConfig, Pressure, RetentionLimits};

#[cfg(test)]
mod tests;
