//! Errors of the database as handlers see them: SQLite's text and code, as workerd writes them.

use holdfast_sql::SqlFailure;
use rquickjs::{Ctx, Exception};

/// What stands in front of the reason where a turn cannot be committed.
const CONSTRAINTS_VIOLATED: &str = "Durable Object was reset and rolled back to its last known good state because the \
    application left the database in a state where constraints were violated: ";

/// A failure as `text: SQLITE_CODE (extended: SQLITE_CODE_MORE)`.
pub(super) fn of_failure(failure: &SqlFailure) -> String {
    let SqlFailure { code, message, extended } = failure;
    // What is refused before SQLite sees it has no code there.
    if code.is_empty() || message.starts_with("To execute a transaction") {
        return message.clone();
    }
    match extended_name(*extended) {
        Some(name) => format!("{message}: {code} (extended: {name})"),
        None => format!("{message}: {code}"),
    }
}

/// Why a turn could not be committed.
pub(super) fn of_commit(failure: &SqlFailure) -> String {
    let text = of_failure(failure);
    if failure.code == "SQLITE_CONSTRAINT" {
        return format!("{CONSTRAINTS_VIOLATED}{text}");
    }
    format!("Durable Object was reset because its storage could not commit: {text}")
}

/// Throws a failure as an `Error`.
pub(super) fn throw(ctx: &Ctx<'_>, failure: &SqlFailure) -> rquickjs::Error {
    throw_text(ctx, &of_failure(failure))
}

/// Throws an `Error` with a text of any length.
pub(super) fn throw_text(ctx: &Ctx<'_>, text: &str) -> rquickjs::Error {
    match Exception::from_message(ctx.clone(), text) {
        Ok(exception) => exception.throw(),
        Err(error) => error,
    }
}

/// SQLite's names of the extended codes that a handler can meet.
fn extended_name(code: i32) -> Option<&'static str> {
    Some(match code {
        257 => "SQLITE_ERROR_MISSING_COLLSEQ",
        275 => "SQLITE_CONSTRAINT_CHECK",
        787 => "SQLITE_CONSTRAINT_FOREIGNKEY",
        1043 => "SQLITE_CONSTRAINT_FUNCTION",
        1299 => "SQLITE_CONSTRAINT_NOTNULL",
        1555 => "SQLITE_CONSTRAINT_PRIMARYKEY",
        1811 => "SQLITE_CONSTRAINT_TRIGGER",
        2067 => "SQLITE_CONSTRAINT_UNIQUE",
        2323 => "SQLITE_CONSTRAINT_VTAB",
        2579 => "SQLITE_CONSTRAINT_ROWID",
        3091 => "SQLITE_CONSTRAINT_DATATYPE",
        _ => return None,
    })
}
