//! The one table from failures to HTTP answers. A 503 with `Holdfast-Outcome: unknown` says that the handler may have
//! run; every other answer of this table says that it did not.

use holdfast_routing::RouteError;
use holdfast_rpc::tokens::TokenError;
use holdfast_rpc::{Body, CallError, ThrownError, whole_body};
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, Response, StatusCode};

use crate::auth::AuthError;
use crate::path::PathError;

/// Says `unknown` where the handler may have run.
pub(crate) const OUTCOME: HeaderName = HeaderName::from_static("holdfast-outcome");
/// When to come again where nothing better is known, in milliseconds.
const RETRY_AFTER_MS: u64 = 1_000;

/// An answer that is not the cell's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The status.
    pub(crate) status: StatusCode,
    /// A word for programs.
    pub(crate) code: &'static str,
    /// A sentence for people.
    pub(crate) message: String,
    /// When to come again.
    pub(crate) retry_after_ms: Option<u64>,
    /// The handler may have run.
    pub(crate) is_unknown: bool,
    /// For 405.
    allow: Option<&'static str>,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl ToString) -> Self {
        let message = message.to_string();
        Self { status, code, message, retry_after_ms: None, is_unknown: false, allow: None }
    }

    pub(crate) fn busy(code: &'static str, message: impl ToString, retry_after_ms: u64) -> Self {
        let retry_after_ms = Some(retry_after_ms);
        Self { retry_after_ms, ..Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message) }
    }

    fn unknown(message: impl ToString) -> Self {
        Self { is_unknown: true, ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "outcome_unknown", message) }
    }

    pub(crate) fn body_too_large(max: u64) -> Self {
        let message = format!("the request's body is larger than {max} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
    }

    /// What an object's handler threw, in its own words. Its stack stays in the logs of its node.
    pub(crate) fn thrown(thrown: &ThrownError) -> Self {
        let message = format!("{}: {}", thrown.name, thrown.message);
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "exception", message)
    }

    /// The answer, as JSON. `error` is for everybody; `message` and `code` beside it are where libSQL clients look.
    pub(crate) fn into_response(self) -> Response<Body> {
        let Self { status, code, message, retry_after_ms, is_unknown, allow } = self;
        let json = serde_json::json!({
            "error": { "message": &message, "code": code },
            "message": &message,
            "code": code,
        });
        let mut response = Response::new(whole_body(json.to_string()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(retry_after_ms) = retry_after_ms {
            headers.insert(RETRY_AFTER, HeaderValue::from(retry_after_ms.div_ceil(1_000).max(1)));
        }
        if is_unknown {
            headers.insert(OUTCOME, HeaderValue::from_static("unknown"));
        }
        if let Some(allow) = allow {
            headers.insert(ALLOW, HeaderValue::from_static(allow));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"holdfast\""));
        }
        response
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let message = error.to_string();
        match error {
            CallError::NotOwner(_) => Self::busy("moving", message, RETRY_AFTER_MS),
            CallError::Draining => Self::busy("draining", message, RETRY_AFTER_MS),
            CallError::Overloaded { reason: _, retry_after_ms } => {
                Self::busy("overloaded", message, retry_after_ms)
            }
            CallError::Unavailable { reason: _ } => Self::busy("unavailable", message, RETRY_AFTER_MS),
            CallError::Rejected { status, reason: _ } => Self::new(status, "rejected", message),
            CallError::OutcomeUnknown { reason: _ } => Self::unknown(message),
        }
    }
}

impl From<RouteError> for Failure {
    fn from(error: RouteError) -> Self {
        let message = error.to_string();
        match error {
            RouteError::Refused(error) => error.into(),
            RouteError::NoNode => Self::busy("no_node", message, RETRY_AFTER_MS),
            RouteError::BucketUnreadable => Self::busy("bucket_unreadable", message, RETRY_AFTER_MS),
            RouteError::RecordUnusable => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "record_unusable", message)
            }
            RouteError::ProtocolMismatch => Self::busy("protocol_mismatch", message, 60 * RETRY_AFTER_MS),
            RouteError::Unreachable { reason: _ } => Self::busy("unreachable", message, RETRY_AFTER_MS),
            RouteError::Moving => Self::busy("moving", message, RETRY_AFTER_MS),
            RouteError::BodyBroken { reason: _ } => {
                Self::new(StatusCode::BAD_REQUEST, "body_broken", message)
            }
            RouteError::OutcomeUnknown { reason: _ } => Self::unknown(message),
        }
    }
}

impl From<PathError> for Failure {
    fn from(error: PathError) -> Self {
        let message = error.to_string();
        match error {
            PathError::NoApplication => Self::new(StatusCode::NOT_FOUND, "no_application", message),
            PathError::NotFound => Self::new(StatusCode::NOT_FOUND, "not_found", message),
            PathError::UnknownClass(_) => Self::new(StatusCode::NOT_FOUND, "unknown_class", message),
            PathError::WrongMethod { allowed } => Self {
                allow: Some(allowed),
                ..Self::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", message)
            },
            PathError::NotUtf8 | PathError::Name(_) => {
                Self::new(StatusCode::BAD_REQUEST, "bad_name", message)
            }
        }
    }
}

impl From<AuthError> for Failure {
    fn from(error: AuthError) -> Self {
        let message = error.to_string();
        match error {
            AuthError::Missing => Self::new(StatusCode::UNAUTHORIZED, "no_token", message),
            AuthError::Token(TokenError::Malformed(_)) => {
                Self::new(StatusCode::UNAUTHORIZED, "malformed_token", message)
            }
            AuthError::Token(TokenError::BadSignature) => {
                Self::new(StatusCode::UNAUTHORIZED, "bad_signature", message)
            }
            AuthError::Token(TokenError::Expired { .. }) => {
                Self::new(StatusCode::UNAUTHORIZED, "expired_token", message)
            }
            AuthError::Token(TokenError::NotForThisCell { .. }) => {
                Self::new(StatusCode::FORBIDDEN, "not_for_this_cell", message)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_rpc::tokens::CellPattern;
    use holdfast_types::CellNameError;

    fn reason() -> String {
        "why".into()
    }

    /// The whole table: status, code, `Retry-After` in seconds, `Holdfast-Outcome`.
    #[test]
    fn every_failure_has_its_answer() {
        let refused = RouteError::Refused;
        let cells = CellPattern::parse("db:a").unwrap();
        let (id, expires_s) = (String::new(), 1);
        let teapot = CallError::Rejected { status: StatusCode::IM_A_TEAPOT, reason: reason() };
        let table: Vec<(Failure, u16, &str, Option<&str>, bool)> = vec![
            (refused(CallError::NotOwner(None)).into(), 503, "moving", Some("1"), false),
            (refused(CallError::Draining).into(), 503, "draining", Some("1"), false),
            (
                refused(CallError::Overloaded { reason: reason(), retry_after_ms: 1_001 }).into(),
                503,
                "overloaded",
                Some("2"),
                false,
            ),
            (
                refused(CallError::Unavailable { reason: reason() }).into(),
                503,
                "unavailable",
                Some("1"),
                false,
            ),
            (refused(teapot).into(), 418, "rejected", None, false),
            (
                refused(CallError::OutcomeUnknown { reason: reason() }).into(),
                503,
                "outcome_unknown",
                None,
                true,
            ),
            (RouteError::NoNode.into(), 503, "no_node", Some("1"), false),
            (RouteError::BucketUnreadable.into(), 503, "bucket_unreadable", Some("1"), false),
            (RouteError::RecordUnusable.into(), 500, "record_unusable", None, false),
            (RouteError::ProtocolMismatch.into(), 503, "protocol_mismatch", Some("60"), false),
            (RouteError::Unreachable { reason: reason() }.into(), 503, "unreachable", Some("1"), false),
            (RouteError::Moving.into(), 503, "moving", Some("1"), false),
            (RouteError::BodyBroken { reason: reason() }.into(), 400, "body_broken", None, false),
            (RouteError::OutcomeUnknown { reason: reason() }.into(), 503, "outcome_unknown", None, true),
            (PathError::NoApplication.into(), 404, "no_application", None, false),
            (PathError::NotFound.into(), 404, "not_found", None, false),
            (PathError::UnknownClass(reason()).into(), 404, "unknown_class", None, false),
            (PathError::WrongMethod { allowed: "POST" }.into(), 405, "wrong_method", None, false),
            (PathError::NotUtf8.into(), 400, "bad_name", None, false),
            (PathError::Name(CellNameError::Control(0)).into(), 400, "bad_name", None, false),
            (AuthError::Missing.into(), 401, "no_token", None, false),
            (AuthError::Token(TokenError::Malformed("x")).into(), 401, "malformed_token", None, false),
            (AuthError::Token(TokenError::BadSignature).into(), 401, "bad_signature", None, false),
            (
                AuthError::Token(TokenError::Expired { id: id.clone(), expires_s }).into(),
                401,
                "expired_token",
                None,
                false,
            ),
            (
                AuthError::Token(TokenError::NotForThisCell { id, cells }).into(),
                403,
                "not_for_this_cell",
                None,
                false,
            ),
            (Failure::body_too_large(9), 413, "body_too_large", None, false),
            (Failure::thrown(&ThrownError::default()), 500, "exception", None, false),
        ];
        for (failure, status, code, retry_after, is_unknown) in table {
            assert_eq!(failure.code, code);
            let response = failure.into_response();
            assert_eq!(response.status().as_u16(), status, "{code}");
            let header =
                |name: &HeaderName| response.headers().get(name).map(|value| value.to_str().unwrap());
            assert_eq!(header(&RETRY_AFTER), retry_after, "{code}");
            assert_eq!(header(&OUTCOME), is_unknown.then_some("unknown"), "{code}");
            assert_eq!(header(&WWW_AUTHENTICATE).is_some(), status == 401, "{code}");
            assert_eq!(header(&ALLOW), (status == 405).then_some("POST"), "{code}");
        }
    }
}
