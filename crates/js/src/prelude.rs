//! The JavaScript that every isolate starts with, in parts. A part is an ES module beside the Rust functions it calls;
//! parts are compiled once per process, eager ones run when an isolate begins, lazy ones when one of their globals is
//! touched. Handlers must never get hold of `internals` or of a part's native object.
//!
//! An application may change all that parts are written with: prototypes, getters, functions of the language. So a native trusts no
//! number and no object that it is given, holds no borrow where JavaScript may run, and
//! never panics: a panic ends the process with all of its cells.

use std::cell::RefCell;
use std::sync::OnceLock;

use rquickjs::{CatchResultExt, Context, Ctx, Exception, Function, Object, Result, Runtime, Value};

use crate::foreign::{Bytecode, Shared};
use crate::isolate::host::host;
use crate::isolate::modules::{AnyName, StandIns};
use crate::isolate::{console, databases, events, objects, ops, r2, scheduled, timers};
use crate::plain;
use crate::{clone, node, rpc, storage, wasm, web};

mod core_part;

/// One area of the API.
pub(crate) struct Part {
    /// Unique; shown in stacks as `holdfast:<name>`.
    pub(crate) name: &'static str,
    /// An ES module without imports: `export default function (native, internals) { … }`. An object that it returns
    /// becomes globals (not enumerable, writable, configurable).
    pub(crate) source: &'static str,
    /// The Rust functions of the part: its `native`.
    pub(crate) natives: for<'js> fn(&Ctx<'js>) -> Result<Object<'js>>,
    /// The globals that load the part at first touch. Empty: the part is eager. A lazy part returns exactly these.
    pub(crate) globals: &'static [&'static str],
}

/// The eager and the lazy parts. Eager ones run in this order.
static PARTS: &[&Part] = &[
    &core_part::PART,
    &web::webidl::PART,
    &ops::PART,
    &timers::PART,
    &console::PART,
    &events::PART,
    &web::streams::PART,
    &web::streams::WRITABLE_PART,
    &web::streams::TRANSFORMS_PART,
    &web::crypto::PART,
    &web::crypto::SUBTLE_PART,
    &web::events::PART,
    &web::abort::PART,
    &web::encoding::PART,
    &web::environment::PART,
    &web::url::PART,
    &web::url_pattern::PART,
    &web::blob::PART,
    &web::http::HEADERS,
    &web::http::REQUEST,
    &web::http::RESPONSE,
    &web::fetch::PART,
    &web::sockets::PART,
    &web::cache::PART,
    &clone::PART,
    &wasm::PART,
];
/// Parts without globals that other parts ask for with `internals.load`.
static ON_DEMAND: &[&Part] = &[
    &console::INSPECT,
    &objects::PART,
    &databases::PART,
    &r2::PART,
    &scheduled::PART,
    &storage::PART,
    &storage::SQL_PART,
    &storage::alarm::PART,
    &storage::history::PART,
    &web::crypto::KEY_PAIRS_PART,
    &web::http::BODY,
    &web::fetch::OUTGOING,
    &web::tcp::PART,
    &rpc::STUBS,
    &rpc::REFERENCES,
    &rpc::SESSIONS,
];

/// A part that has no Rust functions.
pub(crate) fn no_natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    plain::record(ctx)
}

/// Runs the eager parts in a new context and leaves the lazy ones behind their globals.
///
/// # Errors
/// What a part throws: memory that ran out.
pub(crate) fn install(ctx: &Ctx<'_>) -> Result<()> {
    install_parts(
        ctx,
        Parts { listed: PARTS, on_demand: ON_DEMAND, of_node: node::GLOBALS, compiled: bytecode() },
    )?;
    if node::has_globals(&host(ctx).code) {
        expect_globals(ctx, node::GLOBALS)?;
    }
    Ok(())
}

/// The object that the parts of this isolate share.
pub(crate) fn internals<'js>(ctx: &Ctx<'js>) -> Object<'js> {
    // A clone, so that the guard is gone before anything else touches the user data.
    ctx.userdata::<Internals<'js>>().expect("the prelude is installed before anything asks for it").clone()
}

type Internals<'js> = Object<'js>;

/// A prelude.
#[derive(Clone, Copy)]
struct Parts {
    listed: &'static [&'static Part],
    on_demand: &'static [&'static Part],
    /// Lazy ones that only applications with Node's globals expect.
    of_node: &'static [&'static Part],
    /// Of the listed ones, then of those on demand, then of Node's.
    compiled: &'static [Bytecode],
}

impl Parts {
    fn all(self) -> impl Iterator<Item = &'static Part> {
        self.listed.iter().chain(self.on_demand).chain(self.of_node).copied()
    }
}

fn install_parts(ctx: &Ctx<'_>, parts: Parts) -> Result<()> {
    assert_eq!(parts.all().count(), parts.compiled.len(), "every part has its bytecode");
    let internals = plain::record(ctx)?;
    store(ctx, internals.clone())?;
    store(ctx, Shared(Loaded::new(parts).into()))?;
    internals.set("load", Function::new(ctx.clone(), |ctx: Ctx<'_>, name: String| load(&ctx, &name))?)?;
    for part in parts.listed.iter().filter(|part| part.globals.is_empty()) {
        load(ctx, part.name)?;
    }
    expect_globals(ctx, parts.listed)
}

/// Leaves the lazy ones of these parts behind their globals.
fn expect_globals(ctx: &Ctx<'_>, parts: &[&'static Part]) -> Result<()> {
    let expect: Function<'_> = internals(ctx).get("expectGlobals")?;
    for part in parts.iter().filter(|part| !part.globals.is_empty()) {
        expect.call::<_, ()>((part.name, part.globals.to_vec()))?;
    }
    Ok(())
}

fn store<'js, U>(ctx: &Ctx<'js>, data: U) -> Result<()>
where
    U: rquickjs::JsLifetime<'js>,
    U::Changed<'static>: std::any::Any,
{
    let stored =
        ctx.store_userdata(data).map_err(|_| Exception::throw_internal(ctx, "user data is borrowed"))?;
    assert!(stored.is_none(), "the prelude is installed once per context");
    Ok(())
}

/// Which parts of an isolate have run.
struct Loaded {
    parts: Parts,
    begun: RefCell<Vec<bool>>,
}

impl Loaded {
    fn new(parts: Parts) -> Self {
        Self { parts, begun: RefCell::new(vec![false; parts.compiled.len()]) }
    }

    /// Where the part `name` is listed.
    fn place(&self, name: &str) -> Option<(usize, &'static Part)> {
        self.parts.all().enumerate().find(|(_, part)| part.name == name)
    }

    /// The bytecode of a part, the first time that it is asked for.
    fn begin(&self, place: usize) -> Option<&'static Bytecode> {
        let begun = std::mem::replace(&mut self.begun.borrow_mut()[place], true);
        (!begun).then(|| &self.parts.compiled[place])
    }

    /// A part did not come to its end: the next touch tries again.
    fn failed(&self, place: usize) {
        self.begun.borrow_mut()[place] = false;
    }
}

/// Runs a part unless it has run already.
///
/// # Errors
/// What the part throws: memory that ran out, or the event's time.
pub(crate) fn load(ctx: &Ctx<'_>, name: &str) -> Result<()> {
    let loaded = ctx.userdata::<Shared<Loaded>>().expect("the prelude is being installed").0.clone();
    let Some((place, part)) = loaded.place(name) else {
        return Err(Exception::throw_internal(ctx, &format!("there is no part `{name}`")));
    };
    let Some(bytecode) = loaded.begin(place) else { return Ok(()) };
    let ran = run(ctx, part, bytecode);
    if ran.is_err() {
        loaded.failed(place);
    }
    ran
}

fn run(ctx: &Ctx<'_>, part: &Part, bytecode: &Bytecode) -> Result<()> {
    let (module, evaluated) = bytecode.evaluate(ctx)?;
    evaluated.finish::<()>()?;
    let main: Function<'_> = module.get("default")?;
    let internals = internals(ctx);
    let made: Value<'_> = main.call(((part.natives)(ctx)?, internals.clone()))?;
    if let Some(made) = made.as_object() {
        let define: Function<'_> = internals.get("defineGlobals")?;
        define.call::<_, ()>((made.clone(), part.globals.to_vec()))?;
    }
    Ok(())
}

fn bytecode() -> &'static [Bytecode] {
    static COMPILED: OnceLock<Vec<Bytecode>> = OnceLock::new();
    COMPILED.get_or_init(|| compile(PARTS.iter().chain(ON_DEMAND).chain(node::GLOBALS).copied()))
}

/// # Panics
/// Where a part of ours has a syntax error, which every test of this crate would show.
fn compile(parts: impl Iterator<Item = &'static Part>) -> Vec<Bytecode> {
    let runtime = Runtime::new().expect("there is memory for the compiler of the prelude");
    let context = Context::full(&runtime).expect("there is memory for the compiler of the prelude");
    context.with(|ctx| {
        let one = |part: &Part| {
            let name = format!("holdfast:{}", part.name);
            let compiled = Bytecode::compile(&ctx, &name, part.source).catch(&ctx);
            compiled.unwrap_or_else(|error| panic!("the prelude does not compile: {name}: {error}"))
        };
        parts.map(one).collect()
    })
}

/// A module of ours that is compiled when it is first needed. What it imports is not looked at.
///
/// # Panics
/// Where it has a syntax error, which every test that imports it would show.
pub(crate) fn compile_one(name: &str, source: &str) -> Bytecode {
    let runtime = Runtime::new().expect("there is memory for a compiler");
    runtime.set_loader(AnyName, StandIns);
    let context = Context::full(&runtime).expect("there is memory for a compiler");
    context.with(|ctx| {
        let compiled = Bytecode::compile(&ctx, name, source).catch(&ctx);
        compiled.unwrap_or_else(|error| panic!("a module of ours does not compile: {name}: {error}"))
    })
}

#[cfg(test)]
mod natives_tests;
#[cfg(test)]
mod tests;
