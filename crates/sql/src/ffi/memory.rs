//! A bound on what one statement may allocate. SQLite's own heap limit holds for a whole process and costs a
//! process-wide lock; a statement runs on one thread from its start to its end, so that a counter of that thread is
//! enough. At the bound SQLite sees an allocation fail and ends the statement with `SQLITE_NOMEM`.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

use libsqlite3_sys as ffi;

type Malloc = unsafe extern "C" fn(c_int) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void);
type Realloc = unsafe extern "C" fn(*mut c_void, c_int) -> *mut c_void;
type Size = unsafe extern "C" fn(*mut c_void) -> c_int;

/// SQLite's own allocator, below ours.
struct Below {
    malloc: Malloc,
    free: Free,
    realloc: Realloc,
    size: Size,
}

static BELOW: OnceLock<Below> = OnceLock::new();

thread_local! {
    /// Bytes left to the statement that runs on this thread; none while none runs.
    static LEFT: Cell<Option<i64>> = const { Cell::new(None) };
}

/// Bounds allocations on this thread until it is dropped.
pub(crate) struct MemoryBound {
    before: Option<i64>,
}

impl MemoryBound {
    pub(crate) fn start(bytes: usize) -> Self {
        let left = i64::try_from(bytes).unwrap_or(i64::MAX / 2);
        Self { before: LEFT.replace(Some(left)) }
    }
}

impl Drop for MemoryBound {
    fn drop(&mut self) {
        LEFT.set(self.before);
    }
}

/// Puts the bound around SQLite's allocator. Only before the library is in use; otherwise nothing changes.
pub(super) fn install() {
    let mut methods = ffi::sqlite3_mem_methods {
        xMalloc: None,
        xFree: None,
        xRealloc: None,
        xSize: None,
        xRoundup: None,
        xInit: None,
        xShutdown: None,
        pAppData: std::ptr::null_mut(),
    };
    // SAFETY: GETMALLOC fills the struct it is given, which outlives the call.
    let got = unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_GETMALLOC, &raw mut methods) };
    let (Some(malloc), Some(free), Some(realloc), Some(size)) =
        (methods.xMalloc, methods.xFree, methods.xRealloc, methods.xSize)
    else {
        return;
    };
    if got != ffi::SQLITE_OK || BELOW.set(Below { malloc, free, realloc, size }).is_err() {
        return;
    }
    methods.xMalloc = Some(bounded_malloc);
    methods.xFree = Some(counted_free);
    methods.xRealloc = Some(bounded_realloc);
    // SAFETY: MALLOC copies the struct; the functions in it live for ever and hold SQLite's contract, as they call
    // the allocator below for everything but the count.
    unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_MALLOC, &raw const methods) };
}

/// Takes bytes from the bound; a negative number gives back.
fn charge(bytes: c_int) -> bool {
    let Some(left) = LEFT.get() else { return true };
    let left = left - i64::from(bytes);
    if left < 0 && bytes > 0 {
        return false;
    }
    LEFT.set(Some(left));
    true
}

unsafe extern "C" fn bounded_malloc(bytes: c_int) -> *mut c_void {
    let below = BELOW.get().expect("set before these functions are installed");
    // SAFETY: SQLite's arguments, passed on.
    if charge(bytes) { unsafe { (below.malloc)(bytes) } } else { std::ptr::null_mut() }
}

unsafe extern "C" fn counted_free(pointer: *mut c_void) {
    let below = BELOW.get().expect("set before these functions are installed");
    // SAFETY: SQLite's argument, passed on; its size is asked before it is freed.
    unsafe {
        charge(-(below.size)(pointer));
        (below.free)(pointer);
    }
}

unsafe extern "C" fn bounded_realloc(pointer: *mut c_void, bytes: c_int) -> *mut c_void {
    let below = BELOW.get().expect("set before these functions are installed");
    // SAFETY: SQLite's arguments, passed on.
    unsafe {
        let grown = bytes - (below.size)(pointer);
        if !charge(grown) {
            return std::ptr::null_mut();
        }
        let moved = (below.realloc)(pointer, bytes);
        if moved.is_null() {
            charge(-grown);
        }
        moved
    }
}
