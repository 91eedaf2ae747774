//! `POST /v2/pipeline` and `/v3/pipeline`: requests on one stream, each with its own result. A failed request does not
//! stop the ones after it; that is Hrana's rule.

use holdfast_types::Millis;

use super::hrana::{PipelineBody, StreamRequest};
use super::json::JsonOut;
use super::reply::malformed;
use super::stream::{Admission, Stream, stale};
use super::{Outcome, SqlCall, SqlReply, SqlRuntime, statement};
use crate::engine::{Budget, Engine};
use crate::error::SqlFailure;

pub(super) fn run(runtime: &mut SqlRuntime, engine: &mut Engine, call: &SqlCall<'_>, now: Millis) -> Outcome {
    let body: PipelineBody<'_> = match serde_json::from_slice(call.body) {
        Ok(body) => body,
        Err(error) => return Outcome::Reply(SqlReply::failure(400, &malformed(&error))),
    };
    let mut stream = match runtime.streams.admit(engine, body.baton.as_deref(), now) {
        Ok(Admission::Run(stream)) => stream,
        Ok(Admission::Blocked) => return Outcome::Blocked,
        Ok(Admission::Stale) => {
            return Outcome::Reply(SqlReply::failure(400, &stale(&runtime.options)));
        }
        Err(failure) => return Outcome::Reply(SqlReply::failure(500, &failure)),
    };
    let budget = Budget::start(engine, call.is_read_only);
    let mut out = JsonOut::new(runtime.options.result_bytes_max);
    out.raw("{\"results\":[");
    for (index, request) in body.requests.iter().enumerate() {
        out.comma(index == 0);
        let start = out.len();
        if let Err(failure) = answer(engine, &mut stream, request, &budget, &mut out) {
            out.truncate(start);
            out.raw("{\"type\":\"error\",\"error\":");
            out.failure(&failure);
            out.raw("}");
        }
    }
    match runtime.streams.settle(engine, *stream, now) {
        Ok(baton) => {
            out.raw("],\"baton\":");
            out.optional_string(baton.as_deref());
            out.raw(",\"base_url\":null}");
            Outcome::Reply(SqlReply::json(200, out.into_bytes()))
        }
        Err(failure) => Outcome::Reply(SqlReply::failure(500, &failure)),
    }
}

/// Runs one request and appends its result.
fn answer(
    engine: &mut Engine,
    stream: &mut Stream,
    request: &StreamRequest<'_>,
    budget: &Budget,
    out: &mut JsonOut,
) -> Result<(), SqlFailure> {
    if stream.is_closed {
        return Err(SqlFailure::new(
            "STREAM_CLOSED",
            "the stream was closed by an earlier request of this call",
        ));
    }
    out.raw("{\"type\":\"ok\",\"response\":{\"type\":");
    match request {
        StreamRequest::Close => {
            stream.is_closed = true;
            out.raw("\"close\"");
        }
        StreamRequest::Execute { stmt } => {
            out.raw("\"execute\",\"result\":");
            statement::execute(engine, stream, stmt, budget, out)?;
        }
        StreamRequest::Batch { batch } => {
            out.raw("\"batch\",\"result\":");
            statement::batch(engine, stream, batch, budget, out)?;
        }
        StreamRequest::Sequence { text } => {
            out.raw("\"sequence\"");
            statement::sequence(engine, stream.sql(text)?, budget)?;
        }
        StreamRequest::Describe { text } => {
            out.raw("\"describe\",\"result\":");
            statement::describe(engine, stream.sql(text)?, budget, out)?;
        }
        StreamRequest::StoreSql { sql_id, sql } => {
            stream.store(*sql_id, sql)?;
            out.raw("\"store_sql\"");
        }
        StreamRequest::CloseSql { sql_id } => {
            stream.forget(*sql_id);
            out.raw("\"close_sql\"");
        }
        StreamRequest::GetAutocommit => {
            out.display(format_args!("\"get_autocommit\",\"is_autocommit\":{}", !engine.in_transaction()));
        }
    }
    out.raw("}}");
    Ok(())
}
