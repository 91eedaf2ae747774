//! What WebAssembly takes of an isolate's memory: linear memories, tables and instances count with the JavaScript heap
//! against one limit. The heap's own limit is what the others leave. The unsafe code asks the engine about its heap.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ptr::NonNull;

use rquickjs::{Ctx, qjs};

/// What must be left for the JavaScript heap when something else grows.
const HEAP_ROOM_BYTES: usize = 1 << 20;

/// The account of one isolate.
#[derive(Debug)]
pub(crate) struct Account {
    /// Bytes of everything.
    limit: usize,
    used: Cell<usize>,
    /// Something was given back since the heap's limit was set.
    is_stale: Cell<bool>,
    /// The isolate's engine: asked only while it is entered.
    engine: Cell<Option<NonNull<qjs::JSRuntime>>>,
}

impl Account {
    /// Of an isolate that may use `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, used: Cell::new(0), is_stale: Cell::new(false), engine: Cell::new(None) }
    }

    /// Bytes that WebAssembly has.
    pub(crate) fn used(&self) -> usize {
        self.used.get()
    }

    /// Bytes of everything that the isolate may use.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// The limit of the heap, where it has changed and was not set.
    pub(crate) fn take_heap_limit(&self) -> Option<usize> {
        self.is_stale.take().then(|| self.limit - self.used.get())
    }

    /// Lets the account ask the engine of `ctx`. It asks only within calls from JavaScript of this isolate.
    pub(super) fn attach(&self, ctx: &Ctx<'_>) {
        // SAFETY: the context is alive.
        self.engine.set(NonNull::new(unsafe { qjs::JS_GetRuntime(ctx.as_raw().as_ptr()) }));
    }

    /// Takes `bytes`, if the limit has room for them; what is garbage goes first where it must.
    pub(super) fn reserve(&self, bytes: usize) -> bool {
        let Some(engine) = self.engine.get() else { return false };
        if self.try_reserve(engine, bytes) {
            return true;
        }
        // SAFETY: reserving is done within calls from JavaScript, where the engine may collect at any allocation.
        unsafe { qjs::JS_RunGC(engine.as_ptr()) };
        self.try_reserve(engine, bytes)
    }

    fn try_reserve(&self, engine: NonNull<qjs::JSRuntime>, bytes: usize) -> bool {
        let before = self.used.get();
        let Some(used) = before.checked_add(bytes).filter(|used| *used < self.limit) else { return false };
        // SAFETY: the engine is alive while JavaScript of it runs; what is allocated is freed at once.
        let has_room = unsafe {
            qjs::JS_SetMemoryLimit(engine.as_ptr(), size(self.limit - used));
            let probe = qjs::js_malloc_rt(engine.as_ptr(), size(HEAP_ROOM_BYTES));
            qjs::js_free_rt(engine.as_ptr(), probe);
            if probe.is_null() {
                qjs::JS_SetMemoryLimit(engine.as_ptr(), size(self.limit - before));
            }
            !probe.is_null()
        };
        if has_room {
            self.used.set(used);
        }
        has_room
    }

    /// Gives `bytes` back that were reserved. The heap has them from the next turn on.
    pub(super) fn release(&self, bytes: usize) {
        let used = self.used.get().checked_sub(bytes).expect("what is released was reserved");
        self.used.set(used);
        self.is_stale.set(true);
    }
}

fn size(bytes: usize) -> qjs::size_t {
    qjs::size_t::try_from(bytes).expect("a size of this machine")
}
