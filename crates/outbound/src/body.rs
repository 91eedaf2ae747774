//! Bodies on their way: one that ends when its sender falls silent, one that begins with what was already read of it,
//! and one that is collected up to a bound.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::FutureExt as _;
use holdfast_js::JsError;
use holdfast_rpc::{Body, BodyError, whole_body};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use tokio::time::{Instant, Sleep};

/// All of a body.
///
/// # Errors
/// It broke, or has more than `len_max` bytes.
pub async fn read_whole(mut body: Body, len_max: usize) -> Result<Bytes, JsError> {
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| JsError::new(format!("the body broke: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if all.len() + data.len() > len_max {
            return Err(JsError::new(format!("the body has more than {len_max} bytes")));
        }
        if all.is_empty() && body.is_end_stream() {
            return Ok(data);
        }
        all.extend_from_slice(&data);
    }
    Ok(all.freeze())
}

/// A request's body, apart by whether it can be sent a second time.
pub(crate) enum Upload {
    /// All of it is here.
    Whole(Bytes),
    /// It comes in pieces, and only once.
    Stream(Body),
}

impl Upload {
    /// Looks at what is there of a body, without waiting for more.
    pub(crate) fn of(mut body: Body) -> Self {
        if body.is_end_stream() {
            return Self::Whole(Bytes::new());
        }
        match body.frame().now_or_never() {
            Some(None) => Self::Whole(Bytes::new()),
            Some(Some(Ok(frame))) if frame.is_data() && body.is_end_stream() => {
                Self::Whole(frame.into_data().unwrap_or_default())
            }
            Some(Some(first)) => Self::Stream(Begun { first: Some(first), rest: body }.boxed_unsync()),
            None => Self::Stream(body),
        }
    }

    /// What to send now, and what is left to send again.
    pub(crate) fn send(self) -> (Body, Option<Bytes>) {
        match self {
            Self::Whole(bytes) => (whole_body(bytes.clone()), Some(bytes)),
            Self::Stream(body) => (body, None),
        }
    }
}

/// A body whose first frame was read already.
struct Begun {
    first: Option<Result<Frame<Bytes>, BodyError>>,
    rest: Body,
}

impl http_body::Body for Begun {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(first)),
            None => Pin::new(&mut self.rest).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.size_hint();
        let first = match &self.first {
            Some(Ok(frame)) => frame.data_ref().map_or(0, |data| data.len() as u64),
            Some(Err(_)) | None => 0,
        };
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + first);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + first);
        }
        hint
    }
}

/// A body that breaks when nothing comes for a while. Only time that its reader waits counts.
pub(crate) struct Patient<B> {
    body: B,
    idle_max: Duration,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl<B> Patient<B> {
    pub(crate) fn new(body: B, idle_max: Duration) -> Self {
        Self { body, idle_max, sleep: None }
    }
}

impl<B> http_body::Body for Patient<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: Into<BodyError>,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            self.sleep = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let idle_max = self.idle_max;
        let sleep =
            self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + idle_max)));
        sleep.poll_unpin(cx).map(|()| Some(Err(format!("nothing came for {idle_max:?}").into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
