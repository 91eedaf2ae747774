//! What the shell must do next. Each effect is answered by exactly one event, except the last two, which end the request.

use holdfast_types::{Millis, NodeName, SessionId};

use super::Route;

/// An order to the shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect<A> {
    /// Read the cell's owner record; answer `OwnerRead`.
    ReadOwner,
    /// Read a node's lease, from the bucket; answer `LeaseRead`.
    ReadLease(NodeName),
    /// List all leases; a listing of the last second will do; answer `NodesListed`.
    ListNodes,
    /// Send the request; answer `Forwarded`, or `TimeReached` when the wall clock reaches `watch_ms` before that.
    Forward {
        /// The node.
        node: NodeName,
        /// The session that must answer.
        session: SessionId,
        /// Where it listens.
        address: A,
        /// The cell is unowned or its owner dead: the node is to claim it.
        may_activate: bool,
        /// When to look at the owner's lease.
        watch_ms: Millis,
    },
    /// Go on waiting for the answer to the forward; answer as `Forward`.
    KeepWaiting {
        /// When to look at the owner's lease again.
        watch_ms: Millis,
    },
    /// Wait; answer `TimeReached`.
    Pause {
        /// How long.
        pause_ms: u64,
        /// Why, for logs and metrics.
        reason: Failure,
    },
    /// Give the answer to the caller, and remember the route.
    Answer {
        /// Where the cell was found.
        learned: Route<A>,
    },
    /// There is no answer. A forward that is still out must be cancelled.
    Fail(Failure),
}

/// Why there is no answer, or not yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The handler did not run: no live node takes the cell.
    NoNode,
    /// The handler did not run: the bucket does not say who owns the cell.
    BucketUnreadable,
    /// The handler did not run: the owner record is damaged, or of a newer release.
    RecordUnusable,
    /// The handler did not run: the owner is alive and speaks another protocol.
    ProtocolMismatch,
    /// The handler did not run: no connection to the owner, whose lease is not over yet.
    Unreachable,
    /// The handler did not run: the ownership moves.
    Moving,
    /// The handler did not run: as the node's last refusal says.
    Refused,
    /// The request's own body broke.
    BodyBroken,
    /// The handler may have run: as the forward's failure says.
    OutcomeUnknown,
    /// The handler may have run: the owner's lease ended while the request was there.
    OwnerLost,
}

impl Failure {
    /// Whether the handler may have run.
    #[must_use]
    pub const fn is_unknown(self) -> bool {
        match self {
            Self::OutcomeUnknown | Self::OwnerLost => true,
            Self::NoNode
            | Self::BucketUnreadable
            | Self::RecordUnusable
            | Self::ProtocolMismatch
            | Self::Unreachable
            | Self::Moving
            | Self::Refused
            | Self::BodyBroken => false,
        }
    }
}
