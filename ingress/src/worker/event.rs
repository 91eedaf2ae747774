//! One event on its way through an isolate.

use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use holdfast_rpc::Body;
use holdfast_telemetry::WorkerOutcome;
use holdfast_types::Millis;
use http::Response;
use tokio::sync::{Notify, oneshot};
use tracing::Span;

use super::WorkerError;
use super::body::Outgoing;

/// What a thread has under way.
#[derive(Debug, Default)]
pub(super) struct Load {
    /// Events that count towards the thread's bound.
    events: AtomicUsize,
    /// Events that only hold a socket: `--sockets-max` bounds those.
    resting: AtomicUsize,
}

impl Load {
    pub(super) fn events(&self) -> usize {
        self.events.load(Ordering::SeqCst)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.events() == 0 && self.resting.load(Ordering::SeqCst) == 0
    }
}

/// A place among the events of a thread.
pub(super) struct Place {
    load: Arc<Load>,
    idle: Arc<Notify>,
    is_resting: bool,
}

impl Place {
    pub(super) fn take(load: &Arc<Load>, idle: &Arc<Notify>) -> Self {
        load.events.fetch_add(1, Ordering::SeqCst);
        Self { load: Arc::clone(load), idle: Arc::clone(idle), is_resting: false }
    }

    /// From here on the event only holds a socket.
    pub(super) fn rest(&mut self) {
        if !std::mem::replace(&mut self.is_resting, true) {
            self.load.resting.fetch_add(1, Ordering::SeqCst);
            self.load.events.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let counter = if self.is_resting { &self.load.resting } else { &self.load.events };
        counter.fetch_sub(1, Ordering::SeqCst);
        if self.load.is_idle() {
            self.idle.notify_waiters();
        }
    }
}

/// An event that is under way.
pub(super) struct Event {
    answer: Option<oneshot::Sender<Result<Response<Outgoing>, WorkerError>>>,
    pub(super) span: Span,
    /// What the client sends on the socket that it asks for, until it is given one.
    pub(super) socket: Option<Body>,
    /// What the caller's `traceparent` says, where it says it.
    traceparent: Option<String>,
    trace: OnceCell<String>,
    /// When it ends, whatever it waits for; set once its answer is out.
    pub(super) over_at: Option<Millis>,
    pub(super) outcome: WorkerOutcome,
    pub(super) place: Place,
}

impl Event {
    pub(super) fn new(
        answer: oneshot::Sender<Result<Response<Outgoing>, WorkerError>>,
        span: Span,
        traceparent: Option<String>,
        place: Place,
    ) -> Self {
        Self {
            answer: Some(answer),
            span,
            socket: None,
            traceparent,
            trace: OnceCell::new(),
            over_at: None,
            outcome: WorkerOutcome::Cancelled,
            place,
        }
    }

    /// Answers, if nobody did before. Gives false where nobody waits.
    pub(super) fn answer(
        &mut self,
        answer: Result<Response<Outgoing>, WorkerError>,
        outcome: WorkerOutcome,
    ) -> bool {
        let Some(waiter) = self.answer.take() else { return false };
        self.outcome = outcome;
        waiter.send(answer).is_ok()
    }

    /// Whether its answer has begun.
    pub(super) fn is_answered(&self) -> bool {
        self.answer.is_none()
    }

    /// The id of its trace, for log lines: the span's, the caller's, or one of its own.
    pub(super) fn trace(&self) -> &str {
        self.trace.get_or_init(|| {
            holdfast_telemetry::trace_context::trace_id(&self.span)
                .or_else(|| self.traceparent.as_deref()?.split('-').nth(1).map(ToOwned::to_owned))
                .unwrap_or_else(|| {
                    let mut bytes = [0; 16];
                    // Only a name for log lines.
                    let _ = getrandom::fill(&mut bytes);
                    format!("{:032x}", u128::from_be_bytes(bytes))
                })
        })
    }
}
