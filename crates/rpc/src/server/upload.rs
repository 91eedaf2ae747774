//! A streamed request body on the server: pieces as they arrive, asked for by the handler's first read.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::Stream as _;
use futures::task::AtomicWaker;
use http_body::{Frame, SizeHint};
use tonic::Streaming;

use crate::{BodyError, proto};

/// Tells the reply stream that the handler began to read, from whichever thread it reads on.
#[derive(Debug, Default)]
pub(super) struct Touch {
    touched: AtomicBool,
    waker: AtomicWaker,
}

impl Touch {
    fn set(&self) {
        if !self.touched.swap(true, Ordering::AcqRel) {
            self.waker.wake();
        }
    }

    /// Whether the body was read; wakes the task otherwise when it is.
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> bool {
        self.waker.register(cx.waker());
        self.touched.load(Ordering::Acquire)
    }
}

pub(super) struct Upload {
    parts: Streaming<proto::CallPart>,
    touch: Arc<Touch>,
    len: Option<u64>,
    ended: bool,
}

impl Upload {
    pub(super) fn new(parts: Streaming<proto::CallPart>, touch: Arc<Touch>, len: Option<u64>) -> Self {
        Self { parts, touch, len, ended: false }
    }
}

impl http_body::Body for Upload {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.touch.set();
        loop {
            if self.ended {
                return Poll::Ready(None);
            }
            let part = match ready!(Pin::new(&mut self.parts).poll_next(cx)) {
                Some(Ok(part)) => part,
                Some(Err(status)) => {
                    self.ended = true;
                    return Poll::Ready(Some(Err(format!("the caller's body broke: {status}").into())));
                }
                None => {
                    self.ended = true;
                    return Poll::Ready(Some(Err("the caller's body broke off".into())));
                }
            };
            let proto::CallPart { head: _, chunk, end } = part;
            self.ended = end;
            if !chunk.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(chunk))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }

    fn size_hint(&self) -> SizeHint {
        self.len.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
