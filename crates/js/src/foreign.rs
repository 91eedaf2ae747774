//! The only unsafe code of this crate: loading bytecode that this process compiled itself, and saying of types without
//! engine values that they have none. Bytecode must never come from anywhere else: the engine does not verify it.
#![allow(unsafe_code)]

use std::rc::Rc;

use rquickjs::module::{Evaluated, WriteOptions};
use rquickjs::{Ctx, JsLifetime, Module, Promise, Result};

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
