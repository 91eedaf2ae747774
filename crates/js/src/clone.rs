//! Structured clone: values of JavaScript to and from bytes, in version 15 of V8's serialization format, which
//! `node:v8` reads and writes. Durable Object storage, RPC and `structuredClone` use it. Bytes may come from anywhere:
//! hostile ones give a `DataCloneError` and never a panic, an unbounded allocation or a deep native stack.
//!
//! The source of the format is V8's `value-serializer.cc`; what Node adds for views of buffers (host objects) is read,
//! and never written.

use rquickjs::function::Func;
use rquickjs::{Array, Ctx, Exception, Function, Object, Result, TypedArray, Value};

use crate::buffers;
use crate::plain;
use crate::prelude::{self, Part};

mod kit;
mod reader;
mod tags;
mod wire;
mod writer;

pub(crate) const PART: Part =
    Part { name: "clone", source: include_str!("clone/clone.js"), natives, globals: &["structuredClone"] };

/// Bytes of one serialized value. workerd bounds what an RPC carries by the same number.
pub(crate) const CLONE_LEN_MAX: usize = 32 * 1024 * 1024;

/// Objects within objects. Native code uses no stack for them; the bound is for those who walk the result.
pub(crate) const CLONE_DEPTH_MAX: usize = 10_000;

/// Serializes `value`.
///
/// # Errors
/// In `ctx`: a `DataCloneError` that names what cannot be cloned, or is too large; what a getter throws.
pub(crate) fn serialize<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<Vec<u8>> {
    prelude::load(ctx, PART.name)?;
    writer::Writer::new(kit::Kit::of(ctx)?, Vec::new()).run(value)
}

/// The value that `bytes` hold.
///
/// # Errors
/// In `ctx`: a `DataCloneError` for bytes that hold none; memory that ran out.
pub(crate) fn deserialize<'js>(ctx: &Ctx<'js>, bytes: &[u8]) -> Result<Value<'js>> {
    prelude::load(ctx, PART.name)?;
    reader::Reader::new(kit::Kit::of(ctx)?, bytes, Vec::new()).run()
}

fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    native.set("isError", Func::from(|value: Value<'js>| value.is_error()))?;
    native.set("clone", Func::from(clone))?;
    native.set("serialize", Func::from(serialize_to_array))?;
    native.set("deserialize", Func::from(deserialize_array))?;
    native.set("serializeReferring", Func::from(serialize_referring))?;
    native.set("deserializeReferring", Func::from(deserialize_referring))?;
    Ok(native)
}

/// Clones `value`; `moved` are buffers that are not copied: `take` answers their successors once all is serialized.
fn clone<'js>(
    ctx: Ctx<'js>,
    value: Value<'js>,
    moved: Array<'js>,
    take: Function<'js>,
) -> Result<Value<'js>> {
    let moved: Vec<Value<'js>> = moved.iter().collect::<Result<_>>()?;
    let bytes = writer::Writer::new(kit::Kit::of(&ctx)?, moved).run(&value)?;
    let successors: Vec<Value<'js>> = take.call(())?;
    reader::Reader::new(kit::Kit::of(&ctx)?, &bytes, successors).run()
}

fn serialize_to_array<'js>(ctx: Ctx<'js>, value: Value<'js>) -> Result<TypedArray<'js, u8>> {
    let bytes = serialize(&ctx, &value)?;
    TypedArray::new(ctx, bytes)
}

fn deserialize_array<'js>(ctx: Ctx<'js>, bytes: TypedArray<'js, u8>) -> Result<Value<'js>> {
    deserialize(&ctx, &buffers::read(&bytes))
}

/// Serializes `value`; of each function and each object that is more than a literal `refer` is asked first: for a number
/// that stands for it, or undefined.
fn serialize_referring<'js>(
    ctx: Ctx<'js>,
    value: Value<'js>,
    refer: Function<'js>,
) -> Result<TypedArray<'js, u8>> {
    let bytes = writer::Writer::new(kit::Kit::of(&ctx)?, Vec::new()).referring(refer).run(&value)?;
    TypedArray::new(ctx, bytes)
}

/// The value that `bytes` hold; `resolve` gives what each number stands for.
fn deserialize_referring<'js>(
    ctx: Ctx<'js>,
    bytes: TypedArray<'js, u8>,
    resolve: Function<'js>,
) -> Result<Value<'js>> {
    let bytes = buffers::read(&bytes);
    reader::Reader::new(kit::Kit::of(&ctx)?, &bytes, Vec::new()).resolving(resolve).run()
}

/// Throws a `DataCloneError`.
fn data_clone_error(ctx: &Ctx<'_>, message: &str) -> rquickjs::Error {
    Exception::throw_dom(ctx, "DataCloneError", message)
}

#[cfg(test)]
mod tests;
