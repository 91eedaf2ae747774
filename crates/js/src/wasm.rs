//! WebAssembly: the modules that an application imports, behind the standard JavaScript interface. Loaded when it is first
//! touched. The engine is an interpreter, wasmi; its fuel is what makes it stop for the event's budget.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use rquickjs::class::{JsClass, Readable, Trace, Tracer};
use rquickjs::function::Constructor;
use rquickjs::{Array, ArrayBuffer, Ctx, Function, Object, Result, Value};

use crate::foreign::Shared;
use crate::prelude::{self, Part};

mod account;
mod binary;
mod call;
mod compiled;
mod group;
mod holdings;
mod natives;
mod region;
#[cfg(test)]
mod tests;
mod values;

pub(crate) use account::Account;
pub(crate) use compiled::{Compiled, engine};

use compiled::STACK_BYTES;
use group::Group;

/// The part's name.
const NAME: &str = "wasm";

pub(crate) const PART: Part = Part {
    name: NAME,
    source: include_str!("wasm/wasm.js"),
    natives: natives::natives,
    globals: &["WebAssembly"],
};

/// Calls of WebAssembly within calls of WebAssembly, by way of JavaScript. Each has frames of its own.
const DEPTH_MAX: usize = 64;

/// What an isolate keeps for WebAssembly.
#[derive(Debug)]
pub(crate) struct WasmHost {
    pub(crate) account: Rc<Account>,
    /// Calls that are nested, by way of JavaScript.
    depth: Cell<usize>,
    /// How many of them the turn is charged for. The outermost one is not: there is one on a thread.
    charged: Cell<usize>,
    /// Turns so far: what one of them makes is one group.
    turns: Cell<u64>,
}

impl WasmHost {
    /// Of an isolate that may use `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            account: Rc::new(Account::new(limit)),
            depth: Cell::new(0),
            charged: Cell::new(0),
            turns: Cell::new(0),
        }
    }

    /// A turn begins.
    pub(crate) fn enter(&self) {
        self.turns.set(self.turns.get() + 1);
    }

    /// A turn is over, and with it all calls.
    pub(crate) fn leave(&self) {
        let charged = self.charged.take();
        if charged > 0 {
            self.account.release(charged * STACK_BYTES);
        }
    }

    /// A call begins. False: it would be nested too deep, or there is no room for its frames.
    fn begin_call(&self) -> bool {
        let depth = self.depth.get();
        if depth >= DEPTH_MAX {
            return false;
        }
        // What is charged stays so for the turn: a call in a loop is charged once.
        if depth > self.charged.get() {
            if !self.account.reserve(STACK_BYTES) {
                return false;
            }
            self.charged.set(depth);
        }
        self.depth.set(depth + 1);
        true
    }

    fn end_call(&self) {
        self.depth.set(self.depth.get() - 1);
    }
}

impl<'js> Trace<'js> for Shared<Arc<Compiled>> {
    fn trace<'a>(&self, _tracer: Tracer<'a, 'js>) {}
}

impl<'js> JsClass<'js> for Shared<Arc<Compiled>> {
    const NAME: &'static str = "WebAssemblyCode";
    type Mutable = Readable;

    fn prototype(_ctx: &Ctx<'js>) -> Result<Option<Object<'js>>> {
        Ok(None)
    }

    fn constructor(_ctx: &Ctx<'js>) -> Result<Option<Constructor<'js>>> {
        Ok(None)
    }
}

/// The default export of a module of the application that is WebAssembly: a `WebAssembly.Module`.
///
/// # Errors
/// Memory that ran out, or the event's time.
pub(crate) fn module<'js>(ctx: &Ctx<'js>, name: &str) -> Result<Value<'js>> {
    prelude::load(ctx, NAME)?;
    internals(ctx)?.get::<_, Function<'js>>("module")?.call((name,))
}

/// What the JavaScript of this part keeps for the Rust of it.
fn internals<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    prelude::internals(ctx).get("wasm")
}

/// Throws an error of a class of `WebAssembly`.
fn throw(ctx: &Ctx<'_>, class: &str, message: &str) -> rquickjs::Error {
    let error = internals(ctx)
        .and_then(|internals| internals.get::<_, Function<'_>>("error"))
        .and_then(|make| make.call::<_, Value<'_>>((class, message)));
    match error {
        Ok(error) => ctx.throw(error),
        Err(error) => error,
    }
}

/// Detaches the buffers of memories that have grown. To be called before any JavaScript runs after the engine did.
fn sync(group: &Group, state: &Object<'_>) -> Result<()> {
    for memory in group.outgrown() {
        detach(state, memory)?;
    }
    Ok(())
}

fn detach(state: &Object<'_>, memory: usize) -> Result<()> {
    let all: Array<'_> = state.get("buffers")?;
    if let Some(mut buffer) = ArrayBuffer::from_value(all.get(memory)?) {
        buffer.detach();
    }
    all.set(memory, Value::new_undefined(all.ctx().clone()))
}
