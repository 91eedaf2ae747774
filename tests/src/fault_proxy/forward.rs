//! One request through the proxy.

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::uri::{Authority, Scheme};
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use percent_encoding::percent_decode_str;
use time::OffsetDateTime;

use super::rules::{Action, Faults, Stage};
use crate::sigv4::{Credentials, sign};

/// Largest body that a rule may hold in memory. Bodies that only pass are streamed.
pub const BODY_LEN_MAX: usize = 64 << 20;

type AnyError = Box<dyn std::error::Error + Send + Sync>;
type Body = UnsyncBoxBody<Bytes, AnyError>;

/// Ends the connection without an answer.
#[derive(Debug)]
pub(super) struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection is closed on purpose")
    }
}

impl std::error::Error for Closed {}

pub(super) struct Forwarder {
    upstream: Authority,
    credentials: Credentials,
    faults: Faults,
    client: Client<HttpConnector, Body>,
}

impl Forwarder {
    pub(super) fn new(upstream: SocketAddr, credentials: Credentials, faults: Faults) -> Self {
        let upstream = Authority::try_from(upstream.to_string()).expect("a socket address is an authority");
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new()).retry_canceled_requests(false).build(connector);
        Self { upstream, credentials, faults, client }
    }

    pub(super) async fn handle(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Closed> {
        let (parts, body) = request.into_parts();
        let target = parts.uri.path_and_query().map_or("", |target| target.as_str());
        let target = percent_decode_str(target).decode_utf8_lossy().into_owned();
        self.faults.record(&parts.method, &target, Stage::Arrived);
        let action = self.faults.decide(&parts.method, &target, is_conditional(&parts.headers));
        match action {
            Action::Pass => self.send(parts, body.map_err(Into::into).boxed_unsync(), &target).await,
            Action::IgnoreConditions => {
                let parts = self.without_conditions(parts);
                self.send(parts, body.map_err(Into::into).boxed_unsync(), &target).await
            }
            Action::Cut => Err(Closed),
            Action::Status { status, code } => {
                collect(body).await?;
                Ok(error_answer(status, &code))
            }
            Action::DropAnswer => {
                let body = collect(body).await?;
                self.send_whole(parts, body, &target).await?;
                Err(Closed)
            }
            Action::AnswerAfter { status, code } => {
                let body = collect(body).await?;
                self.send_whole(parts, body, &target).await?;
                Ok(error_answer(status, &code))
            }
            Action::Hold { ms } => {
                let body = collect(body).await?;
                // Detached: a client that gives up does not take the write back.
                self.faults.hold_begins(&target);
                let held = tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    let answer = self.send_whole(parts, body, &target).await;
                    self.faults.hold_ends(&target);
                    answer
                });
                held.await.map_err(|_| Closed)?
            }
        }
    }

    async fn send_whole(&self, parts: Parts, body: Bytes, target: &str) -> Result<Response<Body>, Closed> {
        let response = self.send(parts, whole(body), target).await?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map_err(|_| Closed)?.to_bytes();
        Ok(Response::from_parts(parts, whole(body)))
    }

    async fn send(&self, mut parts: Parts, body: Body, target: &str) -> Result<Response<Body>, Closed> {
        let method = parts.method.clone();
        let mut uri = parts.uri.into_parts();
        uri.scheme = Some(Scheme::HTTP);
        uri.authority = Some(self.upstream.clone());
        parts.uri = http::Uri::from_parts(uri).map_err(|_| Closed)?;
        parts.version = http::Version::HTTP_11;
        // The store's own silence is the client's silence.
        let response = self.client.request(Request::from_parts(parts, body)).await.map_err(|_| Closed)?;
        self.faults.record(&method, target, Stage::Answered(response.status().as_u16()));
        Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
    }

    fn without_conditions(&self, mut parts: Parts) -> Parts {
        parts.headers.remove(header::IF_MATCH);
        parts.headers.remove(header::IF_NONE_MATCH);
        sign(&mut parts, &self.credentials, OffsetDateTime::now_utc());
        parts
    }
}

fn is_conditional(headers: &HeaderMap) -> bool {
    headers.contains_key(header::IF_MATCH) || headers.contains_key(header::IF_NONE_MATCH)
}

async fn collect(body: Incoming) -> Result<Bytes, Closed> {
    let whole = Limited::new(body, BODY_LEN_MAX).collect().await.map_err(|_| Closed)?;
    Ok(whole.to_bytes())
}

fn whole(body: Bytes) -> Body {
    Full::new(body).map_err(|never: Infallible| match never {}).boxed_unsync()
}

fn error_answer(status: u16, code: &str) -> Response<Body> {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code>\
         <Message>forced by the fault proxy</Message></Error>"
    );
    let mut response = Response::new(whole(body.into()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/xml"));
    response
}
