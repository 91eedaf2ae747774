//! Statements of a Hrana stream and their results as JSON. What a failed statement has already written into the reply is
//! taken back.

use super::hrana::{Batch, BatchCond, Stmt};
use super::json::JsonOut;
use super::stream::Stream;
use super::value::write_hrana;
use crate::engine::{Budget, Engine, RowSink, Summary, Tail};
use crate::error::SqlFailure;
use crate::ffi::Statement;

/// Writes `"cols":[...],"rows":[[...]...`.
struct Rows<'o> {
    out: &'o mut JsonOut,
    wants_rows: bool,
    is_first: bool,
}

impl RowSink for Rows<'_> {
    fn columns(&mut self, statement: &Statement<'_>) -> Result<(), SqlFailure> {
        write_columns(self.out, statement);
        self.out.raw(",\"rows\":[");
        Ok(())
    }

    fn row(&mut self, statement: &Statement<'_>) -> Result<(), SqlFailure> {
        if !self.wants_rows {
            return Ok(());
        }
        self.out.comma(std::mem::take(&mut self.is_first));
        write_row(self.out, statement)
    }
}

/// Appends `"cols":[...]`.
pub(super) fn write_columns(out: &mut JsonOut, statement: &Statement<'_>) {
    out.raw("\"cols\":[");
    for index in 0..statement.column_count() {
        out.comma(index == 0);
        out.raw("{\"name\":");
        out.optional_string(statement.column_name(index).as_deref());
        out.raw(",\"decltype\":");
        out.optional_string(statement.column_decltype(index).as_deref());
        out.raw("}");
    }
    out.raw("]");
}

/// Appends the current row as an array.
pub(super) fn write_row(out: &mut JsonOut, statement: &Statement<'_>) -> Result<(), SqlFailure> {
    out.raw("[");
    for index in 0..statement.column_count() {
        out.comma(index == 0);
        write_hrana(out, statement.column(index))?;
    }
    out.raw("]");
    out.check(crate::ffi::Column::Null)
}

/// Appends `"affected_row_count":...,"last_insert_rowid":...`.
pub(super) fn write_counts(out: &mut JsonOut, summary: &Summary) {
    // Hrana counts in 32 bits.
    out.display(format_args!("\"affected_row_count\":{}", summary.affected_rows.min(u64::from(u32::MAX))));
    out.raw(",\"last_insert_rowid\":");
    match summary.last_insert_rowid {
        Some(rowid) => out.display(format_args!("\"{rowid}\"")),
        None => out.raw("null"),
    }
}

/// Runs one statement into a sink.
pub(super) fn run(
    engine: &mut Engine,
    stream: &Stream,
    stmt: &Stmt<'_>,
    budget: &Budget,
    sink: &mut dyn RowSink,
) -> Result<Summary, SqlFailure> {
    let sql = stream.sql(&stmt.text)?;
    let bind = |statement: &mut Statement<'_>| stmt.args.bind(statement);
    match engine.execute(sql, Tail::Refuse, budget, bind, Some(sink))? {
        Some((summary, _)) => Ok(summary),
        None => Err(SqlFailure::new("SQL_NO_STATEMENT", "the SQL text holds no statement")),
    }
}

/// Runs one statement and appends its `StmtResult`, or nothing when it fails.
pub(super) fn execute(
    engine: &mut Engine,
    stream: &Stream,
    stmt: &Stmt<'_>,
    budget: &Budget,
    out: &mut JsonOut,
) -> Result<(), SqlFailure> {
    let start = out.len();
    out.raw("{");
    let mut rows = Rows { out, wants_rows: stmt.wants_rows, is_first: true };
    match run(engine, stream, stmt, budget, &mut rows) {
        Ok(summary) => {
            out.raw("],");
            write_counts(out, &summary);
            out.display(format_args!(
                ",\"replication_index\":null,\"rows_read\":{},\"rows_written\":{},\"query_duration_ms\":",
                summary.rows_read, summary.rows_written
            ));
            out.float(summary.duration.as_secs_f64() * 1_000.0);
            out.raw("}");
            Ok(())
        }
        Err(failure) => {
            out.truncate(start);
            Err(failure)
        }
    }
}

/// What became of a step of a batch.
pub(super) enum Step {
    Skipped,
    Ok,
    Failed(SqlFailure),
}

/// Runs the steps of a batch and appends its `BatchResult`.
///
/// # Errors
/// `BATCH_COND_BAD` when a condition names a step that is not before it; the steps before have run.
pub(super) fn batch(
    engine: &mut Engine,
    stream: &Stream,
    batch: &Batch<'_>,
    budget: &Budget,
    out: &mut JsonOut,
) -> Result<(), SqlFailure> {
    let start = out.len();
    let mut steps = Vec::with_capacity(batch.steps.len());
    out.raw("{\"step_results\":[");
    for step in &batch.steps {
        out.comma(steps.is_empty());
        let outcome = match may_run(step.condition.as_ref(), &steps, engine) {
            Ok(true) => match execute(engine, stream, &step.stmt, budget, out) {
                Ok(()) => Step::Ok,
                Err(failure) => Step::Failed(failure),
            },
            Ok(false) => Step::Skipped,
            Err(failure) => {
                out.truncate(start);
                return Err(failure);
            }
        };
        if !matches!(outcome, Step::Ok) {
            out.raw("null");
        }
        steps.push(outcome);
    }
    out.raw("],\"step_errors\":[");
    for (index, step) in steps.iter().enumerate() {
        out.comma(index == 0);
        match step {
            Step::Failed(failure) => out.failure(failure),
            Step::Ok | Step::Skipped => out.raw("null"),
        }
    }
    out.raw("],\"replication_index\":null}");
    Ok(())
}

/// Whether a step's condition holds after the steps before it.
///
/// # Errors
/// `BATCH_COND_BAD`.
pub(super) fn may_run(
    condition: Option<&BatchCond>,
    steps: &[Step],
    engine: &Engine,
) -> Result<bool, SqlFailure> {
    let at = |step: usize| {
        let text =
            || format!("a condition of step {} names step {step}, which is not before it", steps.len());
        steps.get(step).ok_or_else(|| SqlFailure::new("BATCH_COND_BAD", text()))
    };
    Ok(match condition {
        None => true,
        Some(BatchCond::Ok { step }) => matches!(at(*step)?, Step::Ok),
        Some(BatchCond::Error { step }) => matches!(at(*step)?, Step::Failed(_)),
        Some(BatchCond::Not { cond }) => !may_run(Some(cond), steps, engine)?,
        Some(BatchCond::And { conds }) => {
            let holds = conds.iter().map(|cond| may_run(Some(cond), steps, engine));
            holds.collect::<Result<Vec<_>, _>>()?.into_iter().all(|holds| holds)
        }
        Some(BatchCond::Or { conds }) => {
            let holds = conds.iter().map(|cond| may_run(Some(cond), steps, engine));
            holds.collect::<Result<Vec<_>, _>>()?.into_iter().any(|holds| holds)
        }
        Some(BatchCond::IsAutocommit) => !engine.in_transaction(),
    })
}

/// Runs all statements of a text, without their rows.
pub(super) fn sequence(engine: &mut Engine, sql: &str, budget: &Budget) -> Result<(), SqlFailure> {
    let mut rest = sql;
    // Arguments have no place in a sequence, and a parameter without one is an error here as elsewhere.
    let bind = |statement: &mut Statement<'_>| super::args::Args::default().bind(statement);
    while let Some((_, used)) = engine.execute(rest, Tail::Leave, budget, bind, None)? {
        rest = &rest[used..];
    }
    Ok(())
}

/// Appends the `DescribeResult` of a statement that is not run.
pub(super) fn describe(
    engine: &Engine,
    sql: &str,
    budget: &Budget,
    out: &mut JsonOut,
) -> Result<(), SqlFailure> {
    let (prepared, _) = engine.prepare(sql, budget)?;
    let Some(prepared) = prepared else {
        return Err(SqlFailure::new("SQL_NO_STATEMENT", "the SQL text holds no statement"));
    };
    let statement = &prepared.statement;
    out.raw("{\"params\":[");
    for number in 1..=statement.parameter_count() {
        out.comma(number == 1);
        out.raw("{\"name\":");
        out.optional_string(statement.parameter_name(number).as_deref());
        out.raw("}");
    }
    out.raw("],");
    write_columns(out, statement);
    out.display(format_args!(
        ",\"is_explain\":{},\"is_readonly\":{}}}",
        statement.is_explain(),
        statement.is_readonly()
    ));
    Ok(())
}
