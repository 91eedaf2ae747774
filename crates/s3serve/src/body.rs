//! Bodies in both directions, as streams. An upload that is cut short, too slow or does not match its checksum ends in an
//! error, so that the bucket drops it; a download that breaks breaks the connection, and is never a clean end.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt, TryStreamExt};
use holdfast_bucket::{BucketError, ByteStream, ErrorKind};
use s3s::dto::StreamingBlob;
use s3s::stream::{ByteStream as S3ByteStream, RemainingLength};
use s3s::{S3Error, S3Request, S3Result, StdError, s3_error};

use crate::answer::s3_error_of;
use crate::checksum::Checks;

/// How long a client may take between two pieces of its body.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// A request's body on its way into the bucket.
pub(crate) struct Upload {
    pub(crate) stream: ByteStream,
    fault: Fault,
}

/// Where a fault of the body is kept, so that the client gets its own error instead of the bucket's view of it.
type Fault = Arc<Mutex<Option<S3Error>>>;

/// The announced length of a body in bytes: of the payload itself, where it comes in signed chunks.
pub(crate) fn announced_len<T>(request: &S3Request<T>, content_length: Option<i64>) -> Option<u64> {
    match request.headers.get("x-amz-decoded-content-length") {
        Some(len) => len.to_str().ok()?.parse().ok(),
        None => content_length.and_then(|len| u64::try_from(len).ok()),
    }
}

/// Takes a request's body, which must have the announced length and checksums.
pub(crate) fn upload<T>(request: &S3Request<T>, body: Option<StreamingBlob>, len: Option<u64>) -> Upload {
    let fault = Fault::default();
    let reader = Reader {
        body,
        left: len,
        checks: Checks::new(&request.headers, request.trailing_headers.clone()),
        fault: Arc::clone(&fault),
    };
    let stream = futures::stream::unfold(Some(reader), |reader| async {
        let mut reader = reader?;
        match reader.next().await {
            Ok(Some(piece)) => Some((Ok(piece), Some(reader))),
            Ok(None) => None,
            Err(error) => Some((Err(reader.fail(error)), None)),
        }
    });
    Upload { stream: stream.boxed(), fault }
}

impl Upload {
    /// The S3 error of a write that took this body: the body's own fault, or the bucket's.
    pub(crate) fn error(fault: &UploadFault, error: BucketError) -> S3Error {
        fault.0.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_else(|| s3_error_of(error))
    }

    /// The stream, and where its fault will be.
    pub(crate) fn into_parts(self) -> (ByteStream, UploadFault) {
        (self.stream, UploadFault(self.fault))
    }

    /// The whole body in memory: at most its announced length. The caller has reserved the memory.
    ///
    /// # Errors
    /// The body's own fault.
    pub(crate) async fn collect(self) -> S3Result<Bytes> {
        let (mut stream, fault) = self.into_parts();
        let mut whole = BytesMut::new();
        while let Some(piece) = stream.try_next().await.map_err(|error| Self::error(&fault, error))? {
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    }
}

/// See [`Upload::error`].
pub(crate) struct UploadFault(Fault);

struct Reader {
    body: Option<StreamingBlob>,
    /// Bytes still to come, when the length was announced.
    left: Option<u64>,
    checks: Checks,
    fault: Fault,
}

impl Reader {
    async fn next(&mut self) -> Result<Option<Bytes>, S3Error> {
        let next = match &mut self.body {
            Some(body) => tokio::time::timeout(SILENCE_MAX, body.next())
                .await
                .map_err(|_| s3_error!(RequestTimeout, "the body was silent for too long"))?,
            None => None,
        };
        let Some(piece) = next.transpose().map_err(broken)? else {
            if self.left.is_some_and(|left| left > 0) {
                return Err(s3_error!(IncompleteBody, "the body is shorter than its announced length"));
            }
            self.checks.finish()?;
            return Ok(None);
        };
        if let Some(left) = &mut self.left {
            *left = left
                .checked_sub(piece.len() as u64)
                .ok_or_else(|| s3_error!(IncompleteBody, "the body is longer than its announced length"))?;
        }
        self.checks.update(&piece);
        Ok(Some(piece))
    }

    fn fail(&self, error: S3Error) -> BucketError {
        let detail = error.to_string();
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        BucketError::new("upload", "", ErrorKind::BadBody, detail)
    }
}

/// A body that broke on its way: the signature check's own error, or the connection's.
fn broken(error: StdError) -> S3Error {
    match error.downcast::<S3Error>() {
        Ok(error) => *error,
        Err(error) => s3_error!(IncompleteBody, "the body could not be read to its end: {error}"),
    }
}

/// An object's bytes on their way to the client.
pub(crate) fn download(stream: ByteStream, len: u64) -> StreamingBlob {
    StreamingBlob::new(Download { stream: Mutex::new(stream), left: len })
}

/// A stream that may be shared between threads, as `s3s` wants it; only one ever polls it.
struct Download {
    stream: Mutex<ByteStream>,
    left: u64,
}

impl Stream for Download {
    type Item = Result<Bytes, StdError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let stream = self.stream.get_mut().unwrap_or_else(PoisonError::into_inner);
        let next = futures::ready!(stream.as_mut().poll_next(context));
        Poll::Ready(match next {
            Some(Ok(piece)) => {
                self.left = self.left.saturating_sub(piece.len() as u64);
                Some(Ok(piece))
            }
            Some(Err(error)) => {
                tracing::warn!(%error, "a download broke in the bucket");
                Some(Err(Box::new(error)))
            }
            None => None,
        })
    }
}

impl S3ByteStream for Download {
    fn remaining_length(&self) -> RemainingLength {
        usize::try_from(self.left).map_or_else(|_| RemainingLength::unknown(), RemainingLength::new_exact)
    }
}
