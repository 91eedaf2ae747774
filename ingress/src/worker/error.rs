//! Why a request to the application has no answer of the application, and what its caller is told: never the
//! application's own words, which may say what only its owner should know. Those are in the log, with the trace's id.

use std::sync::Arc;
use std::time::Duration;

use holdfast_js::{BrokenCause, StartError};
use holdfast_rpc::{Body, whole_body};
use holdfast_telemetry::RequestOutcome;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};

use crate::answer::OUTCOME;

/// Why the application did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WorkerError {
    /// There is none.
    #[error("no application is deployed here")]
    NotDeployed,
    /// It does not start.
    #[error("the deployed application does not start")]
    NotStarted(Arc<StartError>),
    /// Its handler threw.
    #[error("the application threw an exception")]
    Threw,
    /// Its isolate broke while the request was in it.
    #[error("the application {}", broken(.0))]
    Broken(BrokenCause),
    /// There is too much to do.
    #[error("the application has too many requests in flight")]
    Overloaded,
    /// There was no answer in time.
    #[error("the application did not answer within {0:?}")]
    Late(Duration),
    /// The event ended without an answer.
    #[error("the application ended the request without an answer")]
    Ended,
}

fn broken(cause: &BrokenCause) -> &'static str {
    match cause {
        BrokenCause::CpuExceeded => "exceeded its CPU time limit",
        BrokenCause::MemoryExceeded => "exceeded its memory limit",
        _ => "broke",
    }
}

impl WorkerError {
    fn status(&self) -> StatusCode {
        match self {
            Self::NotDeployed => StatusCode::NOT_FOUND,
            Self::NotStarted(_) | Self::Threw => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Broken(BrokenCause::CpuExceeded | BrokenCause::MemoryExceeded) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::Broken(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Overloaded | Self::Late(_) | Self::Ended => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// What the caller may conclude.
    pub(crate) fn outcome(&self) -> RequestOutcome {
        match self {
            Self::NotDeployed | Self::NotStarted(_) | Self::Overloaded => RequestOutcome::Refused,
            Self::Threw => RequestOutcome::Answered,
            Self::Broken(_) | Self::Late(_) | Self::Ended => RequestOutcome::Unknown,
        }
    }

    /// The answer, as plain text.
    pub(crate) fn into_response(self) -> Response<Body> {
        let mut response = Response::new(whole_body(format!("{self}\n")));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        if self.outcome() == RequestOutcome::Unknown {
            headers.insert(OUTCOME, HeaderValue::from_static("unknown"));
        }
        if self == Self::Overloaded {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
