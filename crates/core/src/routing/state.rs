//! What is remembered about a cell, and the times that bound a request.

use holdfast_types::{Epoch, Millis, NodeName, SessionId};

/// Where a cell's owner was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route<A> {
    /// The owner.
    pub node: NodeName,
    /// Its session.
    pub session: SessionId,
    /// The epoch that the owner record named, or that an answer came from.
    pub epoch: Epoch,
    /// Where the session listens.
    pub address: A,
    /// The end of its lease as last observed, wall clock: up to then the route is used without a look at the bucket.
    pub expires_ms: Millis,
}

/// The times that bound a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// When the caller stops waiting, wall clock.
    pub deadline_ms: Millis,
    /// How far two clocks of the fleet may differ: a lease is dead for a reader this long after its end.
    pub clock_skew_max_ms: u64,
    /// First pause before the same thing is tried again; doubles.
    pub pause_ms_min: u64,
    /// Longest pause.
    pub pause_ms_max: u64,
}

impl Timing {
    /// The usual pauses: short enough that a planned move costs little, long enough that a dead node's callers do not
    /// read the bucket more than a few times a second.
    #[must_use]
    pub const fn until(deadline_ms: Millis, clock_skew_max_ms: u64) -> Self {
        Self { deadline_ms, clock_skew_max_ms, pause_ms_min: 10, pause_ms_max: 500 }
    }
}
