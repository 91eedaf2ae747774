//! One call on a connection: what it asks for, and the way of its answer onto the stream. `CellService.Call`, which is
//! made for each request of a user, is answered without generated code; everything else by tonic's services.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::StreamExt as _;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use holdfast_telemetry::trace_context;
use http::header::CONTENT_TYPE;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use tonic::Status;
use tonic::server::NamedService;
use tower::Service;
use tracing::Instrument as _;

use super::cells::Cells;
use super::connection::Answers;
use super::deadline;
use super::nodes::Nodes;
use super::reply::ReplyStream;
use crate::grpc::{self, Messages};
use crate::proto::cell_service_server::CellServiceServer;
use crate::proto::node_service_server::NodeServiceServer;
use crate::{CellHost, limits, proto};

/// `CellService.Call`.
const CALL: &str = "/holdfast.v1.CellService/Call";

/// What a listener answers.
pub(super) struct Calls {
    whole: Cells,
    cells: CellServiceServer<Cells>,
    nodes: NodeServiceServer<Nodes>,
}

impl Calls {
    pub(super) fn new(host: Arc<dyn CellHost>) -> Self {
        let cells = CellServiceServer::new(Cells::new(Arc::clone(&host)))
            .max_decoding_message_size(limits::MESSAGE_LEN_MAX)
            .max_encoding_message_size(limits::MESSAGE_LEN_MAX);
        let nodes = NodeServiceServer::new(Nodes::new(Arc::clone(&host)));
        Self { whole: Cells::new(host), cells, nodes }
    }

    async fn call(
        &self,
        request: Request<RecvStream>,
        mut respond: SendResponse<Bytes>,
    ) -> Result<(), h2::Error> {
        let deadline = deadline::of(request.headers());
        let answer = async {
            let body = request.into_body();
            let mut messages = Messages::<proto::CallRequest>::of_request(body, limits::MESSAGE_LEN_MAX);
            match messages.next().await {
                Some(Ok(message)) => Ok(self.whole.call(message, deadline).await),
                Some(Err(status)) => Err(status),
                None => Err(Status::invalid_argument("no message came")),
            }
        };
        match unless_reset(|cx| respond.poll_reset(cx), answer).await? {
            Ok(answer) => send(respond, ReplyStream::ready(answer)).await,
            Err(status) => refuse(respond, &status),
        }
    }
}

impl Answers for Calls {
    async fn answer(self: Arc<Self>, request: Request<RecvStream>, respond: SendResponse<Bytes>) {
        let span = tracing::debug_span!("holdfast.rpc.serve", rpc = request.uri().path());
        if !span.is_disabled() {
            trace_context::accept(&span, request.headers());
        }
        let answered = async {
            match request.uri().path() {
                CALL => self.call(request, respond).await,
                // In boxes of their own, so that the call above does not carry their size.
                path if is_of(&self.cells, path) => {
                    Box::pin(tonic(self.cells.clone(), request, respond)).await
                }
                path if is_of(&self.nodes, path) => {
                    Box::pin(tonic(self.nodes.clone(), request, respond)).await
                }
                _ => refuse(respond, &Status::unimplemented("there is no such call")),
            }
        };
        if let Err(error) = answered.instrument(span).await {
            tracing::debug!(%error, "an answer was not wanted any more");
        }
    }
}

/// Whether a path is one of a service's.
pub(super) fn is_of<S: NamedService>(_: &S, path: &str) -> bool {
    path.strip_prefix('/')
        .and_then(|path| path.strip_prefix(S::NAME))
        .is_some_and(|rest| rest.starts_with('/'))
}

/// What the future resolves to, unless the peer gives the stream up first.
pub(super) async fn unless_reset<T>(
    mut poll_reset: impl FnMut(&mut Context<'_>) -> Poll<Result<Reason, h2::Error>>,
    future: impl Future<Output = T>,
) -> Result<T, h2::Error> {
    let mut future = pin!(future);
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Ok(value)),
        Poll::Pending => Poll::Ready(Err(match ready!(poll_reset(cx)) {
            Ok(reason) => reason.into(),
            Err(error) => error,
        })),
    })
    .await
}

/// Answers that there is no answer.
pub(super) fn refuse(mut respond: SendResponse<Bytes>, status: &Status) -> Result<(), h2::Error> {
    let mut head = Response::new(());
    *head.headers_mut() = grpc::trailers_failed(status);
    head.headers_mut().insert(CONTENT_TYPE, grpc::CONTENT_TYPE);
    respond.send_response(head, true)?;
    Ok(())
}

/// Sends an answer. One that is whole in its first message needs no wait: with the head and the status it is queued at
/// once, and written at once.
async fn send(mut respond: SendResponse<Bytes>, mut replies: ReplyStream) -> Result<(), h2::Error> {
    let mut head = Response::new(());
    head.headers_mut().insert(CONTENT_TYPE, grpc::CONTENT_TYPE);
    let mut stream = respond.send_response(head, false)?;
    let mut is_first = true;
    loop {
        match unless_reset(|cx| stream.poll_reset(cx), replies.next()).await? {
            Some(Ok(reply)) if is_first => stream.send_data(grpc::encode(&reply), false)?,
            Some(Ok(reply)) => grpc::send(&mut stream, grpc::encode(&reply)).await?,
            Some(Err(status)) => return stream.send_trailers(grpc::trailers_failed(&status)),
            None => return stream.send_trailers(grpc::trailers_ok()),
        }
        is_first = false;
    }
}

/// Has one of tonic's services answer.
pub(super) async fn tonic<S>(
    mut service: S,
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
) -> Result<(), h2::Error>
where
    S: Service<Request<Received>, Response = Response<tonic::body::Body>, Error = Infallible>,
{
    let answer = service.call(request.map(Received));
    let Ok(answer) = unless_reset(|cx| respond.poll_reset(cx), answer).await?;
    let (parts, mut body) = answer.into_parts();
    let is_bare = body.is_end_stream();
    let mut stream = respond.send_response(Response::from_parts(parts, ()), is_bare)?;
    if is_bare {
        return Ok(());
    }
    loop {
        let Some(frame) = unless_reset(|cx| stream.poll_reset(cx), body.frame()).await? else {
            return stream.send_data(Bytes::new(), true);
        };
        match frame.map(Frame::into_data) {
            Ok(Ok(data)) => grpc::send(&mut stream, data).await?,
            Ok(Err(frame)) => return stream.send_trailers(frame.into_trailers().unwrap_or_default()),
            Err(status) => return stream.send_trailers(grpc::trailers_failed(&status)),
        }
    }
}

/// A request's body as it arrives.
pub(super) struct Received(RecvStream);

impl Body for Received {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        match ready!(self.0.poll_data(cx)) {
            Some(Ok(data)) => {
                // Taken in at once: tonic asks for more only once it has no whole message.
                let _ = self.0.flow_control().release_capacity(data.len());
                Poll::Ready(Some(Ok(Frame::data(data))))
            }
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            None => match ready!(self.0.poll_trailers(cx))? {
                Some(trailers) => Poll::Ready(Some(Ok(Frame::trailers(trailers)))),
                None => Poll::Ready(None),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }
}
