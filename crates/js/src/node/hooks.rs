//! What `node:async_hooks` is told of promises: the hook of the engine is there once the module is.

use rquickjs::{Ctx, Function, Object, Result, Value};

use crate::plain;
use crate::{foreign, prelude};

/// Where the hook's JavaScript is kept: `(happening, promise)`.
const HOOK: &str = "promiseHook";

/// What forgets the store of the code that ran last.
const BEGIN_TURN: &str = "beginTurnWithoutContext";

/// A turn begins: nothing in it has the store of the turn before.
///
/// # Errors
/// Memory that ran out, or time.
pub(crate) fn begin_turn(ctx: &Ctx<'_>) -> Result<()> {
    let begin: Option<Function<'_>> = prelude::internals(ctx).get(BEGIN_TURN)?;
    begin.map_or(Ok(()), |begin| begin.call(()))
}

pub(super) fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
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
