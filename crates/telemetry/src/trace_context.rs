//! Trace context on the wire: `traceparent` and `tracestate` (W3C Trace Context) into and out of HTTP headers.

use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry::trace::TraceContextExt as _;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

struct Headers<'a>(&'a http::HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(http::HeaderName::as_str).collect()
    }
}

struct HeadersMut<'a>(&'a mut http::HeaderMap);

impl Injector for HeadersMut<'_> {
    fn set(&mut self, key: &str, value: String) {
        if let (Ok(name), Ok(value)) = (http::HeaderName::try_from(key), http::HeaderValue::try_from(value)) {
            self.0.insert(name, value);
        }
    }
}

/// Makes the caller's span, named by the headers, the parent of `span`. Nothing happens where traces are off or the
/// headers name none.
pub fn accept(span: &Span, headers: &http::HeaderMap) {
    if headers.contains_key("traceparent") {
        // Refused only for a span that no layer exports, which then needs no parent.
        let _ = span.set_parent(TraceContextPropagator::new().extract(&Headers(headers)));
    }
}

/// Writes `span` into the headers of a call that it makes. Where traces are off, what the headers hold stays.
pub fn inject(span: &Span, headers: &mut http::HeaderMap) {
    TraceContextPropagator::new().inject_context(&span.context(), &mut HeadersMut(headers));
}

/// The id of the trace that `span` is a part of, 32 hex digits. None where traces are off.
#[must_use]
pub fn trace_id(span: &Span) -> Option<String> {
    let context = span.context();
    let context = context.span().span_context().clone();
    context.is_valid().then(|| context.trace_id().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry::trace::TracerProvider;
    use tracing_subscriber::layer::SubscriberExt;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_trace_goes_through() {
        let provider = opentelemetry_sdk::trace::SdkTracerProvider::builder().build();
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let mut headers = http::HeaderMap::new();
            headers.insert("traceparent", PARENT.parse().unwrap());
            let span = tracing::info_span!("s");
            accept(&span, &headers);
            assert_eq!(trace_id(&span).as_deref(), Some("0af7651916cd43dd8448eb211c80319c"));
            inject(&span, &mut headers);
            let sent = headers["traceparent"].to_str().unwrap();
            assert!(sent.starts_with("00-0af7651916cd43dd8448eb211c80319c-"), "{sent}");
            assert_ne!(sent, PARENT, "the child has its own span id");
        });
    }

    #[test]
    fn without_traces_a_caller_s_context_passes_unchanged() {
        let mut headers = http::HeaderMap::new();
        headers.insert("traceparent", PARENT.parse().unwrap());
        let span = Span::none();
        accept(&span, &headers);
        inject(&span, &mut headers);
        assert_eq!(headers["traceparent"], PARENT);
        assert_eq!(trace_id(&span), None);
    }
}
