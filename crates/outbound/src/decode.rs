//! Answers without their content coding: handlers read what the server meant. A coding that is not known here stays.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use holdfast_js::ContentDecoder;
use holdfast_rpc::{Body, BodyError};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::{HeaderMap, Method, StatusCode};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt as _;

/// Encoded bytes taken at a time: a small body that grows a thousandfold is decoded as slowly as it is read.
const STEP_LEN: usize = 4 * 1024;

/// What may be asked of servers for answers that this can decode.
pub(crate) const ACCEPTED: &str = "gzip, deflate";

/// Takes the coding off an answer, and off its head.
pub(crate) fn decoded(method: &Method, status: StatusCode, headers: &mut HeaderMap, body: Body) -> Body {
    let has_body = *method != Method::HEAD
        && !matches!(status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED);
    let mut codings = headers.get_all(CONTENT_ENCODING).iter();
    let decoder = match (codings.next(), codings.next()) {
        (Some(coding), None) if has_body => coding.to_str().ok().and_then(ContentDecoder::new),
        _ => None,
    };
    let Some(decoder) = decoder else { return body };
    headers.remove(CONTENT_ENCODING);
    headers.remove(CONTENT_LENGTH);
    Decoded { body, decoder, pending: Bytes::new(), is_over: false }.boxed_unsync()
}

struct Decoded {
    body: Body,
    decoder: ContentDecoder,
    pending: Bytes,
    is_over: bool,
}

impl Decoded {
    /// The next decoded bytes of what was read; none where more must be read.
    fn decode(&mut self) -> Result<Option<Bytes>, BodyError> {
        loop {
            if let Some(bytes) = self.decoder.next()? {
                return Ok(Some(bytes.into()));
            }
            if self.pending.is_empty() {
                return Ok(None);
            }
            let step = self.pending.len().min(STEP_LEN);
            self.decoder.push(&self.pending[..step]);
            self.pending.advance(step);
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        loop {
            match self.decode() {
                Ok(Some(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Ok(None) => {}
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.pending = data;
                    }
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(self.decoder.finish().err().map(|error| Err(error.into()))),
            }
        }
    }
}

impl http_body::Body for Decoded {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let frame = self.poll(cx);
        self.is_over = matches!(&frame, Poll::Ready(None | Some(Err(_))));
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.is_over
    }
}
