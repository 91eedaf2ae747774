//! Between the cell's own terms and those of the isolate.

use bytes::Bytes;
use holdfast_js::{
    EventCall as JsCall, EventId as JsEvent, IncomingResponse, JsError, OpAnswer as JsAnswer,
    OutgoingResponse,
};
use holdfast_outbound::{incoming_request, incoming_response, outgoing_response};
use holdfast_rpc::ThrownError;
use http::HeaderValue;
use http::header::UPGRADE;

use super::bodies::Bodies;
use crate::runtime::{Answer, EventCall, EventId, OpAnswer, ReplyBody, RequestBody, ServerAnswer};

/// The cell's name of an event. The isolate has the same number for it.
pub(super) fn event_of(event: JsEvent) -> EventId {
    EventId(event.get())
}

/// What an event asks of an isolate. Its body is taken out of it.
pub(super) fn incoming_call(call: &mut EventCall, bodies: &mut Bodies) -> JsCall {
    let body = std::mem::replace(call.request.body_mut(), RequestBody::Whole(Bytes::new()));
    if let Some(first) = call.object.session.take() {
        return JsCall::Session { first };
    }
    let takes_references = call.object.takes_references;
    match (call.object.method.take(), body) {
        (Some(method), RequestBody::Whole(args)) => JsCall::Rpc { method, args, takes_references },
        (Some(_), RequestBody::Stream(_)) => unreachable!("the arguments of a method come whole"),
        (None, body) => {
            let taken = http::Request::new(RequestBody::Whole(Bytes::new()));
            let (parts, _) = std::mem::replace(&mut call.request, taken).into_parts();
            let mut request = incoming_request(&parts, "http");
            if call.object.is_socket {
                request.headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
            }
            request.body = bodies.take_in(body);
            JsCall::Fetch(request)
        }
    }
}

/// The answer of a handler that responds.
pub(super) fn response_answer(response: OutgoingResponse, bodies: &mut Bodies) -> Answer {
    match outgoing_response(&response) {
        Ok(head) => Answer::Response(head.map(|()| bodies.reply(response.body))),
        Err(error) => failed(error),
    }
}

/// The answer of a method.
pub(super) fn returned(value: Bytes) -> Answer {
    Answer::Response(http::Response::new(ReplyBody::Whole(value)))
}

/// The answer of a handler that throws.
pub(super) fn failed(error: JsError) -> Answer {
    Answer::Thrown(Box::new(ThrownError {
        name: error.name,
        message: error.message,
        stack: error.stack.unwrap_or_default(),
        is_retryable: error.retryable,
        is_overloaded: error.overloaded,
    }))
}

/// What the isolate is told of an operation's end.
pub(super) fn op_answer(answer: OpAnswer, bodies: &mut Bodies) -> JsAnswer {
    match answer {
        OpAnswer::Chunk(Ok(Some(chunk))) => JsAnswer::Chunk(Some(chunk)),
        OpAnswer::Chunk(Ok(None)) => {
            bodies.forget_ended();
            JsAnswer::Chunk(None)
        }
        OpAnswer::Chunk(Err(reason)) => {
            bodies.forget_ended();
            JsAnswer::Failed(JsError::type_error(reason))
        }
        OpAnswer::Written(true) => JsAnswer::Written,
        OpAnswer::Written(false) => JsAnswer::Failed(JsError::type_error("nobody reads this body any more")),
        OpAnswer::Refused(reason) => JsAnswer::Failed(JsError { overloaded: true, ..JsError::new(reason) }),
        OpAnswer::Failed(error) => JsAnswer::Failed(*error),
        OpAnswer::Returned(value) => JsAnswer::Returned(value),
        OpAnswer::Object(head, body) => JsAnswer::Object { head, body: bodies.take_in(body) },
        OpAnswer::Response(answer) => JsAnswer::Response(response(*answer, bodies)),
    }
}

fn response(answer: ServerAnswer, bodies: &mut Bodies) -> IncomingResponse {
    let ServerAnswer { head, body, url, redirected } = answer;
    let mut made = incoming_response(&head, url, redirected);
    made.body = bodies.take_in(body);
    made
}
