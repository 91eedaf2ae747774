//! One call: whole bodies in one message, others as a stream, and the sorting of every failure.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use holdfast_types::{CellName, Epoch, Position, Txid};
use http::{Uri, request};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use tokio::time::{Instant, timeout_at};
use tonic::{Request, Status};

use super::channel::{Channel, ChannelError};
use super::download::{Download, Replies};
use super::link::Link;
use super::pool::Pool;
use super::upload::{Held, Interest, Parts};
use super::{ForwardError, Peer};
use crate::grpc::{self, Messages};
use crate::proto::cell_service_client::CellServiceClient;
use crate::{Access, Body, CallError, CellCall, CellReply, ObjectCall, convert, limits, proto, whole_body};

/// A request without its body.
struct Envelope {
    cell: CellName,
    access: Access,
    parts: request::Parts,
    object: ObjectCall,
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

impl Envelope {
    fn with(self, body: Option<Body>) -> Option<Box<CellCall>> {
        let Self { cell, access, parts, object, deadline } = self;
        let request = http::Request::from_parts(parts, body?);
        Some(Box::new(CellCall { cell, access, request, object, deadline }))
    }

    fn head(&self) -> proto::CallHead {
        convert::head_to_wire(&self.cell, self.access, &self.object, &self.parts)
    }

    fn wait(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

pub(super) async fn send(pool: &Pool, peer: &Peer, call: CellCall) -> Result<CellReply, ForwardError> {
    let CellCall { cell, access, request, object, deadline } = call;
    let (parts, body) = request.into_parts();
    let envelope = Envelope { cell, access, parts, object, deadline };
    let cargo = load(body, deadline).await?;
    let mut is_connected = false;
    let answered = timeout_at(deadline, async {
        match &cargo {
            Cargo::Whole(bytes) => {
                let link = match pool.live_link(peer) {
                    Some(link) => link,
                    None => Box::pin(pool.link(peer)).await.map_err(Failure::NeverSent)?,
                };
                is_connected = true;
                exchange_whole(&link, &envelope, bytes).await
            }
            Cargo::Held(interest) => {
                let channel = if envelope.object.is_socket {
                    Box::pin(pool.socket_channel(peer)).await
                } else {
                    Box::pin(pool.channel(peer)).await
                };
                let channel = channel.map_err(Failure::NeverSent)?;
                is_connected = true;
                // In a box, so that a call in one message does not carry its size.
                Box::pin(exchange(channel, &envelope, interest)).await
            }
        }
    });
    let answered = answered.await;
    match answered {
        Ok(Ok((first, replies))) => receive(first, replies, envelope, cargo).await,
        // Whoever could not connect said to whom.
        Ok(Err(Failure::NeverSent(reason))) if !is_connected => Err(never_sent(reason, envelope, &cargo)),
        Ok(Err(Failure::NeverSent(reason))) => {
            let reason = asked(&envelope, peer, &reason);
            Err(never_sent(reason, envelope, &cargo))
        }
        Ok(Err(Failure::MayHaveRun(reason))) => {
            Err(ForwardError::MayHaveRun { reason: asked(&envelope, peer, &reason) })
        }
        Ok(Err(Failure::NotKnown)) => {
            let reason = format!("{peer} runs a release that has no sessions of RPC: upgrade it");
            let error = CallError::Rejected { status: http::StatusCode::NOT_IMPLEMENTED, reason };
            Err(ForwardError::Refused { error, call: None })
        }
        Err(_) if !is_connected => {
            Err(never_sent(format!("no connection with {peer} before the deadline"), envelope, &cargo))
        }
        Err(_) => {
            let reason = asked(&envelope, peer, "no answer before the deadline");
            Err(ForwardError::MayHaveRun { reason })
        }
    }
}

/// What went wrong, with what was asked of whom.
fn asked(envelope: &Envelope, peer: &Peer, reason: &str) -> String {
    format!("a request for `{}`, asked of {peer}: {reason}", envelope.cell)
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

pub(super) enum Failure {
    NeverSent(String),
    MayHaveRun(String),
    /// The peer's release does not know what it was asked.
    NotKnown,
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

impl From<ChannelError> for Failure {
    fn from(error: ChannelError) -> Self {
        match error {
            ChannelError::NeverSent(reason) => Self::NeverSent(reason),
            ChannelError::MayHaveRun(reason) => Self::MayHaveRun(reason),
        }
    }
}

fn no_answer() -> Failure {
    Failure::MayHaveRun("the node closed without an answer".into())
}

/// Sends a request in one message, and waits for the first of the answer.
async fn exchange_whole(
    link: &Link,
    envelope: &Envelope,
    body: &Bytes,
) -> Result<(proto::CallReply, Replies), Failure> {
    let head = envelope.head();
    let message = grpc::encode(&proto::CallRequest { head: Some(head), body: body.clone() });
    let answer = link.call(message, envelope.wait()).await?;
    let mut replies = Messages::of_answer(answer)?;
    let first = replies.next().await.ok_or_else(no_answer)??;
    Ok((first, Replies::Whole(replies)))
}

/// Sends a request as a stream, and waits for the first message that is not `proceed`.
async fn exchange(
    channel: Channel,
    envelope: &Envelope,
    interest: &Interest,
) -> Result<(proto::CallReply, Replies), Failure> {
    // The authority means nothing: the certificate already says who answers.
    let origin = Uri::from_static("https://cellnode.holdfast.internal");
    let mut client = CellServiceClient::with_origin(channel, origin)
        .max_decoding_message_size(limits::MESSAGE_LEN_MAX)
        .max_encoding_message_size(limits::MESSAGE_LEN_MAX);
    let head = envelope.head();
    let mut request = Request::new(Parts::new(head, Arc::clone(interest.held())));
    request.set_timeout(envelope.wait());
    request.extensions_mut().insert(Arc::clone(interest.held()));
    let replies = if envelope.object.session.is_some() {
        client.session(request).await.map_err(|status| match status.code() {
            tonic::Code::Unimplemented => Failure::NotKnown,
            _ => Failure::from(status),
        })
    } else {
        client.call_streaming(request).await.map_err(Failure::from)
    };
    let mut replies = replies?.into_inner();
    loop {
        let message = replies.message().await?.ok_or_else(no_answer)?;
        if !message.proceed {
            return Ok((message, Replies::Streaming(replies)));
        }
        interest.held().proceed();
    }
}

async fn receive(
    message: proto::CallReply,
    replies: Replies,
    envelope: Envelope,
    cargo: Cargo,
) -> Result<CellReply, ForwardError> {
    let proto::CallReply { head, refusal, chunk, end, proceed: _ } = message;
    if let Some(refusal) = refusal {
        replies.finish().await;
        return Err(match convert::refusal_from_wire(refusal) {
            CallError::OutcomeUnknown { reason } => ForwardError::MayHaveRun { reason },
            error => ForwardError::Refused { error, call: envelope.with(cargo.take_back()) },
        });
    }
    let may_have_run = |reason: String| ForwardError::MayHaveRun { reason };
    let head = head.ok_or_else(|| may_have_run("the node's answer has no head".into()))?;
    let proto::ReplyHead { status, headers, epoch, txid, thrown } = head;
    let thrown = thrown.map(|thrown| Box::new(convert::thrown_from_wire(thrown)));
    let response = convert::reply_from_wire(status, headers).map_err(|e| may_have_run(e.to_string()))?;
    let replies = if end {
        replies.finish().await;
        None
    } else {
        Some(replies)
    };
    let body = Download::new(chunk, replies, cargo.interest()).boxed_unsync();
    let position = Position { epoch: Epoch::new(epoch), txid: Txid::new(txid) };
    Ok(CellReply { response: response.map(|()| body), thrown, position })
}
