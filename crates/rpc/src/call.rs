//! A request to a cell as both ends of the internal call see it, whatever carries it: the request, the reply, and the
//! refusals, split by the one question that matters to a caller: may the handler have run?

use bytes::Bytes;
use holdfast_types::{AlarmId, AlarmTime, CellName, Epoch, NodeName, Position, SessionId, WakeMinute};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};

/// Why a body broke.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// A request's or a reply's body, streaming or whole.
pub type Body = UnsyncBoxBody<Bytes, BodyError>;

/// A body that is here; without bytes it has ended.
#[must_use]
pub fn whole_body(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// What the caller's token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Statements that write are refused.
    ReadOnly,
    /// Everything.
    ReadWrite,
}

/// What is asked of an object besides the request itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectCall {
    /// The name that the object's id was made from, where the caller knows it.
    pub name: Option<String>,
    /// The method to call, with the request's body as its arguments in the clone format; the answer's body is the result
    /// in the same format. None: the request is for the object's `fetch`.
    pub method: Option<String>,
    /// A WebSocket is wanted: where the answer has status 101, both bodies are its messages, as [`crate::SocketReader`] reads
    /// them. Any other answer is one without a socket.
    pub is_socket: bool,
    /// The caller takes a result with references in it, for which it opens a session.
    pub takes_references: bool,
    /// A session of RPC is wanted; its messages are those of a socket, and this is the first, or empty where that comes like
    /// the others. `is_socket` is true.
    pub session: Option<Bytes>,
    /// In which place among the calls of one stub it was made.
    pub order: Option<CallOrder>,
}

/// The place of a call among those that one stub makes. The calls of a stub begin in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallOrder {
    /// The stub: a random number.
    pub stub: u64,
    /// Calls that it made before.
    pub place: u64,
    /// The first of them that had no answer when this one was made; `place` where all had.
    pub floor: u64,
}

/// One request to a cell.
pub struct CellCall {
    /// The cell.
    pub cell: CellName,
    /// What the caller may do.
    pub access: Access,
    /// The request. Its path is the cell's own: for class `db`, `/v2/pipeline`, `/v3/pipeline`, `/query` or `/`.
    pub request: http::Request<Body>,
    /// For classes of a deployed application.
    pub object: ObjectCall,
    /// When the caller stops waiting.
    pub deadline: tokio::time::Instant,
}

impl std::fmt::Debug for CellCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} of {:?}", self.request.method(), self.request.uri(), self.cell)
    }
}

/// An error that a handler threw, as it crosses from program to program. The texts are the handler's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThrownError {
    /// The class of the error, for example `TypeError`.
    pub name: String,
    /// The message.
    pub message: String,
    /// The stack, empty where there is none.
    pub stack: String,
    /// The call certainly did not run, or may be sent again for another reason.
    pub is_retryable: bool,
    /// The object has too much to do.
    pub is_overloaded: bool,
}

/// The cell's answer, released by its output gate.
pub struct CellReply {
    /// The response. Where the handler threw, one of status 500 without a body.
    pub response: http::Response<Body>,
    /// What the handler threw instead of answering.
    pub thrown: Option<Box<ThrownError>>,
    /// The position that the response may reveal.
    pub position: Position,
}

impl std::fmt::Debug for CellReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}", self.response.status(), self.position)
    }
}

/// A hint that a wake entry of a cell is due: open the cell and look at its alarm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WakeCall {
    /// The cell.
    pub cell: CellName,
    /// Where the entry stands.
    pub minute: WakeMinute,
    /// The installation that it names.
    pub id: AlarmId,
    /// When the caller stops waiting.
    pub deadline: tokio::time::Instant,
}

/// What an owner saw when it looked at its cell's alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeReply {
    /// The epoch that looked.
    pub epoch: Epoch,
    /// The alarm that is armed.
    pub armed: Option<ArmedAlarm>,
}

/// An alarm that its cell's owner will fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArmedAlarm {
    /// The installation.
    pub id: AlarmId,
    /// When it is to run next, a retry included.
    pub deadline_ms: AlarmTime,
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
