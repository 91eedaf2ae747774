//! Public requests that the deployed application answers.

use std::sync::Arc;

use holdfast_js::AssetServer;
use holdfast_rpc::whole_body;
use holdfast_telemetry::{RequestOutcome, trace_context};
use http::header::{CONTENT_LENGTH, EXPECT};
use http::{Method, Request, Response, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tracing::Instrument as _;

use crate::answer::Failure;
use crate::edge::{Client, Edge, finish, refuse};
use crate::path::PathError;
use crate::socket::handshake;
use crate::tracked::{Passage, Tracked};
use crate::upload::{Bounded, discard};
use crate::worker::{self, Deployed};

/// Answers with a static file.
async fn from_assets(
    assets: &dyn AssetServer,
    request: Request<Incoming>,
    mut passage: Passage,
    body_max: u64,
) -> Response<Tracked> {
    let is_head = request.method() == Method::HEAD;
    let (parts, body) = request.into_parts();
    let has_body = !body.is_end_stream() && !parts.headers.contains_key(EXPECT);
    let response = assets.answer(Request::from_parts(parts, ())).await.map(whole_body);
    if has_body {
        // So that the connection can be used again.
        discard(body, body_max).await;
    }
    passage.answered(response.status(), RequestOutcome::Answered);
    finish(response, passage, is_head)
}

impl Edge {
    /// The static files, where they answer a request and the Worker does not.
    fn assets_for(&self, request: &Request<Incoming>) -> Option<Arc<dyn AssetServer>> {
        let Deployed::Runs(application) = self.worker.deployed() else { return None };
        let assets = Arc::clone(application.assets()?);
        (!assets.is_for_worker(request.uri(), request.headers())).then_some(assets)
    }

    /// Answers a request with the application. Nobody needs a token: whom it lets in is for the application to decide.
    pub(crate) async fn application(
        &self,
        mut request: Request<Incoming>,
        client: Client,
    ) -> Response<Tracked> {
        if matches!(self.worker.deployed(), Deployed::Nothing) {
            let failure = Failure::from(PathError::NoApplication);
            return refuse(failure, request, Passage::new(None), self.body_max).await;
        }
        let place = match self.place() {
            Ok(place) => place,
            Err(failure) => return refuse(failure, request, Passage::new(None), self.body_max).await,
        };
        let mut passage = Passage::new(Some(place));
        if let Err(failure) = self.admit_body(&request) {
            return refuse(failure, request, passage, self.body_max).await;
        }
        if let Some(assets) = self.assets_for(&request) {
            return from_assets(&*assets, request, passage, self.body_max).await;
        }
        let (asked, uplink) = match self.ask_socket(&mut request) {
            Ok(asked) => asked.unzip(),
            Err(failure) => return refuse(failure, request, passage, self.body_max).await,
        };
        let is_head = request.method() == Method::HEAD;
        let span = tracing::debug_span!("holdfast.ingress.request", method = %request.method());
        trace_context::accept(&span, request.headers());
        let (parts, body) = request.into_parts();
        let mut head = worker::incoming(&parts, client.address, client.is_tls, self.trust_forwarded);
        if asked.is_some() {
            handshake::show(&mut head.headers);
        }
        let (body, too_large) = Bounded::new(body, self.body_max);
        let answer =
            self.worker.fetch(head, (body.boxed_unsync(), uplink), span.clone()).instrument(span).await;
        let (mut response, outcome) = match answer {
            // Whatever the handler made of the broken body, this is what was wrong.
            _ if too_large.is_set() => {
                (Failure::body_too_large(self.body_max).into_response(), RequestOutcome::Refused)
            }
            Ok(response) => (self.sockets.answer(asked, response), RequestOutcome::Answered),
            Err(error) => {
                let outcome = error.outcome();
                (error.into_response(), outcome)
            }
        };
        if !is_head
            && response.status() != StatusCode::NOT_MODIFIED
            && response.body().size_hint().exact().is_some()
        {
            // The body itself says how long it is.
            response.headers_mut().remove(CONTENT_LENGTH);
        }
        passage.answered(response.status(), outcome);
        finish(response, passage, is_head)
    }
}
