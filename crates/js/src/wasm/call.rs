//! Calls from JavaScript. The engine runs in slices of fuel; between them the event's time is looked at. Where the code
//! calls JavaScript, the engine stops, so that nothing of it is borrowed, and goes on with what that answered.

use std::rc::Rc;

use rquickjs::function::Args;
use rquickjs::{Array, Ctx, Exception, Function, IntoJs, Object, Result, Value};
use wasmi::{Error, Func, ResumableCall, TrapCode, Val, ValType};

use super::group::{Group, ImportCall};
use super::values::{to_js, to_wasm};
use super::{WasmHost, internals, sync, throw};
use crate::foreign;
use crate::isolate::host::host;
use crate::plain;

/// Fuel of a slice: a unit is about an instruction, so it is some tenth of a millisecond.
const SLICE: u64 = 100_000;

/// Calls a function with the arguments of JavaScript.
///
/// # Errors
/// What a conversion or JavaScript that is called throws; a `RuntimeError` for a trap; a `RangeError` for calls that are
/// too deep; what cannot be caught, where the time is over.
pub(super) fn call<'js>(
    ctx: &Ctx<'js>,
    group: &Rc<Group>,
    state: &Object<'js>,
    number: usize,
    arguments: &[Value<'js>],
) -> Result<Value<'js>> {
    let function = group.function(ctx, number)?;
    let types = function.ty.params();
    let mut inputs = Vec::with_capacity(types.len());
    for (index, ty) in types.iter().enumerate() {
        let value = arguments.get(index).cloned().unwrap_or_else(|| Value::new_undefined(ctx.clone()));
        inputs.push(to_wasm(ctx, group, state, value, *ty)?);
    }
    let results = function.ty.results();
    let outputs = match function.import {
        Some(import) => call_import(ctx, group, state, import, &inputs, results)?,
        None => run(ctx, group, state, function.func, &inputs, results)?,
    };
    match outputs.as_slice() {
        [] => Ok(Value::new_undefined(ctx.clone())),
        [output] => to_js(ctx, group, state, output),
        outputs => {
            let array = Array::new(ctx.clone())?;
            for output in outputs {
                plain::append(&array, to_js(ctx, group, state, output)?)?;
            }
            array.into_js(ctx)
        }
    }
}

/// Runs a function of WebAssembly to its end.
fn run<'js>(
    ctx: &Ctx<'js>,
    group: &Rc<Group>,
    state: &Object<'js>,
    func: Func,
    inputs: &[Val],
    results: &[ValType],
) -> Result<Vec<Val>> {
    let host = host(ctx);
    let _nested = Nested::enter(ctx, &host.wasm)?;
    let mut outputs: Vec<Val> = results.iter().map(|ty| Val::default_for_ty(*ty)).collect();
    check(ctx, group)?;
    let mut step = func.call_resumable(&mut *group.store.borrow_mut(), inputs, &mut outputs);
    loop {
        // Before any JavaScript runs.
        sync(group, state)?;
        step = match step {
            Err(error) => return Err(trap(ctx, &error)),
            Ok(ResumableCall::Finished) => return Ok(outputs),
            Ok(ResumableCall::OutOfFuel(paused)) => {
                if host.budget.must_stop() {
                    return Err(foreign::throw_interrupted(ctx));
                }
                let mut store = group.store.borrow_mut();
                let fuel = SLICE.saturating_add(paused.required_fuel());
                store.set_fuel(fuel).expect("the engine meters fuel");
                paused.resume(&mut *store, &mut outputs)
            }
            Ok(ResumableCall::HostTrap(paused)) => {
                let Some(ImportCall { import, arguments }) = paused.host_error().downcast_ref() else {
                    unreachable!("functions of ours stop for JavaScript alone")
                };
                let results = paused.host_func().ty(&*group.store.borrow());
                let answer = call_import(ctx, group, state, *import, arguments, results.results())?;
                check(ctx, group)?;
                paused.resume(&mut *group.store.borrow_mut(), &answer, &mut outputs)
            }
        };
    }
}

/// Calls a function of JavaScript.
fn call_import<'js>(
    ctx: &Ctx<'js>,
    group: &Rc<Group>,
    state: &Object<'js>,
    import: usize,
    inputs: &[Val],
    results: &[ValType],
) -> Result<Vec<Val>> {
    let imports: Array<'js> = state.get("imports")?;
    let function: Function<'js> = imports.get(import)?;
    let mut arguments = Args::new(ctx.clone(), inputs.len());
    for input in inputs {
        arguments.push_arg(to_js(ctx, group, state, input)?)?;
    }
    let answer: Value<'js> = function.call_arg(arguments)?;
    match results {
        [] => Ok(Vec::new()),
        [ty] => Ok(vec![to_wasm(ctx, group, state, answer, *ty)?]),
        types => {
            let list: Function<'js> = internals(ctx)?.get("listOf")?;
            let values: Vec<Value<'js>> = list.call((answer, types.len()))?;
            values.into_iter().zip(types).map(|(value, ty)| to_wasm(ctx, group, state, value, *ty)).collect()
        }
    }
}

/// Refuses to run anything of a group that is broken.
fn check(ctx: &Ctx<'_>, group: &Group) -> Result<()> {
    if group.is_broken.get() {
        return Err(throw(
            ctx,
            "RuntimeError",
            "an instantiation failed that had changed a table of this instance",
        ));
    }
    Ok(())
}

/// What a trap is in JavaScript, in V8's words.
fn trap(ctx: &Ctx<'_>, error: &Error) -> rquickjs::Error {
    let message = match error.as_trap_code() {
        Some(TrapCode::StackOverflow) => return too_deep(ctx),
        Some(TrapCode::UnreachableCodeReached) => "unreachable",
        Some(TrapCode::MemoryOutOfBounds) => "memory access out of bounds",
        Some(TrapCode::TableOutOfBounds) => "table index is out of bounds",
        Some(TrapCode::IndirectCallToNull) => "null function",
        Some(TrapCode::IntegerDivisionByZero) => "divide by zero",
        Some(TrapCode::IntegerOverflow) => "integer overflow",
        Some(TrapCode::BadConversionToInteger) => "float unrepresentable in integer range",
        Some(TrapCode::BadSignature) => "function signature mismatch",
        _ => return throw(ctx, "RuntimeError", &error.to_string()),
    };
    throw(ctx, "RuntimeError", message)
}

fn too_deep(ctx: &Ctx<'_>) -> rquickjs::Error {
    Exception::throw_range(ctx, "Maximum call stack size exceeded")
}

/// A call, while it runs.
struct Nested<'a>(&'a WasmHost);

impl<'a> Nested<'a> {
    fn enter(ctx: &Ctx<'_>, host: &'a WasmHost) -> Result<Self> {
        if host.begin_call() { Ok(Self(host)) } else { Err(too_deep(ctx)) }
    }
}

impl Drop for Nested<'_> {
    fn drop(&mut self) {
        self.0.end_call();
    }
}
