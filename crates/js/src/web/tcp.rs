//! Outgoing TCP: `connect` of `cloudflare:sockets`. A connection is an operation with two bodies: what is written leaves like
//! the body of a request, in order with all other effects, and what the server sends is read like that of an answer.

use rquickjs::function::Func;
use rquickjs::{Ctx, Exception, Object, Result, Value};

use super::fetch::body_from_js;
use crate::effect::{ConnectTo, Op, OutgoingConnection, Security};
use crate::isolate::host::host;
use crate::isolate::ops;
use crate::plain;
use crate::prelude::Part;

/// Connections of one isolate at a time, which bounds what their buffers outside of it hold.
const CONNECTIONS_MAX: usize = 512;

pub(crate) const PART: Part = Part { name: "tcp", source: include_str!("tcp.js"), natives, globals: &[] };

fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    native.set("begin", Func::from(begin))?;
    native.set("over", Func::from(|ctx: Ctx<'_>| host(&ctx).connection_is_open(false)))?;
    native.set("connect", Func::from(connect))?;
    native.set("upgrade", Func::from(upgrade))?;
    native.set("read", Func::from(ops::read_body))?;
    Ok(native)
}

/// Makes room for a connection.
fn begin(ctx: Ctx<'_>) -> Result<()> {
    let host = host(&ctx);
    if host.connections() >= CONNECTIONS_MAX {
        let message = format!("too many sockets are open: the limit is {CONNECTIONS_MAX}; close some first");
        return Err(Exception::throw_range(&ctx, &message));
    }
    host.connection_is_open(true);
    Ok(())
}

fn security(text: &str) -> Security {
    match text {
        "on" => Security::On,
        "starttls" => Security::StartTls,
        _ => Security::Off,
    }
}

/// Starts a connection to a server; answers the number of the operation.
fn connect<'js>(ctx: Ctx<'js>, hostname: String, port: u16, with: String, body: Value<'js>) -> Result<u64> {
    let to = ConnectTo::Address { hostname, port };
    let body = body_from_js(&body)?;
    ops::start(&ctx, Op::Connect(OutgoingConnection { to, security: security(&with), body }))
}

/// Has a connection go on encrypted; answers the number of the operation.
fn upgrade<'js>(
    ctx: Ctx<'js>,
    key: String,
    written: u64,
    server_name: String,
    body: Value<'js>,
) -> Result<u64> {
    let to = ConnectTo::Upgraded { key, written, server_name };
    let body = body_from_js(&body)?;
    ops::start(&ctx, Op::Connect(OutgoingConnection { to, security: Security::On, body }))
}

#[cfg(test)]
mod tests;
