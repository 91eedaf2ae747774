//! A response's body that knows when its request is over: it holds the request's place, and records what came of it.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use holdfast_rpc::{Body, BodyError};
use holdfast_telemetry::{InFlight, RequestOutcome, metrics};
use http::StatusCode;
use http_body::{Body as _, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

/// A request's place among those in flight, from its head to the end of its answer.
pub(crate) struct Passage {
    started: Instant,
    status: StatusCode,
    /// What the caller may conclude; a passage that is dropped before its end was cancelled.
    outcome: RequestOutcome,
    is_over: bool,
    _place: Option<OwnedSemaphorePermit>,
    _in_flight: InFlight,
}

impl Passage {
    pub(crate) fn new(place: Option<OwnedSemaphorePermit>) -> Self {
        Self {
            started: Instant::now(),
            // What proxies record for a client that went away before its answer.
            status: StatusCode::from_u16(499).expect("a status"),
            outcome: RequestOutcome::Cancelled,
            is_over: false,
            _place: place,
            _in_flight: metrics().ingress_in_flight(),
        }
    }

    pub(crate) fn answered(&mut self, status: StatusCode, outcome: RequestOutcome) {
        (self.status, self.outcome) = (status, outcome);
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        let outcome = if self.is_over { self.outcome } else { RequestOutcome::Cancelled };
        metrics().ingress_request(self.status, outcome, self.started.elapsed());
    }
}

/// A body and the passage that ends with it.
pub(crate) struct Tracked {
    body: Body,
    passage: Passage,
}

impl Tracked {
    pub(crate) fn new(body: Body, mut passage: Passage) -> Self {
        passage.is_over = body.is_end_stream();
        Self { body, passage }
    }
}

impl http_body::Body for Tracked {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        let is_last = match &frame {
            Poll::Ready(None) => true,
            Poll::Ready(Some(Ok(_))) => self.body.is_end_stream(),
            Poll::Ready(Some(Err(_))) | Poll::Pending => false,
        };
        self.passage.is_over |= is_last;
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
