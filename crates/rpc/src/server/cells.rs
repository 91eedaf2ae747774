//! `CellService`: calls to cells, whole and streaming.

use std::sync::Arc;

use http_body_util::BodyExt as _;
use tokio::time::Instant;
use tonic::{Request, Response, Status, Streaming};

use super::deadline;
use super::reply::ReplyStream;
use super::upload::{Touch, Upload};
use crate::convert::{Head, WireError};
use crate::proto::cell_service_server::CellService;
use crate::{Body, CallError, CellCall, CellHost, CellReply, convert, proto, whole_body};

pub(super) struct Cells {
    host: Arc<dyn CellHost>,
}

impl Cells {
    pub(super) fn new(host: Arc<dyn CellHost>) -> Self {
        Self { host }
    }

    /// Answers a request whose body comes in parts.
    async fn stream(
        &self,
        request: Request<Streaming<proto::CallPart>>,
        is_session: bool,
    ) -> Result<Response<ReplyStream>, Status> {
        let deadline = deadline::of(request.metadata().as_ref());
        let mut parts = request.into_inner();
        let first = parts.message().await?.ok_or_else(|| Status::invalid_argument("no part came"))?;
        let head = match convert::head_from_wire(first.head) {
            Ok(head) => head,
            Err(error) => return Ok(Response::new(ReplyStream::ready(Err(not_acceptable(&error))))),
        };
        if head.2.session.is_some() != is_session {
            let error = CallError::Rejected {
                status: http::StatusCode::BAD_REQUEST,
                reason: "a session is asked for by `Session`, and nothing else is".into(),
            };
            return Ok(Response::new(ReplyStream::ready(Err(error))));
        }
        let touch = Arc::new(Touch::default());
        let len = announced_len(&head);
        let body = Upload::new(parts, Arc::clone(&touch), len).boxed_unsync();
        let call = join(head, body, deadline);
        let host = Arc::clone(&self.host);
        let answer = async move {
            match tokio::time::timeout_at(deadline, host.call(call)).await {
                Ok(answer) => answer,
                Err(_) => Err(CallError::OutcomeUnknown { reason: "no answer before the deadline".into() }),
            }
        };
        Ok(Response::new(ReplyStream::running(Box::pin(answer), touch)))
    }
}

fn join(head: Head, body: Body, deadline: Instant) -> CellCall {
    let (cell, access, object, request) = head;
    CellCall { cell, access, request: request.map(|()| body), object, deadline }
}

fn not_acceptable(error: &WireError) -> CallError {
    CallError::Rejected { status: http::StatusCode::BAD_REQUEST, reason: error.to_string() }
}

/// The body's length as the caller announced it, so that a handler can refuse it unread.
fn announced_len(head: &Head) -> Option<u64> {
    let (_, _, _, request) = head;
    request.headers().get(http::header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

impl Cells {
    /// Answers a request whose body is whole. The host keeps the deadline.
    pub(super) async fn call(
        &self,
        message: proto::CallRequest,
        deadline: Instant,
    ) -> Result<CellReply, CallError> {
        let proto::CallRequest { head, body } = message;
        let mut head = convert::head_from_wire(head).map_err(|error| not_acceptable(&error))?;
        // Its body is whole, so it can carry none.
        head.2.session = None;
        self.host.call(join(head, whole_body(body), deadline)).await
    }
}

#[tonic::async_trait]
impl CellService for Cells {
    type CallStreamingStream = ReplyStream;
    type SessionStream = ReplyStream;

    async fn call_streaming(
        &self,
        request: Request<Streaming<proto::CallPart>>,
    ) -> Result<Response<Self::CallStreamingStream>, Status> {
        self.stream(request, false).await
    }

    async fn session(
        &self,
        request: Request<Streaming<proto::CallPart>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        self.stream(request, true).await
    }

    async fn wake(&self, request: Request<proto::WakeRequest>) -> Result<Response<proto::WakeReply>, Status> {
        let deadline = deadline::of(request.metadata().as_ref());
        let answer = match convert::wake_from_wire(request.into_inner(), deadline) {
            Ok(call) => self.host.wake(call).await,
            Err(error) => Err(not_acceptable(&error)),
        };
        Ok(Response::new(convert::wake_answer_to_wire(answer)))
    }
}
