//! What has happened to a request. Times are wall clock, since leases are.

use alloc::vec::Vec;
use holdfast_types::{Epoch, Millis, NodeName, SessionId};

use super::Route;
use crate::placement::Candidate;

/// What the shell learned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<A> {
    /// The request arrived; the shell looked into its cache.
    Cached {
        /// What it remembers of the cell.
        route: Option<Route<A>>,
        /// Wall clock.
        now_ms: Millis,
    },
    /// The owner record was read.
    OwnerRead {
        /// What it says.
        owner: OwnerView,
        /// Wall clock.
        now_ms: Millis,
    },
    /// A node's lease was read.
    LeaseRead {
        /// What it says.
        lease: LeaseView<A>,
        /// Wall clock.
        now_ms: Millis,
    },
    /// All leases were listed; `None` when the bucket did not answer.
    NodesListed {
        /// The nodes.
        nodes: Option<Vec<NodeView<A>>>,
        /// Wall clock.
        now_ms: Millis,
    },
    /// The request was sent, and this came of it.
    Forwarded {
        /// What came.
        outcome: Outcome,
        /// Wall clock.
        now_ms: Millis,
    },
    /// The time of [`Effect::Pause`](super::Effect::Pause) or of a forward's `watch_ms` is over.
    TimeReached {
        /// Wall clock.
        now_ms: Millis,
    },
}

/// An owner record, as far as routing cares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnerView {
    /// Nobody owns the cell: no record, released or purged.
    Unowned,
    /// This session does, if it is alive.
    Owned {
        /// The node.
        node: NodeName,
        /// Its session.
        session: SessionId,
        /// The epoch.
        epoch: Epoch,
    },
    /// The bucket did not answer.
    Unreadable,
    /// The bucket answered with what is no owner record, or one of a newer release: asking again changes nothing.
    Unusable,
}

/// A lease record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseView<A> {
    /// There is none.
    Absent,
    /// This one.
    Found(NodeView<A>),
    /// The bucket did not answer.
    Unreadable,
}

/// A node, as its lease describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView<A> {
    /// The node.
    pub node: NodeName,
    /// The session that holds the lease.
    pub session: SessionId,
    /// Where it listens.
    pub address: A,
    /// When the lease ends.
    pub expires_ms: Millis,
    /// Takes no new ownership.
    pub draining: bool,
    /// It speaks a protocol version that the caller speaks.
    pub protocol_ok: bool,
    /// Relative capacity.
    pub weight: u32,
    /// Cells owned.
    pub cells: u64,
}

impl<A> NodeView<A> {
    /// Whether a claimant may still not take the node's cells. Given up in order (`expires_ms` 0) is dead at once.
    pub(super) fn is_live(&self, now_ms: Millis, clock_skew_max_ms: u64) -> bool {
        self.expires_ms > Millis::ZERO && now_ms < self.expires_ms.plus(clock_skew_max_ms)
    }

    pub(super) fn candidate(&self, now_ms: Millis, avoided: bool) -> Candidate {
        Candidate {
            node: self.node.clone(),
            weight: self.weight,
            cells: self.cells,
            draining: self.draining || avoided,
            // No margin here: nobody may give a new cell to a session that may be over.
            live: now_ms < self.expires_ms,
            protocol_ok: self.protocol_ok,
        }
    }
}

/// What came of a forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An answer, from this epoch.
    Answered {
        /// The epoch of the answer's position.
        epoch: Epoch,
    },
    /// The node says that it did not run the handler.
    Refused {
        /// How.
        refusal: Refusal,
        /// The request is whole and can be sent again.
        is_whole: bool,
    },
    /// No node saw the request.
    NeverSent {
        /// The request is whole and can be sent again.
        is_whole: bool,
    },
    /// The request's own body broke.
    BodyBroken,
    /// The handler may have run.
    MayHaveRun,
}

impl Outcome {
    /// Whether a remembered route is still worth something after this. Overload is no reason to ask the bucket.
    #[must_use]
    pub const fn keeps_route(self) -> bool {
        match self {
            Self::Answered { .. } | Self::BodyBroken | Self::MayHaveRun => true,
            Self::Refused { refusal, .. } => matches!(refusal, Refusal::Final),
            Self::NeverSent { .. } => false,
        }
    }
}

/// How a node refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Another session owns the cell.
    NotOwner,
    /// It takes no new ownership.
    Draining,
    /// For the caller to deal with: overloaded, unavailable, rejected.
    Final,
}
