//! Calls of Durable Objects: one cell each, reached by the router like any other.

use bytes::Bytes;
use holdfast_js::{CallOrder, JsError, OutgoingCall};
use holdfast_routing::RouteError;
use holdfast_rpc::{Access, Body, CallError, CellCall, ObjectCall, ThrownError};
use holdfast_types::CellName;
use http::header::HOST;
use http::{HeaderValue, Request, Response, Uri};
use tokio::time::Instant;

use crate::{Outbound, URL, fields, read_whole};

/// Longest result of a method, in the clone format: as on Cloudflare.
const RESULT_LEN_MAX: usize = 32 << 20;

/// A Durable Object, as its stub names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectTarget {
    /// Its class.
    pub class: String,
    /// Its id: 64 hex digits.
    pub id: String,
    /// The name that the id was made from, where the caller knows it.
    pub name: Option<String>,
}

/// An object's answer, released by the output gate of its cell.
#[derive(Debug)]
pub struct ObjectReply {
    /// The answer of its `fetch`; for a method, one whose body is the result in the clone format.
    pub response: Response<Body>,
}

/// What a stub of an application asks of an object, without its body: the call as the fleet carries it.
#[must_use]
pub fn object_call(call: &OutgoingCall, order: CallOrder) -> ObjectCall {
    let CallOrder { stub, place, floor } = order;
    let order = Some(holdfast_rpc::CallOrder { stub, place, floor });
    let plain = ObjectCall { order, ..ObjectCall::default() };
    match call {
        OutgoingCall::Fetch(request) => ObjectCall { is_socket: request.socket.is_some(), ..plain },
        OutgoingCall::Rpc { method, args: _ } => {
            ObjectCall { method: Some(method.clone()), takes_references: true, ..plain }
        }
        OutgoingCall::Session { socket: _, first } => {
            ObjectCall { is_socket: true, session: Some(first.clone()), ..plain }
        }
    }
}

impl ObjectReply {
    /// The result of a method, in the clone format.
    ///
    /// # Errors
    /// It broke, or is longer than 32 MiB.
    pub async fn into_result(self) -> Result<Bytes, JsError> {
        read_whole(self.response.into_body(), RESULT_LEN_MAX).await
    }
}

impl Outbound {
    /// Calls an object as `object` says: its method, whose arguments in the clone format are the body, or else its `fetch`,
    /// which sees the request's URL as it is. With `is_socket` the request asks for a WebSocket, or a session, and where the
    /// answer has status 101 both bodies are its messages. The name is the target's. The call is over at the deadline.
    /// Dropping the future cancels it.
    ///
    /// # Errors
    /// What the object threw (`remote`), or why it was not reached. `retryable` where the call certainly did not run.
    pub async fn call_object(
        &self,
        target: ObjectTarget,
        request: Request<Body>,
        object: ObjectCall,
        deadline: Instant,
    ) -> Result<ObjectReply, JsError> {
        let ObjectTarget { class, id, name } = target;
        let cell = CellName::new(&class, &id).map_err(|error| JsError::new(error.to_string()))?;
        let request = internal(request)?;
        let object = ObjectCall { name, ..object };
        let call = CellCall { cell, access: Access::ReadWrite, request, object, deadline };
        let reply =
            self.inner.router.forward(call).await.map_err(|error| not_answered("Durable Object", &error))?;
        match reply.thrown {
            Some(thrown) => Err(thrown_error(*thrown)),
            None => Ok(ObjectReply { response: reply.response }),
        }
    }
}

/// A request as it goes to a node: the path in its line, the whole URL in a field.
fn internal(request: Request<Body>) -> Result<Request<Body>, JsError> {
    let (mut head, body) = request.into_parts();
    fields::clean_request(&mut head.headers);
    let url = HeaderValue::try_from(head.uri.to_string())
        .map_err(|error| JsError::type_error(format!("the URL `{}` cannot be sent: {error}", head.uri)))?;
    if let Some(host) = head.uri.authority().and_then(|host| HeaderValue::try_from(host.as_str()).ok()) {
        head.headers.insert(HOST, host);
    }
    head.headers.insert(URL, url);
    head.uri = head.uri.path_and_query().cloned().map_or_else(|| Uri::from_static("/"), Uri::from);
    Ok(Request::from_parts(head, body))
}

fn thrown_error(thrown: ThrownError) -> JsError {
    let ThrownError { name, message, stack, is_retryable, is_overloaded } = thrown;
    JsError {
        name,
        message,
        stack: (!stack.is_empty()).then_some(stack),
        remote: true,
        retryable: is_retryable,
        overloaded: is_overloaded,
        object_reset: false,
    }
}

/// Why there is no answer, in the terms of handlers. A call that may have run is not `retryable`: whether it may run twice
/// is for the application to decide, which knows what it does.
pub(crate) fn not_answered(who: &str, error: &RouteError) -> JsError {
    let message = format!("the {who} did not answer: {error}");
    let is_overloaded = matches!(error, RouteError::Refused(CallError::Overloaded { .. }));
    let is_retryable = match error {
        RouteError::Refused(error) => match error {
            CallError::NotOwner(_)
            | CallError::Draining
            | CallError::Overloaded { .. }
            | CallError::Unavailable { .. } => true,
            CallError::Rejected { .. } | CallError::OutcomeUnknown { .. } => false,
        },
        RouteError::NoNode
        | RouteError::BucketUnreadable
        | RouteError::Unreachable { .. }
        | RouteError::Moving => true,
        RouteError::RecordUnusable
        | RouteError::ProtocolMismatch
        | RouteError::BodyBroken { .. }
        | RouteError::OutcomeUnknown { .. } => false,
    };
    JsError { retryable: is_retryable, overloaded: is_overloaded, ..JsError::new(message) }
}

#[cfg(test)]
mod tests {
    use holdfast_rpc::whole_body;

    use super::*;

    #[test]
    fn a_node_sees_the_path_in_the_line_and_the_url_in_a_field() {
        let request = Request::builder()
            .uri("https://do.example/a%2Fb?c")
            .header("holdfast-url", "https://evil/")
            .header("connection", "close")
            .body(whole_body(Bytes::new()))
            .unwrap();
        let (parts, _) = internal(request).unwrap().into_parts();
        assert_eq!(parts.uri.to_string(), "/a%2Fb?c");
        assert_eq!(parts.headers[URL], "https://do.example/a%2Fb?c");
        assert_eq!(parts.headers[HOST], "do.example");
        assert!(!parts.headers.contains_key("connection"));
        assert_eq!(crate::incoming_request(&parts, "http").url, "https://do.example/a%2Fb?c");
    }

    #[test]
    fn an_error_says_whether_the_call_may_be_made_again() {
        let reason = || "why".to_owned();
        let refused = RouteError::Refused;
        let overloaded = CallError::Overloaded { reason: reason(), retry_after_ms: 1 };
        for (error, is_retryable, is_overloaded) in [
            (refused(overloaded), true, true),
            (refused(CallError::Unavailable { reason: reason() }), true, false),
            (refused(CallError::OutcomeUnknown { reason: reason() }), false, false),
            (RouteError::NoNode, true, false),
            (RouteError::OutcomeUnknown { reason: reason() }, false, false),
        ] {
            let text = error.to_string();
            let error = not_answered("Durable Object", &error);
            assert_eq!((error.retryable, error.overloaded), (is_retryable, is_overloaded), "{text}");
            assert!(error.message.ends_with(&text) && !error.remote);
        }
        let thrown = ThrownError { name: "RangeError".into(), message: "m".into(), ..ThrownError::default() };
        let error = thrown_error(thrown);
        assert_eq!((error.name.as_str(), error.message.as_str(), error.remote), ("RangeError", "m", true));
        assert_eq!(error.stack, None);
    }
}
