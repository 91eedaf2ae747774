//! Modules of Node that applications with `nodejs_compat` import. They are ES modules: each is compiled once per process
//! when it is first imported, and an isolate that imports none pays nothing for them. What they share are modules
//! `node:internal/…`, which no other code can import; one of those ([`BRIDGE`]) gives them the prelude and Rust
//! functions. `crates/bundle` lists the same names, so that a deploy says what is not there.

use std::sync::OnceLock;

use rquickjs::module::{Declarations, Declared, Exports, ModuleDef};
use rquickjs::{Ctx, Exception, Function, Module, Object, Result, Value};

use crate::application::Application;
use crate::foreign::Bytecode;
use crate::prelude::{self, Part};

mod buffer;
mod crypto;
pub(crate) mod hooks;
mod process;
mod util;

/// The compatibility flag that makes them be there.
pub(crate) const FLAG: &str = "nodejs_compat";
/// The flag that makes `node:async_hooks` alone be there.
const HOOKS_FLAG: &str = "nodejs_als";
/// From this compatibility date on they are there without the flag.
const DEFAULT_FROM: &str = "2026-08-04";
/// From this compatibility date on the flag brings the globals too.
const GLOBALS_FROM: &str = "2024-09-23";

/// What only modules of ours can import.
const INTERNAL: &str = "node:internal/";
/// The module that gives `internals` and `native(name)` to them.
const BRIDGE: &str = "node:internal/bridge";

/// One module.
struct NodeModule {
    name: &'static str,
    source: &'static str,
    compiled: OnceLock<Bytecode>,
}

impl NodeModule {
    const fn new(name: &'static str, source: &'static str) -> Self {
        Self { name, source, compiled: OnceLock::new() }
    }
}

static MODULES: [NodeModule; 26] = [
    NodeModule::new("node:async_hooks", include_str!("node/async_hooks.js")),
    NodeModule::new("node:assert", include_str!("node/assert.js")),
    NodeModule::new(
        "node:assert/strict",
        "import { provide } from 'node:internal/base';
         import { strict } from 'node:assert';
         export * from 'node:assert';
         export default provide('node:assert/strict', strict);",
    ),
    NodeModule::new("node:buffer", include_str!("node/buffer.js")),
    NodeModule::new("node:crypto", include_str!("node/crypto.js")),
    NodeModule::new("node:diagnostics_channel", include_str!("node/diagnostics_channel.js")),
    NodeModule::new("node:events", include_str!("node/events.js")),
    NodeModule::new("node:path", include_str!("node/path.js")),
    NodeModule::new(
        "node:path/posix",
        "import { provide } from 'node:internal/base';
         import posix from 'node:path';
         export * from 'node:path';
         export default provide('node:path/posix', posix);",
    ),
    NodeModule::new("node:process", include_str!("node/process.js")),
    NodeModule::new("node:querystring", include_str!("node/querystring.js")),
    NodeModule::new("node:stream", include_str!("node/stream.js")),
    NodeModule::new("node:stream/consumers", include_str!("node/stream/consumers.js")),
    NodeModule::new("node:stream/promises", include_str!("node/stream/promises.js")),
    NodeModule::new("node:stream/web", include_str!("node/stream/web.js")),
    NodeModule::new("node:string_decoder", include_str!("node/string_decoder.js")),
    NodeModule::new("node:timers", include_str!("node/timers.js")),
    NodeModule::new("node:timers/promises", include_str!("node/timers/promises.js")),
    NodeModule::new("node:url", include_str!("node/url.js")),
    NodeModule::new("node:util", include_str!("node/util.js")),
    NodeModule::new("node:util/types", include_str!("node/util/types.js")),
    NodeModule::new("node:internal/deep_equal", include_str!("node/internal/deep_equal.js")),
    NodeModule::new("node:internal/inspect", include_str!("node/internal/inspect.js")),
    // Of npm: see scripts/vendor-streams.mjs.
    NodeModule::new("node:internal/readable_stream", include_str!("node/stream/readable_stream.js")),
    NodeModule::new("node:internal/web_streams", include_str!("node/internal/web_streams.js")),
    NodeModule::new("node:internal/base", include_str!("node/internal/base.js")),
];

/// The Rust functions of a module, by the name that it asks for.
pub(crate) type Natives = for<'js> fn(&Ctx<'js>) -> Result<Object<'js>>;
pub(crate) const NATIVES: &[(&str, Natives)] = &[
    ("buffer", buffer::natives),
    ("crypto", crypto::natives),
    ("hooks", hooks::natives),
    ("process", process::natives),
    ("util", util::natives),
];

/// Globals that load their module at first touch: parts of the prelude that only isolates with the globals expect.
pub(crate) static GLOBALS: &[&Part] = &[&GLOBAL, &BUFFER, &PROCESS, &IMMEDIATES];

const fn global(name: &'static str, source: &'static str, globals: &'static [&'static str]) -> Part {
    Part { name, source, natives: process::require_natives, globals }
}

static GLOBAL: Part = global("node-global", "export default () => ({ global: globalThis });", &["global"]);
static BUFFER: Part = global(
    "node-buffer",
    "export default native => ({ Buffer: native.require('node:buffer').Buffer });",
    &["Buffer"],
);
static PROCESS: Part = global(
    "node-process",
    "export default native => ({ process: native.require('node:process') });",
    &["process"],
);
static IMMEDIATES: Part = global(
    "node-immediates",
    "export default native => { const { setImmediate, clearImmediate } = native.require('node:timers');
       return { setImmediate, clearImmediate }; };",
    &["setImmediate", "clearImmediate"],
);

fn find(name: &str) -> Option<&'static NodeModule> {
    MODULES.iter().find(|module| module.name == name)
}

/// The names of all that applications may import, with their prefix.
pub fn names() -> impl Iterator<Item = &'static str> {
    MODULES.iter().map(|module| module.name).filter(|name| !name.starts_with(INTERNAL))
}

/// Whether there is a module of this name, which has its prefix, for applications.
pub(crate) fn has(name: &str) -> bool {
    !name.starts_with(INTERNAL) && find(name).is_some()
}

/// Whether the module `name` may be imported by the module `base` of an application.
pub(crate) fn may_import(code: &Application, name: &str, base: &str) -> bool {
    if base.starts_with("node:") {
        return name == BRIDGE || find(name).is_some();
    }
    has(name)
        && (has_modules(code) || (name == "node:async_hooks" && code.has_compatibility_flag(HOOKS_FLAG)))
}

/// Whether an application may import them.
fn has_modules(code: &Application) -> bool {
    let has = |flag| code.has_compatibility_flag(flag);
    !has("no_nodejs_compat")
        && (has(FLAG) || has("nodejs_compat_v2") || code.compatibility_date() >= DEFAULT_FROM)
}

/// Whether an application has the globals: `Buffer`, `process`, `global`, `setImmediate`, `clearImmediate`.
pub(crate) fn has_globals(code: &Application) -> bool {
    let has = |flag| code.has_compatibility_flag(flag);
    let is_second = has("nodejs_compat_v2") || code.compatibility_date() >= GLOBALS_FROM;
    has_modules(code) && is_second && !has("no_nodejs_compat_v2")
}

/// Declares the module `name`; none if there is no such module.
///
/// # Errors
/// Memory that ran out.
pub(crate) fn declare<'js>(ctx: &Ctx<'js>, name: &str) -> Option<Result<Module<'js, Declared>>> {
    if name == BRIDGE {
        return Some(Module::declare_def::<Bridge, _>(ctx.clone(), name));
    }
    let module = find(name)?;
    let bytecode = module.compiled.get_or_init(|| prelude::compile_one(module.name, module.source));
    Some(bytecode.declare(ctx))
}

/// [`BRIDGE`].
struct Bridge;

impl ModuleDef for Bridge {
    fn declare(declarations: &Declarations<'_>) -> Result<()> {
        declarations.declare("internals")?;
        declarations.declare("native")?;
        Ok(())
    }

    fn evaluate<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
        exports.export("internals", prelude::internals(ctx))?;
        exports.export("native", Function::new(ctx.clone(), native)?)?;
        Ok(())
    }
}

fn native<'js>(ctx: Ctx<'js>, name: String) -> Result<Object<'js>> {
    let found = NATIVES.iter().find(|(natives, _)| *natives == name);
    let Some((_, natives)) = found else {
        return Err(Exception::throw_internal(&ctx, &format!("nothing of Node is called `{name}`")));
    };
    natives(&ctx)
}

/// The default export of the module `name`, which runs now if it has not yet. Modules of Node never wait as they run.
///
/// # Errors
/// What the module throws: memory that ran out, or the event's time.
pub(crate) fn require<'js>(ctx: &Ctx<'js>, name: &str) -> Result<Value<'js>> {
    let provided = |ctx: &Ctx<'js>| -> Result<Value<'js>> {
        prelude::internals(ctx).get::<_, Object<'js>>("builtins")?.get(name)
    };
    if prelude::internals(ctx).contains_key("builtins")? {
        let value = provided(ctx)?;
        if !value.is_undefined() {
            return Ok(value);
        }
    }
    let running = Module::import(ctx, name)?;
    if let Some(Err(error)) = running.result::<Value<'js>>() {
        return Err(error);
    }
    let value = provided(ctx)?;
    if value.is_undefined() {
        return Err(Exception::throw_internal(ctx, &format!("the module `{name}` does not give itself out")));
    }
    Ok(value)
}

#[cfg(test)]
mod tests;
