//! A request on its way through a cell's queue. Until it starts it can be taken back, and then it certainly did not run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use bytes::Bytes;
use holdfast_rpc::{Access, CallError};
use holdfast_types::Position;
use tokio::sync::oneshot;

const QUEUED: u8 = 0;
const STARTED: u8 = 1;
const WITHDRAWN: u8 = 2;

/// A released answer.
#[derive(Debug)]
pub struct EventReply {
    /// The response.
    pub response: http::Response<Bytes>,
    /// The position that it may reveal.
    pub position: Position,
}

/// One request for one cell.
pub struct Event {
    /// What the caller may do.
    pub access: Access,
    /// The request, its body whole.
    pub request: http::Request<Bytes>,
    /// Where the answer goes.
    pub reply: oneshot::Sender<Result<EventReply, CallError>>,
    /// What the request holds of the node's bounds until it has run, its caller there or not.
    pub(crate) _held: Box<dyn Send>,
    state: Arc<AtomicU8>,
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Event").field("uri", self.request.uri()).finish_non_exhaustive()
    }
}

/// The caller's end of an event.
#[derive(Debug)]
pub struct EventHandle {
    /// The answer.
    pub answer: oneshot::Receiver<Result<EventReply, CallError>>,
    state: Arc<AtomicU8>,
}

impl Event {
    /// An event and its caller's end.
    #[must_use]
    pub fn new(access: Access, request: http::Request<Bytes>, held: Box<dyn Send>) -> (Self, EventHandle) {
        let (reply, answer) = oneshot::channel();
        let state = Arc::new(AtomicU8::new(QUEUED));
        (
            Self { access, request, reply, _held: held, state: Arc::clone(&state) },
            EventHandle { answer, state },
        )
    }

    /// Takes the event for running. False when its caller has gone: then it must not run.
    #[must_use]
    pub fn start(&self) -> bool {
        !self.reply.is_closed()
            && self.state.compare_exchange(QUEUED, STARTED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Puts a started event back, because it had to wait before it did anything.
    pub fn requeue(&self) {
        self.state.store(QUEUED, Ordering::Release);
    }

    /// Answers that the event did not run.
    pub fn refuse(self, error: CallError) {
        // The caller may have gone; then nobody asks.
        let _ = self.reply.send(Err(error));
    }
}

impl EventHandle {
    /// Takes the event back. False when it has started: then nobody knows what it did.
    #[must_use]
    pub fn withdraw(&self) -> bool {
        self.state.compare_exchange(QUEUED, WITHDRAWN, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}
