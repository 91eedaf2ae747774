//! What one follower decides about the node log of one session (design 5.3): which log epochs it adopts, which frames it
//! accepts, what it acknowledges, and that a seal is for ever. Keeps INV-LOG-1 and INV-LOG-2.
//!
//! A node log has one writer, so frames never differ for one offset and every follower's copy is a window of the same
//! sequence. Every change is an entry of the follower's journal, numbered per session by [`Ticket`]; the journal persists
//! entries in that order, and only what was reported as persisted is ever acknowledged, on whatever path.

mod adoption;
mod append;
mod effect;
mod event;
mod machine;
mod replay;
mod seal;
mod state;

pub use effect::{FollowerEffect, Refusal};
pub use event::{CallId, FollowerEvent, FramesCheck, StreamId};
pub use machine::SessionLog;
pub use replay::LogReplay;
pub use state::{HeldLog, Holdings, LogEntry, Ticket};

#[cfg(test)]
mod tests;
