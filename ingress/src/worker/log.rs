//! What an application says, in the log of this program: one line each, with the version and the trace.

use holdfast_js::{BrokenCause, JsError, LogLevel};

use super::event::Event;

/// A line of `console`, or an exception that nothing caught.
pub(super) fn line(version: &str, event: Option<&Event>, level: LogLevel, text: &str) {
    let trace = event.map(Event::trace);
    match level {
        LogLevel::Debug => tracing::debug!(target: "console", version, trace, "{text}"),
        LogLevel::Log | LogLevel::Info => tracing::info!(target: "console", version, trace, "{text}"),
        LogLevel::Warn => tracing::warn!(target: "console", version, trace, "{text}"),
        LogLevel::Error => tracing::error!(target: "console", version, trace, "{text}"),
    }
}

/// What a handler threw.
pub(super) fn exception(version: &str, event: &Event, error: &JsError) {
    let trace = event.trace();
    tracing::error!(target: "console", version, trace, "Uncaught {error}");
}

/// An isolate is given up.
pub(super) fn broken(version: &str, events: usize, cause: &BrokenCause) {
    tracing::error!(
        target: "console", version, events,
        "an isolate of the Worker {cause}: its requests fail, and a fresh one takes its place"
    );
}
