//! `POST /query`, for people with curl: `{"sql": "...", "args": [...] or {...}}`. Several statements may stand in one
//! text, without arguments; they run one by one, each its own transaction unless the text says BEGIN and COMMIT, and
//! the last one's result is the answer. Integers beyond 2^53 are strings, blobs are `{"base64": "..."}`.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::args::Args;
use super::json::JsonOut;
use super::reply::malformed;
use super::value::{PlainValue, write_plain};
use super::{Outcome, SqlCall, SqlReply, SqlRuntime, describe, stream};
use crate::engine::{Budget, Engine, RowSink, Tail};
use crate::error::SqlFailure;
use crate::ffi::{Column, Statement};

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct QueryBody<'a> {
    #[serde(borrow)]
    sql: Cow<'a, str>,
    #[serde(borrow, default)]
    args: PlainArgs<'a>,
}

#[derive(Default)]
struct PlainArgs<'a>(Args<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for PlainArgs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ArgsVisitor;
        impl<'de> Visitor<'de> for ArgsVisitor {
            type Value = PlainArgs<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("arguments as an array, or as an object by name")
            }
            fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
                Ok(PlainArgs::default())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut args = Args::default();
                while let Some(value) = seq.next_element::<PlainValue<'de>>()? {
                    args.positional.push(value.0);
                }
                Ok(PlainArgs(args))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut args = Args::default();
                while let Some((name, value)) = map.next_entry::<Cow<'de, str>, PlainValue<'de>>()? {
                    args.named.push((name, value.0));
                }
                Ok(PlainArgs(args))
            }
        }
        deserializer.deserialize_any(ArgsVisitor)
    }
}

/// Writes `"columns":[...],"rows":[[...]...`.
struct Rows<'o> {
    out: &'o mut JsonOut,
    is_first: bool,
}

impl RowSink for Rows<'_> {
    fn columns(&mut self, statement: &Statement<'_>) -> Result<(), SqlFailure> {
        self.out.raw("{\"columns\":[");
        for index in 0..statement.column_count() {
            self.out.comma(index == 0);
            self.out.string(statement.column_name(index).as_deref().unwrap_or(""));
        }
        self.out.raw("],\"rows\":[");
        Ok(())
    }

    fn row(&mut self, statement: &Statement<'_>) -> Result<(), SqlFailure> {
        self.out.comma(std::mem::take(&mut self.is_first));
        self.out.raw("[");
        for index in 0..statement.column_count() {
            self.out.comma(index == 0);
            write_plain(self.out, statement.column(index))?;
        }
        self.out.raw("]");
        self.out.check(Column::Null)
    }
}

pub(super) fn run(runtime: &mut SqlRuntime, engine: &mut Engine, call: &SqlCall<'_>) -> Outcome {
    let body: QueryBody<'_> = match serde_json::from_slice(call.body) {
        Ok(body) => body,
        Err(error) => return Outcome::Reply(SqlReply::failure(400, &malformed(&error))),
    };
    if runtime.has_transaction() {
        return Outcome::Blocked;
    }
    let mut out = JsonOut::new(runtime.options.result_bytes_max);
    let mut result = run_all(engine, &body, call, &mut out);
    if result.is_ok() && engine.in_transaction() {
        result = Err(SqlFailure::new(
            "TRANSACTION_OPEN",
            "the text begins a transaction and does not end it, so it was rolled back: a query is one call, with BEGIN \
             and COMMIT in the same text; use /v3/pipeline for interactive transactions",
        ));
    }
    let ended = stream::end(engine);
    match result.and(ended) {
        Ok(()) => Outcome::Reply(SqlReply::json(200, out.into_bytes())),
        Err(failure) => Outcome::Reply(SqlReply::failure(failure.status(), &failure)),
    }
}

fn run_all(
    engine: &mut Engine,
    body: &QueryBody<'_>,
    call: &SqlCall<'_>,
    out: &mut JsonOut,
) -> Result<(), SqlFailure> {
    let budget = Budget::start(engine, call.is_read_only);
    let args = &body.args.0;
    let tail = if args.is_empty() { Tail::Leave } else { Tail::Refuse };
    let (mut rest, mut rows_written, mut rowid, mut count) = (body.sql.as_ref(), 0, None, 0_u32);
    loop {
        // Of several results the last one counts, so the one before goes only when another statement begins.
        let mut next = JsonOut::new(out.max());
        let mut rows = Rows { out: &mut next, is_first: true };
        let bind = |statement: &mut Statement<'_>| args.bind(statement);
        let ran = engine
            .execute(rest, tail, &budget, bind, Some(&mut rows))
            .map_err(|failure| in_text(failure, count));
        let Some((summary, used)) = ran? else { break };
        *out = next;
        rows_written += summary.rows_written;
        rowid = summary.last_insert_rowid.filter(|_| summary.rows_written > 0).or(rowid);
        count += 1;
        rest = &rest[used..];
    }
    if count == 0 {
        return Err(SqlFailure::new("SQL_NO_STATEMENT", "the SQL text holds no statement"));
    }
    out.display(format_args!("],\"rows_written\":{rows_written},\"last_insert_rowid\":"));
    match rowid {
        Some(rowid) => out.integer(rowid),
        None => out.raw("null"),
    }
    out.raw(",\"position\":");
    describe::write_position(out, call.epoch, engine.ticket());
    out.raw("}");
    Ok(())
}

/// Says which statement of several failed.
fn in_text(mut failure: SqlFailure, before: u32) -> SqlFailure {
    if before > 0 {
        failure.message = format!("statement {} of the text: {}", before + 1, failure.message);
    }
    failure
}
