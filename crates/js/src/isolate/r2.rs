//! R2 buckets as handlers see them. What they ask is JSON, with a body beside it where something is put; whoever keeps the
//! objects reads it (`crates/r2`).

use rquickjs::function::Func;
use rquickjs::{Ctx, Object, Result, Value};

use super::ops;
use crate::effect::Op;
use crate::plain;
use crate::prelude::Part;
use crate::web::fetch::body_from_js;

pub(crate) const PART: Part = Part { name: "r2", source: include_str!("r2.js"), natives, globals: &[] };

fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    native.set("ask", Func::from(ask))?;
    Ok(native)
}

fn ask<'js>(ctx: Ctx<'js>, bucket: String, request: String, body: Value<'js>) -> Result<u64> {
    let body = body_from_js(&body)?;
    ops::start(&ctx, Op::AskBucket { bucket, request: request.into(), body })
}

#[cfg(test)]
#[path = "r2_tests.rs"]
mod tests;
