//! What a node settles for all its cells: memory, sizes, budgets. Each number is part of the interface: a client
//! that meets one is told its value.

use std::path::PathBuf;
use std::time::Duration;

/// Longest SQL text in bytes.
pub const SQL_LEN_MAX: u32 = 1 << 20;
/// Longest text, blob or row in bytes.
pub const VALUE_LEN_MAX: u32 = 16 << 20;
/// Most parameters of one statement.
pub const PARAMETERS_MAX: u32 = 32_766;
/// Most columns of a table or a result.
pub const COLUMNS_MAX: u32 = 2_000;
/// Longest pattern of LIKE and GLOB in bytes. Matching takes time in the product of pattern and text and cannot be
/// interrupted, so that this bounds it.
pub const PATTERN_LEN_MAX: u32 = 256;
/// Deepest expression tree.
pub const EXPRESSION_DEPTH_MAX: u32 = 500;
/// Most terms of a compound SELECT.
pub const COMPOUND_SELECT_MAX: u32 = 500;
/// Deepest recursion of triggers.
pub const TRIGGER_DEPTH_MAX: u32 = 100;

/// Settings of an engine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// SQLite's page cache per cell, in KiB. 256: a few dozen hot pages; the operating system caches the file anyway.
    pub page_cache_kib: u32,
    /// Largest database in bytes; beyond it statements fail with `SQLITE_FULL`. None: SQLite's own bound.
    pub db_bytes_max: Option<u64>,
    /// Where captures beyond memory and SQLite's temporary files go. Sorts and VACUUM of large data spill there, so that
    /// the memory of a statement is bounded. SQLite reads it once per process.
    pub spool_dir: PathBuf,
    /// A capture stays in memory up to this many bytes, then it goes to a file. 8 MiB.
    pub memory_capture_max: usize,
    /// What one statement may allocate, in bytes, beyond what it finds. 128 MiB: several values of the longest kind.
    pub statement_memory_max: usize,
    /// How long one statement may run. 5 s.
    pub statement_budget: Duration,
    /// How long all statements of one call may run together. 30 s.
    pub call_budget: Duration,
    /// The WAL is checkpointed when it is longer than this and all captured. 1 MiB.
    pub checkpoint_bytes: u64,
    /// Whether a closed database is fsynced, so that it may be trusted after a power cut. On.
    pub is_synced_on_close: bool,
}

impl EngineOptions {
    /// The defaults, with the one setting that has none.
    #[must_use]
    pub fn new(spool_dir: impl Into<PathBuf>) -> Self {
        Self {
            page_cache_kib: 256,
            db_bytes_max: None,
            spool_dir: spool_dir.into(),
            memory_capture_max: 8 << 20,
            statement_memory_max: 128 << 20,
            statement_budget: Duration::from_secs(5),
            call_budget: Duration::from_secs(30),
            checkpoint_bytes: 1 << 20,
            is_synced_on_close: true,
        }
    }
}
