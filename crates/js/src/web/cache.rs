//! The Cache API as handlers see it. What they ask is JSON, with the body of an answer beside it; whoever keeps the answers reads it
//! (`crates/outbound`).

use rquickjs::function::Func;
use rquickjs::{Ctx, Object, Result, Value};

use super::fetch::body_from_js;
use crate::effect::Op;
use crate::isolate::ops;
use crate::plain;
use crate::prelude::Part;

pub(crate) const PART: Part = Part {
    name: "cache",
    source: include_str!("cache.js"),
    natives,
    globals: &["Cache", "CacheStorage", "caches"],
};

fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    native.set("ask", Func::from(ask))?;
    Ok(native)
}

fn ask<'js>(ctx: Ctx<'js>, request: String, body: Value<'js>) -> Result<u64> {
    let body = body_from_js(&body)?;
    ops::start(&ctx, Op::AskCache { request: request.into(), body })
}

#[cfg(test)]
mod tests;
