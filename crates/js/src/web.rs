//! The base of the Web platform: events, encodings, URLs, headers, bodies, requests and responses, as parts of the
//! prelude. What a standard defines is kept to it; where workerd differs and code relies on that, workerd decides.

use crate::prelude::{Part, no_natives};

pub(crate) mod blob;
pub(crate) mod cache;
pub(crate) mod compression;
pub(crate) mod crypto;
pub(crate) mod encoding;
pub(crate) mod environment;
pub(crate) mod fetch;
pub(crate) mod http;
mod multipart;
pub(crate) mod sockets;
pub(crate) mod streams;
pub(crate) mod tcp;
pub(crate) mod url;
pub(crate) mod url_pattern;

/// What all other parts are written with. Eager.
pub(crate) mod webidl {
    use super::{Part, no_natives};

    pub(crate) const PART: Part =
        Part { name: "webidl", source: include_str!("web/webidl.js"), natives: no_natives, globals: &[] };
}

/// Events and their targets. What an isolate calls events are another thing.
pub(crate) mod events {
    use super::{Part, no_natives};

    pub(crate) const PART: Part = Part {
        name: "event-target",
        source: include_str!("web/events.js"),
        natives: no_natives,
        globals: &[
            "Event",
            "EventTarget",
            "CustomEvent",
            "ErrorEvent",
            "MessageEvent",
            "CloseEvent",
            "PromiseRejectionEvent",
            "addEventListener",
            "removeEventListener",
            "dispatchEvent",
            "reportError",
        ],
    };
}

/// Abort controllers and signals.
pub(crate) mod abort {
    use super::{Part, no_natives};

    pub(crate) const PART: Part = Part {
        name: "abort",
        source: include_str!("web/abort.js"),
        natives: no_natives,
        globals: &["AbortController", "AbortSignal"],
    };
}

#[cfg(test)]
mod tests;
