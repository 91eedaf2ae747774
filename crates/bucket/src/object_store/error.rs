//! What a failure of `object_store` means for the caller: by the status of the answer where there was one, else by the
//! kind of its transport error.

use std::error::Error;

use object_store::client::{HttpError, HttpErrorKind};

use super::answer::Answer;
use crate::clock::is_far_off;
use crate::{BucketError, ErrorKind};

/// The error of an operation, given the last answer that it got.
pub(super) fn bucket_error(
    operation: &'static str,
    key: &str,
    error: &object_store::Error,
    answer: Option<&Answer>,
) -> BucketError {
    let kind = match answer {
        Some(answer) if answer.status >= 300 => kind_of_answer(answer),
        _ => kind_of_error(error),
    };
    BucketError::new(operation, key, kind, chain(error))
}

fn kind_of_answer(answer: &Answer) -> ErrorKind {
    match (answer.status, answer.code.as_deref()) {
        (401 | 403, _) if answer.date.as_deref().is_some_and(is_far_off) => ErrorKind::ClockSkew,
        (401 | 403, _) => ErrorKind::Denied,
        (404, Some("ContainerNotFound")) => ErrorKind::Invalid,
        // A 404 of the key itself is dealt with before.
        (404 | 408 | 409 | 429, _) => ErrorKind::Unavailable,
        (405 | 501, _) => ErrorKind::Unsupported,
        (416, _) => ErrorKind::RangeNotSatisfiable,
        (507, _) => ErrorKind::NoSpace,
        (400, Some("Md5Mismatch")) => ErrorKind::BadBody,
        (500.., _) => ErrorKind::Unavailable,
        _ => ErrorKind::Invalid,
    }
}

/// The kind of an error without an answer, or after a good one whose body broke.
fn kind_of_error(error: &object_store::Error) -> ErrorKind {
    use object_store::Error as E;
    match error {
        E::NotSupported { .. } | E::NotImplemented { .. } => return ErrorKind::Unsupported,
        E::PermissionDenied { .. } | E::Unauthenticated { .. } => return ErrorKind::Denied,
        E::InvalidPath { .. } | E::UnknownConfigurationKey { .. } => return ErrorKind::Invalid,
        _ => {}
    }
    let mut source: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<HttpError>() {
            return if error.kind() == HttpErrorKind::Decode {
                ErrorKind::BadBody
            } else {
                ErrorKind::NoAnswer
            };
        }
        source = error.source();
    }
    // An answer that makes no sense.
    ErrorKind::BadBody
}

/// Whether the answer says that the key is not there. Strict, as a proxy's 404 must not read as the end of a chain:
/// Azure names its codes; Google has none in the head, but there the name of the missing bucket is in the text.
pub(super) fn is_no_such_key(error: &object_store::Error, answer: Option<&Answer>) -> bool {
    let object_store::Error::NotFound { .. } = error else { return false };
    match answer {
        Some(Answer { code: Some(code), .. }) => code == "BlobNotFound" || code == "ResourceNotFound",
        _ => !chain(error).contains("NoSuchBucket"),
    }
}

fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        // Most layers repeat what is below them.
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_decide() {
        let kind = |status, code: Option<&str>| {
            kind_of_answer(&Answer { status, code: code.map(str::to_owned), date: None })
        };
        for (status, code, expected) in [
            (403, Some("AuthenticationFailed"), ErrorKind::Denied),
            (404, Some("ContainerNotFound"), ErrorKind::Invalid),
            (404, None, ErrorKind::Unavailable),
            (409, Some("OperationNotAllowed"), ErrorKind::Unavailable),
            (412, None, ErrorKind::Invalid),
            (416, None, ErrorKind::RangeNotSatisfiable),
            (429, None, ErrorKind::Unavailable),
            (503, Some("ServerBusy"), ErrorKind::Unavailable),
        ] {
            assert_eq!(kind(status, code), expected, "{status} {code:?}");
        }
        let old = Answer { status: 403, code: None, date: Some("Sun, 06 Nov 1994 08:49:37 GMT".into()) };
        assert_eq!(kind_of_answer(&old), ErrorKind::ClockSkew);
    }
}
