//! `ctx.storage` of a Durable Object over its database: keys and values, SQL, transactions. Promises of this API are settled
//! at once, but for those of [`history`]: the work is synchronous, and what waits for durability are the outputs of the turn. Writes without an `await`
//! between them are one transaction, which the end of the turn commits.
//!
//! Cursors are buffers outside of JavaScript's heap ([`state::RESULT_BYTES_MAX`] in all): a query runs to its end at once,
//! an undrained cursor holds nothing of the database, and one that is kept shows what was there when it was made.
//! Numbers are bound as floats, and integers beyond 2^53 are read as the nearest number, both as on Cloudflare.

use bytes::Bytes;
use rquickjs::function::Func;
use rquickjs::{Array, Ctx, Exception, Object, Result, Value};

use crate::clone;
use crate::isolate::host::host;
use crate::isolate::kind::IsolateKind;
use crate::plain;
use crate::prelude::Part;

pub(crate) mod alarm;
pub(crate) mod history;
mod range;
mod sql;
mod state;
mod text;

#[cfg(test)]
mod tests;

use state::storage;

/// Longest key in bytes.
const KEY_LEN_MAX: usize = 2_048;
/// Longest value in bytes of its serialized form.
const VALUE_LEN_MAX: usize = 2 << 20;
/// Keys of one call with several.
const KEYS_MAX: usize = 128;

pub(crate) const PART: Part =
    Part { name: "storage", source: include_str!("storage/storage.js"), natives, globals: &[] };
pub(crate) const SQL_PART: Part =
    Part { name: "storage_sql", source: include_str!("storage/sql.js"), natives: sql::natives, globals: &[] };

fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let host = host(ctx);
    if let IsolateKind::Object(object) = &host.kind {
        state::install(ctx, &host, &object.storage)?;
    }
    let native = plain::record(ctx)?;
    native.set("keysMax", KEYS_MAX)?;
    native.set("get", Func::from(get))?;
    native.set("put", Func::from(put))?;
    native.set("delete", Func::from(delete))?;
    native.set("getMany", Func::from(get_many))?;
    native.set("list", Func::from(range::list))?;
    native.set("deleteAll", Func::from(delete_all))?;
    native.set("savepoint", Func::from(|ctx: Ctx<'_>| storage(&ctx).savepoint(&ctx)))?;
    native.set(
        "endSavepoint",
        Func::from(|ctx: Ctx<'_>, keep: bool| storage(&ctx).end_savepoint(&ctx, keep)),
    )?;
    native.set("beginTransaction", Func::from(|ctx: Ctx<'_>| storage(&ctx).begin_held(&ctx)))?;
    native
        .set("endTransaction", Func::from(|ctx: Ctx<'_>, keep: bool| storage(&ctx).end_held(&ctx, keep)))?;
    native.set("breakWaiting", Func::from(|ctx: Ctx<'_>| storage(&ctx).break_waiting(&ctx)))?;
    Ok(native)
}

fn check_key(ctx: &Ctx<'_>, key: &str) -> Result<()> {
    if key.len() <= KEY_LEN_MAX {
        return Ok(());
    }
    let len = key.len();
    let text = format!("Keys cannot be larger than {KEY_LEN_MAX} bytes. A key of size {len} was provided.");
    Err(Exception::throw_range(ctx, &text))
}

fn get<'js>(ctx: Ctx<'js>, key: String) -> Result<Value<'js>> {
    check_key(&ctx, &key)?;
    match storage(&ctx).run(&ctx, |engine| engine.kv_get(&key))? {
        Some(bytes) => clone::deserialize(&ctx, &bytes),
        None => Ok(Value::new_undefined(ctx)),
    }
}

/// Keys and values in turn, in the order of the keys' bytes.
fn get_many<'js>(ctx: Ctx<'js>, mut keys: Vec<String>) -> Result<Array<'js>> {
    keys.sort_unstable();
    keys.dedup();
    let found = Array::new(ctx.clone())?;
    for key in keys {
        let value = get(ctx.clone(), key.clone())?;
        // A value that is `undefined` comes from `kv.put` alone; here it is as good as absent.
        if !value.is_undefined() {
            plain::append(&found, key)?;
            plain::append(&found, value)?;
        }
    }
    Ok(found)
}

fn put<'js>(ctx: Ctx<'js>, key: String, value: Value<'js>) -> Result<()> {
    check_key(&ctx, &key)?;
    let bytes = clone::serialize(&ctx, &value)?;
    if bytes.len() > VALUE_LEN_MAX {
        let len = bytes.len();
        let text = format!(
            "Values cannot be larger than {VALUE_LEN_MAX} bytes. A value of size {len} was provided."
        );
        return Err(Exception::throw_range(&ctx, &text));
    }
    storage(&ctx).run(&ctx, |engine| engine.kv_put(&key, &bytes))
}

fn delete(ctx: Ctx<'_>, key: String) -> Result<bool> {
    check_key(&ctx, &key)?;
    storage(&ctx).run(&ctx, |engine| engine.kv_delete(&key))
}

fn delete_all(ctx: Ctx<'_>) -> Result<()> {
    storage(&ctx).delete_all(&ctx)
}

/// Keys and values in turn.
fn pairs_to_js<'js>(ctx: &Ctx<'js>, pairs: Vec<(String, Vec<u8>)>) -> Result<Array<'js>> {
    let flat = Array::new(ctx.clone())?;
    for (key, bytes) in pairs {
        plain::append(&flat, key)?;
        plain::append(&flat, clone::deserialize(ctx, &Bytes::from(bytes))?)?;
    }
    Ok(flat)
}
