//! Objects that Rust makes for JavaScript. An application may put setters and getters on `Object.prototype` and
//! `Array.prototype`: setting a property would run them, with what is ours as the value. So nothing here is set where
//! such a prototype is looked at. The unsafe code makes an object without a prototype.
#![allow(unsafe_code)]

use rquickjs::object::Property;
use rquickjs::{Array, Ctx, IntoAtom, IntoJs, Object, Result, Value, qjs};

/// An object without a prototype, for parts of ours: setting and reading it runs nothing of the application.
///
/// # Errors
/// Memory that ran out.
pub(crate) fn record<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    // SAFETY: the context is alive.
    let value = unsafe { qjs::JS_NewObjectProto(ctx.as_raw().as_ptr(), qjs::JS_NULL) };
    // SAFETY: the engine gave a reference of its own.
    let value = unsafe { Value::from_raw(ctx.clone(), value) };
    value.into_object().ok_or(rquickjs::Error::Exception)
}

/// Gives an object that the application sees a property of its own, whatever its prototype has.
///
/// # Errors
/// Memory that ran out.
pub(crate) fn define<'js>(
    object: &Object<'js>,
    key: impl IntoAtom<'js>,
    value: impl IntoJs<'js>,
) -> Result<()> {
    let value = value.into_js(object.ctx())?;
    object.prop(key, Property::from(value).writable().enumerable().configurable())
}

/// Puts an element behind the last one of an array.
///
/// # Errors
/// Memory that ran out.
pub(crate) fn append<'js>(array: &Array<'js>, value: impl IntoJs<'js>) -> Result<()> {
    let index = u32::try_from(array.len()).map_err(|_| rquickjs::Error::Unknown)?;
    define(array.as_object(), index, value)
}
