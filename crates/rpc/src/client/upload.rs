//! A streamed request body on the client. Nothing of it is read before the server says that the handler reads, so that
//! a refused request can be sent elsewhere with its body untouched.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures::Stream;
use futures::task::AtomicWaker;
use http_body::{Body as _, Frame};

use crate::{Body, BodyError, limits, proto};

/// The body, between the call that may want it back and the stream that sends it.
pub(super) struct Held {
    state: Mutex<State>,
    given_up: AtomicBool,
    waker: AtomicWaker,
}

/// Whoever waits for the answer holds this. When nobody does any more, a stream that still sends is reset: without that
/// the server would take the silence for a slow caller.
pub(super) struct Interest(Arc<Held>);

impl Interest {
    pub(super) fn new(held: Arc<Held>) -> Self {
        Self(held)
    }

    pub(super) fn held(&self) -> &Arc<Held> {
        &self.0
    }
}

impl Drop for Interest {
    fn drop(&mut self) {
        self.0.given_up.store(true, Ordering::Release);
        self.0.waker.wake();
    }
}

/// A request's body as HTTP/2 sends it, with the way to break it off.
pub(super) struct Outgoing {
    body: tonic::body::Body,
    held: Option<Arc<Held>>,
}

impl Outgoing {
    pub(super) fn new(body: tonic::body::Body, held: Option<Arc<Held>>) -> Self {
        Self { body, held }
    }
}

impl http_body::Body for Outgoing {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(held) = &self.held {
            held.waker.register(cx.waker());
            if held.given_up.load(Ordering::Acquire) {
                return Poll::Ready(Some(Err(h2::Error::from(h2::Reason::CANCEL).into())));
            }
        }
        Pin::new(&mut self.body).poll_frame(cx).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

enum State {
    /// Untouched; the stream may wait for it.
    Waiting(Body, Option<Waker>),
    /// The handler reads: the stream may take it.
    Wanted(Body),
    /// Taken, by the stream or back by the call.
    Gone,
}

impl Held {
    pub(super) fn new(body: Body) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State::Waiting(body, None)),
            given_up: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server said `proceed`.
    pub(super) fn proceed(&self) {
        let mut state = self.lock();
        *state = match std::mem::replace(&mut *state, State::Gone) {
            State::Waiting(body, waker) => {
                if let Some(waker) = waker {
                    waker.wake();
                }
                State::Wanted(body)
            }
            other => other,
        };
    }

    /// The body, if nothing of it was read; the stream then ends.
    pub(super) fn take_back(&self) -> Option<Body> {
        match std::mem::replace(&mut *self.lock(), State::Gone) {
            State::Waiting(body, waker) => {
                if let Some(waker) = waker {
                    waker.wake();
                }
                Some(body)
            }
            State::Wanted(body) => Some(body),
            State::Gone => None,
        }
    }

    fn poll_take(&self, cx: &mut Context<'_>) -> Poll<Option<Body>> {
        let mut state = self.lock();
        match std::mem::replace(&mut *state, State::Gone) {
            State::Waiting(body, _) => {
                *state = State::Waiting(body, Some(cx.waker().clone()));
                Poll::Pending
            }
            State::Wanted(body) => Poll::Ready(Some(body)),
            State::Gone => Poll::Ready(None),
        }
    }
}

/// The parts of one call: the head, then the body in pieces, then the mark of its end. A body that breaks ends the
/// stream without the mark.
pub(super) struct Parts {
    head: Option<proto::CallHead>,
    held: Arc<Held>,
    body: Option<Body>,
    rest: Bytes,
    ended: bool,
}

impl Parts {
    pub(super) fn new(head: proto::CallHead, held: Arc<Held>) -> Self {
        Self { head: Some(head), held, body: None, rest: Bytes::new(), ended: false }
    }

    fn part(&mut self, mut chunk: Bytes, last: bool) -> proto::CallPart {
        self.rest = if chunk.len() > limits::CHUNK_LEN_MAX {
            chunk.split_off(limits::CHUNK_LEN_MAX)
        } else {
            Bytes::new()
        };
        let end = last && self.rest.is_empty();
        self.ended = end;
        proto::CallPart { head: None, chunk, end }
    }
}

impl Stream for Parts {
    type Item = proto::CallPart;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<proto::CallPart>> {
        let this = &mut *self;
        if let Some(head) = this.head.take() {
            return Poll::Ready(Some(proto::CallPart { head: Some(head), chunk: Bytes::new(), end: false }));
        }
        if this.ended {
            return Poll::Ready(None);
        }
        if this.body.is_none() {
            match this.held.poll_take(cx) {
                Poll::Ready(Some(body)) => this.body = Some(body),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
        let body = this.body.as_mut().expect("taken above");
        if !this.rest.is_empty() {
            let (rest, last) = (std::mem::take(&mut this.rest), body.is_end_stream());
            return Poll::Ready(Some(this.part(rest, last)));
        }
        loop {
            match Pin::new(&mut *body).poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(frame))) => {
                    let Ok(chunk) = frame.into_data() else { continue };
                    if chunk.is_empty() {
                        continue;
                    }
                    let last = body.is_end_stream();
                    return Poll::Ready(Some(this.part(chunk, last)));
                }
                Poll::Ready(Some(Err(error))) => {
                    tracing::debug!(%error, "a request's body broke");
                    this.ended = true;
                    return Poll::Ready(None);
                }
                Poll::Ready(None) => return Poll::Ready(Some(this.part(Bytes::new(), true))),
            }
        }
    }
}
