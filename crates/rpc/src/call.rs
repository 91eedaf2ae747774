//! A request to a cell as both ends of the internal call see it, whatever carries it: the request, the reply, and the
//! refusals, split by the one question that matters to a caller: may the handler have run?

use bytes::Bytes;
use holdfast_types::{CellName, NodeName, Position, SessionId};
use http_body_util::combinators::UnsyncBoxBody;

/// Why a body broke.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// A request's or a reply's body, streaming or whole.
pub type Body = UnsyncBoxBody<Bytes, BodyError>;

/// What the caller's token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Statements that write are refused.
    ReadOnly,
    /// Everything.
    ReadWrite,
}

/// One request to a cell.
pub struct CellCall {
    /// The cell.
    pub cell: CellName,
    /// What the caller may do.
    pub access: Access,
    /// The request. Its path is the cell's own: for class `db`, `/v2/pipeline`, `/v3/pipeline`, `/query` or `/`.
    pub request: http::Request<Body>,
    /// When the caller stops waiting.
    pub deadline: tokio::time::Instant,
}

impl std::fmt::Debug for CellCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} of {:?}", self.request.method(), self.request.uri(), self.cell)
    }
}

/// The cell's answer, released by its output gate.
pub struct CellReply {
    /// The response.
    pub response: http::Response<Body>,
    /// The position that the response may reveal.
    pub position: Position,
}

impl std::fmt::Debug for CellReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}", self.response.status(), self.position)
    }
}

/// Where a caller should ask instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerHint {
    /// The owner.
    pub node: NodeName,
    /// Its session.
    pub session: SessionId,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The handler did not run: another live session owns the cell. Disposition: reread.
    #[error("not the owner of this cell")]
    NotOwner(Option<OwnerHint>),
    /// The handler did not run: this node takes no new ownership. Disposition: reread, place elsewhere.
    #[error("the node is draining")]
    Draining,
    /// The handler did not run: a bound was reached. Disposition: retry after the time.
    #[error("{reason}")]
    Overloaded {
        /// Which bound.
        reason: String,
        /// When to come again, in milliseconds.
        retry_after_ms: u64,
    },
    /// The handler did not run: the cell could not be activated. Disposition: retry later; the reason says what blocks.
    #[error("{reason}")]
    Unavailable {
        /// What blocks.
        reason: String,
    },
    /// The handler did not run: the request is not acceptable. Disposition: reject.
    #[error("{reason}")]
    Rejected {
        /// HTTP status for the caller.
        status: http::StatusCode,
        /// What is wrong and what to do.
        reason: String,
    },
    /// The handler may have run, and nobody knows whether its writes will survive. Never sent again by a program.
    #[error("outcome unknown: {reason}")]
    OutcomeUnknown {
        /// What happened.
        reason: String,
    },
}
