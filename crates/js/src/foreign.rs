//! Unsafe code: loading bytecode that this process compiled itself, watching promises, what of the engine's own interface is
//! not wrapped, and saying of types without engine values that they have none. Bytecode must never come from anywhere else: the engine does not verify it.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::slice;

use rquickjs::module::{Evaluated, WriteOptions};
use rquickjs::{
    CatchResultExt, Ctx, Exception, JsLifetime, Module, Promise, Result, String as JsString, Value, qjs,
};

use crate::isolate::host::host;
use crate::isolate::turn;

/// A module as bytecode of this process. Made by [`Bytecode::compile`] alone.
#[derive(Debug)]
pub(crate) struct Bytecode(Box<[u8]>);

impl Bytecode {
    /// Compiles `source` as the ES module `name`.
    ///
    /// # Errors
    /// The exception is in `ctx`: a syntax error, or memory that ran out.
    pub(crate) fn compile(ctx: &Ctx<'_>, name: &str, source: &str) -> Result<Self> {
        let module = Module::declare(ctx.clone(), name, source)?;
        Self::of(&module)
    }

    /// The bytecode of a module that `ctx` has just compiled.
    ///
    /// # Errors
    /// Memory that ran out.
    pub(crate) fn of(module: &Module<'_>) -> Result<Self> {
        // Without its source a function shows `[native code]`, and costs no memory for it.
        let options = WriteOptions { strip_source: true, ..WriteOptions::default() };
        Ok(Self(module.write(options)?.into_boxed_slice()))
    }

    /// Declares the module in a context.
    ///
    /// # Errors
    /// Memory that ran out.
    pub(crate) fn declare<'js>(&self, ctx: &Ctx<'js>) -> Result<Module<'js>> {
        // SAFETY: the field is private and only `of` fills it, with what the engine linked into this process wrote.
        unsafe { Module::load(ctx.clone(), &self.0) }
    }

    /// Declares and evaluates the module.
    ///
    /// # Errors
    /// What the module throws.
    pub(crate) fn evaluate<'js>(&self, ctx: &Ctx<'js>) -> Result<(Module<'js, Evaluated>, Promise<'js>)> {
        self.declare(ctx)?.eval()
    }
}

/// A type without engine values, kept in a context's user data.
pub(crate) struct Shared<T>(pub(crate) Rc<T>);

// SAFETY: `T` is 'static, so it cannot hold a value of an engine's lifetime.
unsafe impl<'js, T: 'static> JsLifetime<'js> for Shared<T> {
    type Changed<'to> = Self;
}

/// The UTF-16 units of a text, halves of pairs included.
///
/// # Errors
/// Memory that ran out.
pub(crate) fn units_of(text: &JsString<'_>) -> Result<Vec<u16>> {
    let ctx = text.ctx().as_raw().as_ptr();
    let mut len = 0;
    // SAFETY: the engine gives `len` units at `units`, which stay until they are given back, below.
    unsafe {
        let units = qjs::JS_ToCStringLenUTF16(ctx, &raw mut len, text.as_raw());
        if units.is_null() {
            return Err(rquickjs::Error::Exception);
        }
        let copied = slice::from_raw_parts(units, usize::try_from(len).expect("a length in memory")).to_vec();
        qjs::JS_FreeCStringUTF16(ctx, units);
        Ok(copied)
    }
}

/// A text of these UTF-16 units.
///
/// # Errors
/// Memory that ran out.
pub(crate) fn string_of_units<'js>(ctx: &Ctx<'js>, units: &[u16]) -> Result<JsString<'js>> {
    let len = units.len().try_into().expect("a length in memory");
    // SAFETY: pointer and length are those of the slice, which the engine copies.
    let value = unsafe { qjs::JS_NewStringUTF16(ctx.as_raw().as_ptr(), units.as_ptr(), len) };
    // SAFETY: the engine gave a reference of its own.
    let value = unsafe { Value::from_raw(ctx.clone(), value) };
    value.into_string().ok_or(rquickjs::Error::Exception)
}

/// The number of the engine's class of an object: the same for objects of one kind. 0 for what is no object.
pub(crate) fn class_of(value: &Value<'_>) -> u32 {
    // SAFETY: it reads the tag of the value and, of an object, its class.
    if value.is_object() { unsafe { qjs::JS_GetClassID(value.as_raw()) } } else { 0 }
}

/// A `BigInt` of a value, modulo 2^64. May run JavaScript.
///
/// # Errors
/// What the conversion throws: a `TypeError` for numbers.
pub(crate) fn to_big_int_64(value: &Value<'_>) -> Result<i64> {
    let mut number = 0;
    // SAFETY: the context and the value are alive, and the number is where the engine may write it.
    let status =
        unsafe { qjs::JS_ToBigInt64(value.ctx().as_raw().as_ptr(), &raw mut number, value.as_raw()) };
    if status < 0 { Err(rquickjs::Error::Exception) } else { Ok(number) }
}

/// Throws what the engine throws when it is interrupted: no JavaScript catches it.
pub(crate) fn throw_interrupted(ctx: &Ctx<'_>) -> rquickjs::Error {
    match Exception::from_message(ctx.clone(), "interrupted") {
        Ok(error) => {
            // SAFETY: the context and the error are alive.
            unsafe { qjs::JS_SetUncatchableError(ctx.as_raw().as_ptr(), error.as_object().as_raw()) }
            error.throw()
        }
        Err(error) => error,
    }
}

/// What the engine tells of a promise, by the number that it has there: 0 it was made, 1 and 2 the `then` of what it
/// takes its value from begins and ends, 3 it is fulfilled (of a rejected one nothing is told).
type PromiseHook = for<'js> fn(&Ctx<'js>, u32, Value<'js>) -> Result<()>;

thread_local! {
    /// One for all isolates of the thread: a function without state.
    static PROMISE_HOOK: Cell<Option<PromiseHook>> = const { Cell::new(None) };
}

/// Bytes of stack that the hook has beyond what handlers have: where their calls fail, it does not.
const HOOK_STACK_BYTES: usize = 64 << 10;

/// Lets `hook` see what happens to the promises of this runtime. It is called amid the engine's own work, which goes on
/// whatever it throws: an isolate whose hook failed is broken. All callers give the same function.
pub(crate) fn hook_promises(ctx: &Ctx<'_>, hook: PromiseHook) {
    PROMISE_HOOK.set(Some(hook));
    // SAFETY: the context is alive, and the hook needs nothing that could be gone before its runtime.
    unsafe {
        qjs::JS_SetPromiseHook(qjs::JS_GetRuntime(ctx.as_raw().as_ptr()), Some(on_promise), ptr::null_mut())
    }
}

unsafe extern "C" fn on_promise(
    ctx: *mut qjs::JSContext,
    happening: qjs::JSPromiseHookType,
    promise: qjs::JSValue,
    _parent: qjs::JSValue,
    _opaque: *mut c_void,
) {
    let (Some(hook), Some(ctx)) = (PROMISE_HOOK.get(), NonNull::new(ctx)) else { return };
    // SAFETY: the engine calls with its own context, which is entered, and with a promise that it holds meanwhile: the
    // value here is a reference of its own.
    let (ctx, promise) = unsafe {
        let promise = qjs::JS_DupValue(ctx.as_ptr(), promise);
        let ctx = Ctx::from_raw(ctx);
        (ctx.clone(), Value::from_raw(ctx, promise))
    };
    let host = host(&ctx);
    let limit_stack = |bytes: usize| {
        let bytes = bytes.try_into().expect("a size in memory");
        // SAFETY: the runtime is that of the context, and the thread has more stack than its isolates are let have.
        unsafe { qjs::JS_SetMaxStackSize(qjs::JS_GetRuntime(ctx.as_raw().as_ptr()), bytes) }
    };
    let stack_bytes = host.limits.stack_bytes;
    limit_stack(stack_bytes + HOOK_STACK_BYTES);
    let hooked = hook(&ctx, happening, promise).catch(&ctx);
    limit_stack(stack_bytes);
    if let Err(error) = hooked {
        // What it should have noted is lost: nothing may go on as if it were not.
        host.break_with(turn::cause(&host, &error));
    }
}
