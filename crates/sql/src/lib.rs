//! The SQLite engine of a cell and the SQL API on it: Hrana 2 and 3 over HTTP, and a plain JSON query. Synchronous code:
//! no async, no network, and clocks only where a statement's budget runs. It must never answer while a write is half done,
//! and never let a statement change what the replication rests on.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod api;
mod engine;
mod error;
mod ffi;
mod options;
mod paged;

pub use api::{AlarmRun, Outcome, SqlCall, SqlReply, SqlRuntime, SqlRuntimeOptions, version};
pub use engine::{
    CaptureError, Captured, CapturedBody, CloseError, ClosedDatabase, Engine, EngineError, ExecLimits,
    ExecRows, KV_LIST_LEN_MAX, KvRange, OpenError, RESERVED_PREFIX, ReplaceError, RestoreFate, RestoreWish,
    SqlValue,
};
pub use error::SqlFailure;
pub use ffi::{ConnectionMemory, give_memory_back};
pub use options::{
    COLUMNS_MAX, COMPOUND_SELECT_MAX, EXPRESSION_DEPTH_MAX, EngineOptions, PARAMETERS_MAX, PATTERN_LEN_MAX,
    SQL_LEN_MAX, TRIGGER_DEPTH_MAX, VALUE_LEN_MAX,
};
pub use paged::{PageFailure, PageSource};
