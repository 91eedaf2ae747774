//! Errors of JavaScript as they cross borders, and why an isolate cannot begin or go on.

use std::fmt;

/// An error that a handler threw, or that it is to catch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsError {
    /// Its `name`: `Error`, `TypeError`, …
    pub name: String,
    /// Its `message`.
    pub message: String,
    /// Its `stack`, without the first line that repeats name and message. For logs: it never crosses to a caller.
    pub stack: Option<String>,
    /// It comes from another isolate than the one that sees it.
    pub remote: bool,
    /// The same call may work when it is made again on a new stub.
    pub retryable: bool,
    /// The callee has more to do than it can.
    pub overloaded: bool,
    /// The callee's isolate was dropped.
    pub object_reset: bool,
}

impl JsError {
    /// An `Error` of ours.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { name: "Error".to_owned(), message: message.into(), ..Self::default() }
    }

    /// A `TypeError` of ours.
    #[must_use]
    pub fn type_error(message: impl Into<String>) -> Self {
        Self { name: "TypeError".to_owned(), ..Self::new(message) }
    }
}

impl fmt::Display for JsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.message)?;
        match &self.stack {
            Some(stack) => write!(f, "\n{stack}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for JsError {}

/// Why an isolate is to be dropped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BrokenCause {
    /// A turn, or all turns of an event, took longer than [`crate::Limits`] allows.
    #[error("exceeded its CPU time limit")]
    CpuExceeded,
    /// More memory than [`crate::Limits`] allows, where the handler could not go on without it.
    #[error("exceeded its memory limit")]
    MemoryExceeded,
    /// `ctx.abort`.
    #[error("was aborted: {0}")]
    Aborted(JsError),
    /// The class's constructor threw.
    #[error("its constructor threw: {0}")]
    ConstructorThrew(JsError),
    /// A promise given to `blockConcurrencyWhile` was rejected, or took too long.
    #[error("blockConcurrencyWhile failed: {0}")]
    BlockConcurrencyFailed(JsError),
    /// Its storage may not hold what the handler believes.
    #[error("its storage failed: {0}")]
    StorageFailed(String),
    /// The module of the application, or a part of ours, does not work in this isolate.
    #[error("{0}")]
    Internal(String),
}

impl BrokenCause {
    /// In a word, for metrics.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::CpuExceeded => "cpu_exceeded",
            Self::MemoryExceeded => "memory_exceeded",
            Self::Aborted(_) => "aborted",
            Self::ConstructorThrew(_) => "constructor_threw",
            Self::BlockConcurrencyFailed(_) => "block_concurrency_failed",
            Self::StorageFailed(_) => "storage_failed",
            Self::Internal(_) => "internal",
        }
    }
}

/// Why an isolate cannot begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// A module has a syntax error, imports what is not there, or throws.
    #[error("the application does not start: {0}")]
    Threw(JsError),
    /// A top-level `await` that waits for something that never comes.
    #[error("the application does not start: a top-level `await` never ends")]
    NeverEnds,
    /// The entry does not export the class.
    #[error(
        "the application's entry does not export a class `{0}`: export it, or deploy a migration that deletes it"
    )]
    NoClass(String),
    /// Loading took longer, or more memory, than the limits allow.
    #[error("the application does not start: it {0}")]
    Exceeded(BrokenCause),
}
