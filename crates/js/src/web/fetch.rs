//! `fetch`: its JavaScript, and one exchange with a server as an operation of the isolate. Bodies that leave in chunks
//! leave here, whoever they go to: a chunk waits until the embedder has taken the one before.

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use rquickjs::function::Func;
use rquickjs::{Ctx, Exception, Object, Result, TypedArray, Value};

use crate::buffers;
use crate::effect::{Effect, JsError, Op, OutgoingBody, OutgoingBodyId, OutgoingRequest, Redirect, SocketId};
use crate::isolate::host::host;
use crate::isolate::ops;
use crate::plain;
use crate::prelude::{Part, no_natives};

pub(crate) const PART: Part =
    Part { name: "fetch", source: include_str!("fetch.js"), natives: no_natives, globals: &["fetch"] };

/// Bodies that leave the isolate, and exchanges. Loaded by `fetch`, and by whoever answers an event.
pub(crate) const OUTGOING: Part =
    Part { name: "outgoing", source: include_str!("outgoing.js"), natives, globals: &[] };

fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    native.set("start", Func::from(start))?;
    native.set("writeBody", Func::from(write_body))?;
    native.set("endBody", Func::from(end_body))?;
    native.set("abortBody", Func::from(abort_body))?;
    Ok(native)
}

/// Starts a request; answers the number of the operation.
fn start<'js>(
    ctx: Ctx<'js>,
    method: String,
    url: String,
    headers: Vec<String>,
    body: Value<'js>,
    socket: Option<u64>,
    is_for_assets: bool,
) -> Result<u64> {
    let mut request = request_from_js(&ctx, method, url, headers, body)?;
    request.socket = socket.map(SocketId::new);
    request.is_for_assets = is_for_assets;
    ops::start(&ctx, Op::Fetch(request))
}

/// A request of a handler, to a server or to an object. Redirects are followed in `fetch.js`, which knows the body and the
/// signal.
///
/// # Errors
/// A `TypeError` for what no request can be.
pub(crate) fn request_from_js<'js>(
    ctx: &Ctx<'js>,
    method: String,
    url: String,
    headers: Vec<String>,
    body: Value<'js>,
) -> Result<OutgoingRequest> {
    let method = Method::from_bytes(method.as_bytes())
        .map_err(|_| Exception::throw_type(ctx, &format!("Invalid HTTP method string: {method}")))?;
    let mut headers = headers_from_js(ctx, &headers)?;
    let body = body_from_js(&body)?;
    correct_length(&mut headers, &body);
    Ok(OutgoingRequest {
        method,
        url,
        headers,
        body,
        redirect: Redirect::Manual,
        socket: None,
        is_for_assets: false,
    })
}

/// A length that was copied from another request is that of its body. Of streams `fetch.js` says what is known.
fn correct_length(headers: &mut HeaderMap, body: &OutgoingBody) {
    match body {
        OutgoingBody::Stream(_) => {}
        OutgoingBody::None => {
            headers.remove(CONTENT_LENGTH);
        }
        OutgoingBody::Whole(bytes) => {
            if headers.contains_key(CONTENT_LENGTH) {
                headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes.len()));
            }
        }
    }
}

/// Names and values in turn as fields. Values are UTF-8.
///
/// # Errors
/// A `TypeError` for what no field can be; the class `Headers` lets none of that in.
pub(crate) fn headers_from_js(ctx: &Ctx<'_>, flat: &[String]) -> Result<HeaderMap> {
    let mut headers = HeaderMap::with_capacity(flat.len() / 2);
    for pair in flat.chunks_exact(2) {
        let name = HeaderName::from_bytes(pair[0].as_bytes())
            .map_err(|_| Exception::throw_type(ctx, "Invalid header name."))?;
        let value = HeaderValue::from_bytes(pair[1].as_bytes())
            .map_err(|_| Exception::throw_type(ctx, "Invalid header value."))?;
        headers.append(name, value);
    }
    Ok(headers)
}

/// A body as `outgoing.js` gives it: null, a string, a `Uint8Array`, or the number of a stream.
///
/// # Errors
/// Text with surrogates that have no partner; anything else.
pub(crate) fn body_from_js<'js>(body: &Value<'js>) -> Result<OutgoingBody> {
    if body.is_null() || body.is_undefined() {
        return Ok(OutgoingBody::None);
    }
    if let Some(text) = body.as_string() {
        return Ok(OutgoingBody::Whole(Bytes::from(text.to_string()?)));
    }
    if let Some(number) = body.as_number() {
        return Ok(OutgoingBody::Stream(OutgoingBodyId::new(number as u64)));
    }
    let bytes: TypedArray<'js, u8> = body.get()?;
    Ok(OutgoingBody::Whole(Bytes::from(buffers::read(&bytes))))
}

/// Hands a chunk out; answers the number of the operation that ends when there is room for more.
fn write_body<'js>(ctx: Ctx<'js>, body: u64, chunk: TypedArray<'js, u8>) -> Result<u64> {
    let chunk = Bytes::from(buffers::read(&chunk));
    ops::start(&ctx, Op::WriteBody { body: OutgoingBodyId::new(body), chunk })
}

fn end_body(ctx: Ctx<'_>, body: u64) {
    host(&ctx).emit(Effect::EndBody { body: OutgoingBodyId::new(body) });
}

fn abort_body(ctx: Ctx<'_>, body: u64, name: String, message: String) {
    let error = JsError { name, message, ..JsError::default() };
    host(&ctx).emit(Effect::AbortBody { body: OutgoingBodyId::new(body), error });
}
