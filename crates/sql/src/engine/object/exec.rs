//! SQL of a handler: one or more statements, the last with parameters, run to their ends.

use std::time::{Duration, Instant};

use super::super::pragma::DEFER_FOREIGN_KEYS;
use super::Engine;
use crate::engine::run::{Budget, RowSink, Summary};
use crate::error::SqlFailure;
use crate::ffi::{Column, Statement};

/// Bytes that a buffered value takes beside its text or blob.
const VALUE_BYTES: usize = size_of::<SqlValue>();

/// A value of SQLite.
#[derive(Clone, Debug, PartialEq)]
pub enum SqlValue {
    /// NULL.
    Null,
    /// A 64-bit integer.
    Integer(i64),
    /// A float, never NaN.
    Real(f64),
    /// Text; what is not UTF-8 is replaced.
    Text(String),
    /// A blob.
    Blob(Vec<u8>),
}

/// What one `exec` may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecLimits {
    /// Time for all its statements.
    pub time: Duration,
    /// Bytes of the buffered rows.
    pub result_bytes: usize,
}

/// The rows of the last statement.
#[derive(Debug, Default, PartialEq)]
pub struct ExecRows {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The values, row by row.
    pub values: Vec<SqlValue>,
    /// What the buffer takes.
    pub bytes: usize,
    /// Rows that all statements returned or visited by full scans.
    pub rows_read: u64,
    /// Rows that all statements changed, by triggers and foreign keys too.
    pub rows_written: u64,
}

/// Buffers rows up to a bound.
struct Buffer {
    rows: ExecRows,
    bytes_max: usize,
}

impl RowSink for Buffer {
    fn columns(&mut self, statement: &Statement<'_>) -> Result<(), SqlFailure> {
        let names =
            (0..statement.column_count()).map(|index| statement.column_name(index).unwrap_or_default());
        self.rows.columns = names.collect();
        Ok(())
    }

    fn row(&mut self, statement: &Statement<'_>) -> Result<(), SqlFailure> {
        for index in 0..self.rows.columns.len() {
            let column = statement.column(index);
            self.rows.bytes += VALUE_BYTES + len_of(column);
            if self.rows.bytes > self.bytes_max {
                return Err(too_large(self.bytes_max));
            }
            self.rows.values.push(value_of(column));
        }
        Ok(())
    }
}

pub(super) fn too_large(bytes_max: usize) -> SqlFailure {
    let text = format!(
        "the rows of the query and of cursors that are not read take over {bytes_max} bytes; use LIMIT, or read fewer columns"
    );
    SqlFailure::new("RESULT_TOO_LARGE", text)
}

fn len_of(column: Column<'_>) -> usize {
    match column {
        Column::Text(bytes) | Column::Blob(bytes) => bytes.len(),
        Column::Null | Column::Integer(_) | Column::Float(_) => 0,
    }
}

fn value_of(column: Column<'_>) -> SqlValue {
    match column {
        Column::Null => SqlValue::Null,
        Column::Integer(integer) => SqlValue::Integer(integer),
        Column::Float(float) => SqlValue::Real(float),
        Column::Text(text) => SqlValue::Text(String::from_utf8_lossy(text).into_owned()),
        Column::Blob(blob) => SqlValue::Blob(blob.to_vec()),
    }
}

impl SqlValue {
    fn as_column(&self) -> Column<'_> {
        match self {
            Self::Null => Column::Null,
            Self::Integer(integer) => Column::Integer(*integer),
            Self::Real(float) => Column::Float(*float),
            Self::Text(text) => Column::Text(text.as_bytes()),
            Self::Blob(blob) => Column::Blob(blob),
        }
    }
}

impl Engine {
    /// Runs the statements of a text under the policy of Durable Objects. The first that writes begins the transaction that
    /// [`Engine::object_commit`] ends. `bindings` go to the last statement, whose rows are answered. What ran before a
    /// statement that fails stays in the transaction.
    ///
    /// # Errors
    /// [`SqlFailure`]. [`Engine::is_object_transaction_lost`] tells whether SQLite rolled back more than the statement.
    pub fn object_exec(
        &mut self,
        sql: &str,
        bindings: &[SqlValue],
        limits: ExecLimits,
    ) -> Result<ExecRows, SqlFailure> {
        let budget = Budget::of_object(Instant::now() + limits.time, limits.time);
        let mut all = Summary::default();
        let mut rest = sql;
        loop {
            let run = self.exec_one(rest, bindings, limits, &budget);
            let (summary, used, rows) = run.inspect_err(|failure| self.note_failure(failure))?;
            all.rows_read += summary.rows_read;
            all.rows_written += summary.rows_written;
            rest = &rest[used..];
            if let Some(rows) = rows {
                return Ok(ExecRows { rows_read: all.rows_read, rows_written: all.rows_written, ..rows });
            }
        }
    }

    /// Runs the first statement of a text. Answers how many bytes it took, and the rows where it was the last.
    fn exec_one(
        &self,
        sql: &str,
        bindings: &[SqlValue],
        limits: ExecLimits,
        budget: &Budget,
    ) -> Result<(Summary, usize, Option<ExecRows>), SqlFailure> {
        self.shared.take_touched_pragmas();
        let (prepared, used) = self.prepare(sql, budget)?;
        let mut prepared =
            prepared.ok_or_else(|| SqlFailure::new("", "SQL code did not contain a statement."))?;
        let is_last = sql[used..].trim_ascii().is_empty();
        let parameters = prepared.statement.parameter_count();
        if !is_last && parameters > 0 {
            let text = "When executing multiple SQL statements in a single call, only the last statement can have parameters.";
            return Err(SqlFailure::new("", text));
        }
        if is_last && parameters != bindings.len() {
            return Err(SqlFailure::new("", "Wrong number of parameter bindings for SQL query."));
        }
        if is_last {
            for (index, value) in bindings.iter().enumerate() {
                prepared.statement.bind(index + 1, value.as_column())?;
            }
        }
        let had_transaction = self.in_transaction();
        // SQLite ends the deferring of foreign keys with the next COMMIT, its own after a single statement included.
        if !prepared.statement.is_readonly() || self.shared.is_pragma_touched(DEFER_FOREIGN_KEYS) {
            self.object_begin()?;
        }
        let mut buffer = Buffer { rows: ExecRows::default(), bytes_max: limits.result_bytes };
        let sink: Option<&mut dyn RowSink> = if is_last { Some(&mut buffer) } else { None };
        let summary = self.step_all(&mut prepared, budget, sink);
        if had_transaction && !self.in_transaction() {
            self.is_object_lost.set(true);
        }
        let summary = summary.map_err(|failure| self.name_budget(failure, limits.time))?;
        Ok((summary, used, is_last.then_some(buffer.rows)))
    }

    /// The budget of a call of an object is what its caller gives, not the engine's own.
    fn name_budget(&self, mut failure: SqlFailure, time: Duration) -> SqlFailure {
        if failure.code == "SQLITE_INTERRUPT" && self.shared.is_budget_spent() {
            let ms = time.as_millis();
            failure.message =
                format!("interrupted: the statement took more than the {ms} ms that it was given");
        }
        failure
    }
}
