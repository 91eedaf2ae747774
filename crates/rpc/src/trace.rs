//! Trace context across the internal call, as a Tower layer on the server: the span around the handler has the caller's
//! span as its parent. The client's side is one line in its channel.

use std::task::{Context, Poll};

use holdfast_telemetry::trace_context;
use tower::{Layer, Service};
use tracing::instrument::{Instrument, Instrumented};

/// Runs every request inside a span whose parent is the caller's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TraceLayer;

impl<S> Layer<S> for TraceLayer {
    type Service = Trace<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Trace { inner }
    }
}

/// See [`TraceLayer`].
#[derive(Clone, Debug)]
pub(crate) struct Trace<S> {
    inner: S,
}

impl<S, B> Service<http::Request<B>> for Trace<S>
where
    S: Service<http::Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Instrumented<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let span = tracing::debug_span!("holdfast.rpc.serve", rpc = request.uri().path());
        trace_context::accept(&span, request.headers());
        self.inner.call(request).instrument(span)
    }
}
