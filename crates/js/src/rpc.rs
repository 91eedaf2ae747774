//! References over RPC: functions, `RpcTarget`s and streams as arguments and results. What crosses is in the JavaScript
//! beside this: the stubs that programs see, the values with references in them, and the sessions that carry the calls.
//! A session is a socket between two isolates, and everything that an object says on it passes its output gate in order.

use bytes::Bytes;
use rquickjs::function::Func;
use rquickjs::{Ctx, Exception, Object, Result, TypedArray};

use crate::buffers;
use crate::effect::{Effect, EventId, Op, OutgoingBody, OutgoingCall, OutgoingResponse, SocketEnd, SocketId};
use crate::isolate::host::host;
use crate::isolate::objects::Target;
use crate::isolate::ops;
use crate::plain;
use crate::prelude::{Part, no_natives};
use crate::web::sockets;

#[cfg(test)]
mod tests;

/// References that one end of a session may hold.
const REFERENCES_MAX: usize = 1_000;
/// Calls that one end of a session may have under way.
const CALLS_MAX: usize = 1_000;
/// Sessions of an isolate.
const SESSIONS_MAX: usize = 1_000;
/// Longest message of a session, in bytes: half of what may wait for an end that takes nothing.
const MESSAGE_LEN_MAX: usize = 8 << 20;
/// Longest message that goes along with the request for a session, in bytes.
const FIRST_LEN_MAX: usize = 1 << 20;

/// Stubs, their properties and promises.
pub(crate) const STUBS: Part =
    Part { name: "stubs", source: include_str!("rpc/stubs.js"), natives: no_natives, globals: &[] };

/// Values with references.
pub(crate) const REFERENCES: Part =
    Part { name: "references", source: include_str!("rpc/references.js"), natives: no_natives, globals: &[] };

/// What carries the calls.
pub(crate) const SESSIONS: Part =
    Part { name: "sessions", source: include_str!("rpc/sessions.js"), natives, globals: &[] };

fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    native.set("referencesMax", REFERENCES_MAX)?;
    native.set("callsMax", CALLS_MAX)?;
    native.set("sessionsMax", SESSIONS_MAX)?;
    native.set("messageMax", MESSAGE_LEN_MAX)?;
    native.set("firstMax", FIRST_LEN_MAX)?;
    native.set("token", Func::from(token))?;
    native.set("openSession", Func::from(open_session))?;
    native.set("respondSession", Func::from(respond_session))?;
    sockets::session_natives(&native)?;
    Ok(native)
}

/// What nobody guesses.
fn token(ctx: Ctx<'_>) -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|_| Exception::throw_internal(&ctx, "the system has no random bytes"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn open_session<'js>(ctx: Ctx<'js>, target: Target, socket: u64, first: TypedArray<'js, u8>) -> Result<u64> {
    let Target { class, id, name, order } = target;
    let call =
        OutgoingCall::Session { socket: SocketId::new(socket), first: Bytes::from(buffers::read(&first)) };
    ops::start(&ctx, Op::CallObject { class, id, name, order, call })
}

/// Answers an event that asked for a session.
fn respond_session(ctx: Ctx<'_>, event: u64, socket: u64) {
    let response = OutgoingResponse {
        status: 101,
        status_text: String::new(),
        headers: http::HeaderMap::new(),
        body: OutgoingBody::None,
        socket: Some(SocketEnd::Own(SocketId::new(socket))),
    };
    host(&ctx).emit(Effect::Respond { event: EventId::new(event), response });
}
