//! What `node:async_hooks` is told of promises: the hook of the engine is there once the module is.

use rquickjs::{Ctx, Function, Object, Result, Value};

use crate::{foreign, prelude};

/// Where the hook's JavaScript is kept: `(happening, promise)`.
const HOOK: &str = "promiseHook";

pub(super) fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    let watch = |ctx: Ctx<'js>, hook: Function<'js>| -> Result<()> {
        prelude::internals(&ctx).set(HOOK, hook)?;
        foreign::hook_promises(&ctx, |ctx, happening, promise| {
            let hook: Function<'_> = prelude::internals(ctx).get(HOOK)?;
            hook.call((happening, promise))
        });
        Ok(())
    };
    native.set("isPromise", Function::new(ctx.clone(), |value: Value<'js>| value.is_promise())?)?;
    native.set("watch", Function::new(ctx.clone(), watch)?)?;
    Ok(native)
}
