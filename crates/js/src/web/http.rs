//! Headers, bodies, requests and responses. All of it is JavaScript: what is heavy in a body (encodings, forms, streams)
//! is in other parts.
//!
//! What an isolate needs of them, as `internals` after `load`:
//! - "request": `incomingRequest({ method, url, headers: flat, body, signal, cf })` makes the request of an event;
//!   `requestState(request)` is `{ method, url, headers, body, … }`.
//! - "response": `isResponse(value)`, `responseState(response)` is `{ status, statusText, headers, body, … }`;
//!   `fetchedResponse({ status, statusText, headers: flat, body, url, isRedirected })`.
//! - "headers": `flatHeaders(headers)` and `headersOf(flat, isImmutable)`: names and values in turn.
//! - "body": `bodyOfBytes(bytes)` and `bodyOfSource({ pull, cancel, length })` make the bodies above; `takeBody(body)`
//!   takes the content out of one, once.
//! - "outgoing": `sendBody(content)` sends that, `incomingSource(value)` is the reverse.

use super::{encoding, url};
use crate::prelude::{Part, no_natives};

const fn part(name: &'static str, source: &'static str, globals: &'static [&'static str]) -> Part {
    Part { name, source, natives: no_natives, globals }
}

pub(crate) const HEADERS: Part = part("headers", include_str!("headers.js"), &["Headers"]);

/// What requests and responses share; on demand.
pub(crate) const BODY: Part =
    Part { name: "body", source: include_str!("body.js"), natives: encoding::natives, globals: &[] };

pub(crate) const REQUEST: Part = Part {
    name: "request",
    source: include_str!("request.js"),
    natives: url::natives,
    globals: &["Request"],
};

pub(crate) const RESPONSE: Part = part("response", include_str!("response.js"), &["Response"]);
