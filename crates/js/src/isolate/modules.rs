//! The modules of an application: compiled once per process, declared in each isolate from bytecode. Import specifiers
//! are names of modules byte for byte, or relative to the importing one, or `cloudflare:…`, or of Node (`node:…`).

use std::collections::BTreeMap;
use std::sync::Arc;

use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::{Declarations, Declared, Exports, ModuleDef};
use rquickjs::{
    ArrayBuffer, CatchResultExt, Context, Ctx, Exception, IntoJs, Module, Object, Result, Runtime, Value,
};

use super::errors;
use super::host::host;
use crate::application::{Application, SourceKind};
use crate::effect::JsError;
use crate::foreign::Bytecode;
use crate::{node, prelude, wasm};

/// The module of Cloudflare's classes.
const CLOUDFLARE_WORKERS: &str = "cloudflare:workers";
/// What it exports: properties of `internals.workers`.
const WORKERS_EXPORTS: [&str; 9] = [
    "DurableObject",
    "RpcPromise",
    "RpcProperty",
    "RpcStub",
    "RpcTarget",
    "WorkerEntrypoint",
    "WorkflowEntrypoint",
    "env",
    "waitUntil",
];
/// The module of outgoing TCP.
const CLOUDFLARE_SOCKETS: &str = "cloudflare:sockets";
/// Memory of the compiler: a bound on what an application may make it use, not a budget.
const COMPILER_BYTES_MAX: usize = 1 << 30;

/// Compiles every ECMAScript module.
///
/// # Errors
/// A syntax error.
pub(crate) fn compile(code: &Application) -> std::result::Result<BTreeMap<String, Bytecode>, JsError> {
    let no_memory = |_| JsError::new("out of memory");
    let runtime = Runtime::new().map_err(no_memory)?;
    runtime.set_memory_limit(COMPILER_BYTES_MAX);
    // The engine looks up the imports of what it compiles: stand-ins do for that.
    runtime.set_loader(AnyName, StandIns);
    let context = Context::full(&runtime).map_err(no_memory)?;
    context.with(|ctx| {
        let mut compiled = BTreeMap::new();
        for (name, source) in code.sources() {
            if source.kind == SourceKind::EsModule {
                let text = std::str::from_utf8(&source.bytes).expect("`Application::new` checked it");
                let bytecode = Bytecode::compile(&ctx, name, text).catch(&ctx);
                compiled.insert(
                    name.to_owned(),
                    bytecode.map_err(|error| code.map_stack(in_module(name, errors::of_caught(error))))?,
                );
            }
        }
        Ok(compiled)
    })
}

/// The engine says of most errors where they are, and of those in regular expressions nothing.
fn in_module(name: &str, mut error: JsError) -> JsError {
    let stack = error.stack.get_or_insert_default();
    if !stack.contains(name) {
        *stack = format!("    at {name}");
    }
    error
}

/// Every name is a module's.
pub(crate) struct AnyName;

impl Resolver for AnyName {
    fn resolve<'js>(
        &mut self,
        _ctx: &Ctx<'js>,
        _base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        Ok(name.to_owned())
    }
}

/// Stand-ins for what a module imports, while it is compiled alone.
pub(crate) struct StandIns;

impl Loader for StandIns {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        Module::declare_def::<Nothing, _>(ctx.clone(), name)
    }
}

struct Nothing;

impl ModuleDef for Nothing {}

/// The modules of one application, for the loader of an isolate.
#[derive(Clone)]
pub(super) struct Modules(pub(super) Arc<Application>);

impl Resolver for Modules {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        if matches!(name, CLOUDFLARE_WORKERS | CLOUDFLARE_SOCKETS) || self.0.source(name).is_some() {
            return Ok(name.to_owned());
        }
        if node::may_import(&self.0, name, base) {
            return Ok(name.to_owned());
        }
        if name.starts_with("./") || name.starts_with("../") {
            let joined = join(base, name);
            if self.0.source(&joined).is_some() {
                return Ok(joined);
            }
        }
        let message = match name.split_once(':') {
            Some(_) if node::has(name) => {
                format!(
                    "No such module \"{name}\".\n  imported from \"{base}\"\n  It is there with the compatibility flag \"{}\".",
                    node::FLAG
                )
            }
            Some(("cloudflare" | "node", _)) => format!("the module \"{name}\" is not supported yet"),
            _ => format!("No such module \"{name}\".\n  imported from \"{base}\""),
        };
        let error = Exception::from_message(ctx.clone(), &message)?;
        Err(error.throw())
    }
}

/// `name` as seen from the folder of the module `base`.
fn join(base: &str, name: &str) -> String {
    let mut segments: Vec<&str> = base.split('/').collect();
    segments.pop();
    for segment in name.split('/') {
        match segment {
            "." => {}
            ".." => {
                segments.pop();
            }
            _ => segments.push(segment),
        }
    }
    segments.join("/")
}

impl Loader for Modules {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        if name == CLOUDFLARE_WORKERS {
            return Module::declare_def::<Workers, _>(ctx.clone(), name);
        }
        if name == CLOUDFLARE_SOCKETS {
            return Module::declare_def::<Sockets, _>(ctx.clone(), name);
        }
        if let Some(declared) = node::declare(ctx, name) {
            return declared;
        }
        match self.0.bytecode(name) {
            Some(bytecode) => bytecode.declare(ctx),
            None => Module::declare_def::<Asset, _>(ctx.clone(), name),
        }
    }
}

/// A module of text, JSON, bytes or WebAssembly.
struct Asset;

impl ModuleDef for Asset {
    fn declare(declarations: &Declarations<'_>) -> Result<()> {
        declarations.declare("default")?;
        Ok(())
    }

    fn evaluate<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
        let name: String = exports.module().name()?;
        let code = Arc::clone(&host(ctx).code);
        let source = code.source(&name).expect("the resolver lets through what is there");
        let text = || std::str::from_utf8(&source.bytes).expect("`Application::new` checked it");
        let value: Value<'js> = match source.kind {
            SourceKind::Text => text().into_js(ctx)?,
            SourceKind::Json => ctx.json_parse(text())?,
            SourceKind::Data => ArrayBuffer::new_copy(ctx.clone(), &source.bytes)?.into_value(),
            SourceKind::Wasm => wasm::module(ctx, &name)?,
            SourceKind::EsModule => unreachable!("an ECMAScript module has bytecode"),
        };
        exports.export("default", value)?;
        Ok(())
    }
}

/// `cloudflare:workers`.
struct Workers;

impl ModuleDef for Workers {
    fn declare(declarations: &Declarations<'_>) -> Result<()> {
        for name in WORKERS_EXPORTS {
            declarations.declare(name)?;
        }
        Ok(())
    }

    fn evaluate<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
        let workers: Object<'js> = prelude::internals(ctx).get("workers")?;
        for name in WORKERS_EXPORTS {
            exports.export(name, workers.get::<_, Value<'js>>(name)?)?;
        }
        Ok(())
    }
}

/// `cloudflare:sockets`, whose part of the prelude is loaded with it.
struct Sockets;

impl ModuleDef for Sockets {
    fn declare(declarations: &Declarations<'_>) -> Result<()> {
        declarations.declare("connect")?;
        Ok(())
    }

    fn evaluate<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
        prelude::load(ctx, "tcp")?;
        exports.export("connect", prelude::internals(ctx).get::<_, Value<'js>>("connect")?)?;
        Ok(())
    }
}
