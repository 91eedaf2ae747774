//! One public request: what it asks for, whether it may, whether there is room, and the call that answers it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use holdfast_routing::Router;
use holdfast_rpc::{Body, CellCall, ObjectCall};
use holdfast_telemetry::{RequestOutcome, trace_context};
use holdfast_types::CellName;
use http::header::{CONTENT_LENGTH, EXPECT};
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Request, Response, Uri};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::Incoming;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::answer::Failure;
use crate::auth::Auth;
use crate::headers;
use crate::path::Target;
use crate::tracked::{Passage, Tracked};
use crate::upload::{Bounded, discard};

/// What every connection shares.
pub(crate) struct Edge {
    pub(crate) router: Router,
    pub(crate) auth: Auth,
    pub(crate) places: Arc<Semaphore>,
    pub(crate) is_draining: Arc<AtomicBool>,
    pub(crate) body_max: u64,
    pub(crate) request_timeout: Duration,
    pub(crate) trust_forwarded: bool,
}

fn text(text: &'static str) -> Response<Body> {
    Response::new(
        Full::new(Bytes::from_static(text.as_bytes())).map_err(|never| match never {}).boxed_unsync(),
    )
}

impl Edge {
    /// Answers a request. Dropping the future, as the connection does when its client goes away, cancels the call.
    pub(crate) async fn handle(self: Arc<Self>, request: Request<Incoming>) -> Response<Tracked> {
        let is_head = request.method() == Method::HEAD;
        let path = request.uri().path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        let target = Target::parse(request.method(), &path);
        let (cell, inner) = match target {
            Ok(Target::Cell(cell, inner)) => (cell, inner),
            Ok(Target::Health) => return own(text("ok\n"), is_head),
            Ok(Target::Ready) => return own(self.ready(), is_head),
            Err(error) => return refuse(error.into(), request, Passage::new(None), self.body_max).await,
        };
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            let failure =
                Failure::busy("overloaded", "too many requests are in flight at this ingress", 1_000);
            return refuse(failure, request, Passage::new(None), self.body_max).await;
        };
        let mut passage = Passage::new(Some(place));
        let span = tracing::debug_span!("holdfast.ingress.request", %cell, method = %request.method());
        trace_context::accept(&span, request.headers());
        match self.admit(&request, &cell) {
            Ok(access) => {
                let call = self.call(request, cell, inner, access);
                let forward = forward(self.router.clone(), call, self.body_max);
                let (response, outcome) = forward.instrument(span).await;
                passage.answered(response.status(), outcome);
                finish(response, passage, is_head)
            }
            Err(failure) => refuse(failure, request, passage, self.body_max).await,
        }
    }

    fn ready(&self) -> Response<Body> {
        if self.is_draining.load(Ordering::Acquire) {
            Failure::busy("draining", "this ingress is draining", 1_000).into_response()
        } else {
            text("ready\n")
        }
    }

    /// Everything that can be refused by the head alone.
    fn admit(&self, request: &Request<Incoming>, cell: &CellName) -> Result<holdfast_rpc::Access, Failure> {
        let access = self.auth.check(request.headers(), cell)?;
        if request.body().size_hint().lower() > self.body_max {
            return Err(Failure::body_too_large(self.body_max));
        }
        Ok(access)
    }

    fn call(
        &self,
        request: Request<Incoming>,
        cell: CellName,
        inner: PathAndQuery,
        access: holdfast_rpc::Access,
    ) -> (CellCall, crate::upload::TooLarge) {
        let (mut parts, body) = request.into_parts();
        headers::clean_request(&mut parts.headers, self.trust_forwarded);
        parts.uri = Uri::from(inner);
        if parts.method == Method::HEAD {
            // The answer's head is that of a GET; its body stays here.
            parts.method = Method::GET;
        }
        let (body, too_large) = Bounded::new(body, self.body_max);
        let request = Request::from_parts(parts, body.boxed_unsync());
        let deadline = Instant::now() + self.request_timeout;
        (CellCall { cell, access, request, object: ObjectCall::default(), deadline }, too_large)
    }
}

async fn forward(
    router: Router,
    (call, too_large): (CellCall, crate::upload::TooLarge),
    body_max: u64,
) -> (Response<Body>, RequestOutcome) {
    let answer = router.forward(call).await;
    if too_large.is_set() {
        // Whatever the handler made of the broken body, this is what was wrong.
        return (Failure::body_too_large(body_max).into_response(), RequestOutcome::Refused);
    }
    match answer {
        Ok(reply) => {
            let mut response = match reply.thrown {
                Some(thrown) => Failure::thrown(&thrown).into_response(),
                None => reply.response,
            };
            headers::clean_response(response.headers_mut(), reply.position);
            (response, RequestOutcome::Answered)
        }
        Err(error) => {
            let failure = Failure::from(error);
            let outcome = if failure.is_unknown { RequestOutcome::Unknown } else { RequestOutcome::Refused };
            (failure.into_response(), outcome)
        }
    }
}

async fn refuse(
    failure: Failure,
    request: Request<Incoming>,
    mut passage: Passage,
    body_max: u64,
) -> Response<Tracked> {
    let is_head = request.method() == Method::HEAD;
    passage.answered(failure.status, RequestOutcome::Refused);
    // A client that waits for `100 Continue` has not sent its body; reading would ask for it.
    if !request.headers().contains_key(EXPECT) && !request.body().is_end_stream() {
        discard(request.into_body(), body_max).await;
    }
    finish(failure.into_response(), passage, is_head)
}

/// An answer of this program's own.
fn own(response: Response<Body>, is_head: bool) -> Response<Tracked> {
    let mut passage = Passage::new(None);
    passage.answered(response.status(), RequestOutcome::Answered);
    finish(response, passage, is_head)
}

fn finish(mut response: Response<Body>, passage: Passage, is_head: bool) -> Response<Tracked> {
    if is_head {
        if let Some(len) = response.body().size_hint().exact()
            && !response.headers().contains_key(CONTENT_LENGTH)
        {
            response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(len));
        }
        response = response.map(|_| Empty::new().map_err(|never| match never {}).boxed_unsync());
    }
    response.map(|body| Tracked::new(body, passage))
}
