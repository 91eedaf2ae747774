//! `POST /v3/cursor`: a batch whose result is lines of JSON. All of it is made before the reply goes: no row may leave
//! while a statement is unfinished, and the bound on results holds here too.

use holdfast_types::Millis;

use super::hrana::{Batch, CursorBody};
use super::json::JsonOut;
use super::reply::malformed;
use super::statement::{self, Step, write_columns, write_counts, write_row};
use super::stream::{Admission, Stream, stale};
use super::{Outcome, SqlCall, SqlReply, SqlRuntime};
use crate::engine::{Budget, Engine, RowSink};
use crate::error::SqlFailure;
use crate::ffi::Statement;

pub(super) fn run(runtime: &mut SqlRuntime, engine: &mut Engine, call: &SqlCall<'_>, now: Millis) -> Outcome {
    let body: CursorBody<'_> = match serde_json::from_slice(call.body) {
        Ok(body) => body,
        Err(error) => return Outcome::Reply(SqlReply::failure(400, &malformed(&error))),
    };
    let stream = match runtime.streams.admit(engine, body.baton.as_deref(), now) {
        Ok(Admission::Run(stream)) => stream,
        Ok(Admission::Blocked) => return Outcome::Blocked,
        Ok(Admission::Stale) => {
            return Outcome::Reply(SqlReply::failure(400, &stale(&runtime.options)));
        }
        Err(failure) => return Outcome::Reply(SqlReply::failure(500, &failure)),
    };
    let budget = Budget::start(engine, call.is_read_only);
    let mut entries = JsonOut::new(runtime.options.result_bytes_max);
    if let Err(failure) = run_batch(engine, &stream, &body.batch, &budget, &mut entries) {
        entries.raw("{\"type\":\"error\",\"error\":");
        entries.failure(&failure);
        entries.raw("}\n");
    }
    match runtime.streams.settle(engine, *stream, now) {
        Ok(baton) => {
            let mut out = JsonOut::unbounded();
            out.raw("{\"baton\":");
            out.optional_string(baton.as_deref());
            out.raw(",\"base_url\":null}\n");
            let mut body = out.into_bytes();
            body.append(&mut entries.into_bytes());
            Outcome::Reply(SqlReply::json_lines(body))
        }
        Err(failure) => Outcome::Reply(SqlReply::failure(500, &failure)),
    }
}

/// Writes a step's entries. Rows of a step that fails later stay, followed by `step_error`, as the protocol has it.
struct Entries<'o> {
    out: &'o mut JsonOut,
    step: usize,
    wants_rows: bool,
}

impl RowSink for Entries<'_> {
    fn columns(&mut self, statement: &Statement<'_>) -> Result<(), SqlFailure> {
        self.out.display(format_args!("{{\"type\":\"step_begin\",\"step\":{},", self.step));
        write_columns(self.out, statement);
        self.out.raw("}\n");
        Ok(())
    }

    fn row(&mut self, statement: &Statement<'_>) -> Result<(), SqlFailure> {
        if !self.wants_rows {
            return Ok(());
        }
        let start = self.out.len();
        self.out.raw("{\"type\":\"row\",\"row\":");
        if let Err(failure) = write_row(self.out, statement) {
            self.out.truncate(start);
            return Err(failure);
        }
        self.out.raw("}\n");
        Ok(())
    }
}

fn run_batch(
    engine: &mut Engine,
    stream: &Stream,
    batch: &Batch<'_>,
    budget: &Budget,
    out: &mut JsonOut,
) -> Result<(), SqlFailure> {
    let mut steps = Vec::with_capacity(batch.steps.len());
    for (index, step) in batch.steps.iter().enumerate() {
        if !statement::may_run(step.condition.as_ref(), &steps, engine)? {
            steps.push(Step::Skipped);
            continue;
        }
        let mut entries = Entries { out, step: index, wants_rows: step.stmt.wants_rows };
        match statement::run(engine, stream, &step.stmt, budget, &mut entries) {
            Ok(summary) => {
                out.raw("{\"type\":\"step_end\",");
                write_counts(out, &summary);
                out.raw("}\n");
                steps.push(Step::Ok);
            }
            Err(failure) => {
                out.display(format_args!("{{\"type\":\"step_error\",\"step\":{index},\"error\":"));
                out.failure(&failure);
                out.raw("}\n");
                steps.push(Step::Failed(failure));
            }
        }
    }
    Ok(())
}
