//! What an isolate waits for, done on the runtime that does I/O.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use holdfast_js::{IncomingBodyId, JsError, OutgoingConnection, OutgoingRequest};
use holdfast_outbound::{FetchFrom, ObjectTarget, Outbound, incoming_response, outgoing_request};
use holdfast_rpc::{Body, ObjectCall, whole_body};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::message::Outcome;

impl From<Result<Outcome, JsError>> for Outcome {
    fn from(result: Result<Self, JsError>) -> Self {
        result.unwrap_or_else(Self::Failed)
    }
}

/// A request to a server, or for a static file.
pub(super) async fn fetch(
    outbound: Outbound,
    from: Result<FetchFrom, JsError>,
    request: OutgoingRequest,
    body: Body,
) -> Outcome {
    let exchange = async {
        let head = outgoing_request(&request)?;
        let head = head.map(|()| body);
        let fetched = match request.socket {
            Some(_) => outbound.open_socket_from(from?, head).await?,
            None => outbound.fetch_from(from?, head, request.redirect).await?,
        };
        let (parts, body) = fetched.response.into_parts();
        let head = incoming_response(&parts, fetched.url, fetched.redirected);
        Ok(Outcome::Response(Box::new(head), body))
    };
    exchange.await.into()
}

/// A request to an object's `fetch`.
pub(super) async fn fetch_object(
    outbound: Outbound,
    (target, object): (ObjectTarget, ObjectCall),
    request: OutgoingRequest,
    body: Body,
    timeout: Duration,
) -> Outcome {
    let call = async {
        let head = outgoing_request(&request)?;
        let deadline = Instant::now() + timeout;
        let reply = outbound.call_object(target, head.map(|()| body), object, deadline).await?;
        let (parts, body) = reply.response.into_parts();
        Ok(Outcome::Response(Box::new(incoming_response(&parts, request.url, false)), body))
    };
    call.await.into()
}

/// A call of an object's method.
pub(super) async fn call_object(
    outbound: Outbound,
    (target, object): (ObjectTarget, ObjectCall),
    args: Bytes,
    timeout: Duration,
) -> Outcome {
    let call = async {
        let mut request = Request::new(whole_body(args));
        *request.method_mut() = Method::POST;
        let deadline = Instant::now() + timeout;
        let reply = outbound.call_object(target, request, object, deadline).await?;
        Ok(Outcome::Returned(reply.into_result().await?))
    };
    call.await.into()
}

/// A session of RPC with an object. `said` is what this end says on it.
pub(super) async fn open_session(
    outbound: Outbound,
    (target, object): (ObjectTarget, ObjectCall),
    said: Body,
    timeout: Duration,
) -> Outcome {
    let call = async {
        let deadline = Instant::now() + timeout;
        let reply = outbound.call_object(target, Request::new(said), object, deadline).await?;
        let (parts, body) = reply.response.into_parts();
        Ok(Outcome::Response(Box::new(incoming_response(&parts, String::new(), false)), body))
    };
    call.await.into()
}

/// Statements for a database.
pub(super) async fn query_database(
    outbound: Outbound,
    database: String,
    request: Bytes,
    timeout: Duration,
) -> Outcome {
    let answer = outbound.query_database(&database, request, Instant::now() + timeout).await;
    answer.map(Outcome::Returned).into()
}

/// A request to an R2 bucket.
pub(super) async fn ask_bucket(outbound: Outbound, bucket: String, request: Bytes, body: Body) -> Outcome {
    let reply = outbound.ask_bucket(&bucket, &request, body).await;
    reply.map(|reply| Outcome::Object(reply.head, reply.body)).into()
}

/// A request to the caches of this program.
pub(super) async fn ask_cache(outbound: Outbound, request: Bytes, body: Body) -> Outcome {
    let reply = outbound.ask_cache(&request, body).await;
    reply.map(|reply| Outcome::Object(reply.head, reply.body)).into()
}

/// A TCP connection. `said` is what is written to it.
pub(super) async fn connect(outbound: Outbound, connection: OutgoingConnection, said: Body) -> Outcome {
    let connected = outbound.open_connection(connection, said).await;
    connected.map(|connected| Outcome::Object(connected.key, connected.heard)).into()
}

/// The next chunk of a body.
pub(super) async fn read(id: IncomingBodyId, mut body: Body) -> Outcome {
    loop {
        match body.frame().await {
            None => return Outcome::Read(id, None, body),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if !data.is_empty() => return Outcome::Read(id, Some(data), body),
                // Trailers end here.
                Ok(_) | Err(_) => {}
            },
            Some(Err(error)) => return Outcome::Failed(JsError::new(format!("the body broke: {error}"))),
        }
    }
}

/// The next chunk of a body where it is there already, or the body.
pub(super) fn read_now(id: IncomingBodyId, mut body: Body) -> Result<Outcome, Body> {
    match body.frame().now_or_never() {
        None => Err(body),
        Some(None) => Ok(Outcome::Read(id, None, body)),
        Some(Some(Ok(frame))) => match frame.into_data() {
            Ok(data) if !data.is_empty() => Ok(Outcome::Read(id, Some(data), body)),
            Ok(_) | Err(_) => Err(body),
        },
        Some(Some(Err(error))) => Ok(Outcome::Failed(JsError::new(format!("the body broke: {error}")))),
    }
}

/// Hands a chunk to its reader once that has room.
pub(super) async fn write(sender: mpsc::Sender<Bytes>, chunk: Bytes) -> Outcome {
    match sender.send(chunk).await {
        Ok(()) => Outcome::Written,
        Err(_) => reader_gone(),
    }
}

/// Hands a chunk to its reader where that has room, or gives it back.
pub(super) fn write_now(sender: &mpsc::Sender<Bytes>, chunk: Bytes) -> Result<Outcome, Bytes> {
    match sender.try_send(chunk) {
        Ok(()) => Ok(Outcome::Written),
        Err(mpsc::error::TrySendError::Closed(_)) => Ok(reader_gone()),
        Err(mpsc::error::TrySendError::Full(chunk)) => Err(chunk),
    }
}

pub(super) fn reader_gone() -> Outcome {
    Outcome::Failed(JsError::new("The reader of the body has gone."))
}
