//! The bucket's failures as S3 errors: one table. A failure that leaves the outcome of a write open becomes a 500, which
//! no client takes for "not written".

use holdfast_bucket::{BucketError, ErrorKind};
use http::StatusCode;
use s3s::{S3Error, S3ErrorCode, s3_error};

/// The S3 error of a failed bucket call.
pub(crate) fn s3_error_of(error: BucketError) -> S3Error {
    let (code, status) = code_of(error.kind);
    if status.is_server_error() {
        tracing::warn!(%error, "a request failed in the bucket");
    }
    let mut answer = S3Error::with_message(code, error.to_string());
    answer.set_status_code(status);
    answer
}

fn code_of(kind: ErrorKind) -> (S3ErrorCode, StatusCode) {
    match kind {
        ErrorKind::NoAnswer | ErrorKind::BadBody | ErrorKind::ClockSkew | ErrorKind::Local => {
            (S3ErrorCode::InternalError, StatusCode::INTERNAL_SERVER_ERROR)
        }
        ErrorKind::Unavailable => (S3ErrorCode::SlowDown, StatusCode::SERVICE_UNAVAILABLE),
        ErrorKind::Denied => (S3ErrorCode::AccessDenied, StatusCode::FORBIDDEN),
        ErrorKind::RangeNotSatisfiable => (S3ErrorCode::InvalidRange, StatusCode::RANGE_NOT_SATISFIABLE),
        ErrorKind::Unsupported => (S3ErrorCode::NotImplemented, StatusCode::NOT_IMPLEMENTED),
        ErrorKind::NoSpace => {
            (S3ErrorCode::Custom("InsufficientStorage".into()), StatusCode::INSUFFICIENT_STORAGE)
        }
        ErrorKind::Invalid => (S3ErrorCode::InvalidArgument, StatusCode::BAD_REQUEST),
    }
}

/// A condition that does not hold, on a write or a GET with `If-Match`.
pub(crate) fn precondition_failed() -> S3Error {
    s3_error!(PreconditionFailed, "at least one of the preconditions you specified did not hold")
}

/// A GET or HEAD of what the client has already.
pub(crate) fn not_modified() -> S3Error {
    let mut answer = S3Error::new(S3ErrorCode::NotModified);
    answer.set_status_code(StatusCode::NOT_MODIFIED);
    answer
}

/// The key is absent.
pub(crate) fn no_such_key() -> S3Error {
    s3_error!(NoSuchKey, "the specified key does not exist")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_outcome_is_a_server_error() {
        for kind in [ErrorKind::NoAnswer, ErrorKind::Local, ErrorKind::BadBody, ErrorKind::Unavailable] {
            let answer = s3_error_of(BucketError::new("put_if", "k", kind, "scripted"));
            assert!(answer.status_code().unwrap().is_server_error(), "{kind:?}");
        }
        let full = s3_error_of(BucketError::new("put", "k", ErrorKind::NoSpace, "scripted"));
        assert_eq!(full.status_code(), Some(StatusCode::INSUFFICIENT_STORAGE));
    }
}
