//! `POST /d1`, what a D1 database of an application asks for: statements that are one transaction, under the policy and with
//! the error texts of Durable Objects, because that is what D1 runs on. Not a public path: programs of the fleet send it.
//!
//! `{"statements": [{"sql": "...", "params": [...]}]}` is answered with `{"results": [{"columns", "rows", "meta"}], "position"}`,
//! or, where a statement fails and nothing was changed, with `{"error": "...", "statement": 0}`. A blob is an array of its
//! bytes in both directions. Integers are digits, whatever a reader makes of those beyond 2^53.

use std::borrow::Cow;
use std::fmt;
use std::time::Instant;

use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};

use super::json::JsonOut;
use super::reply::malformed;
use super::{Outcome, SqlCall, SqlReply, SqlRuntime, describe, stream};
use crate::engine::{Engine, ExecLimits, ExecRows, SqlValue, Writes};
use crate::error::SqlFailure;

/// Most statements of one call.
const STATEMENTS_MAX: usize = 10_000;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Call<'a> {
    #[serde(borrow)]
    statements: Vec<StatementCall<'a>>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct StatementCall<'a> {
    #[serde(borrow)]
    sql: Cow<'a, str>,
    #[serde(default, deserialize_with = "params")]
    params: Vec<SqlValue>,
}

/// A value to bind: plain JSON, or a blob as an array of its bytes.
struct Param(SqlValue);

impl<'de> Deserialize<'de> for Param {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ParamVisitor;
        impl<'de> Visitor<'de> for ParamVisitor {
            type Value = Param;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("null, a boolean, a number of at most 64 bits, a string, or an array of bytes")
            }
            fn visit_unit<E: de::Error>(self) -> Result<Param, E> {
                Ok(Param(SqlValue::Null))
            }
            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Param, E> {
                Ok(Param(SqlValue::Integer(i64::from(value))))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Param, E> {
                Ok(Param(SqlValue::Integer(value)))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Param, E> {
                // As JavaScript has it, a number beyond 64 bits is a float.
                Ok(Param(i64::try_from(value).map_or(SqlValue::Real(value as f64), SqlValue::Integer)))
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Param, E> {
                Ok(Param(SqlValue::Real(value)))
            }
            fn visit_str<E: de::Error>(self, value: &str) -> Result<Param, E> {
                Ok(Param(SqlValue::Text(value.to_owned())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Param, A::Error> {
                let mut blob = Vec::with_capacity(seq.size_hint().unwrap_or(0).min(4_096));
                while let Some(byte) = seq.next_element::<u8>()? {
                    blob.push(byte);
                }
                Ok(Param(SqlValue::Blob(blob)))
            }
        }
        deserializer.deserialize_any(ParamVisitor)
    }
}

pub(super) fn params<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SqlValue>, D::Error> {
    Ok(Vec::<Param>::deserialize(deserializer)?.into_iter().map(|param| param.0).collect())
}

/// A statement that failed, and the number of it.
struct Failed {
    statement: usize,
    failure: SqlFailure,
}

pub(super) fn run(runtime: &mut SqlRuntime, engine: &mut Engine, call: &SqlCall<'_>) -> Outcome {
    let body: Call<'_> = match serde_json::from_slice(call.body) {
        Ok(body) => body,
        Err(error) => return Outcome::Reply(SqlReply::failure(400, &malformed(&error))),
    };
    if call.is_read_only {
        let failure =
            SqlFailure::new("READ_ONLY", "a D1 database is not asked with a token that may only read");
        return Outcome::Reply(SqlReply::failure(failure.status(), &failure));
    }
    if body.statements.len() > STATEMENTS_MAX {
        let text = format!("a call has {} statements; the limit is {STATEMENTS_MAX}", body.statements.len());
        return Outcome::Reply(SqlReply::failure(400, &SqlFailure::new("MALFORMED_REQUEST", text)));
    }
    if runtime.has_transaction() {
        return Outcome::Blocked;
    }
    let mut out = JsonOut::new(runtime.options.result_bytes_max);
    let ran = run_all(engine, &body, &mut out);
    if ran.is_err() {
        engine.object_roll_back();
    }
    // The settings of a connection that statements touched are nobody else's.
    if let Err(failure) = stream::end(engine) {
        return Outcome::Reply(SqlReply::failure(failure.status(), &failure));
    }
    match ran {
        Ok(()) => {
            out.raw(",\"position\":");
            describe::write_position(&mut out, call.epoch, engine.ticket());
            out.raw("}");
        }
        Err(Failed { statement, failure }) => {
            out = JsonOut::unbounded();
            out.raw("{\"error\":");
            out.string(&failure.handler_text());
            out.display(format_args!(",\"statement\":{statement}}}"));
        }
    }
    Outcome::Reply(SqlReply::json(200, out.into_bytes()))
}

/// Runs all statements and commits, and appends `{"results":[...]`.
fn run_all(engine: &mut Engine, body: &Call<'_>, out: &mut JsonOut) -> Result<(), Failed> {
    let ends = Instant::now() + engine.options().call_budget;
    out.raw("{\"results\":[");
    let mut before = engine.object_writes().map_err(|failure| Failed { statement: 0, failure })?;
    for (index, statement) in body.statements.iter().enumerate() {
        out.comma(index == 0);
        let ran = run_one(engine, statement, (before, ends), out);
        before = ran.map_err(|failure| Failed { statement: index, failure })?;
    }
    out.raw("]");
    let last = body.statements.len().saturating_sub(1);
    let committed = if engine.is_object_transaction_lost() {
        Err(SqlFailure::new(
            "",
            "the transaction was rolled back by one of its statements; nothing was changed",
        ))
    } else {
        engine.object_commit()
    };
    committed.map_err(|failure| Failed { statement: last, failure })
}

/// Runs a statement. Answers what the connection has come to after it, as `before` is what it had.
fn run_one(
    engine: &mut Engine,
    statement: &StatementCall<'_>,
    (before, ends): (Writes, Instant),
    out: &mut JsonOut,
) -> Result<Writes, SqlFailure> {
    let started = Instant::now();
    let time = engine.options().statement_budget.min(ends.saturating_duration_since(started));
    let limits = ExecLimits { time, result_bytes: out.max().saturating_sub(out.len()) };
    let rows = engine.object_exec(&statement.sql, &statement.params, limits)?;
    let after = engine.object_writes()?;
    write_rows(&rows, out)?;
    out.display(format_args!(
        ",\"meta\":{{\"changes\":{},\"last_row_id\":{},\"changed_db\":{},\"size_after\":{},\
         \"rows_read\":{},\"rows_written\":{},\"duration\":",
        after.total_changes.saturating_sub(before.total_changes),
        after.last_row_id,
        after != before,
        after.size_bytes,
        rows.rows_read,
        rows.rows_written
    ));
    out.float(started.elapsed().as_secs_f64() * 1_000.0);
    out.raw("}}");
    Ok(after)
}

/// Appends `{"columns":[...],"rows":[[...]...]`.
fn write_rows(rows: &ExecRows, out: &mut JsonOut) -> Result<(), SqlFailure> {
    out.raw("{\"columns\":[");
    for (index, name) in rows.columns.iter().enumerate() {
        out.comma(index == 0);
        out.string(name);
    }
    out.raw("],\"rows\":[");
    // A statement without columns has no rows.
    for (index, row) in rows.values.chunks(rows.columns.len().max(1)).enumerate() {
        out.comma(index == 0);
        out.raw("[");
        for (index, value) in row.iter().enumerate() {
            out.comma(index == 0);
            write_value(value, out);
        }
        out.raw("]");
        out.check(crate::ffi::Column::Null)?;
    }
    out.raw("]");
    Ok(())
}

fn write_value(value: &SqlValue, out: &mut JsonOut) {
    match value {
        SqlValue::Null => out.raw("null"),
        SqlValue::Integer(integer) => out.display(integer),
        SqlValue::Real(float) => out.float(*float),
        SqlValue::Text(text) => out.string(text),
        SqlValue::Blob(blob) => {
            out.raw("[");
            for (index, byte) in blob.iter().enumerate() {
                out.comma(index == 0);
                out.display(byte);
            }
            out.raw("]");
        }
    }
}
