//! Durable Objects as their callers see them: ids, and calls. An id has two halves: a base, random or made from a
//! name, and a code over it by the key of its namespace, so that the id of one namespace is refused by another.

use bytes::Bytes;
use ring::digest::{SHA256, digest};
use ring::hmac::{HMAC_SHA256, Key, sign};
use rquickjs::function::Func;
use rquickjs::{Ctx, Exception, FromJs, Object, Result, TypedArray, Value};

use super::host::host;
use super::kind::IsolateKind;
use super::ops;
use crate::buffers;
use crate::effect::{CallOrder, Op, OutgoingCall, SocketId};
use crate::plain;
use crate::prelude::Part;
use crate::web::fetch::request_from_js;

/// Bytes of each half of an id.
const HALF_LEN: usize = 16;

pub(crate) const PART: Part =
    Part { name: "objects", source: include_str!("objects.js"), natives, globals: &[] };

fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    native.set("idFromName", Func::from(|class: String, name: String| id_from_name(&class, &name)))?;
    native.set("idFromString", Func::from(id_from_string))?;
    native.set("newUniqueId", Func::from(new_unique_id))?;
    native.set("newStub", Func::from(new_stub))?;
    native.set("fetchObject", Func::from(fetch_object))?;
    native.set("callObject", Func::from(call_object))?;
    if let IsolateKind::Object(object) = &host(ctx).kind {
        native.set("className", object.class.as_str())?;
        native.set("id", object.id.as_str())?;
        native.set("name", object.name.as_deref())?;
    }
    Ok(native)
}

fn key(class: &str) -> Key {
    Key::new(HMAC_SHA256, digest(&SHA256, class.as_bytes()).as_ref())
}

/// The id whose first half is `base`.
fn complete(key: &Key, base: &[u8]) -> String {
    let code = sign(key, base);
    let halves = base.iter().chain(&code.as_ref()[..HALF_LEN]);
    halves.map(|byte| format!("{byte:02x}")).collect()
}

/// The id of the object `name` of a class: 64 hex digits, the same ones for ever.
#[must_use]
pub fn id_from_name(class: &str, name: &str) -> String {
    let key = key(class);
    complete(&key, &sign(&key, name.as_bytes()).as_ref()[..HALF_LEN])
}

fn new_unique_id(ctx: Ctx<'_>, class: String) -> Result<String> {
    let mut base = [0; HALF_LEN];
    getrandom::fill(&mut base)
        .map_err(|_| Exception::throw_internal(&ctx, "the system has no random bytes"))?;
    Ok(complete(&key(&class), &base))
}

/// Whether `id` is an id of the class, in either case of its digits.
#[must_use]
pub fn is_id_of(class: &str, id: &str) -> bool {
    base_of(id).is_some_and(|base| complete(&key(class), &base) == id.to_ascii_lowercase())
}

fn base_of(id: &str) -> Option<[u8; HALF_LEN]> {
    if id.len() != 4 * HALF_LEN || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut base = [0; HALF_LEN];
    for (index, byte) in base.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&id[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(base)
}

fn id_from_string(ctx: Ctx<'_>, class: String, id: String) -> Result<String> {
    if base_of(&id).is_none() {
        return Err(Exception::throw_type(&ctx, "Invalid Durable Object ID: must be 64 hex digits"));
    }
    if !is_id_of(&class, &id) {
        return Err(Exception::throw_type(&ctx, "Durable Object ID is not valid for this namespace."));
    }
    Ok(id.to_ascii_lowercase())
}

/// A number for a stub, below 2^53: among the stubs that call one object at a time no other has it.
fn new_stub(ctx: Ctx<'_>) -> Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)
        .map_err(|_| Exception::throw_internal(&ctx, "the system has no random bytes"))?;
    Ok(u64::from_le_bytes(bytes) >> 11)
}

/// An object as its stub names it, and the place of the call among those of the stub.
pub(crate) struct Target {
    pub(crate) class: String,
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) order: CallOrder,
}

impl<'js> FromJs<'js> for Target {
    fn from_js(_ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        let object: Object<'js> = value.get()?;
        let place: Object<'js> = object.get("place")?;
        let order =
            CallOrder { stub: place.get("stub")?, place: place.get("place")?, floor: place.get("floor")? };
        Ok(Self { class: object.get("className")?, id: object.get("hex")?, name: object.get("name")?, order })
    }
}

fn fetch_object<'js>(
    ctx: Ctx<'js>,
    target: Target,
    method: String,
    url: String,
    headers: Vec<String>,
    body: Value<'js>,
    socket: Option<u64>,
) -> Result<u64> {
    let Target { class, id, name, order } = target;
    let mut request = request_from_js(&ctx, method, url, headers, body)?;
    request.socket = socket.map(SocketId::new);
    ops::start(&ctx, Op::CallObject { class, id, name, order, call: OutgoingCall::Fetch(request) })
}

fn call_object<'js>(ctx: Ctx<'js>, target: Target, method: String, args: TypedArray<'js, u8>) -> Result<u64> {
    let Target { class, id, name, order } = target;
    let call = OutgoingCall::Rpc { method, args: Bytes::from(buffers::read(&args)) };
    ops::start(&ctx, Op::CallObject { class, id, name, order, call })
}

#[cfg(test)]
mod tests {
    use super::{id_from_name, is_id_of};

    #[test]
    fn the_id_of_a_name_is_always_the_same_and_of_its_class_alone() {
        let id = id_from_name("Counter", "a");
        assert_eq!(id, id_from_name("Counter", "a"));
        assert_ne!(id, id_from_name("Counter", "b"));
        assert_ne!(id, id_from_name("Other", "a"));
        assert!(is_id_of("Counter", &id) && is_id_of("Counter", &id.to_uppercase()));
        assert!(
            !is_id_of("Other", &id)
                && !is_id_of("Counter", &id[1..])
                && !is_id_of("Counter", &"0".repeat(64))
        );
    }
}
