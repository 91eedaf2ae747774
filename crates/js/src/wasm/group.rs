//! A group: what WebAssembly objects of an isolate that may see each other share. Its store frees nothing by itself, so
//! it must be small: what one turn makes, and what is linked to that. It goes when JavaScript holds no object of it. It
//! holds no value of the engine: those are in the group's `state`, a JavaScript object.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt::Debug;
use std::rc::Rc;

use rquickjs::class::{JsClass, Readable, Trace, Tracer};
use rquickjs::function::Constructor;
use rquickjs::{Ctx, Exception, Object, Result};
use wasmi::{Engine, Error, Extern, ExternRef, Func, FuncType, Global, Memory, MemoryType, Store, Table};

use super::account::Account;
use super::holdings::Holdings;
use super::region::{Region, View};
use crate::foreign::Shared;

/// Bytes that a value which WebAssembly holds as `externref` is charged with, beside its own.
const EXTERN_BYTES: usize = 64;
/// Bytes of address space, and of the account, that a memory has at least.
const REGION_BYTES_MIN: usize = 1 << 16;

/// Objects of one kind, each with the number that JavaScript knows it by.
#[derive(Debug)]
pub(super) struct Numbered<T> {
    items: Vec<T>,
    /// By the text of the engine's handle: that is all it shows of its identity.
    numbers: HashMap<String, usize>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { items: Vec::new(), numbers: HashMap::new() }
    }
}

impl<T: Clone> Numbered<T> {
    /// The number of an object: the one that it has, or a new one.
    pub(super) fn number(&mut self, handle: &dyn Debug, item: impl FnOnce() -> T) -> usize {
        let Self { items, numbers } = self;
        *numbers.entry(format!("{handle:?}")).or_insert_with(|| {
            items.push(item());
            items.len() - 1
        })
    }

    /// The object of a number that comes from JavaScript.
    fn get(&self, number: usize) -> Option<T> {
        self.items.get(number).cloned()
    }
}

/// A function that JavaScript has, or may have.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub(super) func: Func,
    pub(super) ty: FuncType,
    /// Its index in its module, which is its name, where that is known.
    pub(super) index: Option<u32>,
    /// It is an import that is exported again: the number of the import.
    pub(super) import: Option<usize>,
}

/// A linear memory.
#[derive(Clone, Debug)]
pub(super) struct LinearMemory {
    pub(super) memory: Memory,
    region: Rc<Region>,
    /// Bytes of the `ArrayBuffer` that JavaScript has of it.
    seen: Rc<Cell<Option<usize>>>,
}

impl LinearMemory {
    /// Forgets its `ArrayBuffer`, which the caller detaches.
    pub(super) fn unsee(&self) {
        self.seen.set(None);
    }
}

fn unknown(ctx: &Ctx<'_>, what: &str, number: usize) -> rquickjs::Error {
    Exception::throw_internal(ctx, &format!("this group has no {what} {number}"))
}

/// What the group has given numbers to.
#[derive(Debug, Default)]
struct Members {
    functions: Numbered<Function>,
    memories: Numbered<LinearMemory>,
    tables: Numbered<Table>,
    globals: Numbered<Global>,
    /// Values that WebAssembly holds, by their number in JavaScript.
    externs: Vec<ExternRef>,
    /// Functions that lead to JavaScript, by their text, with the number of the import.
    imported: HashMap<String, usize>,
}

/// A group.
#[derive(Debug)]
pub(super) struct Group {
    // Before the regions, which `members` has: the store's memories are in them.
    pub(super) store: RefCell<Store<Holdings>>,
    members: RefCell<Members>,
    /// An instantiation failed after it had put functions into a table that others see: they must not be called.
    pub(super) is_broken: Cell<bool>,
    account: Rc<Account>,
}

impl Group {
    pub(super) fn new(engine: &Engine, account: &Rc<Account>) -> Rc<Self> {
        let mut store = Store::new(engine, Holdings::new(account));
        store.limiter(|holdings| holdings);
        Rc::new(Self {
            store: RefCell::new(store),
            members: RefCell::default(),
            is_broken: Cell::new(false),
            account: Rc::clone(account),
        })
    }

    /// Makes a memory that never moves, and gives it with its number. None: there is no room for it.
    pub(super) fn add_memory(&self, ty: MemoryType) -> Option<(usize, Memory)> {
        let page = 1_usize << 16;
        let most = ty.maximum().and_then(|pages| usize::try_from(pages).ok()?.checked_mul(page));
        let reserved = most.unwrap_or(usize::MAX).min(self.account.limit() / page * page);
        let region = Region::reserve(reserved.max(REGION_BYTES_MIN), &self.account)?;
        let mut store = self.store.borrow_mut();
        // What no page is charged for would cost nothing.
        if !store.data_mut().charge(REGION_BYTES_MIN) {
            return None;
        }
        store.data_mut().add_region(&region);
        let Ok(memory) = Memory::new_static(&mut *store, ty, region.bytes()) else {
            store.data_mut().remove_region();
            return None;
        };
        region.set_charged(memory.data_size(&*store));
        let seen = Rc::new(Cell::new(None));
        let number =
            self.members.borrow_mut().memories.number(&memory, || LinearMemory { memory, region, seen });
        Some((number, memory))
    }

    /// The function of a number.
    ///
    /// # Errors
    /// As all that follow: an error of ours in `ctx`. Numbers come by way of JavaScript, where an application may have changed
    /// whatever it likes: none is trusted. Nothing is borrowed when the error is made, which may run code of the application.
    pub(super) fn function(&self, ctx: &Ctx<'_>, number: usize) -> Result<Function> {
        let found = self.members.borrow().functions.get(number);
        found.ok_or_else(|| unknown(ctx, "function", number))
    }

    /// The memory of a number.
    pub(super) fn memory(&self, ctx: &Ctx<'_>, number: usize) -> Result<LinearMemory> {
        let found = self.members.borrow().memories.get(number);
        found.ok_or_else(|| unknown(ctx, "memory", number))
    }

    /// The table of a number.
    pub(super) fn table(&self, ctx: &Ctx<'_>, number: usize) -> Result<Table> {
        let found = self.members.borrow().tables.get(number);
        found.ok_or_else(|| unknown(ctx, "table", number))
    }

    /// The global of a number.
    pub(super) fn global(&self, ctx: &Ctx<'_>, number: usize) -> Result<Global> {
        let found = self.members.borrow().globals.get(number);
        found.ok_or_else(|| unknown(ctx, "global", number))
    }

    /// The number of a memory of this group.
    pub(super) fn memory_number(&self, memory: Memory) -> usize {
        self.members.borrow_mut().memories.number(&memory, || unreachable!("all memories are made by us"))
    }

    /// The number of a function.
    pub(super) fn function_number(&self, func: Func, index: Option<u32>) -> usize {
        let mut members = self.members.borrow_mut();
        let import = members.imported.get(&format!("{func:?}")).copied();
        let make = || Function { func, ty: func.ty(&*self.store.borrow()), index, import };
        members.functions.number(&func, make)
    }

    /// What an `ArrayBuffer` of a memory shows, from now until the memory grows.
    pub(super) fn view(&self, memory: &LinearMemory) -> View {
        let len = memory.memory.data_size(&*self.store.borrow());
        memory.seen.set(Some(len));
        View { region: Rc::clone(&memory.region), len }
    }

    /// The numbers of the memories whose `ArrayBuffer` shows less than there is, after the engine ran. They are forgotten:
    /// the caller detaches the buffers before any JavaScript runs.
    pub(super) fn outgrown(&self) -> Vec<usize> {
        let mut store = self.store.borrow_mut();
        if !std::mem::take(&mut store.data_mut().has_grown) {
            return Vec::new();
        }
        let members = self.members.borrow();
        let mut outgrown = Vec::new();
        for (number, memory) in members.memories.items.iter().enumerate() {
            let len = memory.memory.data_size(&*store);
            memory.region.set_charged(len);
            if memory.seen.get().is_some_and(|seen| seen != len) {
                memory.seen.set(None);
                outgrown.push(number);
            }
        }
        outgrown
    }

    /// The reference to the value that JavaScript gave a number, from 0 on. None: there is no room for it.
    pub(super) fn extern_ref(&self, number: usize) -> Option<ExternRef> {
        let mut members = self.members.borrow_mut();
        let mut store = self.store.borrow_mut();
        while members.externs.len() <= number {
            if !store.data_mut().charge(EXTERN_BYTES) {
                return None;
            }
            let number = members.externs.len();
            members.externs.push(ExternRef::new(&mut *store, number));
        }
        Some(members.externs[number])
    }
}

/// The number that a value has in JavaScript.
pub(super) fn extern_number(store: &Store<Holdings>, reference: &ExternRef) -> usize {
    *reference.data(store).downcast_ref().expect("all references are made by us")
}

/// A call that must be made in JavaScript.
#[derive(Debug)]
pub(super) struct ImportCall {
    pub(super) import: usize,
    pub(super) arguments: Vec<wasmi::Val>,
}

impl std::fmt::Display for ImportCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "import {} is called", self.import)
    }
}

impl wasmi::errors::HostError for ImportCall {}

impl Group {
    /// A function that stops the engine with an [`ImportCall`].
    pub(super) fn import(&self, ty: FuncType, import: usize) -> Func {
        let call = move |_: wasmi::Caller<'_, Holdings>, arguments: &[wasmi::Val], _: &mut [wasmi::Val]| {
            Err(Error::host(ImportCall { import, arguments: arguments.to_vec() }))
        };
        let func = Func::new(&mut *self.store.borrow_mut(), ty, call);
        self.members.borrow_mut().imported.insert(format!("{func:?}"), import);
        func
    }

    /// The number of an export.
    pub(super) fn number(&self, export: Extern, index: u32) -> usize {
        match export {
            Extern::Func(func) => self.function_number(func, Some(index)),
            Extern::Memory(memory) => self.memory_number(memory),
            Extern::Table(table) => self.members.borrow_mut().tables.number(&table, || table),
            Extern::Global(global) => self.members.borrow_mut().globals.number(&global, || global),
        }
    }
}

impl<'js> Trace<'js> for Shared<Group> {
    fn trace<'a>(&self, _tracer: Tracer<'a, 'js>) {}
}

impl<'js> JsClass<'js> for Shared<Group> {
    const NAME: &'static str = "WebAssemblyGroup";
    type Mutable = Readable;

    fn prototype(_ctx: &Ctx<'js>) -> Result<Option<Object<'js>>> {
        Ok(None)
    }

    fn constructor(_ctx: &Ctx<'js>) -> Result<Option<Constructor<'js>>> {
        Ok(None)
    }
}
