//! D1 databases as handlers see them. What they ask is JSON that the database's cell reads; see `api/d1.rs` of the SQL API.

use rquickjs::function::Func;
use rquickjs::{Ctx, Object, Result};

use super::ops;
use crate::effect::Op;
use crate::plain;
use crate::prelude::Part;

pub(crate) const PART: Part =
    Part { name: "databases", source: include_str!("databases.js"), natives, globals: &[] };

fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    native.set("query", Func::from(query))?;
    Ok(native)
}

fn query(ctx: Ctx<'_>, database: String, request: String) -> Result<u64> {
    ops::start(&ctx, Op::QueryDatabase { database, request: request.into() })
}

#[cfg(test)]
#[path = "databases_tests.rs"]
mod tests;
