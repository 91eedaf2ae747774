//! Events: their calls on the way in, and their answers on the way out. What lies between is in `events.js`.

use bytes::Bytes;
use rquickjs::function::Func;
use rquickjs::{Ctx, Function, Object, Result, TypedArray, Value};

use super::host::host;
use super::kind::IsolateKind;
use super::ops;
use super::scheduled::CRON_CLASS;
use crate::application::Binding;
use crate::buffers;
use crate::effect::{
    BrokenCause, Effect, Ending, EventCall, EventId, IncomingRequest, JsError, OutgoingBody,
    OutgoingResponse, SocketEnd, SocketId,
};
use crate::plain;
use crate::prelude::{self, Part};
use crate::web::fetch::{body_from_js, headers_from_js};
use crate::web::sockets;

pub(crate) const PART: Part =
    Part { name: "events", source: include_str!("events.js"), natives, globals: &[] };

fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    native.set("respond", Func::from(respond))?;
    native.set("respondSocket", Func::from(respond_socket))?;
    native.set("returned", Func::from(returned))?;
    native.set("fail", Func::from(fail))?;
    native.set("done", Func::from(done))?;
    native.set("abort", Func::from(abort))?;
    native.set("breakConstructor", Func::from(break_constructor))?;
    native.set("breakGate", Func::from(break_gate))?;
    native.set("bindings", bindings(ctx)?)?;
    if let IsolateKind::Object(object) = &host(ctx).kind {
        native.set("className", object.class.as_str())?;
        native.set("isCron", object.class == CRON_CLASS)?;
    }
    Ok(native)
}

fn bindings<'js>(ctx: &Ctx<'js>) -> Result<Vec<Vec<String>>> {
    let one = |(name, binding): (&str, &Binding)| {
        let (kind, value) = match binding {
            Binding::Text(value) => ("text", value.as_str()),
            Binding::Json(value) => ("json", value.as_str()),
            Binding::ObjectNamespace { class } => ("objects", class.as_str()),
            Binding::Database { name } => ("database", name.as_str()),
            Binding::R2Bucket { name } => ("r2", name.as_str()),
            Binding::Assets => ("assets", ""),
            Binding::SelfService { entrypoint } => ("service", entrypoint.as_deref().unwrap_or("default")),
        };
        vec![name.to_owned(), kind.to_owned(), value.to_owned()]
    };
    Ok(host(ctx).code.bindings().map(one).collect())
}

/// Enters JavaScript with a new event.
pub(super) fn begin(ctx: &Ctx<'_>, event: EventId, call: EventCall) -> Result<()> {
    host(ctx).begin_event(event);
    let object = match call {
        EventCall::Fetch(request) => request_to_js(ctx, request)?,
        EventCall::Rpc { method, args, takes_references } => {
            let object = plain::record(ctx)?;
            object.set("method", method)?;
            object.set("args", ops::bytes_to_js(ctx, &args)?)?;
            object.set("takesReferences", takes_references)?;
            object
        }
        EventCall::Session { first } => {
            let object = plain::record(ctx)?;
            object.set("session", ops::bytes_to_js(ctx, &first)?)?;
            object
        }
        EventCall::Alarm { scheduled, retry_count } => {
            let alarm = plain::record(ctx)?;
            alarm.set("scheduledTime", scheduled.get() as f64)?;
            alarm.set("retryCount", retry_count)?;
            let object = plain::record(ctx)?;
            object.set("alarm", alarm)?;
            object
        }
        EventCall::Socket { socket, event } => sockets::event_to_js(ctx, socket, event)?,
    };
    let begin: Function<'_> = prelude::internals(ctx).get("begin")?;
    begin.call((event.get(), object))
}

/// Ends an event, as [`Ending`] says.
pub(super) fn end(ctx: &Ctx<'_>, event: EventId, ending: Ending) -> Result<()> {
    let end: Function<'_> = prelude::internals(ctx).get("endEvent")?;
    end.call((event.get(), ending == Ending::TimeOver))
}

fn request_to_js<'js>(ctx: &Ctx<'js>, request: IncomingRequest) -> Result<Object<'js>> {
    let IncomingRequest { method, url, headers, body, cf } = request;
    let object = plain::record(ctx)?;
    object.set("method", method.as_str())?;
    object.set("url", url)?;
    object.set("headers", ops::flat_headers_to_js(ctx, &headers)?)?;
    object.set("body", ops::body_to_js(ctx, &body)?)?;
    if let Some(cf) = cf {
        object.set("cf", cf)?;
    }
    Ok(object)
}

fn respond<'js>(
    ctx: Ctx<'js>,
    event: u64,
    status: u16,
    status_text: String,
    headers: Vec<String>,
    body: Value<'js>,
) -> Result<()> {
    let headers = headers_from_js(&ctx, &headers)?;
    let response =
        OutgoingResponse { status, status_text, headers, body: body_from_js(&body)?, socket: None };
    host(&ctx).emit(Effect::Respond { event: EventId::new(event), response });
    Ok(())
}

/// An answer that gives its caller the other end of a socket.
fn respond_socket(
    ctx: Ctx<'_>,
    event: u64,
    status_text: String,
    headers: Vec<String>,
    socket: u64,
    is_opened: bool,
) -> Result<()> {
    let headers = headers_from_js(&ctx, &headers)?;
    let socket = SocketId::new(socket);
    let socket = if is_opened { SocketEnd::Opened(socket) } else { SocketEnd::Own(socket) };
    let (body, socket) = (OutgoingBody::None, Some(socket));
    let response = OutgoingResponse { status: 101, status_text, headers, body, socket };
    host(&ctx).emit(Effect::Respond { event: EventId::new(event), response });
    Ok(())
}

fn returned<'js>(ctx: Ctx<'js>, event: u64, value: TypedArray<'js, u8>) {
    let value = Bytes::from(buffers::read(&value));
    host(&ctx).emit(Effect::Return { event: EventId::new(event), value });
}

/// What `describe` of `events.js` tells of an error, for the log.
fn error_of(ctx: &Ctx<'_>, error: &Object<'_>) -> Result<JsError> {
    let stack: String = error.get("stack")?;
    let error = JsError {
        name: error.get("name")?,
        message: error.get("message")?,
        stack: (!stack.is_empty()).then_some(stack),
        retryable: error.get("retryable")?,
        overloaded: error.get("overloaded")?,
        ..JsError::default()
    };
    Ok(host(ctx).code.map_stack(error))
}

fn fail<'js>(ctx: Ctx<'js>, event: u64, error: Object<'js>, pass_through: bool) -> Result<()> {
    let error = error_of(&ctx, &error)?;
    host(&ctx).emit(Effect::Fail { event: EventId::new(event), error, pass_through });
    Ok(())
}

fn done(ctx: Ctx<'_>, event: u64) {
    host(&ctx).end_event(EventId::new(event));
}

fn abort<'js>(ctx: Ctx<'js>, error: Object<'js>) -> Result<()> {
    host(&ctx).break_with(BrokenCause::Aborted(error_of(&ctx, &error)?));
    Ok(())
}

fn break_constructor<'js>(ctx: Ctx<'js>, error: Object<'js>) -> Result<()> {
    host(&ctx).break_with(BrokenCause::ConstructorThrew(error_of(&ctx, &error)?));
    Ok(())
}

fn break_gate<'js>(ctx: Ctx<'js>, error: Object<'js>) -> Result<()> {
    host(&ctx).break_with(BrokenCause::BlockConcurrencyFailed(error_of(&ctx, &error)?));
    Ok(())
}
