//! Modules of Node that applications with the flag `nodejs_compat` import. They are ES modules without Rust functions or
//! access to the prelude: each is compiled once per process when it is first imported, and an isolate that imports none
//! pays nothing for them. `crates/bundle` lists the same names, so that a deploy says what is not there.

use std::sync::OnceLock;

use rquickjs::module::Declared;
use rquickjs::{Ctx, Module, Result};

use crate::foreign::Bytecode;
use crate::prelude;

/// The compatibility flag that makes them be there.
pub(crate) const FLAG: &str = "nodejs_compat";

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

static MODULES: [NodeModule; 4] = [
    NodeModule::new("node:events", include_str!("node/events.js")),
    NodeModule::new("node:path", include_str!("node/path.js")),
    NodeModule::new("node:path/posix", "export { default } from 'node:path'; export * from 'node:path';"),
    NodeModule::new("node:querystring", include_str!("node/querystring.js")),
];

fn find(name: &str) -> Option<&'static NodeModule> {
    MODULES.iter().find(|module| module.name == name)
}

/// The names of all of them, with their prefix.
pub fn names() -> impl Iterator<Item = &'static str> {
    MODULES.iter().map(|module| module.name)
}

/// Whether there is a module of this name, which has its prefix.
pub(crate) fn has(name: &str) -> bool {
    find(name).is_some()
}

/// Declares the module `name`; none if there is no such module.
///
/// # Errors
/// Memory that ran out.
pub(crate) fn declare<'js>(ctx: &Ctx<'js>, name: &str) -> Option<Result<Module<'js, Declared>>> {
    let module = find(name)?;
    let bytecode = module.compiled.get_or_init(|| prelude::compile_one(module.name, module.source));
    Some(bytecode.declare(ctx))
}

#[cfg(test)]
mod tests;
