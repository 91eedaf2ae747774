//! What goes back over HTTP. An error of a whole call has one shape, the ingress's too: `{"error": {"message", "code"},
//! "message", "code"}`; the outer two are where libSQL clients look.

use bytes::Bytes;

use super::SqlCall;
use super::json::JsonOut;
use crate::error::SqlFailure;

/// An HTTP response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlReply {
    /// The HTTP status.
    pub status: u16,
    /// The `Content-Type`.
    pub content_type: &'static str,
    /// The body. For HEAD the server sends its length alone.
    pub body: Bytes,
    /// The `Allow` header, with 405.
    pub allow: Option<&'static str>,
}

impl SqlReply {
    /// Ends with a line feed, so that the answer does not run into the prompt of whoever uses curl.
    pub(super) fn json(status: u16, mut body: Vec<u8>) -> Self {
        body.push(b'\n');
        Self { status, content_type: "application/json", body: body.into(), allow: None }
    }

    pub(super) fn json_lines(body: Vec<u8>) -> Self {
        Self { status: 200, content_type: "application/x-ndjson", body: body.into(), allow: None }
    }

    /// A call that failed as a whole: a client of Hrana gives its stream up.
    pub(super) fn failure(status: u16, failure: &SqlFailure) -> Self {
        let mut out = JsonOut::unbounded();
        out.raw("{\"error\":");
        out.failure(failure);
        out.raw(",\"message\":");
        out.string(&failure.message);
        out.raw(",\"code\":");
        out.string(failure.code);
        out.raw("}");
        Self::json(status, out.into_bytes())
    }

    pub(super) fn wrong_method(call: &SqlCall<'_>, allow: &'static str) -> Self {
        let text = format!("`{}` is not allowed on `{}`: use {allow}", clip(call.method), clip(call.path));
        Self { allow: Some(allow), ..Self::failure(405, &SqlFailure::new("METHOD_NOT_ALLOWED", text)) }
    }

    pub(super) fn unknown_path(call: &SqlCall<'_>) -> Self {
        let text = format!(
            "the SQL API has no `{}`: it has GET `/`, POST `/query`, `/alarm`, `/v2/pipeline`, `/v3/pipeline`, `/v3/cursor`, `/v1/execute` and `/v1/batch`",
            clip(call.path)
        );
        Self::failure(404, &SqlFailure::new("NOT_FOUND", text))
    }
}

/// Keeps texts of errors short whatever was sent.
pub(super) fn clip(text: &str) -> String {
    text.chars().take(80).collect()
}

/// A body that is not the JSON that the call takes.
pub(super) fn malformed(error: &serde_json::Error) -> SqlFailure {
    let text = error.to_string();
    SqlFailure::new("MALFORMED_REQUEST", format!("the body is not acceptable: {text}"))
}
