//! What `node:process` and the globals of Node ask the host for.

use rquickjs::{Ctx, Function, Object, Result, Value};

use crate::application::Application;
use crate::isolate::host::host;
use crate::plain;

/// From this compatibility date on `process.env` has the variables and secrets.
const VARIABLES_FROM: &str = "2025-04-01";

pub(super) fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = require_natives(ctx)?;
    native.set("hasVariables", has_variables(&host(ctx).code))?;
    Ok(native)
}

/// `require(name)` alone.
pub(super) fn require_natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    let require = |ctx: Ctx<'js>, name: String| -> Result<Value<'js>> {
        if super::has(&name) { super::require(&ctx, &name) } else { Ok(Value::new_undefined(ctx)) }
    };
    native.set("require", Function::new(ctx.clone(), require)?)?;
    Ok(native)
}

fn has_variables(code: &Application) -> bool {
    let has = |flag| code.has_compatibility_flag(flag);
    !has("nodejs_compat_do_not_populate_process_env")
        && (has("nodejs_compat_populate_process_env") || code.compatibility_date() >= VARIABLES_FROM)
}
