//! WebSockets: pairs inside of an isolate, and sockets whose other end is outside. What leaves is an effect, in order with
//! all others; what comes is an event, or, for sockets that were accepted by `accept()`, a call of `receiveSocket`.

use bytes::Bytes;
use rquickjs::function::Func;
use rquickjs::{Ctx, Exception, Function, IntoJs as _, Object, Result, TypedArray, Value};

use crate::buffers;
use crate::effect::{Effect, SocketAction, SocketEvent, SocketId, SocketMessage};
use crate::isolate::host::host;
use crate::isolate::kind::IsolateKind;
use crate::isolate::ops;
use crate::plain;
use crate::prelude::{self, Part};

mod kept;
#[cfg(test)]
mod tests;

pub use kept::{KEPT_MAX, KeptSockets};

/// Tags of one socket.
const TAGS_MAX: usize = 10;
/// Longest tag in bytes.
const TAG_LEN_MAX: usize = 256;
/// Longest attachment in bytes of its serialized form.
const ATTACHMENT_LEN_MAX: usize = 16 << 10;
/// Longest text of either side of an auto-response, in bytes.
const AUTO_RESPONSE_LEN_MAX: usize = 2_048;
/// Longest time of an event that a hibernatable socket may be given, in milliseconds: seven days.
const EVENT_TIMEOUT_MS_MAX: u32 = 604_800_000;

pub(crate) const PART: Part = Part {
    name: "sockets",
    source: include_str!("sockets.js"),
    natives,
    globals: &["WebSocket", "WebSocketPair", "WebSocketRequestResponsePair"],
};

fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    let host = host(ctx);
    let has = |flag: &str, off: &str, since: &str| {
        let code = &host.code;
        let is_on = code.compatibility_date() >= since || code.has_compatibility_flag(flag);
        is_on && !code.has_compatibility_flag(off)
    };
    native.set(
        "repliesToClose",
        has("web_socket_auto_reply_to_close", "web_socket_manual_reply_to_close", "2026-04-07"),
    )?;
    native.set(
        "givesBlobs",
        has("websocket_standard_binary_type", "no_websocket_standard_binary_type", "2026-03-17"),
    )?;
    native.set("isWorker", matches!(host.kind, IsolateKind::Worker))?;
    native.set("attachmentMax", ATTACHMENT_LEN_MAX)?;
    native.set("eventTimeoutMax", EVENT_TIMEOUT_MS_MAX)?;
    native.set("sendText", Func::from(send_text))?;
    session_natives(&native)?;
    native.set("utf8Length", Func::from(|text: String| text.len()))?;
    if let IsolateKind::Object(_) = &host.kind {
        kept_natives(&native)?;
    }
    Ok(native)
}

/// What sessions do with their sockets.
pub(crate) fn session_natives(native: &Object<'_>) -> Result<()> {
    native
        .set("newSocket", Func::from(|ctx: Ctx<'_>| crate::isolate::host::host(&ctx).next_socket().get()))?;
    native.set("accept", Func::from(accept))?;
    native.set("taken", Func::from(taken))?;
    native.set("sendBytes", Func::from(send_bytes))?;
    native.set("close", Func::from(close))?;
    native.set("over", Func::from(over))
}

fn kept_natives(native: &Object<'_>) -> Result<()> {
    native.set("keep", Func::from(keep))?;
    native.set("kept", Func::from(list))?;
    native
        .set("tags", Func::from(|ctx: Ctx<'_>, socket: u64| with_kept(&ctx, |kept| kept.tags(id(socket)))))?;
    native.set("attachment", Func::from(attachment))?;
    native.set("attach", Func::from(attach))?;
    native.set(
        "isClosed",
        Func::from(|ctx: Ctx<'_>, socket: u64| with_kept(&ctx, |kept| kept.is_closed(id(socket)))),
    )?;
    native.set("setAutoResponse", Func::from(set_auto_response))?;
    native.set("autoResponse", Func::from(auto_response))?;
    native.set("autoRespondedAt", Func::from(auto_responded_at))?;
    native.set(
        "setEventTimeout",
        Func::from(|ctx: Ctx<'_>, ms: Option<u32>| with_kept(&ctx, |kept| kept.set_event_timeout(ms))),
    )?;
    native.set("eventTimeout", Func::from(|ctx: Ctx<'_>| with_kept(&ctx, |kept| kept.event_timeout())))
}

const fn id(socket: u64) -> SocketId {
    SocketId::new(socket)
}

fn with_kept<T>(ctx: &Ctx<'_>, with: impl FnOnce(&mut KeptSockets) -> T) -> T {
    match &host(ctx).kind {
        IsolateKind::Object(object) => with(&mut object.sockets.borrow_mut()),
        IsolateKind::Worker => unreachable!("only objects have these natives"),
    }
}

fn act(ctx: &Ctx<'_>, socket: u64, action: SocketAction) {
    host(ctx).emit(Effect::Socket { socket: id(socket), action });
}

fn accept(ctx: Ctx<'_>, socket: u64, is_hibernatable: bool) {
    if !is_hibernatable {
        host(&ctx).socket_listens(id(socket), true);
    }
    act(&ctx, socket, SocketAction::Accept { is_hibernatable });
}

/// The handler has begun with what came. An event that lives as long as a socket has its time for each message anew.
fn taken(ctx: Ctx<'_>, socket: u64) {
    let host = host(&ctx);
    if let Some(event) = host.event() {
        host.budget.forget(event);
    }
    act(&ctx, socket, SocketAction::Taken);
}

fn send_text(ctx: Ctx<'_>, socket: u64, text: String) {
    act(&ctx, socket, SocketAction::Send(SocketMessage::Text(text)));
}

fn send_bytes<'js>(ctx: Ctx<'js>, socket: u64, bytes: TypedArray<'js, u8>) {
    let bytes = Bytes::from(buffers::read(&bytes));
    act(&ctx, socket, SocketAction::Send(SocketMessage::Binary(bytes)));
}

fn close(ctx: Ctx<'_>, socket: u64, code: Option<u16>, reason: String) {
    if let IsolateKind::Object(object) = &host(&ctx).kind {
        object.sockets.borrow_mut().set_closed(id(socket));
    }
    act(&ctx, socket, SocketAction::Close { code, reason });
}

fn over(ctx: Ctx<'_>, socket: u64) {
    let host = host(&ctx);
    host.socket_listens(id(socket), false);
    if let IsolateKind::Object(object) = &host.kind {
        object.sockets.borrow_mut().forget(id(socket));
    }
    act(&ctx, socket, SocketAction::Over);
}

/// Takes a socket in under its tags, each once; answers its number.
fn keep(ctx: Ctx<'_>, tags: Vec<String>) -> Result<u64> {
    let mut distinct: Vec<String> = Vec::new();
    for tag in tags {
        if distinct.len() >= TAGS_MAX && !distinct.contains(&tag) {
            let text = format!("a Hibernatable WebSocket cannot have more than {TAGS_MAX} tags");
            return Err(Exception::throw_message(&ctx, &text));
        }
        if tag.len() > TAG_LEN_MAX {
            let text = format!("\"{tag}\" is longer than the max tag length ({TAG_LEN_MAX} characters).");
            return Err(Exception::throw_message(&ctx, &text));
        }
        if !distinct.contains(&tag) {
            distinct.push(tag);
        }
    }
    let socket = host(&ctx).next_socket();
    if !with_kept(&ctx, |kept| kept.keep(socket, distinct)) {
        let text = format!("only {KEPT_MAX} websockets can be accepted on a single Durable Object instance");
        return Err(Exception::throw_message(&ctx, &text));
    }
    Ok(socket.get())
}

fn list(ctx: Ctx<'_>, tag: Option<String>) -> Vec<u64> {
    with_kept(&ctx, |kept| kept.list(tag.as_deref())).into_iter().map(SocketId::get).collect()
}

fn attachment<'js>(ctx: Ctx<'js>, socket: u64) -> Result<Value<'js>> {
    match with_kept(&ctx, |kept| kept.attachment(id(socket))) {
        Some(bytes) => ops::bytes_to_js(&ctx, &bytes),
        None => Ok(Value::new_null(ctx)),
    }
}

fn attach<'js>(ctx: Ctx<'js>, socket: u64, attachment: TypedArray<'js, u8>) {
    let attachment = Bytes::from(buffers::read(&attachment));
    with_kept(&ctx, |kept| kept.attach(id(socket), attachment));
}

fn set_auto_response(ctx: Ctx<'_>, request: Option<String>, response: Option<String>) -> Result<()> {
    let pair = request.zip(response);
    if let Some((request, response)) = &pair {
        for (what, lower, text) in [("Request", "request", request), ("Response", "response", response)] {
            if text.len() > AUTO_RESPONSE_LEN_MAX {
                let (max, len) = (AUTO_RESPONSE_LEN_MAX, text.len());
                let text = format!(
                    "{what} cannot be larger than {max} bytes. A {lower} of size {len} was provided."
                );
                return Err(Exception::throw_range(&ctx, &text));
            }
        }
    }
    with_kept(&ctx, |kept| kept.set_auto_response(pair));
    Ok(())
}

fn auto_response(ctx: Ctx<'_>) -> Option<Vec<String>> {
    with_kept(&ctx, |kept| kept.auto_response()).map(|(request, response)| vec![request, response])
}

fn auto_responded_at(ctx: Ctx<'_>, socket: u64) -> Option<f64> {
    with_kept(&ctx, |kept| kept.auto_responded_at(id(socket))).map(|at| at.get() as f64)
}

/// What came, as `sockets.js` takes it.
pub(crate) fn event_to_js<'js>(ctx: &Ctx<'js>, socket: SocketId, event: SocketEvent) -> Result<Object<'js>> {
    let object = plain::record(ctx)?;
    object.set("socket", socket.get())?;
    match event {
        SocketEvent::Message(SocketMessage::Text(text)) => object.set("data", text)?,
        SocketEvent::Message(SocketMessage::Binary(bytes)) => {
            object.set("data", ops::bytes_to_js(ctx, &bytes)?)?;
        }
        SocketEvent::Close { code, reason, was_clean } => {
            object.set("code", code)?;
            object.set("reason", reason)?;
            object.set("wasClean", was_clean)?;
        }
        SocketEvent::Error(message) => object.set("error", message.into_js(ctx)?)?,
    }
    Ok(object)
}

/// Enters JavaScript with what came for a socket that was accepted by `accept()`.
pub(crate) fn receive(ctx: &Ctx<'_>, socket: SocketId, event: SocketEvent) -> Result<()> {
    prelude::load(ctx, PART.name)?;
    let receive: Function<'_> = prelude::internals(ctx).get("receiveSocket")?;
    receive.call((event_to_js(ctx, socket, event)?,))
}
