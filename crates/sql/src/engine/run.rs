//! Running one statement of a user: policy while it is prepared, budget while it steps, and the ends that SQLite leaves
//! to its caller. Every statement is stepped to its end or undone before the call returns: no cursor outlives it.

use std::time::{Duration, Instant};

use super::pragma::SESSION_PRAGMAS;
use super::{Engine, policy};
use crate::error::SqlFailure;
use crate::ffi::{self, MemoryBound, SqliteError, Statement};
use crate::options::SQL_LEN_MAX;

/// `SQLITE_CONSTRAINT_FOREIGNKEY`.
const CONSTRAINT_FOREIGN_KEY: i32 = 787;

/// What the statements of one call may use.
#[derive(Debug)]
pub(crate) struct Budget {
    ends: Instant,
    statement: Duration,
    /// Statements that write are refused.
    pub(crate) is_read_only: bool,
    /// The caller is a Durable Object: transactions are its storage's.
    is_object: bool,
}

impl Budget {
    pub(crate) fn start(engine: &Engine, is_read_only: bool) -> Self {
        Self {
            ends: Instant::now() + engine.options().call_budget,
            statement: engine.options().statement_budget,
            is_read_only,
            is_object: false,
        }
    }

    /// The budget of a Durable Object's call.
    pub(crate) fn of_object(ends: Instant, statement: Duration) -> Self {
        Self { ends, statement, is_read_only: false, is_object: true }
    }
}

/// What may follow the first statement of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// Only blanks and comments.
    Refuse,
    /// Anything; the caller goes on from there.
    Leave,
}

/// Takes a statement's columns and rows as they come.
pub(crate) trait RowSink {
    /// Before the first row.
    fn columns(&mut self, statement: &Statement<'_>) -> Result<(), SqlFailure>;
    /// A row. An error ends the statement: a reading one at once, a writing one is undone.
    fn row(&mut self, statement: &Statement<'_>) -> Result<(), SqlFailure>;
}

/// A statement ready to run.
pub(crate) struct Prepared<'e> {
    /// For binding and describing.
    pub(crate) statement: Statement<'e>,
    begins_read_only: bool,
    is_commit: bool,
    is_release: bool,
    page_size: Option<u32>,
    /// It was prepared for an earlier run: its first step may prepare it anew.
    is_kept: bool,
}

/// What a statement did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Rows changed by the statement itself.
    pub(crate) affected_rows: u64,
    /// Rows changed in all, by triggers and foreign keys too.
    pub(crate) rows_written: u64,
    /// Rows returned or visited by full scans, whichever is more.
    pub(crate) rows_read: u64,
    /// Set by statements that may write.
    pub(crate) last_insert_rowid: Option<i64>,
    /// How long it ran.
    pub(crate) duration: Duration,
}

/// Connection settings that one stream changed, by their index in [`SESSION_PRAGMAS`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Session(Vec<(usize, i64)>);

impl Engine {
    /// Runs the first statement of a text to its end. Answers what it did and how many bytes it took, or none where only
    /// blanks and comments are left.
    pub(crate) fn execute(
        &mut self,
        sql: &str,
        tail: Tail,
        budget: &Budget,
        bind: impl FnOnce(&mut Statement<'_>) -> Result<(), SqlFailure>,
        sink: Option<&mut dyn RowSink>,
    ) -> Result<Option<(Summary, usize)>, SqlFailure> {
        let result = self.execute_inner(sql, tail, budget, bind, sink);
        match result {
            Ok(Some((summary, used, page_size))) => {
                if let Some(bytes) = page_size {
                    self.choose_page_size(bytes).map_err(|error| {
                        SqlFailure::new("SQLITE_ERROR", format!("cannot set the page size: {error}"))
                    })?;
                }
                Ok(Some((summary, used)))
            }
            Ok(None) => Ok(None),
            Err(failure) => {
                self.note_failure(&failure);
                Err(failure)
            }
        }
    }

    fn execute_inner(
        &self,
        sql: &str,
        tail: Tail,
        budget: &Budget,
        bind: impl FnOnce(&mut Statement<'_>) -> Result<(), SqlFailure>,
        sink: Option<&mut dyn RowSink>,
    ) -> Result<Option<(Summary, usize, Option<u32>)>, SqlFailure> {
        let (prepared, used) = match self.prepared_before(sql, budget) {
            Some((prepared, used)) => (Some(prepared), used),
            None => self.prepare(sql, budget)?,
        };
        let Some(mut prepared) = prepared else { return Ok(None) };
        if tail == Tail::Refuse && self.has_statement(&sql[used..], budget) {
            return Err(SqlFailure::new("SQL_MANY_STATEMENTS", "the SQL text holds more than one statement"));
        }
        bind(&mut prepared.statement)?;
        let summary = self.step_all(&mut prepared, budget, sink)?;
        let Prepared { statement, page_size, is_kept, .. } = prepared;
        let is_plain = self.shared.is_plain() && !self.shared.is_other();
        if is_kept || (is_plain && sql[used..].trim_ascii().is_empty()) {
            self.keep(sql, used, statement, is_kept);
        }
        Ok(Some((summary, used, page_size)))
    }

    /// The statement that was kept of a text, as if it were prepared now.
    fn prepared_before(&self, sql: &str, budget: &Budget) -> Option<(Prepared<'_>, usize)> {
        let (kept, used) = self.kept.borrow_mut().take(sql)?;
        let statement = kept.again(&self.connection)?;
        // It names nothing reserved: it was prepared.
        self.begin_prepare(budget, false);
        let prepared = Prepared {
            statement,
            begins_read_only: false,
            is_commit: false,
            is_release: false,
            page_size: None,
            is_kept: true,
        };
        Some((prepared, used))
    }

    /// Keeps a statement that has run to its end, where its text is one that comes again. One with columns only where it
    /// reads: when the schema has changed meanwhile, its first step tells its columns anew, and must not have written.
    fn keep(&self, sql: &str, used: usize, statement: Statement<'_>, is_kept: bool) {
        if !statement.is_readonly() && statement.column_count() > 0 {
            return;
        }
        let mut kept = self.kept.borrow_mut();
        if !is_kept && !kept.is_worth_it(sql) {
            return;
        }
        match statement.keep() {
            Some(statement) if is_kept => kept.put_back(sql, statement),
            Some(statement) => kept.put(sql, used, statement),
            None => {}
        }
    }

    /// Whether more than blanks and comments is left of a text.
    fn has_statement(&self, tail: &str, budget: &Budget) -> bool {
        !tail.trim_ascii().is_empty() && !matches!(self.prepare(tail, budget), Ok((None, _)))
    }

    /// Prepares the first statement of a text. Answers it, or none where only blanks and comments are left, and how many
    /// bytes it took.
    pub(crate) fn prepare(
        &self,
        sql: &str,
        budget: &Budget,
    ) -> Result<(Option<Prepared<'_>>, usize), SqlFailure> {
        if sql.len() > SQL_LEN_MAX as usize {
            let text = format!("the SQL text has {} bytes; the limit is {SQL_LEN_MAX}", sql.len());
            return Err(SqlFailure::new("SQLITE_TOOBIG", text));
        }
        if let Some(at) = sql.bytes().position(|byte| byte == 0) {
            return Err(SqlFailure::new(
                "SQL_PARSE_ERROR",
                format!("the SQL text holds a NUL character at byte {at}"),
            ));
        }
        self.begin_prepare(budget, policy::names_reserved(sql));
        let (statement, used) =
            ffi::prepare(&self.connection, sql).map_err(|error| self.explain(error, false))?;
        let prepared = statement.map(|statement| Prepared {
            statement,
            begins_read_only: self.shared.is_begin() && policy::begins_read_only(&sql[..used]),
            is_commit: self.shared.is_commit(),
            is_release: self.shared.is_release(),
            page_size: self.shared.take_page_size_request(),
            is_kept: false,
        });
        Ok((prepared, used))
    }

    /// Tells the callbacks what is prepared, or may be prepared anew, for whom.
    fn begin_prepare(&self, budget: &Budget, is_reserved_named: bool) {
        if !self.in_transaction() {
            self.shared.set_read_transaction(false);
        }
        let is_read_only = budget.is_read_only || self.shared.is_read_transaction();
        self.shared.begin_prepare(is_read_only, is_reserved_named);
        self.shared.set_object(budget.is_object);
    }

    /// Runs a statement to its end.
    pub(crate) fn step_all(
        &self,
        prepared: &mut Prepared<'_>,
        budget: &Budget,
        mut sink: Option<&mut dyn RowSink>,
    ) -> Result<Summary, SqlFailure> {
        let statement = &mut prepared.statement;
        let is_readonly = statement.is_readonly();
        if budget.is_read_only && !is_readonly {
            return Err(SqlFailure::new(
                "READ_ONLY",
                "the caller's token may only read, and the statement writes",
            ));
        }
        if self.shared.is_read_transaction() && !is_readonly {
            return Err(SqlFailure::new(
                "SQLITE_READONLY",
                "attempt to write a readonly database: the transaction was begun as READONLY",
            ));
        }
        let started = Instant::now();
        let left = budget.ends.saturating_duration_since(started);
        if left.is_zero() {
            return Err(SqlFailure::new("SQLITE_INTERRUPT", self.budget_text()));
        }
        let was_in_transaction = self.in_transaction();
        let changes_before = self.connection.total_changes();
        self.shared.begin_step(budget.statement.min(left));
        let bound = MemoryBound::start(self.options.statement_memory_max);
        let rows = self.step_rows(statement, (is_readonly, prepared.is_kept), &mut sink);
        drop(bound);
        self.shared.end_step();
        let rows = match rows {
            Ok(rows) => rows,
            Err(failure) => {
                let ends =
                    prepared.is_commit || (prepared.is_release && failure.extended == CONSTRAINT_FOREIGN_KEY);
                return Err(self.after_failure(failure, was_in_transaction, ends));
            }
        };
        if prepared.begins_read_only && !was_in_transaction && self.in_transaction() {
            self.shared.set_read_transaction(true);
        }
        let written = self.connection.total_changes().saturating_sub(changes_before);
        Ok(Summary {
            affected_rows: if written == 0 { 0 } else { self.connection.changes() },
            rows_written: written,
            rows_read: rows.max(prepared.statement.full_scan_steps()),
            last_insert_rowid: (!is_readonly).then(|| self.connection.last_insert_rowid()),
            duration: started.elapsed(),
        })
    }

    /// Remembers an error that puts the files in doubt.
    pub(crate) fn note_failure(&mut self, failure: &SqlFailure) {
        // A page that could not be fetched puts nothing in doubt: what is in the file is right.
        if failure.is_page_missing() {
            return;
        }
        // SQLITE_IOERR, SQLITE_CORRUPT, SQLITE_NOTADB.
        if matches!(failure.extended & 0xff, 10 | 11 | 26) && self.fault.is_none() {
            tracing::error!(code = failure.extended, message = %failure.message, "the local database is in doubt");
            self.fault = Some(failure.extended);
        }
    }

    /// Ends an open transaction without its changes.
    pub(crate) fn roll_back(&self) -> rusqlite::Result<()> {
        if self.in_transaction() {
            self.system(|connection| connection.execute_batch("ROLLBACK"))?;
        }
        Ok(())
    }

    /// Gives a stream the settings that it left.
    pub(crate) fn enter_session(&self, session: &Session) -> rusqlite::Result<()> {
        self.shared.take_touched_pragmas();
        self.set_session(session.0.iter().copied())?;
        for (index, _) in &session.0 {
            self.shared.touch_pragma(*index);
        }
        Ok(())
    }

    /// Takes a stream's settings off the connection and answers them.
    pub(crate) fn leave_session(&self) -> rusqlite::Result<Session> {
        let touched = self.shared.take_touched_pragmas();
        let touched = (0..SESSION_PRAGMAS.len()).filter(|index| touched & (1 << index) != 0);
        let mut session = Vec::new();
        for index in touched {
            let (name, default) = SESSION_PRAGMAS[index];
            let value: i64 = self
                .system(|connection| connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0)))?;
            if value != default {
                session.push((index, value));
            }
        }
        self.set_session(session.iter().map(|(index, _)| (*index, SESSION_PRAGMAS[*index].1)))?;
        Ok(Session(session))
    }

    fn set_session(&self, settings: impl Iterator<Item = (usize, i64)>) -> rusqlite::Result<()> {
        for (index, value) in settings {
            let name = SESSION_PRAGMAS[index].0;
            self.system(|connection| connection.execute_batch(&format!("PRAGMA {name}={value}")))?;
        }
        Ok(())
    }

    fn step_rows(
        &self,
        statement: &mut Statement<'_>,
        (is_readonly, is_kept): (bool, bool),
        sink: &mut Option<&mut dyn RowSink>,
    ) -> Result<u64, SqlFailure> {
        // With the schema as it is now; one that writes has no columns where it was kept.
        let first = (is_readonly && is_kept).then(|| self.step(statement));
        if let Some(sink) = sink.as_deref_mut() {
            sink.columns(statement)?;
        }
        let mut has_row = match first {
            Some(first) => first?,
            None => self.step(statement)?,
        };
        let mut rows = 0;
        while has_row {
            rows += 1;
            if let Some(sink) = sink.as_deref_mut()
                && let Err(failure) = sink.row(statement)
            {
                if !is_readonly {
                    self.undo(statement);
                }
                return Err(failure);
            }
            has_row = self.step(statement)?;
        }
        Ok(rows)
    }

    fn step(&self, statement: &mut Statement<'_>) -> Result<bool, SqlFailure> {
        statement.step().map_err(|error| self.explain(error, true))
    }

    /// Undoes a writing statement that still has rows. Resetting it would commit what it wrote; an interrupted one is
    /// rolled back.
    fn undo(&self, statement: &mut Statement<'_>) {
        self.connection.get_interrupt_handle().interrupt();
        while matches!(statement.step(), Ok(true)) {}
    }

    fn after_failure(&self, mut failure: SqlFailure, was_in_transaction: bool, ends: bool) -> SqlFailure {
        // SQLite leaves a transaction open whose COMMIT failed. Its caller has been told that it ended.
        if ends
            && self.in_transaction()
            && let Err(error) = self.roll_back()
        {
            failure.message.push_str(&format!("; rolling back failed too: {error}"));
        }
        if was_in_transaction && !self.in_transaction() {
            failure.message.push_str("; the transaction was rolled back");
        }
        failure
    }

    /// Puts the reason of a refusal or of an interrupt into an error.
    fn explain(&self, error: SqliteError, is_stepping: bool) -> SqlFailure {
        let mut failure = SqlFailure::from(error);
        match failure.code {
            "SQLITE_INTERRUPT" if is_stepping && self.shared.is_budget_spent() => {
                failure.message = self.budget_text()
            }
            "SQLITE_INTERRUPT" => failure.message = "the statement was interrupted".into(),
            "SQLITE_NOMEM" => {
                failure.message =
                    format!("out of memory: a statement may use {} bytes", self.options.statement_memory_max);
            }
            "SQLITE_FULL" => {
                failure.message = match self.options.db_bytes_max {
                    Some(bytes) => format!(
                        "the database or the disk is full; the limit of the database is {bytes} bytes"
                    ),
                    None => failure.message,
                }
            }
            _ => {}
        }
        self.explain_page(&mut failure);
        if let Some(reason) = self.shared.take_denial() {
            failure.code = "SQLITE_AUTH";
            failure.message = reason;
        }
        failure
    }

    /// Tells why a page could not be had.
    pub(super) fn explain_page(&self, failure: &mut SqlFailure) {
        if failure.is_page_missing()
            && let Some(reason) = self.shared.take_page_failure()
        {
            failure.message = reason;
        }
    }

    fn budget_text(&self) -> String {
        format!(
            "interrupted: a statement may run for {} ms and all statements of a call for {} ms",
            self.options.statement_budget.as_millis(),
            self.options.call_budget.as_millis()
        )
    }
}
