//! Unsafe code: where linear memories are. A region is reserved once, as large as its memory may become, and never moves:
//! growing only opens more of it, and only what is open counts as memory where the system commits no more than it has. So an `ArrayBuffer` over it stays valid whatever happens to the memory, and
//! whoever took the buffer over; each holds the region, which goes with the last of them.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::slice;

use rquickjs::ArrayBufferSource;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

use super::account::Account;

/// What is opened at least: a page of WebAssembly, which is one or several of the machine.
const PAGE_BYTES: usize = 1 << 16;

/// Address space for one linear memory. The system gives memory to the parts that were touched.
#[derive(Debug)]
pub(super) struct Region {
    start: NonNull<u8>,
    reserved: usize,
    /// Bytes from the start that may be read and written.
    opened: Cell<usize>,
    /// Bytes that the isolate is charged with.
    charged: Cell<usize>,
    account: Rc<Account>,
}

impl Region {
    /// Reserves `bytes`, which must not be 0. Nothing of it is open. None where the system has no address space left.
    pub(super) fn reserve(bytes: usize, account: &Rc<Account>) -> Option<Rc<Self>> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address that the system chooses touches no memory that is in use.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::empty(), flags) };
        let start = NonNull::new(start.ok()?.cast())?;
        let (opened, charged) = (Cell::new(0), Cell::new(0));
        Some(Rc::new(Self { start, reserved: bytes, opened, charged, account: Rc::clone(account) }))
    }

    /// Bytes from the start that are open.
    pub(super) fn opened(&self) -> usize {
        self.opened.get()
    }

    /// Opens the first `bytes`, or all where there are fewer. False where the system has no memory for them.
    pub(super) fn open(&self, bytes: usize) -> bool {
        let opened = self.opened.get();
        let bytes = bytes.min(self.reserved).next_multiple_of(PAGE_BYTES).min(self.reserved);
        if bytes <= opened {
            return true;
        }
        // SAFETY: it is a part of the mapping, and what was open stays so.
        let done = unsafe {
            let from = self.start.as_ptr().add(opened).cast();
            mprotect(from, bytes - opened, MprotectFlags::READ | MprotectFlags::WRITE)
        };
        if done.is_ok() {
            self.opened.set(bytes);
        }
        done.is_ok()
    }

    /// The bytes for the engine, which keeps no reference but the address. To be called once for a region, whose owner must
    /// drop the engine's memory before the region.
    pub(super) fn bytes(&self) -> &'static mut [u8] {
        // SAFETY: the mapping is zeroed. The engine takes the slice apart at once, and touches no byte beyond the size of
        // the memory, up to which it is open: who lets a memory grow opens it first. It is not 'static: the group that asks keeps
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
        assert!(self.len <= self.region.opened(), "a memory does not outgrow what is open of its region");
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What may be done at an address, as the system shows it: `rw-p`.
    fn permissions(address: usize) -> String {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let at = |text: &str| usize::from_str_radix(text, 16).unwrap();
        let line = maps.lines().find(|line| {
            let (first, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
            (at(first)..at(end)).contains(&address)
        });
        line.unwrap().split(' ').nth(1).unwrap().to_owned()
    }

    #[test]
    fn only_what_is_open_can_be_touched() {
        let account = Rc::new(Account::new(1 << 30));
        let region = Region::reserve(4 * PAGE_BYTES, &account).unwrap();
        let page = |number: usize| permissions(region.start.as_ptr() as usize + number * PAGE_BYTES);
        assert_eq!([page(0), page(3)], ["---p", "---p"]);
        assert!(region.open(1) && region.opened() == PAGE_BYTES);
        assert_eq!([page(0), page(1)], ["rw-p", "---p"]);
        assert!(region.open(3 * PAGE_BYTES) && region.open(PAGE_BYTES));
        assert_eq!([page(0), page(2), page(3)], ["rw-p", "rw-p", "---p"]);
        assert!(region.open(usize::MAX / 2) && region.opened() == 4 * PAGE_BYTES);
        assert_eq!(page(3), "rw-p");
    }
}
