//! The modules of an application: validated and prepared once per process, when a version is deployed or loaded. A
//! function is translated when it is first called, in whichever isolate: the engine that all of them share keeps it.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use bytes::Bytes;
use wasmi::{CompilationMode, Config, CustomFuelCosts, Engine, ExternType, MemoryType, Module};

use super::binary::{self, ExportEntry, OWN, OWN_MEMORY, Prepared};

/// Bytes of one module: no more is validated at one go. The packager has the same bound for any file.
pub(crate) const MODULE_BYTES_MAX: usize = 32 << 20;
/// Globals of one module, each with some hundred bytes in every instance.
const GLOBALS_MAX: u32 = 100_000;
/// Items of all element segments of one module: bytes of the binary, and many times as many here and in every instance.
const ITEMS_MAX: u64 = 1_000_000;
/// Bytes that an instance is charged with, and for each of what it has: more than the engine and we take for it.
const INSTANCE_BYTES: usize = 1024;
const FUNCTION_BYTES: usize = 128;
pub(super) const GLOBAL_BYTES: usize = 128;
const SEGMENT_BYTES: usize = 64;
const ITEM_BYTES: usize = 16;
const IMPORT_BYTES: usize = 256;
/// Beside its name.
const EXPORT_BYTES: usize = 256;
/// Calls within calls. As many as V8 has room for on its stack, about.
const FRAMES_MAX: usize = 12_000;
/// Bytes of values that frames of one call from JavaScript have together.
const FRAME_BYTES_MAX: usize = 1 << 20;
/// Bytes that the engine keeps of a frame, beside its values.
const FRAME_BYTES: usize = 64;
/// Bytes that one call from JavaScript may have for its frames.
pub(super) const STACK_BYTES: usize = FRAME_BYTES_MAX + FRAMES_MAX * FRAME_BYTES;
/// Bytes that bulk operations touch for the fuel of one instruction.
const BULK_BYTES_PER_FUEL: u32 = 4096;

/// What all modules of an application run on.
pub(crate) fn engine() -> Engine {
    let mut config = Config::default();
    config.consume_fuel(true);
    // Translation is no part of what an event runs: it happens once per process, and a function's size bounds it. Fuel that
    // ran out there could not be given afterwards.
    config.fuel_cost(CustomFuelCosts {
        bytes_copied_per_fuel: BULK_BYTES_PER_FUEL,
        fuel_per_bytes_translated: 0,
        fuel_per_bytes_validated: 0,
    });
    config.compilation_mode(CompilationMode::LazyTranslation);
    config.ignore_custom_sections(true);
    config.set_max_recursion_depth(FRAMES_MAX);
    config.set_max_stack_height(FRAME_BYTES_MAX);
    Engine::new(&config)
}

/// An import.
#[derive(Debug)]
pub(super) struct Import {
    pub(super) module: String,
    pub(super) name: String,
    pub(super) ty: ExternType,
    /// Where the engine wants it: it has an order of its own.
    pub(super) position: usize,
}

/// A module that is ready.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(super) module: Module,
    pub(super) exports: Vec<ExportEntry>,
    /// Its imports, in its order.
    pub(super) imports: Vec<Import>,
    /// Memories of its own, which the engine has as imports: where, and of which type.
    pub(super) memories: Vec<(usize, MemoryType)>,
    /// The index of its start function, which is exported under our name.
    pub(super) start: Option<u32>,
    /// Bytes that an instance is charged with, beside those of its memories and tables.
    pub(super) instance_bytes: usize,
    /// The binary that it was made from.
    original: Bytes,
    custom: Vec<(String, Range<usize>)>,
}

impl Compiled {
    /// Validates and prepares a binary.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub(crate) fn new(engine: &Engine, original: &Bytes) -> Result<Self, String> {
        let len = original.len();
        if len > MODULE_BYTES_MAX {
            return Err(format!("a module has at most {MODULE_BYTES_MAX} bytes, and this one has {len}"));
        }
        Module::validate(engine, original).map_err(|error| error.to_string())?;
        let Some(prepared) = binary::prepare(original) else {
            return Err(format!("it is cut off, or uses the name `{OWN}`, which is reserved"));
        };
        let instance_bytes = instance_bytes(&prepared)?;
        let module = Module::new(engine, &prepared.bytes).map_err(|error| error.to_string())?;
        let (imports, memories) = imports_of(&module, &prepared.imports);
        Ok(Self {
            exports: prepared.exports,
            imports,
            memories,
            start: prepared.start,
            instance_bytes,
            original: original.clone(),
            custom: prepared.custom,
            module,
        })
    }

    /// Whether others may see a table of it before it is an instance.
    pub(super) fn imports_table(&self) -> bool {
        self.imports.iter().any(|import| import.ty.table().is_some())
    }

    /// The contents of the custom sections of a name.
    pub(super) fn custom_sections(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let named = self.custom.iter().filter(move |(other, _)| other == name);
        named.map(|(_, range)| &self.original[range.clone()])
    }
}

/// What an instance is charged with.
///
/// # Errors
/// It would have too much.
fn instance_bytes(prepared: &Prepared) -> Result<usize, String> {
    let Prepared { held, exports, imports, bytes: _, start: _, custom: _ } = prepared;
    let binary::Held { functions, globals, segments, items } = *held;
    if globals > GLOBALS_MAX {
        return Err(format!("a module has at most {GLOBALS_MAX} globals, and this one has {globals}"));
    }
    if items > ITEMS_MAX {
        return Err(format!(
            "the element segments of a module have at most {ITEMS_MAX} items, and those of this one have {items}"
        ));
    }
    let names: usize = exports.iter().map(|export| export.name.len()).sum();
    let of = |count: u64, each: usize| usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(each);
    let parts = [
        of(functions.into(), FUNCTION_BYTES),
        of(globals.into(), GLOBAL_BYTES),
        of(segments.into(), SEGMENT_BYTES),
        of(items, ITEM_BYTES),
        exports.len().saturating_mul(EXPORT_BYTES),
        imports.len().saturating_mul(IMPORT_BYTES),
        names,
    ];
    Ok(parts.into_iter().fold(INSTANCE_BYTES, usize::saturating_add))
}

/// The imports in the module's order, and its own memories.
fn imports_of(module: &Module, named: &[(String, String)]) -> (Vec<Import>, Vec<(usize, MemoryType)>) {
    let mut of_engine: HashMap<(String, String), VecDeque<(usize, ExternType)>> = HashMap::new();
    for (position, import) in module.imports().enumerate() {
        let named = of_engine.entry((import.module().to_owned(), import.name().to_owned())).or_default();
        named.push_back((position, import.ty().clone()));
    }
    let mut take = |names: &(String, String)| of_engine.get_mut(names)?.pop_front();
    let imports = named.iter().filter_map(|names| {
        let (position, ty) = take(names)?;
        let (module, name) = names.clone();
        Some(Import { module, name, ty, position })
    });
    let imports = imports.collect();
    let own_names = (OWN.to_owned(), OWN_MEMORY.to_owned());
    let own = std::iter::from_fn(|| take(&own_names));
    let memories = own.filter_map(|(position, ty)| Some((position, *ty.memory()?))).collect();
    (imports, memories)
}

/// Whether `bytes` are a module that could be compiled.
pub(super) fn is_valid(engine: &Engine, bytes: &[u8]) -> bool {
    bytes.len() <= MODULE_BYTES_MAX && Module::validate(engine, bytes).is_ok()
}
