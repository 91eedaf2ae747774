//! What `node:util` asks the engine about values.

use rquickjs::function::Func;
use rquickjs::promise::PromiseState;
use rquickjs::{Array, Ctx, Object, Promise, Result, Value};

use crate::foreign;
use crate::plain;

pub(super) fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    native.set("classOf", Func::from(|value: Value<'_>| foreign::class_of(&value)))?;
    native.set("promiseState", Func::from(promise_state))?;
    native.set("proxied", Func::from(proxied))?;
    Ok(native)
}

/// Of a promise: nothing while it is pending, `[true, value]`, or `[false, reason]`.
fn promise_state<'js>(ctx: Ctx<'js>, promise: Promise<'js>) -> Result<Option<Array<'js>>> {
    let is_resolved = match promise.state() {
        PromiseState::Pending => return Ok(None),
        PromiseState::Resolved => true,
        PromiseState::Rejected => false,
    };
    let value = match promise.result::<Value<'js>>() {
        Some(Ok(value)) => value,
        // The reason is thrown: taken back.
        _ => ctx.catch(),
    };
    let state = Array::new(ctx)?;
    state.set(0, is_resolved)?;
    state.set(1, value)?;
    Ok(Some(state))
}

/// The target of a proxy; nothing for what is none.
fn proxied(value: Value<'_>) -> Result<Option<Object<'_>>> {
    value.into_proxy().map(|proxy| proxy.target()).transpose()
}
