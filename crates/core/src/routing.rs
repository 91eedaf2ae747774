//! The life of one request between the edge and a cell's owner (design 6.2): which record to read next, where to send,
//! when to send again, and when to stop waiting. One [`Route`] per cell is remembered by the shell; one [`Routing`] per
//! request decides. Its promise: a request that may have run is never sent twice.

mod effect;
mod event;
mod machine;
mod state;

pub use effect::{Effect, Failure};
pub use event::{Event, LeaseView, NodeView, Outcome, OwnerView, Refusal};
pub use machine::Routing;
pub use state::{Route, Timing};

#[cfg(test)]
mod tests;
