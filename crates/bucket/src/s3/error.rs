//! What an S3 answer means for the caller. One table by code, one by status; an answer that neither knows is never
//! taken for absence or success.

use std::error::Error;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};

use crate::clock::is_far_off;
use crate::{BucketError, ErrorKind};

/// A failed call, before it is known what that means for the operation.
#[derive(Debug)]
pub(super) struct Failure {
    /// HTTP status, when there was an answer.
    pub(super) status: Option<u16>,
    /// The store's error code, when the body had one.
    pub(super) code: Option<String>,
    pub(super) kind: ErrorKind,
    detail: String,
}

impl Failure {
    /// Reads an error of the SDK.
    pub(super) fn of<E>(error: &SdkError<E, HttpResponse>) -> Self
    where
        E: Error + ProvideErrorMetadata + Send + Sync + 'static,
    {
        match error {
            SdkError::ServiceError(answer) => {
                let (status, inner) = (answer.raw().status().as_u16(), answer.err());
                let kind = match inner.code() {
                    None if status == 403 && is_clock_off(answer.raw()) => ErrorKind::ClockSkew,
                    code => kind_of(status, code),
                };
                let detail = format!(
                    "status {status}, code {}, {}",
                    inner.code().unwrap_or("none"),
                    inner.message().unwrap_or("no message")
                );
                Self { status: Some(status), code: inner.code().map(str::to_owned), kind, detail }
            }
            SdkError::ResponseError(answer) => {
                // The head of the answer arrived; its body broke or makes no sense.
                let status = answer.raw().status().as_u16();
                let kind = kind_of(status, None);
                Self { status: Some(status), code: None, kind, detail: chain(error) }
            }
            SdkError::ConstructionFailure(_) => Self::local(error, ErrorKind::Local),
            SdkError::DispatchFailure(failure) if failure.is_user() => Self::local(error, ErrorKind::Local),
            _ => Self::local(error, ErrorKind::NoAnswer),
        }
    }

    fn local(error: &(dyn Error + 'static), kind: ErrorKind) -> Self {
        let kind = credentials_kind(error).unwrap_or(kind);
        Self { status: None, code: None, kind, detail: chain(error) }
    }

    /// The key is not there. Strict: a 404 without the store's own word for it (a proxy's page, the bucket gone) must
    /// not read as the end of a chain.
    pub(super) fn is_no_such_key(&self) -> bool {
        self.status == Some(404) && self.code.as_deref() == Some("NoSuchKey")
    }

    /// The error of the operation.
    pub(super) fn into_error(self, operation: &'static str, key: &str) -> BucketError {
        BucketError::new(operation, key, self.kind, self.detail)
    }
}

/// The meaning of an error answer.
pub(super) fn kind_of(status: u16, code: Option<&str>) -> ErrorKind {
    code.and_then(kind_of_code).unwrap_or(match status {
        // A success whose body makes no sense.
        ..300 => ErrorKind::BadBody,
        401 | 403 => ErrorKind::Denied,
        // A 404 of the key itself is dealt with before; one that does not say so comes from something in between.
        404 | 408 | 409 | 425 | 429 => ErrorKind::Unavailable,
        405 | 501 => ErrorKind::Unsupported,
        416 => ErrorKind::RangeNotSatisfiable,
        507 => ErrorKind::NoSpace,
        500.. => ErrorKind::Unavailable,
        _ => ErrorKind::Invalid,
    })
}

fn kind_of_code(code: &str) -> Option<ErrorKind> {
    Some(match code {
        "RequestTimeTooSkewed" => ErrorKind::ClockSkew,
        "AccessDenied"
        | "ExpiredToken"
        | "InvalidAccessKeyId"
        | "InvalidToken"
        | "SignatureDoesNotMatch"
        | "TokenRefreshRequired" => ErrorKind::Denied,
        "RequestTimeout"
        | "SlowDown"
        | "SlowDownRead"
        | "SlowDownWrite"
        | "ServiceUnavailable"
        | "InternalError"
        | "OperationAborted"
        | "ConditionalRequestConflict"
        | "TooManyRequests"
        | "Throttling" => ErrorKind::Unavailable,
        "NoSuchBucket" | "NoSuchUpload" | "NoSuchKey" => ErrorKind::Invalid,
        "NotImplemented" | "MethodNotAllowed" | "NotSupported" => ErrorKind::Unsupported,
        "BadDigest" | "IncompleteBody" | "XAmzContentSHA256Mismatch" => ErrorKind::BadBody,
        "InvalidRange" => ErrorKind::RangeNotSatisfiable,
        "QuotaExceeded" | "InsufficientStorage" | "StorageFull" | "XMinioStorageFull" => ErrorKind::NoSpace,
        _ => return None,
    })
}

/// Whether the refusal is about the clock: the answer to a HEAD has no body to say so.
fn is_clock_off(answer: &HttpResponse) -> bool {
    answer.headers().get("date").is_some_and(is_far_off)
}

/// A failure to find credentials looks like a failed connection to the SDK.
fn credentials_kind(error: &(dyn Error + 'static)) -> Option<ErrorKind> {
    let mut source = Some(error);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<CredentialsError>() {
            return Some(match error {
                CredentialsError::ProviderTimedOut(_) | CredentialsError::ProviderError(_) => {
                    ErrorKind::NoAnswer
                }
                _ => ErrorKind::Denied,
            });
        }
        source = error.source();
    }
    None
}

/// An error and what caused it, in one line.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_decide_before_statuses() {
        for (status, code, kind) in [
            (403, Some("RequestTimeTooSkewed"), ErrorKind::ClockSkew),
            (403, Some("SomethingNew"), ErrorKind::Denied),
            (400, Some("ExpiredToken"), ErrorKind::Denied),
            (400, Some("RequestTimeout"), ErrorKind::Unavailable),
            (409, Some("OperationAborted"), ErrorKind::Unavailable),
            (409, None, ErrorKind::Unavailable),
            (200, None, ErrorKind::BadBody),
            (200, Some("InternalError"), ErrorKind::Unavailable),
            (404, Some("NoSuchBucket"), ErrorKind::Invalid),
            (404, None, ErrorKind::Unavailable),
            (429, None, ErrorKind::Unavailable),
            (301, None, ErrorKind::Invalid),
            (412, None, ErrorKind::Invalid),
            (501, None, ErrorKind::Unsupported),
            (507, None, ErrorKind::NoSpace),
            (504, None, ErrorKind::Unavailable),
        ] {
            assert_eq!(kind_of(status, code), kind, "{status} {code:?}");
        }
    }
}
