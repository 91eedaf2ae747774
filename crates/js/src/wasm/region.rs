//! Unsafe code: where linear memories are. A region is reserved once, as large as its memory may become, and never moves:
//! growing only makes more of it accessible. So an `ArrayBuffer` over it stays valid whatever happens to the memory, and
//! whoever took the buffer over; each holds the region, which goes with the last of them.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::slice;

use rquickjs::ArrayBufferSource;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use super::account::Account;

/// Address space for one linear memory. The system gives memory to the parts that were touched.
#[derive(Debug)]
pub(super) struct Region {
    start: NonNull<u8>,
    reserved: usize,
    /// Bytes that the isolate is charged with.
    charged: Cell<usize>,
    account: Rc<Account>,
}

impl Region {
    /// Reserves `bytes`, which must not be 0. None where the system has no address space left.
    pub(super) fn reserve(bytes: usize, account: &Rc<Account>) -> Option<Rc<Self>> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address that the system chooses touches no memory that is in use.
        let start =
            unsafe { mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags) };
        let start = NonNull::new(start.ok()?.cast())?;
        Some(Rc::new(Self { start, reserved: bytes, charged: Cell::new(0), account: Rc::clone(account) }))
    }

    /// The bytes for the engine, which keeps no reference but the address. To be called once for a region, whose owner must
    /// drop the engine's memory before the region.
    pub(super) fn bytes(&self) -> &'static mut [u8] {
        // SAFETY: the mapping is zeroed and readable and writable as a whole. It is not 'static: the group that asks keeps
        // the region until its store is gone. The engine forms references to it only while it runs, and JavaScript, which
        // reads and writes the same bytes, runs only while the engine does not.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.reserved) }
    }

    /// Bytes that the isolate was charged with for the memory: given back when the region goes.
    pub(super) fn set_charged(&self, bytes: usize) {
        self.charged.set(bytes);
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.account.release(self.charged.get());
        // SAFETY: it is the whole mapping, and nobody holds the region any more.
        // It fails for wrong arguments alone.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.reserved) };
    }
}

/// The accessible part of a region, as the bytes of an `ArrayBuffer`.
pub(super) struct View {
    pub(super) region: Rc<Region>,
    /// At most what is reserved.
    pub(super) len: usize,
}

// SAFETY: the mapping does not move and lives until the region is dropped, which the view holds.
unsafe impl ArrayBufferSource for View {
    fn as_ptr(&self) -> *mut u8 {
        self.region.start.as_ptr()
    }

    fn len(&self) -> usize {
        assert!(self.len <= self.region.reserved, "a memory does not outgrow its region");
        self.len
    }
}
