//! `POST /v1/execute` and `/v1/batch`: Hrana 1 over HTTP, without streams, which older clients (Python's
//! `libsql-client`) speak. Each call is a stream of its own, so that a transaction must end in the batch that begins it.

use serde::Deserialize;

use super::hrana::{Batch, Stmt};
use super::json::JsonOut;
use super::reply::malformed;
use super::stream::{self, Stream};
use super::{Outcome, SqlCall, SqlReply, SqlRuntime, statement};
use crate::engine::{Budget, Engine};
use crate::error::SqlFailure;

#[derive(Deserialize)]
struct ExecuteBody<'a> {
    #[serde(borrow)]
    stmt: Stmt<'a>,
}

#[derive(Deserialize)]
struct BatchBody<'a> {
    #[serde(borrow)]
    batch: Batch<'a>,
}

/// Runs one statement.
pub(super) fn execute(runtime: &mut SqlRuntime, engine: &mut Engine, call: &SqlCall<'_>) -> Outcome {
    run(runtime, engine, call, |body: &ExecuteBody<'_>, engine, stream, budget, out| {
        statement::execute(engine, stream, &body.stmt, budget, out)
    })
}

/// Runs a batch.
pub(super) fn batch(runtime: &mut SqlRuntime, engine: &mut Engine, call: &SqlCall<'_>) -> Outcome {
    run(runtime, engine, call, |body: &BatchBody<'_>, engine, stream, budget, out| {
        statement::batch(engine, stream, &body.batch, budget, out)
    })
}

fn run<'a, B: Deserialize<'a>>(
    runtime: &mut SqlRuntime,
    engine: &mut Engine,
    call: &SqlCall<'a>,
    work: impl FnOnce(&B, &mut Engine, &Stream, &Budget, &mut JsonOut) -> Result<(), SqlFailure>,
) -> Outcome {
    let body: B = match serde_json::from_slice(call.body) {
        Ok(body) => body,
        Err(error) => return Outcome::Reply(SqlReply::failure(400, &malformed(&error))),
    };
    if runtime.has_transaction() {
        return Outcome::Blocked;
    }
    let budget = Budget::start(engine, call.is_read_only);
    let mut out = JsonOut::new(runtime.options.result_bytes_max);
    out.raw("{\"result\":");
    let mut result = work(&body, engine, &Stream::alone(), &budget, &mut out);
    if result.is_ok() && engine.in_transaction() {
        result = Err(SqlFailure::new(
            "TRANSACTION_OPEN",
            "the call begins a transaction and does not end it, so it was rolled back: use /v3/pipeline for that",
        ));
    }
    match result.and(stream::end(engine)) {
        Ok(()) => {
            out.raw("}");
            Outcome::Reply(SqlReply::json(200, out.into_bytes()))
        }
        Err(failure) => Outcome::Reply(SqlReply::failure(failure.status(), &failure)),
    }
}
