//! The only place of this crate that calls C: process-wide settings of SQLite, a statement whose tail, columns
//! and status are all within reach, and a VFS whose files may have holes. It must never keep a raw pointer longer than the connection it came from lives,
//! and never hand one out.
#![allow(unsafe_code)]

mod allocator;
mod functions;
mod memory;
mod vfs;

use std::ffi::{CStr, CString, c_char, c_int};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Once;

use libsqlite3_sys as ffi;
use rusqlite::Connection;

pub use allocator::give_back as give_memory_back;
pub(crate) use functions::install as install_functions;
pub(crate) use memory::MemoryBound;
pub(crate) use vfs::{IOERR_PAGE, Source, open as open_paged};

/// What SQLite said: its extended result code, its text, and where in the SQL text it stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SqliteError {
    /// Extended result code, for example 787 for a foreign key.
    pub(crate) extended: i32,
    /// SQLite's text.
    pub(crate) message: String,
    /// Byte offset into the SQL text, where SQLite names one.
    pub(crate) offset: Option<usize>,
}

/// One column of the current row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Column<'a> {
    /// NULL.
    Null,
    /// A 64-bit integer.
    Integer(i64),
    /// A float, never NaN.
    Float(f64),
    /// Text as stored, not necessarily UTF-8.
    Text(&'a [u8]),
    /// A blob.
    Blob(&'a [u8]),
}

/// Settles what SQLite reads only before its first use in a process: no global memory statistics (they cost a
/// process-wide lock for every allocation), a bound on what a statement allocates, no lookaside and no bulk page allocation (they would cost every idle
/// cell over 100 KiB), and the directory of temporary files. The first caller decides; SQLite falls back to its usual
/// directories when that one is gone.
pub(crate) fn configure_process(temp_dir: &Path) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        memory::install();
        // SAFETY: plain integer options of sqlite3_config; it answers SQLITE_MISUSE, and changes nothing, when the
        // library is already in use, which only loses the saving.
        unsafe {
            let no_pages: *mut std::ffi::c_void = std::ptr::null_mut();
            ffi::sqlite3_config(ffi::SQLITE_CONFIG_MEMSTATUS, 0 as c_int);
            ffi::sqlite3_config(ffi::SQLITE_CONFIG_LOOKASIDE, 0 as c_int, 0 as c_int);
            ffi::sqlite3_config(ffi::SQLITE_CONFIG_PAGECACHE, no_pages, 0 as c_int, 0 as c_int);
            ffi::sqlite3_initialize();
        }
        let Some(Ok(dir)) = temp_dir.to_str().map(CString::new) else { return };
        // SAFETY: sqlite3_temp_directory must point to memory of sqlite3_malloc or be null; sqlite3_mprintf gives
        // such memory (or null), `%s` reads the live C string, and `Once` makes this the only write.
        unsafe {
            ffi::sqlite3_temp_directory = ffi::sqlite3_mprintf(c"%s".as_ptr(), dir.as_ptr());
        }
    });
}

/// Heap bytes that a connection holds: page cache, schema, statements.
pub(crate) fn connection_memory(connection: &Connection) -> ConnectionMemory {
    let read = |op| {
        let (mut now, mut high) = (0, 0);
        // SAFETY: the handle is live while `connection` is borrowed; both out-pointers are valid.
        unsafe { ffi::sqlite3_db_status(connection.handle(), op, &raw mut now, &raw mut high, 0) };
        u64::try_from(now).unwrap_or(0)
    };
    ConnectionMemory {
        page_cache_bytes: read(ffi::SQLITE_DBSTATUS_CACHE_USED),
        schema_bytes: read(ffi::SQLITE_DBSTATUS_SCHEMA_USED),
        statement_bytes: read(ffi::SQLITE_DBSTATUS_STMT_USED),
    }
}

/// Heap bytes that SQLite holds for one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionMemory {
    /// The page cache.
    pub page_cache_bytes: u64,
    /// The parsed schema.
    pub schema_bytes: u64,
    /// Prepared statements.
    pub statement_bytes: u64,
}

/// A prepared statement, finalized when dropped.
pub(crate) struct Statement<'c> {
    raw: NonNull<ffi::sqlite3_stmt>,
    db: *mut ffi::sqlite3,
    connection: PhantomData<&'c Connection>,
}

/// Prepares the first statement of a text. Answers it, or none where only blanks and comments are left, and the
/// number of bytes that it took.
pub(crate) fn prepare<'c>(
    connection: &'c Connection,
    sql: &str,
) -> Result<(Option<Statement<'c>>, usize), SqliteError> {
    let len = c_int::try_from(sql.len()).map_err(|_| SqliteError {
        extended: ffi::SQLITE_TOOBIG,
        message: "statement too long".into(),
        offset: None,
    })?;
    let mut raw = std::ptr::null_mut();
    let mut tail: *const c_char = std::ptr::null();
    let start = sql.as_ptr().cast::<c_char>();
    // SAFETY: the handle is live while `connection` is borrowed, the text is `len` bytes long, and both out-pointers
    // are valid. SQLite reads no further than `len`.
    let db = unsafe { connection.handle() };
    let code = unsafe { ffi::sqlite3_prepare_v2(db, start, len, &raw mut raw, &raw mut tail) };
    if code != ffi::SQLITE_OK {
        return Err(last_error(db, code));
    }
    let used =
        if tail.is_null() { sql.len() } else { tail.addr().saturating_sub(start.addr()).min(sql.len()) };
    let statement = NonNull::new(raw).map(|raw| Statement { raw, db, connection: PhantomData });
    Ok((statement, used))
}

fn last_error(db: *mut ffi::sqlite3, code: c_int) -> SqliteError {
    // SAFETY: `db` is the live handle of a connection that the caller borrows; the text is copied before any other
    // call on it.
    unsafe {
        let extended = ffi::sqlite3_extended_errcode(db);
        let text = ffi::sqlite3_errmsg(db);
        let message =
            if text.is_null() { String::new() } else { CStr::from_ptr(text).to_string_lossy().into_owned() };
        let offset = usize::try_from(ffi::sqlite3_error_offset(db)).ok();
        SqliteError {
            extended: if extended & 0xff == code & 0xff { extended } else { code },
            message,
            offset,
        }
    }
}

/// Copies a text that SQLite lends until its next call.
///
/// # Safety
/// `text` is null or a C string that stays valid during the call.
unsafe fn lent(text: *const c_char) -> Option<String> {
    // SAFETY: by this function's contract.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

impl Statement<'_> {
    /// Runs to the next row (`true`) or to the end (`false`).
    pub(crate) fn step(&mut self) -> Result<bool, SqliteError> {
        // SAFETY: `raw` is a statement of the live connection that `self` borrows.
        match unsafe { ffi::sqlite3_step(self.raw.as_ptr()) } {
            ffi::SQLITE_ROW => Ok(true),
            ffi::SQLITE_DONE => Ok(false),
            code => Err(last_error(self.db, code)),
        }
    }

    /// The number of columns of the result; zero for a statement without one.
    pub(crate) fn column_count(&self) -> usize {
        // SAFETY: as in `step`.
        usize::try_from(unsafe { ffi::sqlite3_column_count(self.raw.as_ptr()) }).unwrap_or(0)
    }

    /// The name of a column.
    pub(crate) fn column_name(&self, index: usize) -> Option<String> {
        let index = c_int::try_from(index).ok()?;
        // SAFETY: as in `step`; SQLite answers null for an index out of range.
        unsafe { lent(ffi::sqlite3_column_name(self.raw.as_ptr(), index)) }
    }

    /// The declared type of a column that comes straight from a table.
    pub(crate) fn column_decltype(&self, index: usize) -> Option<String> {
        let index = c_int::try_from(index).ok()?;
        // SAFETY: as in `column_name`.
        unsafe { lent(ffi::sqlite3_column_decltype(self.raw.as_ptr(), index)) }
    }

    /// A column of the row that the last `step` reached. The borrow ends before the next step.
    pub(crate) fn column(&self, index: usize) -> Column<'_> {
        let Ok(index) = c_int::try_from(index) else { return Column::Null };
        let raw = self.raw.as_ptr();
        // SAFETY: as in `step`. A text or blob pointer stays valid until the next step, reset or finalize, all of which
        // need `&mut self` or ownership; its length is asked after the pointer, as SQLite demands, and a null
        // pointer goes with length zero.
        unsafe {
            match ffi::sqlite3_column_type(raw, index) {
                ffi::SQLITE_INTEGER => Column::Integer(ffi::sqlite3_column_int64(raw, index)),
                ffi::SQLITE_FLOAT => Column::Float(ffi::sqlite3_column_double(raw, index)),
                ffi::SQLITE_TEXT => {
                    let data = ffi::sqlite3_column_text(raw, index).cast::<u8>();
                    Column::Text(bytes(data, ffi::sqlite3_column_bytes(raw, index)))
                }
                ffi::SQLITE_BLOB => {
                    let data = ffi::sqlite3_column_blob(raw, index).cast::<u8>();
                    Column::Blob(bytes(data, ffi::sqlite3_column_bytes(raw, index)))
                }
                _ => Column::Null,
            }
        }
    }

    /// The highest parameter number.
    pub(crate) fn parameter_count(&self) -> usize {
        // SAFETY: as in `step`.
        usize::try_from(unsafe { ffi::sqlite3_bind_parameter_count(self.raw.as_ptr()) }).unwrap_or(0)
    }

    /// The name of a parameter, counted from 1, its sign included.
    pub(crate) fn parameter_name(&self, number: usize) -> Option<String> {
        let number = c_int::try_from(number).ok()?;
        // SAFETY: as in `column_name`.
        unsafe { lent(ffi::sqlite3_bind_parameter_name(self.raw.as_ptr(), number)) }
    }

    /// Binds a value to a parameter, counted from 1. SQLite copies it.
    pub(crate) fn bind(&mut self, number: usize, value: Column<'_>) -> Result<(), SqliteError> {
        let raw = self.raw.as_ptr();
        let number = c_int::try_from(number).unwrap_or(c_int::MAX);
        // SAFETY: as in `step`; text and blob pointers are valid for the lengths given and SQLITE_TRANSIENT makes
        // SQLite copy them before it returns.
        let code = unsafe {
            match value {
                Column::Null => ffi::sqlite3_bind_null(raw, number),
                Column::Integer(integer) => ffi::sqlite3_bind_int64(raw, number, integer),
                Column::Float(float) => ffi::sqlite3_bind_double(raw, number, float),
                Column::Text(text) => ffi::sqlite3_bind_text64(
                    raw,
                    number,
                    text.as_ptr().cast(),
                    text.len() as u64,
                    ffi::SQLITE_TRANSIENT(),
                    ffi::SQLITE_UTF8 as u8,
                ),
                Column::Blob(blob) => ffi::sqlite3_bind_blob64(
                    raw,
                    number,
                    blob.as_ptr().cast(),
                    blob.len() as u64,
                    ffi::SQLITE_TRANSIENT(),
                ),
            }
        };
        if code == ffi::SQLITE_OK { Ok(()) } else { Err(last_error(self.db, code)) }
    }

    /// Whether it leaves the database file as it is.
    pub(crate) fn is_readonly(&self) -> bool {
        // SAFETY: as in `step`.
        unsafe { ffi::sqlite3_stmt_readonly(self.raw.as_ptr()) != 0 }
    }

    /// Whether it is an EXPLAIN or EXPLAIN QUERY PLAN.
    pub(crate) fn is_explain(&self) -> bool {
        // SAFETY: as in `step`.
        unsafe { ffi::sqlite3_stmt_isexplain(self.raw.as_ptr()) != 0 }
    }

    /// Ends its run, and keeps it for another. None where the run had not come to its end in order.
    pub(crate) fn keep(self) -> Option<Kept> {
        let raw = self.raw;
        std::mem::forget(self);
        let kept = Kept { raw };
        // SAFETY: as in `step`; `kept` finalizes the statement now, and only it. The counter is set back for the next run.
        let code = unsafe {
            ffi::sqlite3_stmt_status(raw.as_ptr(), ffi::SQLITE_STMTSTATUS_FULLSCAN_STEP, 1);
            ffi::sqlite3_clear_bindings(raw.as_ptr());
            ffi::sqlite3_reset(raw.as_ptr())
        };
        (code == ffi::SQLITE_OK).then_some(kept)
    }

    /// Rows visited by full scans in this run.
    pub(crate) fn full_scan_steps(&self) -> u64 {
        // SAFETY: as in `step`.
        let steps =
            unsafe { ffi::sqlite3_stmt_status(self.raw.as_ptr(), ffi::SQLITE_STMTSTATUS_FULLSCAN_STEP, 0) };
        u64::try_from(steps).unwrap_or(0)
    }
}

/// # Safety
/// `data` is null, or valid for `len` bytes as long as the caller's statement stands still.
unsafe fn bytes<'a>(data: *const u8, len: c_int) -> &'a [u8] {
    match usize::try_from(len) {
        // SAFETY: by this function's contract.
        Ok(len) if !data.is_null() => unsafe { std::slice::from_raw_parts(data, len) },
        _ => &[],
    }
}

/// A prepared statement between two runs, finalized when dropped. It must go before its connection: SQLite does not close one
/// that has statements (`SQLITE_BUSY`), so that a pointer in here is never one to freed memory.
pub(crate) struct Kept {
    raw: NonNull<ffi::sqlite3_stmt>,
}

// SAFETY: a statement belongs to its connection, which may move between threads as long as one at a time uses both; whoever
// keeps statements keeps them beside their connection.
unsafe impl Send for Kept {}

impl Kept {
    /// The statement for another run. None where it is one of another connection, which would be a bug.
    pub(crate) fn again(self, connection: &Connection) -> Option<Statement<'_>> {
        // SAFETY: the handle is live while `connection` is borrowed; the statement is live until it is finalized.
        let (db, own) = unsafe { (connection.handle(), ffi::sqlite3_db_handle(self.raw.as_ptr())) };
        if db != own {
            return None;
        }
        let raw = self.raw;
        std::mem::forget(self);
        Some(Statement { raw, db, connection: PhantomData })
    }

    /// Heap bytes that it takes.
    pub(crate) fn memory(&self) -> usize {
        // SAFETY: the statement is live until it is finalized.
        let bytes = unsafe { ffi::sqlite3_stmt_status(self.raw.as_ptr(), ffi::SQLITE_STMTSTATUS_MEMUSED, 0) };
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: finalized once, here; SQLite has not closed its connection, see above.
        unsafe { ffi::sqlite3_finalize(self.raw.as_ptr()) };
    }
}

impl Drop for Statement<'_> {
    fn drop(&mut self) {
        // SAFETY: finalized once, here; the connection outlives `self`.
        unsafe { ffi::sqlite3_finalize(self.raw.as_ptr()) };
    }
}
