//! One public request: what it asks for, whether it may, whether there is room, and who answers it.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use holdfast_js::{id_from_name, is_id_of};
use holdfast_routing::Router;
use holdfast_rpc::{Access, Body, CellCall, ObjectCall, whole_body};
use holdfast_telemetry::{RequestOutcome, trace_context};
use holdfast_types::CellName;
use http::header::{CONTENT_LENGTH, EXPECT};
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Request, Response, Uri};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::answer::Failure;
use crate::auth::Auth;
use crate::headers;
use crate::path::{PathError, Target};
use crate::socket::{self, Handshake, Sockets};
use crate::tracked::{Passage, Tracked};
use crate::upload::{Bounded, TooLarge, discard};
use crate::worker::{self, Deployed, Worker};

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    pub(crate) address: IpAddr,
    pub(crate) is_tls: bool,
}

/// What every connection shares.
pub(crate) struct Edge {
    pub(crate) router: Router,
    pub(crate) worker: Worker,
    pub(crate) auth: Auth,
    pub(crate) places: Arc<Semaphore>,
    pub(crate) is_draining: Arc<AtomicBool>,
    pub(crate) body_max: u64,
    pub(crate) request_timeout: Duration,
    pub(crate) trust_forwarded: bool,
    pub(crate) direct_cells: bool,
    pub(crate) sockets: Sockets,
}

/// A cell that a request is for.
struct Asked {
    cell: CellName,
    /// The path and query that the cell sees.
    path: PathAndQuery,
    /// For an object of the application.
    object: Option<ObjectCall>,
}

fn text(text: &'static str) -> Response<Body> {
    Response::new(whole_body(text))
}

impl Edge {
    /// Answers a request. Dropping the future, as the connection does when its client goes away, cancels the call.
    pub(crate) async fn handle(
        self: Arc<Self>,
        request: Request<Incoming>,
        client: Client,
    ) -> Response<Tracked> {
        let is_head = request.method() == Method::HEAD;
        let path = request.uri().path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        let asked = match Target::parse(request.method(), &path) {
            Ok(Target::Health) => return own(text("ok\n"), is_head),
            Ok(Target::Ready) => return own(self.ready(), is_head),
            Ok(Target::Application) => return self.application(request, client).await,
            Ok(Target::Cell(cell, path)) => Ok(Asked { cell, path, object: None }),
            Ok(Target::Object(class, name, path)) => self.object(&class, name, path),
            Err(error) => Err(error),
        };
        match asked {
            Ok(asked) => self.cell(request, client, asked).await,
            Err(error) => refuse(error.into(), request, Passage::new(None), self.body_max).await,
        }
    }

    /// An object of the application, where they are offered: by its id, or else by its name.
    fn object(&self, class: &str, name: String, path: PathAndQuery) -> Result<Asked, PathError> {
        let is_known = match self.worker.deployed() {
            Deployed::Runs(application) => application.has_class(class),
            Deployed::Nothing | Deployed::Broken(_) => false,
        };
        if !self.direct_cells || !is_known {
            return Err(PathError::unknown_class(class));
        }
        let (id, name) = if is_id_of(class, &name) {
            (name.to_ascii_lowercase(), None)
        } else {
            (id_from_name(class, &name), Some(name))
        };
        let cell = CellName::new(class, &id)?;
        Ok(Asked { cell, path, object: Some(ObjectCall { name, ..ObjectCall::default() }) })
    }

    /// A place among the requests in flight.
    pub(crate) fn place(&self) -> Result<OwnedSemaphorePermit, Failure> {
        let busy = "too many requests are in flight at this ingress";
        Arc::clone(&self.places).try_acquire_owned().map_err(|_| Failure::busy("overloaded", busy, 1_000))
    }

    /// The WebSocket that a request asks for, with the body that carries what its client sends.
    pub(crate) fn ask_socket(
        &self,
        request: &mut Request<Incoming>,
    ) -> Result<Option<(socket::Asked, Body)>, Failure> {
        let Some(handshake) = Handshake::of(request)? else { return Ok(None) };
        self.sockets.ask(handshake).map(Some)
    }

    async fn cell(
        &self,
        mut request: Request<Incoming>,
        client: Client,
        mut asked: Asked,
    ) -> Response<Tracked> {
        let is_head = request.method() == Method::HEAD;
        let place = match self.place() {
            Ok(place) => place,
            Err(failure) => return refuse(failure, request, Passage::new(None), self.body_max).await,
        };
        let mut passage = Passage::new(Some(place));
        let (cell, method) = (&asked.cell, request.method());
        let span = tracing::debug_span!("holdfast.ingress.request", %cell, %method);
        trace_context::accept(&span, request.headers());
        match self.admit(&request, &asked.cell) {
            Ok(access) => {
                let wanted = if asked.object.is_some() { self.ask_socket(&mut request) } else { Ok(None) };
                let (wanted, uplink) = match wanted {
                    Ok(wanted) => wanted.unzip(),
                    Err(failure) => return refuse(failure, request, passage, self.body_max).await,
                };
                if let Some(object) = &mut asked.object {
                    object.is_socket = wanted.is_some();
                }
                let call = self.call(request, client, (asked, uplink), access);
                let forward = forward(self.router.clone(), call, self.body_max);
                let (response, outcome) = forward.instrument(span).await;
                let response = self.sockets.answer(wanted, response);
                passage.answered(response.status(), outcome);
                finish(response, passage, is_head)
            }
            Err(failure) => refuse(failure, request, passage, self.body_max).await,
        }
    }

    /// Whether it is about to end.
    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Acquire)
    }

    fn ready(&self) -> Response<Body> {
        if self.is_draining() {
            Failure::busy("draining", "this ingress is draining", 1_000).into_response()
        } else {
            text("ready\n")
        }
    }

    /// Everything that can be refused by the head alone.
    fn admit(&self, request: &Request<Incoming>, cell: &CellName) -> Result<Access, Failure> {
        let access = self.auth.check(request.headers(), cell)?;
        self.admit_body(request)?;
        Ok(access)
    }

    pub(crate) fn admit_body(&self, request: &Request<Incoming>) -> Result<(), Failure> {
        if request.body().size_hint().lower() > self.body_max {
            return Err(Failure::body_too_large(self.body_max));
        }
        Ok(())
    }

    fn call(
        &self,
        request: Request<Incoming>,
        client: Client,
        (asked, uplink): (Asked, Option<Body>),
        access: Access,
    ) -> (CellCall, TooLarge) {
        let Asked { cell, path, object } = asked;
        let (mut parts, body) = request.into_parts();
        let origin = worker::origin(&parts, client.is_tls, self.trust_forwarded);
        headers::clean_request(&mut parts.headers, self.trust_forwarded);
        if object.is_some() {
            let url = HeaderValue::try_from(format!("{origin}{path}")).expect("a URL is plain text");
            parts.headers.insert(holdfast_outbound::URL, url);
        } else if parts.method == Method::HEAD {
            // The answer's head is that of a GET; its body stays here.
            parts.method = Method::GET;
        }
        parts.uri = Uri::from(path);
        let (body, too_large) = Bounded::new(body, self.body_max);
        let body = uplink.unwrap_or_else(|| body.boxed_unsync());
        let request = Request::from_parts(parts, body);
        let deadline = Instant::now() + self.request_timeout;
        (CellCall { cell, access, request, object: object.unwrap_or_default(), deadline }, too_large)
    }
}

async fn forward(
    router: Router,
    (call, too_large): (CellCall, TooLarge),
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

pub(crate) async fn refuse(
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

pub(crate) fn finish(mut response: Response<Body>, passage: Passage, is_head: bool) -> Response<Tracked> {
    if is_head {
        if let Some(len) = response.body().size_hint().exact()
            && !response.headers().contains_key(CONTENT_LENGTH)
        {
            response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(len));
        }
        response = response.map(|_| whole_body(Bytes::new()));
    }
    response.map(|body| Tracked::new(body, passage))
}
