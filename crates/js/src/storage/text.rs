//! Errors of the database as handlers see them: SQLite's text and code, as workerd writes them.

use holdfast_sql::SqlFailure;
use rquickjs::{Ctx, Exception};

/// What stands in front of the reason where a turn cannot be committed.
const CONSTRAINTS_VIOLATED: &str = "Durable Object was reset and rolled back to its last known good state because the \
    application left the database in a state where constraints were violated: ";

/// Why a turn could not be committed.
pub(super) fn of_commit(failure: &SqlFailure) -> String {
    let text = failure.handler_text();
    if failure.code == "SQLITE_CONSTRAINT" {
        return format!("{CONSTRAINTS_VIOLATED}{text}");
    }
    format!("Durable Object was reset because its storage could not commit: {text}")
}

/// Throws a failure as an `Error`.
pub(super) fn throw(ctx: &Ctx<'_>, failure: &SqlFailure) -> rquickjs::Error {
    throw_text(ctx, &failure.handler_text())
}

/// Throws an `Error` with a text of any length.
pub(super) fn throw_text(ctx: &Ctx<'_>, text: &str) -> rquickjs::Error {
    match Exception::from_message(ctx.clone(), text) {
        Ok(exception) => exception.throw(),
        Err(error) => error,
    }
}
