//! Values on their way between JavaScript and WebAssembly, as its JavaScript interface converts them.

use std::rc::Rc;

use rquickjs::{Array, BigInt, Coerced, Ctx, Exception, FromJs, Function, IntoJs, Object, Result, Value};
use wasmi::{F32, F64, Nullable, Ref, Val, ValType};

use super::group::{Group, extern_number};
use super::internals;
use crate::foreign;

/// A value for WebAssembly. May run JavaScript.
///
/// # Errors
/// What a conversion throws; a `TypeError` where there is none.
pub(super) fn to_wasm<'js>(
    ctx: &Ctx<'js>,
    group: &Rc<Group>,
    state: &Object<'js>,
    value: Value<'js>,
    ty: ValType,
) -> Result<Val> {
    Ok(match ty {
        ValType::I32 => Val::I32(match value.as_int() {
            Some(value) => value,
            None => Coerced::<i32>::from_js(ctx, value)?.0,
        }),
        ValType::I64 => Val::I64(foreign::to_big_int_64(&value)?),
        // Rounds to the nearest, as a conversion to `float` does.
        ValType::F32 => Val::F32(F32::from(number(ctx, value)? as f32)),
        ValType::F64 => Val::F64(F64::from(number(ctx, value)?)),
        ValType::FuncRef if value.is_null() => Val::FuncRef(Nullable::Null),
        ValType::FuncRef => {
            let number: Option<usize> = helper(ctx, "functionNumber")?.call((state.clone(), value))?;
            let Some(number) = number else {
                return Err(Exception::throw_type(
                    ctx,
                    "function-typed object must be null (if nullable) or a Wasm function object",
                ));
            };
            Val::FuncRef(Nullable::Val(group.function(ctx, number)?.func))
        }
        ValType::ExternRef if value.is_null() => Val::ExternRef(Nullable::Null),
        ValType::ExternRef => {
            let number: usize = helper(ctx, "externNumber")?.call((state.clone(), value))?;
            let Some(reference) = group.extern_ref(number) else {
                return Err(Exception::throw_range(ctx, "there is no memory for another reference"));
            };
            Val::ExternRef(Nullable::Val(reference))
        }
        ValType::V128 => return Err(no_vectors(ctx)),
    })
}

/// A value for JavaScript.
///
/// # Errors
/// A `TypeError` for vectors; memory that ran out.
pub(super) fn to_js<'js>(
    ctx: &Ctx<'js>,
    group: &Rc<Group>,
    state: &Object<'js>,
    value: &Val,
) -> Result<Value<'js>> {
    match value {
        Val::I32(value) => value.into_js(ctx),
        Val::I64(value) => BigInt::from_i64(ctx.clone(), *value)?.into_js(ctx),
        Val::F32(value) => f64::from(f32::from(*value)).into_js(ctx),
        Val::F64(value) => f64::from(*value).into_js(ctx),
        Val::FuncRef(Nullable::Null) | Val::ExternRef(Nullable::Null) => Ok(Value::new_null(ctx.clone())),
        Val::FuncRef(Nullable::Val(func)) => {
            let number = group.function_number(*func, None);
            helper(ctx, "functionOf")?.call((state.clone(), number))
        }
        Val::ExternRef(Nullable::Val(reference)) => {
            let number = extern_number(&group.store.borrow(), reference);
            state.get::<_, Array<'js>>("externs")?.get(number)
        }
        Val::V128(_) => Err(no_vectors(ctx)),
    }
}

/// A value as the reference of its type.
pub(super) fn as_ref(value: Val) -> Ref {
    match value {
        Val::FuncRef(func) => Ref::Func(func),
        Val::ExternRef(reference) => Ref::Extern(reference),
        _ => unreachable!("tables hold references alone"),
    }
}

/// A reference as a value.
pub(super) fn of_ref(reference: Ref) -> Val {
    match reference {
        Ref::Func(func) => Val::FuncRef(func),
        Ref::Extern(reference) => Val::ExternRef(reference),
    }
}

fn number<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<f64> {
    match value.as_number() {
        Some(value) => Ok(value),
        None => Ok(Coerced::<f64>::from_js(ctx, value)?.0),
    }
}

fn helper<'js>(ctx: &Ctx<'js>, name: &str) -> Result<Function<'js>> {
    internals(ctx)?.get(name)
}

fn no_vectors(ctx: &Ctx<'_>) -> rquickjs::Error {
    Exception::throw_type(ctx, "type incompatibility when transforming from/to JS")
}
