//! What threads of JavaScript are told. The channel has no bound of its own: events are bounded per thread, operations
//! per isolate, and each of them sends a handful of messages at most.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use bytes::Bytes;
use holdfast_js::{
    Application, EventId, IncomingBodyId, IncomingRequest, IncomingResponse, JsError, OpId, SocketEvent,
    SocketId, StartError,
};
use holdfast_rpc::Body;
use http::Response;
use tokio::sync::oneshot;
use tracing::Span;

use super::WorkerError;
use super::body::Outgoing;
use super::event::Place;

/// A `fetch` event that is to begin.
pub(super) struct NewEvent {
    pub(super) code: Arc<Application>,
    pub(super) number: EventId,
    pub(super) request: IncomingRequest,
    pub(super) body: Body,
    /// What the client sends on the socket that it asks for.
    pub(super) socket: Option<Body>,
    pub(super) span: Span,
    pub(super) answer: oneshot::Sender<Result<Response<Outgoing>, WorkerError>>,
    pub(super) place: Place,
}

/// How an operation ended.
pub(super) enum Outcome {
    /// The head of an answer, and its body.
    Response(Box<IncomingResponse>, Body),
    /// The result of a method.
    Returned(Bytes),
    /// What an R2 bucket says, and the bytes of an object.
    Object(Bytes, Body),
    /// A chunk of a body or its end, and the rest of the body.
    Read(IncomingBodyId, Option<Bytes>, Body),
    /// A chunk was taken.
    Written,
    /// It did not work.
    Failed(JsError),
}

pub(super) enum Message {
    /// A new event.
    Begin(Box<NewEvent>),
    /// Start an isolate, and tell whether that worked.
    Try {
        /// Of this.
        code: Arc<Application>,
        /// Told.
        reply: oneshot::Sender<Result<(), StartError>>,
    },
    /// This application runs from now on: isolates of others are dropped when they are idle.
    Adopted(Arc<Application>),
    /// An operation has ended.
    Done {
        /// The isolate.
        slot: u64,
        /// The operation.
        op: OpId,
        /// How.
        outcome: Outcome,
    },
    /// Something came for a socket.
    Socket {
        /// The isolate.
        slot: u64,
        /// Which.
        socket: SocketId,
        /// What.
        event: SocketEvent,
    },
    /// Nobody waits for the event's answer, or the rest of it, any more.
    Gone(EventId),
    /// Something is due.
    Wake,
    /// The thread ends.
    Stop,
}

/// Where a thread is told things. A cheap clone.
#[derive(Clone)]
pub(super) struct Post(Sender<Message>);

impl Post {
    pub(super) fn new(sender: Sender<Message>) -> Self {
        Self(sender)
    }

    /// Tells the thread. One that has ended drops what it is told, and whoever waits for an answer sees that.
    pub(super) fn send(&self, message: Message) {
        drop(self.0.send(message));
    }
}
