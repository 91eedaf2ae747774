//! Whoever waits for an event's answer: while the answer is not out, going away ends the event.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use holdfast_js::EventId;
use holdfast_rpc::{Body, BodyError, whole_body};
use http::Response;
use http_body::Frame;
use http_body_util::BodyExt as _;

use super::body::{Download, Outgoing};
use super::message::{Message, Post};

/// Tells the event's thread when it is dropped before the answer is out.
pub(super) struct Caller {
    post: Post,
    event: EventId,
    waits: bool,
}

impl Caller {
    pub(super) fn new(post: Post, event: EventId) -> Self {
        Self { post, event, waits: true }
    }

    /// There is nothing more to come.
    pub(super) fn end(mut self) {
        self.waits = false;
    }

    /// The answer, whose body is waited for until it ends.
    pub(super) fn attend(self, answer: Response<Outgoing>) -> Response<Body> {
        answer.map(|body| match body {
            Outgoing::Whole(bytes) => {
                self.end();
                whole_body(bytes)
            }
            Outgoing::Socket(body) => {
                self.end();
                body
            }
            Outgoing::Stream(download) => Attended { download, caller: self }.boxed_unsync(),
        })
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        if self.waits {
            self.post.send(Message::Gone(self.event));
        }
    }
}

struct Attended {
    download: Download,
    caller: Caller,
}

impl http_body::Body for Attended {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = Pin::new(&mut self.download).poll_frame(cx);
        if matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            self.caller.waits = false;
        }
        frame
    }
}
