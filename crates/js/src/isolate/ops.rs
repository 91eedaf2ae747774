//! Operations: what the isolate waits for. JavaScript keeps the promise of each, this keeps its id and settles it.

use std::collections::BTreeMap;

use rquickjs::function::Func;
use rquickjs::{Array, Ctx, Exception, Function, IntoJs, Object, Result, TypedArray, Value};

use super::host::host;
use crate::effect::{
    Effect, EventId, IncomingBody, IncomingBodyId, IncomingResponse, JsError, Op, OpAnswer, OpId,
};
use crate::plain;
use crate::prelude::{self, Part};

/// Operations that an isolate may wait for at once: as many as a request may have subrequests on Cloudflare.
const OPS_MAX: usize = 1_000;

pub(crate) const PART: Part = Part { name: "ops", source: include_str!("ops.js"), natives, globals: &[] };

fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    native.set("cancel", Func::from(cancel))?;
    native.set("setEvent", Func::from(set_event))?;
    native.set("resumeSoon", Func::from(|ctx: Ctx<'_>| host(&ctx).resume_soon()))?;
    native.set("readBody", Func::from(read_body))?;
    native.set("cancelBody", Func::from(cancel_body))?;
    Ok(native)
}

/// The operations that wait.
#[derive(Default)]
pub(crate) struct Ops {
    /// Each with the event that it belongs to, where there is one.
    waiting: BTreeMap<OpId, Option<EventId>>,
    started: u64,
}

impl Ops {
    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn begin(&mut self, event: Option<EventId>) -> OpId {
        self.started += 1;
        let op = OpId::new(self.started);
        self.waiting.insert(op, event);
        op
    }

    /// The event that an operation belongs to, while it waits.
    pub(crate) fn event_of(&self, op: OpId) -> Option<EventId> {
        self.waiting.get(&op).copied().flatten()
    }
}

/// Starts an operation; JavaScript waits for the number it gives with `internals.wait`.
///
/// # Errors
/// A `RangeError` in the context: too many wait already.
pub(crate) fn start(ctx: &Ctx<'_>, op_call: Op) -> Result<u64> {
    let host = host(ctx);
    // Not borrowed while the error is made: nothing of the engine runs under a borrow of ours.
    let has_room = host.ops.borrow().waiting.len() < OPS_MAX;
    if !has_room {
        let message =
            format!("too many operations at once: the limit is {OPS_MAX}; await some before starting more");
        return Err(Exception::throw_range(ctx, &message));
    }
    let op = host.ops.borrow_mut().begin(host.event());
    host.emit(Effect::Start { op, op_call });
    Ok(op.get())
}

fn cancel(ctx: Ctx<'_>, op: u64) {
    let host = host(&ctx);
    let op = OpId::new(op);
    if host.ops.borrow_mut().waiting.remove(&op).is_some() {
        host.emit(Effect::Cancel { op });
    }
}

fn set_event(ctx: Ctx<'_>, event: u64) {
    host(&ctx).set_event((event != 0).then(|| EventId::new(event)));
}

/// Starts to read the next chunk of a body; answers the number of the operation.
pub(crate) fn read_body(ctx: Ctx<'_>, body: u64) -> Result<u64> {
    start(&ctx, Op::ReadBody { body: IncomingBodyId::new(body) })
}

fn cancel_body(ctx: Ctx<'_>, body: u64) {
    host(&ctx).emit(Effect::CancelBody { body: IncomingBodyId::new(body) });
}

/// Resolves or rejects the promise of an operation.
pub(super) fn settle(ctx: &Ctx<'_>, op: OpId, answer: OpAnswer) -> Result<()> {
    if host(ctx).ops.borrow_mut().waiting.remove(&op).is_none() {
        return Ok(());
    }
    let settle: Function<'_> = prelude::internals(ctx).get("settle")?;
    match answer {
        OpAnswer::Failed(error) => settle.call((op.get(), false, error_to_js(ctx, &error)?)),
        OpAnswer::Response(response) => settle.call((op.get(), true, response_to_js(ctx, response)?)),
        OpAnswer::Returned(bytes) => settle.call((op.get(), true, bytes_to_js(ctx, &bytes)?)),
        OpAnswer::Object { head, body } => {
            let object = plain::record(ctx)?;
            object.set("head", &*String::from_utf8_lossy(&head))?;
            object.set("body", body_to_js(ctx, &body)?)?;
            settle.call((op.get(), true, object))
        }
        OpAnswer::Chunk(chunk) => {
            let chunk = chunk.map(|bytes| bytes_to_js(ctx, &bytes)).transpose()?;
            settle.call((op.get(), true, chunk))
        }
        OpAnswer::Written => settle.call((op.get(), true)),
    }
}

/// Bytes as a `Uint8Array`, in the isolate's own memory, so that its limit counts them.
pub(crate) fn bytes_to_js<'js>(ctx: &Ctx<'js>, bytes: &[u8]) -> Result<Value<'js>> {
    Ok(TypedArray::<u8>::new_copy(ctx.clone(), bytes)?.into_value())
}

/// A body as `null`, a `Uint8Array`, or the number of a stream.
pub(super) fn body_to_js<'js>(ctx: &Ctx<'js>, body: &IncomingBody) -> Result<Value<'js>> {
    match body {
        IncomingBody::None => Ok(Value::new_null(ctx.clone())),
        IncomingBody::Whole(bytes) => bytes_to_js(ctx, bytes),
        IncomingBody::Stream(id) => id.get().into_js(ctx),
    }
}

/// Fields as names and values in turn; a name that comes several times is there several times.
pub(super) fn flat_headers_to_js<'js>(ctx: &Ctx<'js>, headers: &http::HeaderMap) -> Result<Array<'js>> {
    let flat = Array::new(ctx.clone())?;
    for (name, value) in headers {
        plain::append(&flat, name.as_str())?;
        plain::append(&flat, &*String::from_utf8_lossy(value.as_bytes()))?;
    }
    Ok(flat)
}

/// Fields as pairs; a name that comes several times has several pairs.
pub(super) fn headers_to_js<'js>(ctx: &Ctx<'js>, headers: &http::HeaderMap) -> Result<Array<'js>> {
    let pairs = Array::new(ctx.clone())?;
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        plain::append(&pairs, vec![name.as_str(), &value])?;
    }
    Ok(pairs)
}

fn response_to_js<'js>(ctx: &Ctx<'js>, response: IncomingResponse) -> Result<Object<'js>> {
    let IncomingResponse { status, status_text, headers, body, url, redirected, is_socket } = response;
    let object = plain::record(ctx)?;
    object.set("status", status)?;
    object.set("statusText", status_text)?;
    object.set("headers", headers_to_js(ctx, &headers)?)?;
    object.set("body", body_to_js(ctx, &body)?)?;
    object.set("url", url)?;
    object.set("redirected", redirected)?;
    object.set("isSocket", is_socket)?;
    Ok(object)
}

fn error_to_js<'js>(ctx: &Ctx<'js>, error: &JsError) -> Result<Object<'js>> {
    let JsError { name, message, stack: _, remote, retryable, overloaded, object_reset } = error;
    let object = plain::record(ctx)?;
    object.set("name", name.as_str())?;
    object.set("message", message.as_str())?;
    object.set("remote", *remote)?;
    object.set("retryable", *retryable)?;
    object.set("overloaded", *overloaded)?;
    object.set("durableObjectReset", *object_reset)?;
    Ok(object)
}
