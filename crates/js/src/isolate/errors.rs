//! Errors of the engine as ours.

use rquickjs::CaughtError;

use crate::effect::JsError;

/// Whether the engine had no memory left.
pub(super) fn is_out_of_memory(error: &CaughtError<'_>) -> bool {
    match error {
        CaughtError::Exception(exception) => {
            exception.message().is_some_and(|message| message == "out of memory")
        }
        // The engine throws `null` where it has no memory for an error.
        CaughtError::Value(value) => value.is_null(),
        CaughtError::Error(error) => matches!(error, rquickjs::Error::Allocation),
    }
}

/// An error that was caught in Rust.
pub(super) fn of_caught(error: CaughtError<'_>) -> JsError {
    match error {
        CaughtError::Exception(exception) => JsError {
            name: exception.as_object().get("name").unwrap_or_else(|_| "Error".to_owned()),
            message: exception.message().unwrap_or_default(),
            stack: exception.stack().map(|stack| stack.trim_end().to_owned()),
            ..JsError::default()
        },
        CaughtError::Value(value) => JsError::new(format!("it threw {value:?}")),
        CaughtError::Error(error) => JsError::new(error.to_string()),
    }
}
