//! A request on its way through a cell's queue. Until it starts it can be taken back, and then it certainly did not run;
//! once it stays open, its caller's going away is told to the handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use holdfast_rpc::{CallError, ThrownError};
use holdfast_types::Position;
use tokio::sync::oneshot;

use crate::runtime::{EventCall, EventId, ReplyBody};

const QUEUED: u8 = 0;
const STARTED: u8 = 1;
const WITHDRAWN: u8 = 2;
/// Its first turn is over and it is not.
const OPEN: u8 = 3;
/// Its caller went away while its first turn ran.
const ABANDONED: u8 = 4;

/// A released answer.
#[derive(Debug)]
pub(crate) struct EventReply {
    /// The response.
    pub(crate) response: http::Response<ReplyBody>,
    /// What the handler threw instead.
    pub(crate) thrown: Option<Box<ThrownError>>,
    /// The position that it may reveal.
    pub(crate) position: Position,
}

/// Where an answer goes.
pub(crate) type ReplySender = oneshot::Sender<Result<EventReply, CallError>>;

/// What both ends of an event know.
#[derive(Debug, Default)]
struct Progress {
    phase: AtomicU8,
    /// Its name, once it is open.
    id: AtomicU64,
}

impl Progress {
    fn step(&self, from: u8, to: u8) -> bool {
        self.phase.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// One request for one cell.
pub(crate) struct Event {
    /// What is asked.
    pub(crate) call: EventCall,
    /// Where the answer goes.
    pub(crate) reply: ReplySender,
    /// What the request holds of the node's bounds until it is over, its caller there or not.
    pub(crate) held: Box<dyn Send>,
    progress: Arc<Progress>,
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Event").field("call", &self.call).finish_non_exhaustive()
    }
}

/// The caller's end of an event.
#[derive(Debug)]
pub(crate) struct EventHandle {
    /// The answer.
    pub(crate) answer: oneshot::Receiver<Result<EventReply, CallError>>,
    progress: Arc<Progress>,
}

impl Event {
    /// An event and its caller's end.
    pub(crate) fn new(call: EventCall, held: Box<dyn Send>) -> (Self, EventHandle) {
        let (reply, answer) = oneshot::channel();
        let progress = Arc::new(Progress::default());
        (Self { call, reply, held, progress: Arc::clone(&progress) }, EventHandle { answer, progress })
    }

    /// Takes the event for running. False when its caller has gone: then it must not run.
    pub(crate) fn start(&self) -> bool {
        !self.reply.is_closed() && self.progress.step(QUEUED, STARTED)
    }

    /// Puts a started event back, because it had to wait before it did anything.
    pub(crate) fn requeue(&self) {
        // One whose caller has gone does not start again.
        self.progress.step(STARTED, QUEUED);
    }

    /// The event stays open under this name. False when its caller has gone already.
    pub(crate) fn open(&self, event: EventId) -> bool {
        self.progress.id.store(event.0, Ordering::Release);
        self.progress.step(STARTED, OPEN)
    }

    /// Answers that the event did not run.
    pub(crate) fn refuse(self, error: CallError) {
        // The caller may have gone; then nobody asks.
        let _ = self.reply.send(Err(error));
    }
}

impl EventHandle {
    /// Takes the event back. False when it has started: then nobody knows what it did.
    pub(crate) fn withdraw(&self) -> bool {
        self.progress.step(QUEUED, WITHDRAWN)
    }

    /// The caller goes away without an answer. The name of an event that is open, whose handler is to be told.
    pub(crate) fn abandon(&self) -> Option<EventId> {
        if self.withdraw() || self.progress.step(STARTED, ABANDONED) {
            return None;
        }
        let is_open = self.progress.phase.load(Ordering::Acquire) == OPEN;
        is_open.then(|| EventId(self.progress.id.load(Ordering::Acquire)))
    }
}
