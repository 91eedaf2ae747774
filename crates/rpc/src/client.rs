//! Calls to cellnodes. A call reaches the session that it names or fails, and every failure says whether the handler
//! may have run: that is the one thing a caller must know before it sends a request again.

mod channel;
mod download;
mod follower;
mod link;
mod nodes;
mod pool;
mod send;
mod upload;
mod wake;

use holdfast_records::NodeLease;
use holdfast_types::{NodeName, SessionId};

use crate::identity::ProcessIdentity;
use crate::{CallError, CellCall, CellReply};

pub use follower::{
    AppendConnection, AppendReceiver, AppendSender, AppendStream, AppendStreamOver, FollowerCallError,
    FollowerClient, FollowerLink, FollowerPeer,
};
pub use nodes::NodeCallError;

/// Where a session listens, as its lease says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    /// The node.
    pub node: NodeName,
    /// The session that must answer there.
    pub session: SessionId,
    /// `host:port` of its internal listener.
    pub address: String,
}

impl Peer {
    /// The holder of a lease.
    #[must_use]
    pub fn of(lease: &NodeLease) -> Self {
        Self { node: lease.node.clone(), session: lease.session, address: lease.address.clone() }
    }
}

/// Why a forwarded request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// The node answered that it did not run the handler.
    #[error("{error}")]
    Refused {
        /// Its words; never [`CallError::OutcomeUnknown`], which is [`ForwardError::MayHaveRun`].
        error: CallError,
        /// The request, when no part of its body is lost: it may be sent elsewhere.
        call: Option<Box<CellCall>>,
    },
    /// No node saw the request: not connected, or provably not processed. It may be sent again.
    #[error("not sent: {reason}")]
    NeverSent {
        /// What failed.
        reason: String,
        /// The request, whole, unless its body was already being read.
        call: Option<Box<CellCall>>,
    },
    /// The request's own body broke or did not arrive in time; no node saw a complete request.
    #[error("the request's body broke: {reason}")]
    BodyBroken {
        /// What failed.
        reason: String,
    },
    /// The handler may have run. Never to be sent again by a program.
    #[error("outcome unknown: {reason}")]
    MayHaveRun {
        /// What failed.
        reason: String,
    },
}

/// A pool of connections to cellnodes. Cheap to clone; all clones share the connections.
#[derive(Clone)]
pub struct CellClient {
    pool: std::sync::Arc<pool::Pool>,
}

impl std::fmt::Debug for CellClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CellClient").finish_non_exhaustive()
    }
}

impl CellClient {
    /// A pool that shows this identity.
    #[must_use]
    pub fn new(identity: ProcessIdentity) -> Self {
        Self { pool: std::sync::Arc::new(pool::Pool::new(identity)) }
    }

    /// Sends a request to a session and waits for the head of the answer until the call's deadline. Dropping the future
    /// cancels the request.
    ///
    /// # Errors
    /// [`ForwardError`], split by whether the handler may have run.
    pub async fn call(&self, peer: &Peer, call: CellCall) -> Result<CellReply, ForwardError> {
        send::send(&self.pool, peer, call).await
    }
}
