//! The body of an answer: pieces until the mark of the end. Without the mark it is broken, and says so.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::Stream as _;
use http_body::{Frame, SizeHint};
use tonic::{Status, Streaming};

use super::upload::Interest;
use crate::grpc::Messages;
use crate::{BodyError, proto};

/// Longest wait for the end of an answer that is whole.
const END_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) struct Download {
    replies: Option<Replies>,
    first: Bytes,
    interest: Option<Interest>,
}

impl Download {
    /// A body that goes on after the first message.
    pub(super) fn new(first: Bytes, replies: Option<Replies>, interest: Option<Interest>) -> Self {
        Self { replies, first, interest }
    }
}

/// The messages of an answer, as they come from either kind of connection.
pub(super) enum Replies {
    /// Of a call in one message.
    Whole(Messages<proto::CallReply>),
    /// Of a call that streams.
    Streaming(Streaming<proto::CallReply>),
}

impl Replies {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<proto::CallReply, Status>>> {
        match self {
            Self::Whole(replies) => Pin::new(replies).poll_next(cx),
            Self::Streaming(replies) => Pin::new(replies).poll_next(cx),
        }
    }

    /// Waits for the end of the answer, which is on its way with the last message: a stream that is dropped before its end
    /// is reset, and a connection that resets many of them is closed by its peer's or its own guard.
    pub(super) async fn finish(mut self) {
        let end = poll_fn(|cx| self.poll_next(cx));
        // A peer that keeps the end back is not waited for: the answer itself is whole.
        let _ = tokio::time::timeout(END_TIMEOUT, end).await;
    }

    /// Reads the end if it is there already.
    fn finish_now(mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        let _ = self.poll_next(&mut cx);
    }
}

impl http_body::Body for Download {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        if !this.first.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.first)))));
        }
        loop {
            let Some(replies) = &mut this.replies else { return Poll::Ready(None) };
            let broken = match ready!(replies.poll_next(cx)) {
                Some(Ok(proto::CallReply { head: _, refusal: None, chunk, end, proceed })) => {
                    if let (true, Some(interest)) = (proceed, &this.interest) {
                        interest.held().proceed();
                    }
                    if end && let Some(replies) = this.replies.take() {
                        replies.finish_now();
                    }
                    if chunk.is_empty() {
                        continue;
                    }
                    return Poll::Ready(Some(Ok(Frame::data(chunk))));
                }
                Some(Ok(proto::CallReply { refusal: Some(_), .. })) => "a refusal after the head".to_owned(),
                Some(Err(status)) => status.message().to_owned(),
                None => "it ended before its end".to_owned(),
            };
            this.replies = None;
            return Poll::Ready(Some(Err(format!("the cell's answer broke: {broken}").into())));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_empty() && self.replies.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let len = u64::try_from(self.first.len()).expect("a message is small");
        if self.replies.is_none() {
            return SizeHint::with_exact(len);
        }
        let mut hint = SizeHint::new();
        hint.set_lower(len);
        hint
    }
}
