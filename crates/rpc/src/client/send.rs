//! One call: whole bodies in one message, others as a stream, and the sorting of every failure.

use std::error::Error as _;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::Either;
use holdfast_types::{CellName, Epoch, Position, Txid};
use http::{Uri, request};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Full};
use tokio::time::{Instant, timeout_at};
use tonic::{Request, Response, Status, Streaming};

use super::channel::{Channel, ChannelError};
use super::download::{Download, finish};
use super::pool::Pool;
use super::upload::{Held, Interest, Parts};
use super::{ForwardError, Peer};
use crate::proto::cell_service_client::CellServiceClient;
use crate::{Access, Body, CallError, CellCall, CellReply, convert, limits, proto};

/// A request without its body.
struct Envelope {
    cell: CellName,
    access: Access,
    parts: request::Parts,
    deadline: Instant,
}

/// A body on its way: what can be given back when the handler did not run.
enum Cargo {
    Whole(Bytes),
    Held(Interest),
}

impl Cargo {
    fn take_back(&self) -> Option<Body> {
        match self {
            Self::Whole(bytes) => Some(whole_body(bytes.clone())),
            Self::Held(interest) => interest.held().take_back(),
        }
    }

    fn interest(self) -> Option<Interest> {
        match self {
            Self::Whole(_) => None,
            Self::Held(interest) => Some(interest),
        }
    }
}

fn whole_body(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

impl Envelope {
    fn with(self, body: Option<Body>) -> Option<Box<CellCall>> {
        let Self { cell, access, parts, deadline } = self;
        let request = http::Request::from_parts(parts, body?);
        Some(Box::new(CellCall { cell, access, request, deadline }))
    }

    fn grpc<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(self.deadline.saturating_duration_since(Instant::now()));
        request
    }
}

pub(super) async fn send(pool: &Pool, peer: &Peer, call: CellCall) -> Result<CellReply, ForwardError> {
    let CellCall { cell, access, request, deadline } = call;
    let (parts, body) = request.into_parts();
    let envelope = Envelope { cell, access, parts, deadline };
    let cargo = load(body, deadline).await?;
    let channel = match timeout_at(deadline, pool.channel(peer)).await {
        Ok(Ok(channel)) => channel,
        Ok(Err(reason)) => return Err(never_sent(reason, envelope, &cargo)),
        Err(_) => return Err(never_sent("not connected before the deadline".into(), envelope, &cargo)),
    };
    match timeout_at(deadline, exchange(channel, &envelope, &cargo)).await {
        Ok(Ok((first, replies))) => receive(first, replies, envelope, cargo),
        Ok(Err(Failure::NeverSent(reason))) => Err(never_sent(reason, envelope, &cargo)),
        Ok(Err(Failure::MayHaveRun(reason))) => Err(ForwardError::MayHaveRun { reason }),
        Err(_) => {
            Err(ForwardError::MayHaveRun { reason: format!("no answer from {peer} before the deadline") })
        }
    }
}

fn never_sent(reason: String, envelope: Envelope, cargo: &Cargo) -> ForwardError {
    ForwardError::NeverSent { reason, call: envelope.with(cargo.take_back()) }
}

/// Reads a body that is known to be small; any other is held for the stream.
async fn load(body: Body, deadline: Instant) -> Result<Cargo, ForwardError> {
    let max = u64::try_from(limits::WHOLE_BODY_LEN_MAX).expect("a small number");
    if body.size_hint().upper().is_none_or(|len| len > max) {
        return Ok(Cargo::Held(Interest::new(Held::new(body))));
    }
    let broken = |reason: String| ForwardError::BodyBroken { reason };
    match timeout_at(deadline, body.collect()).await {
        Ok(Ok(collected)) => {
            let bytes = collected.to_bytes();
            assert!(bytes.len() <= limits::WHOLE_BODY_LEN_MAX, "a body is longer than its own upper bound");
            Ok(Cargo::Whole(bytes))
        }
        Ok(Err(error)) => Err(broken(error.to_string())),
        Err(_) => Err(broken("it did not arrive before the deadline".into())),
    }
}

enum Failure {
    NeverSent(String),
    MayHaveRun(String),
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        match status.source().and_then(|source| source.downcast_ref::<ChannelError>()) {
            Some(ChannelError::NeverSent(reason)) => Self::NeverSent(reason.clone()),
            Some(ChannelError::MayHaveRun(reason)) => Self::MayHaveRun(reason.clone()),
            None => Self::MayHaveRun(format!("{}: {}", status.code(), status.message())),
        }
    }
}

type Replies = Streaming<proto::CallReply>;

/// Sends, and waits for the first message that is not `proceed`.
async fn exchange(
    channel: Channel,
    envelope: &Envelope,
    cargo: &Cargo,
) -> Result<(proto::CallReply, Replies), Failure> {
    // The authority means nothing: the certificate already says who answers.
    let origin = Uri::from_static("https://cellnode.holdfast.internal");
    let mut client = CellServiceClient::with_origin(channel, origin)
        .max_decoding_message_size(limits::MESSAGE_LEN_MAX)
        .max_encoding_message_size(limits::MESSAGE_LEN_MAX);
    let head = convert::head_to_wire(&envelope.cell, envelope.access, &envelope.parts);
    let answer = match cargo {
        Cargo::Whole(bytes) => {
            let message = proto::CallRequest { head: Some(head), body: bytes.clone() };
            Either::Left(client.call(envelope.grpc(message)))
        }
        Cargo::Held(interest) => {
            let mut request = envelope.grpc(Parts::new(head, Arc::clone(interest.held())));
            request.extensions_mut().insert(Arc::clone(interest.held()));
            Either::Right(client.call_streaming(request))
        }
    };
    let answer: Response<Replies> = match answer {
        Either::Left(answer) => answer.await?,
        Either::Right(answer) => answer.await?,
    };
    let mut replies = answer.into_inner();
    loop {
        let message = replies.message().await?;
        let message =
            message.ok_or_else(|| Failure::MayHaveRun("the node closed without an answer".into()))?;
        if !message.proceed {
            return Ok((message, replies));
        }
        if let Cargo::Held(interest) = cargo {
            interest.held().proceed();
        }
    }
}

fn receive(
    message: proto::CallReply,
    replies: Replies,
    envelope: Envelope,
    cargo: Cargo,
) -> Result<CellReply, ForwardError> {
    let proto::CallReply { head, refusal, chunk, end, proceed: _ } = message;
    if let Some(refusal) = refusal {
        finish(replies);
        return Err(match convert::refusal_from_wire(refusal) {
            CallError::OutcomeUnknown { reason } => ForwardError::MayHaveRun { reason },
            error => ForwardError::Refused { error, call: envelope.with(cargo.take_back()) },
        });
    }
    let may_have_run = |reason: String| ForwardError::MayHaveRun { reason };
    let head = head.ok_or_else(|| may_have_run("the node's answer has no head".into()))?;
    let proto::ReplyHead { status, headers, epoch, txid } = head;
    let response = convert::reply_from_wire(status, headers).map_err(|e| may_have_run(e.to_string()))?;
    let replies = if end {
        finish(replies);
        None
    } else {
        Some(replies)
    };
    let body = Download::new(chunk, replies, cargo.interest()).boxed_unsync();
    let position = Position { epoch: Epoch::new(epoch), txid: Txid::new(txid) };
    Ok(CellReply { response: response.map(|()| body), position })
}
