//! A VFS of SQLite for databases whose file is not all there yet: it passes everything to the system's own, and asks a
//! [`PageSource`] before a read and around a write or a truncation of the main file. It must never let SQLite see a hole:
//! what cannot be had is an I/O error of that read.
//!
//! Its files have the methods of version 1: no shared memory (cells lock exclusively) and no memory mapping, which would
//! pass the source by. Write-ahead logs and temporary files are the system's, without a wrapper.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::size_of;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use libsqlite3_sys as ffi;
use rusqlite::{Connection, OpenFlags};

use crate::engine::Shared;
use crate::paged::PageSource;

const NAME: &CStr = c"holdfast-paged";
/// What a read of a page answers that cannot be had: an extended code of `SQLITE_IOERR` that SQLite does not use.
pub(crate) const IOERR_PAGE: c_int = ffi::SQLITE_IOERR | (0x7d << 8);

/// Where an engine's pages come from.
pub(crate) struct Source {
    pub(crate) pages: Arc<dyn PageSource>,
    /// The engine's: how long its statement may wait, and what went wrong.
    pub(crate) shared: Arc<Shared>,
    /// How long to wait outside of a statement.
    pub(crate) patience: Duration,
}

impl Source {
    fn need(&self, offset: i64, len: c_int) -> c_int {
        let patience = self.shared.patience(self.patience);
        self.noted(self.pages.need(unsigned(offset), unsigned(len.into()), patience))
    }

    fn write(&self, offset: i64, len: c_int, mut write: impl FnMut() -> c_int) -> c_int {
        let mut code = ffi::SQLITE_OK;
        let written = self.pages.write(unsigned(offset), unsigned(len.into()), &mut || {
            code = write();
            code == ffi::SQLITE_OK
        });
        match self.noted(written) {
            ffi::SQLITE_OK => code,
            refused => refused,
        }
    }

    fn truncate(&self, len: i64, mut truncate: impl FnMut() -> c_int) -> c_int {
        let mut code = ffi::SQLITE_OK;
        self.pages.truncate(unsigned(len), &mut || {
            code = truncate();
            code == ffi::SQLITE_OK
        });
        code
    }

    fn noted(&self, result: Result<(), crate::paged::PageFailure>) -> c_int {
        match result {
            Ok(()) => ffi::SQLITE_OK,
            Err(failure) => {
                self.shared.note_page_failure(failure);
                IOERR_PAGE
            }
        }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.pages.closed();
    }
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).expect("SQLite counts from zero")
}

thread_local! {
    /// The source of the file that this thread is opening: SQLite opens it before `sqlite3_open_v2` returns.
    static OPENING: RefCell<Option<Box<Source>>> = const { RefCell::new(None) };
}

/// Opens a database by this VFS.
pub(crate) fn open(path: &Path, flags: OpenFlags, source: Source) -> rusqlite::Result<Connection> {
    let code = register();
    if code != ffi::SQLITE_OK {
        return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
    }
    OPENING.set(Some(Box::new(source)));
    let opened = Connection::open_with_flags_and_vfs(path, flags, NAME);
    // Still there where SQLite did not come so far.
    drop(OPENING.take());
    opened
}

fn register() -> c_int {
    static REGISTERED: OnceLock<c_int> = OnceLock::new();
    // SAFETY: the default VFS is found after `configure_process` has initialized the library, and lives as long as the
    // process. The copy is leaked, as is the name, so both live as long, too; only this thread writes it, and before
    // SQLite knows it. Those of its methods that are the system's own do not look at the VFS that they are called with
    // (SQLite's os_unix.c names that parameter `NotUsed`), and files are opened with the system's VFS itself.
    *REGISTERED.get_or_init(|| unsafe {
        let system = ffi::sqlite3_vfs_find(std::ptr::null());
        if system.is_null() {
            return ffi::SQLITE_ERROR;
        }
        let own = ffi::sqlite3_vfs {
            szOsFile: (*system).szOsFile + size_of::<PagedFile>() as c_int,
            pNext: std::ptr::null_mut(),
            zName: NAME.as_ptr(),
            pAppData: system.cast(),
            xOpen: Some(open_file),
            ..*system
        };
        ffi::sqlite3_vfs_register(Box::leak(Box::new(own)), 0)
    })
}

/// A main file. The system's own file stands right behind it, in the same allocation.
#[repr(C)]
struct PagedFile {
    base: ffi::sqlite3_file,
    source: *mut Source,
}

const METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};
static METHODS_AT: MethodTable = MethodTable(METHODS);

struct MethodTable(ffi::sqlite3_io_methods);
// SAFETY: a table of functions that nobody writes.
unsafe impl Sync for MethodTable {}

// SAFETY of what follows: SQLite calls these with pointers of its own. `vfs` is the one that `register` made. `file` has
// `szOsFile` zeroed bytes, aligned to eight, so that a `PagedFile` and behind it (its size is a multiple of eight) a file
// of the system fit; for a file with METHODS it was filled by `open_file`, and its source lives until `close`. A
// connection is used by one thread at a time, so nothing here is shared.

unsafe extern "C" fn open_file(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: see above; the system's VFS is called with itself, and with room for its own file.
    unsafe {
        let system = (*vfs).pAppData.cast::<ffi::sqlite3_vfs>();
        let Some(open) = (*system).xOpen else { return ffi::SQLITE_CANTOPEN };
        if flags & ffi::SQLITE_OPEN_MAIN_DB == 0 {
            return open(system, name, file, flags, out_flags);
        }
        (*file).pMethods = std::ptr::null();
        let Some(source) = OPENING.take() else { return ffi::SQLITE_CANTOPEN };
        let paged = file.cast::<PagedFile>();
        let code = open(system, name, system_file(file), flags, out_flags);
        if code == ffi::SQLITE_OK {
            (*paged).source = Box::into_raw(source);
            (*file).pMethods = &raw const METHODS_AT.0;
        }
        code
    }
}

/// # Safety
/// `file` is a [`PagedFile`] as above.
unsafe fn system_file(file: *mut ffi::sqlite3_file) -> *mut ffi::sqlite3_file {
    // SAFETY: by this function's contract, in the same allocation.
    unsafe { file.cast::<PagedFile>().add(1).cast() }
}

/// # Safety
/// `file` is an open [`PagedFile`] as above; the source lives until it is closed, which is after the call of its user.
unsafe fn source_of<'a>(file: *mut ffi::sqlite3_file) -> &'a Source {
    // SAFETY: by this function's contract.
    unsafe { &*(*file.cast::<PagedFile>()).source }
}

/// Calls a method of the system's own file.
macro_rules! system {
    ($file:expr, $method:ident $(, $argument:expr)*) => {{
        let file = system_file($file);
        let method = (*(*file).pMethods).$method.expect("a file of the system has every method");
        method(file $(, $argument)*)
    }};
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: see above; SQLite closes a file once, so that the source is taken back once.
    unsafe {
        let code = system!(file, xClose);
        drop(Box::from_raw((*file.cast::<PagedFile>()).source));
        code
    }
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    buffer: *mut c_void,
    len: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: see above.
    unsafe {
        match source_of(file).need(offset, len) {
            ffi::SQLITE_OK => system!(file, xRead, buffer, len, offset),
            refused => refused,
        }
    }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    buffer: *const c_void,
    len: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: see above.
    unsafe { source_of(file).write(offset, len, || system!(file, xWrite, buffer, len, offset)) }
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, len: ffi::sqlite3_int64) -> c_int {
    // SAFETY: see above.
    unsafe { source_of(file).truncate(len, || system!(file, xTruncate, len)) }
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: see above.
    unsafe { system!(file, xSync, flags) }
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, len: *mut ffi::sqlite3_int64) -> c_int {
    // SAFETY: see above.
    unsafe { system!(file, xFileSize, len) }
}

unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: see above.
    unsafe { system!(file, xLock, level) }
}

unsafe extern "C" fn unlock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: see above.
    unsafe { system!(file, xUnlock, level) }
}

unsafe extern "C" fn check_reserved_lock(file: *mut ffi::sqlite3_file, out: *mut c_int) -> c_int {
    // SAFETY: see above.
    unsafe { system!(file, xCheckReservedLock, out) }
}

unsafe extern "C" fn file_control(file: *mut ffi::sqlite3_file, op: c_int, argument: *mut c_void) -> c_int {
    // What a memory mapping or the file's growth ask is of no use here.
    if matches!(op, ffi::SQLITE_FCNTL_MMAP_SIZE | ffi::SQLITE_FCNTL_SIZE_HINT) {
        return ffi::SQLITE_NOTFOUND;
    }
    // SAFETY: see above.
    unsafe { system!(file, xFileControl, op, argument) }
}

unsafe extern "C" fn sector_size(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: see above.
    unsafe { system!(file, xSectorSize) }
}

unsafe extern "C" fn device_characteristics(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: see above.
    unsafe { system!(file, xDeviceCharacteristics) }
}
