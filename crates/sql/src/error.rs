//! What a caller of the SQL API is told: a code that a program can branch on, a text for people, an HTTP status where
//! the reply has one. Codes of SQLite keep SQLite's names, as libSQL's clients expect.

use crate::ffi::{IOERR_PAGE, SqliteError};

/// A statement or a request that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SqlFailure {
    /// A name such as `SQLITE_CONSTRAINT` or `SQL_MANY_STATEMENTS`.
    pub code: &'static str,
    /// What went wrong and, where there is one, the remedy.
    pub message: String,
    /// SQLite's extended result code; zero where SQLite had no part in it.
    pub extended: i32,
}

impl SqlFailure {
    /// A failure that did not come from SQLite.
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), extended: 0 }
    }

    /// Whether a page of the database could not be fetched. The same statement may succeed later.
    #[must_use]
    pub(crate) fn is_page_missing(&self) -> bool {
        self.extended == IOERR_PAGE
    }

    /// The HTTP status where a whole reply is this failure: 507 for a full database, 403 for a refusal, 503 where a page of
    /// the database could not be fetched, 500 where the database itself is in doubt, else 400.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self.code {
            _ if self.is_page_missing() => 503,
            "SQLITE_FULL" => 507,
            "READ_ONLY" => 403,
            "SQLITE_IOERR" | "SQLITE_CORRUPT" | "SQLITE_NOTADB" | "SQLITE_CANTOPEN" | "SQLITE_INTERNAL" => {
                500
            }
            _ => 400,
        }
    }
}

impl SqlFailure {
    /// The failure as handlers see it: `text: SQLITE_CODE (extended: SQLITE_CODE_MORE)`, as workerd writes it.
    #[must_use]
    pub fn handler_text(&self) -> String {
        let Self { code, message, extended } = self;
        // What is refused before SQLite sees it has no code there.
        if code.is_empty() || message.starts_with("To execute a transaction") {
            return message.clone();
        }
        match extended_name(*extended) {
            Some(name) => format!("{message}: {code} (extended: {name})"),
            None => format!("{message}: {code}"),
        }
    }
}

impl From<SqliteError> for SqlFailure {
    fn from(error: SqliteError) -> Self {
        let SqliteError { extended, mut message, offset } = error;
        if let Some(offset) = offset {
            message.push_str(&format!(" at offset {offset}"));
        }
        Self { code: code_name(extended), message, extended }
    }
}

/// SQLite's name of a result code, extended or not.
#[must_use]
pub(crate) fn code_name(code: i32) -> &'static str {
    match code & 0xff {
        1 => "SQLITE_ERROR",
        2 => "SQLITE_INTERNAL",
        3 => "SQLITE_PERM",
        4 => "SQLITE_ABORT",
        5 => "SQLITE_BUSY",
        6 => "SQLITE_LOCKED",
        7 => "SQLITE_NOMEM",
        8 => "SQLITE_READONLY",
        9 => "SQLITE_INTERRUPT",
        10 => "SQLITE_IOERR",
        11 => "SQLITE_CORRUPT",
        12 => "SQLITE_NOTFOUND",
        13 => "SQLITE_FULL",
        14 => "SQLITE_CANTOPEN",
        15 => "SQLITE_PROTOCOL",
        17 => "SQLITE_SCHEMA",
        18 => "SQLITE_TOOBIG",
        19 => "SQLITE_CONSTRAINT",
        20 => "SQLITE_MISMATCH",
        21 => "SQLITE_MISUSE",
        22 => "SQLITE_NOLFS",
        23 => "SQLITE_AUTH",
        25 => "SQLITE_RANGE",
        26 => "SQLITE_NOTADB",
        _ => "SQLITE_UNKNOWN",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extended_code_has_the_name_of_its_primary_code() {
        assert_eq!(code_name(787), "SQLITE_CONSTRAINT");
        assert_eq!(code_name(13), "SQLITE_FULL");
        assert_eq!(code_name(6922), "SQLITE_IOERR");
    }

    #[test]
    fn every_kind_of_failure_has_its_status() {
        for (code, status) in [
            ("SQLITE_FULL", 507),
            ("READ_ONLY", 403),
            ("SQLITE_CORRUPT", 500),
            ("SQLITE_CONSTRAINT", 400),
            ("RESULT_TOO_LARGE", 400),
        ] {
            assert_eq!(SqlFailure::new(code, "").status(), status, "{code}");
        }
    }
}
