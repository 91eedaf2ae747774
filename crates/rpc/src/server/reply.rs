//! The stream of reply messages: `proceed` when the handler reads, then a head with the first piece of the body, then
//! the rest, with a mark on the last. A body that breaks ends the stream with a status, never with the mark.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::Stream;
use http_body::Body as _;
use tonic::Status;

use super::upload::Touch;
use crate::{Body, CallError, CellReply, convert, limits, proto};

type Answer = Pin<Box<dyn Future<Output = Result<CellReply, CallError>> + Send>>;
type Message = Result<proto::CallReply, Status>;

pub(super) struct ReplyStream {
    touch: Option<Arc<Touch>>,
    state: State,
}

enum State {
    /// The handler runs.
    Running(Answer),
    /// The head is still to be sent, with what is ready of the body.
    Head(proto::ReplyHead, Body),
    /// The head is sent; `Bytes` is what remains of a piece that was too large for one message.
    Rest(Body, Bytes),
    Refused(CallError),
    Done,
}

impl ReplyStream {
    /// A reply that is there already.
    pub(super) fn ready(answer: Result<CellReply, CallError>) -> Self {
        Self { touch: None, state: State::of(answer) }
    }

    /// A reply that the handler makes while the stream is polled. Dropping the stream cancels it.
    pub(super) fn running(answer: Answer, touch: Arc<Touch>) -> Self {
        Self { touch: Some(touch), state: State::Running(answer) }
    }
}

impl State {
    fn of(answer: Result<CellReply, CallError>) -> Self {
        match answer {
            Ok(CellReply { response, thrown, position }) => {
                let (parts, body) = response.into_parts();
                let thrown = thrown.map(|thrown| *thrown);
                Self::Head(convert::reply_to_wire(&parts, thrown, position), body)
            }
            Err(error) => Self::Refused(error),
        }
    }

    fn poll(self, cx: &mut Context<'_>) -> (Self, Poll<Option<Message>>) {
        match self {
            Self::Running(mut answer) => match answer.as_mut().poll(cx) {
                Poll::Ready(answer) => Self::of(answer).poll(cx),
                Poll::Pending => (Self::Running(answer), Poll::Pending),
            },
            Self::Refused(error) => {
                let refusal = Some(convert::refusal_to_wire(error));
                (Self::Done, message(proto::CallReply { refusal, ..Default::default() }))
            }
            Self::Head(head, body) => send_head(head, body, cx),
            Self::Rest(mut body, pending) => match poll_piece(&mut body, pending, cx) {
                Poll::Pending => (Self::Rest(body, Bytes::new()), Poll::Pending),
                Poll::Ready(piece) => send_piece(None, body, piece),
            },
            Self::Done => (Self::Done, Poll::Ready(None)),
        }
    }
}

/// A body that has nothing ready must not hold back the head.
fn send_head(head: proto::ReplyHead, mut body: Body, cx: &mut Context<'_>) -> (State, Poll<Option<Message>>) {
    match poll_piece(&mut body, Bytes::new(), cx) {
        Poll::Pending => {
            let first = proto::CallReply { head: Some(head), ..Default::default() };
            (State::Rest(body, Bytes::new()), message(first))
        }
        Poll::Ready(piece) => send_piece(Some(head), body, piece),
    }
}

/// A piece of a body, and whether it is known to be the last.
struct Piece {
    chunk: Bytes,
    rest: Bytes,
    end: bool,
}

fn send_piece(
    head: Option<proto::ReplyHead>,
    body: Body,
    piece: Result<Piece, Status>,
) -> (State, Poll<Option<Message>>) {
    match piece {
        Ok(Piece { chunk, rest, end }) => {
            let reply = proto::CallReply { head, refusal: None, chunk, end, proceed: false };
            (if end { State::Done } else { State::Rest(body, rest) }, message(reply))
        }
        Err(status) => (State::Done, Poll::Ready(Some(Err(status)))),
    }
}

fn message(reply: proto::CallReply) -> Poll<Option<Message>> {
    Poll::Ready(Some(Ok(reply)))
}

fn poll_piece(body: &mut Body, pending: Bytes, cx: &mut Context<'_>) -> Poll<Result<Piece, Status>> {
    let mut chunk = pending;
    while chunk.is_empty() {
        match ready!(Pin::new(&mut *body).poll_frame(cx)) {
            // Trailers are dropped: no part of the product has a use for them.
            Some(Ok(frame)) => chunk = frame.into_data().unwrap_or_default(),
            Some(Err(error)) => {
                tracing::debug!(%error, "a reply's body broke");
                return Poll::Ready(Err(Status::aborted(format!("the body broke: {error}"))));
            }
            None => return Poll::Ready(Ok(Piece { chunk, rest: Bytes::new(), end: true })),
        }
    }
    let max = if body.is_end_stream() { limits::WHOLE_BODY_LEN_MAX } else { limits::CHUNK_LEN_MAX };
    let rest = if chunk.len() > max { chunk.split_off(limits::CHUNK_LEN_MAX) } else { Bytes::new() };
    let end = rest.is_empty() && body.is_end_stream();
    Poll::Ready(Ok(Piece { chunk, rest, end }))
}

impl Stream for ReplyStream {
    type Item = Message;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Message>> {
        let state = std::mem::replace(&mut self.state, State::Done);
        let (state, poll) = state.poll(cx);
        let done = matches!(state, State::Done);
        self.state = state;
        if let Poll::Ready(Some(_)) = poll {
            return poll;
        }
        // After the handler was polled, since that is what touches the body.
        if !done && self.touch.as_ref().is_some_and(|touch| touch.poll(cx)) {
            self.touch = None;
            return message(proto::CallReply { proceed: true, ..Default::default() });
        }
        poll
    }
}
