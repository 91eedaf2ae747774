//! Requests to R2 buckets, whose bodies stream both ways.

use bytes::Bytes;
use futures::{Stream, StreamExt as _, TryStreamExt};
use holdfast_bucket::{BucketError, ByteStream, ErrorKind};
use holdfast_js::JsError;
use holdfast_r2::{Answer, AnswerBody};
use holdfast_rpc::{Body, BodyError, whole_body};
use http_body::Frame;
use http_body_util::{BodyExt as _, BodyStream, StreamBody};

use tokio::runtime::Handle;

use crate::Outbound;
use crate::body::Patient;

/// What an R2 bucket says, or a cache.
#[derive(Debug)]
pub struct BucketReply {
    /// JSON.
    pub head: Bytes,
    /// The bytes of an object, or of an answer.
    pub body: Body,
}

impl Outbound {
    /// Does what an isolate asks of the R2 bucket `bucket`, as JSON; `body` is what is put. Dropping the future ends it; a
    /// write may take place all the same.
    ///
    /// # Errors
    /// R2's own, with its text and code.
    pub async fn ask_bucket(&self, bucket: &str, request: &[u8], body: Body) -> Result<BucketReply, JsError> {
        let options = &self.inner.options;
        let r2 = options.r2.as_ref().ok_or_else(|| JsError::new("there are no R2 buckets here"))?;
        let body = pieces(Patient::new(body, options.idle_timeout));
        let answer = r2.answer(bucket, request, body).await;
        let Answer { head, body } = answer.map_err(|error| JsError::new(error.to_string()))?;
        Ok(BucketReply { head, body: sent(body) })
    }
}

fn pieces(body: Patient<Body>) -> ByteStream {
    let broken =
        |error: BodyError| BucketError::new("put", "", ErrorKind::BadBody, format!("it broke: {error}"));
    // Trailers end here.
    let data = |frame: Frame<Bytes>| std::future::ready(Ok(frame.into_data().ok()));
    TryStreamExt::map_err(BodyStream::new(body), broken).try_filter_map(data).boxed()
}

/// The stream, polled as on this runtime: the thread of an isolate, which looks whether a piece is here already, has none,
/// and a store's client waits by the clock.
fn on_runtime(mut stream: ByteStream) -> impl Stream<Item = Result<Bytes, BucketError>> {
    let runtime = Handle::current();
    futures::stream::poll_fn(move |cx| {
        let _entered = runtime.enter();
        stream.poll_next_unpin(cx)
    })
}

fn sent(body: AnswerBody) -> Body {
    match body {
        AnswerBody::None => whole_body(Bytes::new()),
        AnswerBody::Whole(bytes) => whole_body(bytes),
        AnswerBody::Stream { stream, len: _ } => {
            StreamBody::new(on_runtime(stream).map_ok(Frame::data).map_err(BodyError::from)).boxed_unsync()
        }
    }
}
