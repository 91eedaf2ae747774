//! A request's body on its way in: counted against the bound, and drained when nobody wants it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use holdfast_rpc::BodyError;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;

/// Longest wait for a body that is read only to be thrown away.
const DISCARD_TIME_MAX: Duration = Duration::from_secs(2);

/// Remembers that a body was larger than allowed, for the answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct TooLarge(Arc<AtomicBool>);

impl TooLarge {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A body that breaks when it grows past a bound.
pub(crate) struct Bounded<B> {
    body: B,
    left: u64,
    too_large: TooLarge,
}

impl<B> Bounded<B> {
    pub(crate) fn new(body: B, max: u64) -> (Self, TooLarge) {
        let too_large = TooLarge::default();
        (Self { body, left: max, too_large: too_large.clone() }, too_large)
    }
}

impl<B> Body for Bounded<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BodyError>,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
            None => return Poll::Ready(None),
        };
        let len = frame.data_ref().map_or(0, Bytes::len);
        match self.left.checked_sub(u64::try_from(len).expect("a frame is small")) {
            Some(left) => self.left = left,
            None => {
                self.too_large.0.store(true, Ordering::Release);
                return Poll::Ready(Some(Err("the request's body is too large".into())));
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Reads a body to its end and drops it, so that the answer is read by a client that is still sending, and the
/// connection can be used again. Gives up past a size or a time; the connection then closes after the answer.
pub(crate) async fn discard<B>(mut body: B, len_max: u64)
where
    B: Body<Data = Bytes> + Unpin,
{
    let read = async {
        let mut left = len_max;
        while let Some(Ok(frame)) = body.frame().await {
            let len = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(u64::try_from(len).expect("a frame is small")) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    };
    // Late is as good as never: there is nothing to do with the rest.
    let _ = tokio::time::timeout(DISCARD_TIME_MAX, read).await;
}
