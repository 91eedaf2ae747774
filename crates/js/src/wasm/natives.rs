//! What the JavaScript of this part calls: it has checked the arguments. Objects are numbers of a group.

use std::sync::Arc;

use rquickjs::class::Class;
use rquickjs::function::{Func as Native, Rest};
use rquickjs::{Array, ArrayBuffer, Ctx, Exception, Function, Object, Result, TypedArray, Value};
use wasmi::errors::{ErrorKind, InstantiationError};
use wasmi::{Error, Extern, ExternType, Global, Instance, Mutability, ValType};

use super::binary::OWN;
use super::group::Group;
use super::values::to_wasm;
use super::{Compiled, call, compiled, sync, throw};
use crate::buffers;
use crate::foreign::Shared;
use crate::isolate::host::host;
use crate::plain;

mod members;

type GroupHandle<'js> = Class<'js, Shared<Group>>;
type ModuleHandle<'js> = Class<'js, Shared<Arc<Compiled>>>;

pub(super) fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    host(ctx).wasm.account.attach(ctx);
    let native = plain::record(ctx)?;
    native.set("turn", Native::from(|ctx: Ctx<'_>| host(&ctx).wasm.turns.get()))?;
    native.set("group", Native::from(new_group))?;
    native.set("module", Native::from(module_of))?;
    native.set("imports", Native::from(imports))?;
    native.set("exports", Native::from(exports))?;
    native.set("customSections", Native::from(custom_sections))?;
    native.set("importedGlobal", Native::from(imported_global))?;
    native.set("validate", Native::from(validate))?;
    native.set("instantiate", Native::from(instantiate))?;
    native.set("function", Native::from(function))?;
    native.set("memory", Native::from(members::memory))?;
    native.set("buffer", Native::from(members::buffer))?;
    native.set("grow", Native::from(members::grow))?;
    native.set("table", Native::from(members::table))?;
    native.set("tableLength", Native::from(members::table_length))?;
    native.set("tableHasFunctions", Native::from(members::table_has_functions))?;
    native.set("tableGet", Native::from(members::table_get))?;
    native.set("tableSet", Native::from(members::table_set))?;
    native.set("tableGrow", Native::from(members::table_grow))?;
    native.set("global", Native::from(members::global))?;
    native.set("globalIsMutable", Native::from(members::global_is_mutable))?;
    native.set("globalGet", Native::from(members::global_get))?;
    native.set("globalSet", Native::from(members::global_set))?;
    Ok(native)
}

fn group_of(handle: &GroupHandle<'_>) -> std::rc::Rc<Group> {
    handle.borrow().0.clone()
}

fn compiled_of(handle: &ModuleHandle<'_>) -> Arc<Compiled> {
    Arc::clone(&handle.borrow().0)
}

fn new_group<'js>(ctx: Ctx<'js>) -> Result<GroupHandle<'js>> {
    let host = host(&ctx);
    Class::instance(ctx, Shared(Group::new(host.code.wasm_engine(), &host.wasm.account)))
}

fn module_of<'js>(ctx: Ctx<'js>, name: String) -> Result<ModuleHandle<'js>> {
    let Some(compiled) = host(&ctx).code.wasm(&name) else {
        return Err(Exception::throw_internal(&ctx, &format!("`{name}` is no module of WebAssembly")));
    };
    Class::instance(ctx, Shared(compiled.into()))
}

fn kind_of(ty: &ExternType) -> &'static str {
    match ty {
        ExternType::Func(_) => "function",
        ExternType::Table(_) => "table",
        ExternType::Memory(_) => "memory",
        ExternType::Global(_) => "global",
    }
}

/// The name of a type in descriptors.
fn type_name(ty: ValType) -> &'static str {
    match ty {
        ValType::I32 => "i32",
        ValType::I64 => "i64",
        ValType::F32 => "f32",
        ValType::F64 => "f64",
        ValType::V128 => "v128",
        ValType::FuncRef => "anyfunc",
        ValType::ExternRef => "externref",
    }
}

fn imports<'js>(ctx: Ctx<'js>, module: ModuleHandle<'js>) -> Result<Array<'js>> {
    let list = Array::new(ctx.clone())?;
    for wanted in &compiled_of(&module).imports {
        let import = Object::new(ctx.clone())?;
        plain::define(&import, "module", wanted.module.as_str())?;
        plain::define(&import, "name", wanted.name.as_str())?;
        plain::define(&import, "kind", kind_of(&wanted.ty))?;
        plain::append(&list, import)?;
    }
    Ok(list)
}

fn exports<'js>(ctx: Ctx<'js>, module: ModuleHandle<'js>) -> Result<Array<'js>> {
    let list = Array::new(ctx.clone())?;
    for entry in &compiled_of(&module).exports {
        let export = Object::new(ctx.clone())?;
        plain::define(&export, "name", entry.name.as_str())?;
        plain::define(&export, "kind", entry.kind())?;
        plain::append(&list, export)?;
    }
    Ok(list)
}

fn custom_sections<'js>(ctx: Ctx<'js>, module: ModuleHandle<'js>, name: String) -> Result<Array<'js>> {
    let list = Array::new(ctx.clone())?;
    for content in compiled_of(&module).custom_sections(&name) {
        plain::append(&list, ArrayBuffer::new_copy(ctx.clone(), content)?)?;
    }
    Ok(list)
}

/// The type of an import that is a global.
fn imported_global<'js>(ctx: Ctx<'js>, module: ModuleHandle<'js>, index: usize) -> Result<Object<'js>> {
    let compiled = compiled_of(&module);
    let Some(ty) = compiled.imports.get(index).and_then(|import| import.ty.global().copied()) else {
        return Err(Exception::throw_internal(&ctx, &format!("import {index} is no global")));
    };
    let object = plain::record(&ctx)?;
    object.set("type", type_name(ty.content()))?;
    object.set("isMutable", ty.mutability() == Mutability::Var)?;
    Ok(object)
}

fn validate(ctx: Ctx<'_>, bytes: TypedArray<'_, u8>) -> bool {
    let engine = host(&ctx).code.wasm_engine().clone();
    buffers::look(&bytes, move |bytes| compiled::is_valid(&engine, bytes))
}

/// Makes an instance from what is there for its imports, each a word and a number or value: `import`, `function`, `memory`,
/// `table`, `global`, `value`. Gives its exports, and the number of its start function, which the caller calls.
fn instantiate<'js>(
    ctx: Ctx<'js>,
    handle: GroupHandle<'js>,
    state: Object<'js>,
    module: ModuleHandle<'js>,
    items: Array<'js>,
    what: String,
) -> Result<Object<'js>> {
    let group = group_of(&handle);
    let compiled = compiled_of(&module);
    let no_memory = || {
        let message = format!("{what}: Out of memory: Cannot allocate Wasm memory for new instance");
        Exception::throw_range(&ctx, &message)
    };
    // The borrow ends before the error is made, which may run code of the application.
    let has_room = group.store.borrow_mut().data_mut().charge(compiled.instance_bytes);
    if !has_room {
        return Err(no_memory());
    }
    let mut externs = Vec::new();
    for (index, wanted) in compiled.imports.iter().enumerate() {
        externs.push((wanted.position, import(&ctx, &group, &state, &items.get(index)?, &wanted.ty)?));
    }
    for (position, ty) in &compiled.memories {
        let (_, memory) = group.add_memory(*ty).ok_or_else(no_memory)?;
        externs.push((*position, Extern::Memory(memory)));
    }
    externs.sort_by_key(|(position, _)| *position);
    let externs: Vec<Extern> = externs.into_iter().map(|(_, given)| given).collect();
    let instance = Instance::new(&mut *group.store.borrow_mut(), &compiled.module, &externs);
    let instance = instance.map_err(|error| {
        // Functions of an instance that is not there may be in a table that others have.
        let changed_table = !matches!(kind(&error), Failure::Link) && compiled.imports_table();
        group.is_broken.set(group.is_broken.get() || changed_table);
        match kind(&error) {
            Failure::Link => throw(&ctx, "LinkError", &format!("{what}: {error}")),
            Failure::Memory => no_memory(),
            Failure::Trap(message) => throw(&ctx, "RuntimeError", &format!("{what}: {message}")),
        }
    })?;
    sync(&group, &state)?;
    let number = |name: &str, index| {
        let export = instance.get_export(&*group.store.borrow(), name).expect("the module exports it");
        group.number(export, index)
    };
    let entries = Array::new(ctx.clone())?;
    for entry in &compiled.exports {
        let export = plain::record(&ctx)?;
        export.set("name", entry.name.as_str())?;
        export.set("kind", entry.kind())?;
        export.set("number", number(&entry.name, entry.index))?;
        plain::append(&entries, export)?;
    }
    let made = plain::record(&ctx)?;
    made.set("entries", entries)?;
    made.set("start", compiled.start.map(|index| number(OWN, index)))?;
    Ok(made)
}

/// Why an instantiation failed.
enum Failure {
    /// Before anything was changed.
    Link,
    Memory,
    Trap(&'static str),
}

fn kind(error: &Error) -> Failure {
    match error.kind() {
        ErrorKind::Instantiation(error) => match error {
            InstantiationError::ElementSegmentDoesNotFit { .. } => {
                Failure::Trap("table index is out of bounds")
            }
            InstantiationError::TooManyInstances
            | InstantiationError::TooManyMemories
            | InstantiationError::TooManyTables
            | InstantiationError::FailedToInstantiateMemory(_)
            | InstantiationError::FailedToInstantiateTable(_) => Failure::Memory,
            _ => Failure::Link,
        },
        ErrorKind::Table(_) => Failure::Trap("table index is out of bounds"),
        _ => Failure::Trap("data segment is out of bounds"),
    }
}

fn import<'js>(
    ctx: &Ctx<'js>,
    group: &std::rc::Rc<Group>,
    state: &Object<'js>,
    item: &Array<'js>,
    ty: &ExternType,
) -> Result<Extern> {
    let word: String = item.get(0)?;
    if let ("value", ExternType::Global(ty)) = (word.as_str(), ty) {
        let value = to_wasm(ctx, group, state, item.get(1)?, ty.content())?;
        return Ok(Extern::Global(Global::new(&mut *group.store.borrow_mut(), value, Mutability::Const)));
    }
    let number: usize = item.get(1)?;
    match (word.as_str(), ty) {
        ("import", ExternType::Func(ty)) => Ok(Extern::Func(group.import(ty.clone(), number))),
        ("function", _) => Ok(Extern::Func(group.function(ctx, number)?.func)),
        ("memory", _) => Ok(Extern::Memory(group.memory(ctx, number)?.memory)),
        ("table", _) => Ok(Extern::Table(group.table(ctx, number)?)),
        ("global", _) => Ok(Extern::Global(group.global(ctx, number)?)),
        _ => Err(Exception::throw_internal(ctx, &format!("an import is never a `{word}`"))),
    }
}

/// An exported function: what calls it with the group's state before the arguments, its name, and its length.
fn function<'js>(ctx: Ctx<'js>, handle: GroupHandle<'js>, number: usize) -> Result<Object<'js>> {
    let group = group_of(&handle);
    let function = group.function(&ctx, number)?;
    let name = function.index.map_or_else(String::new, |index| index.to_string());
    let length = function.ty.params().len();
    let call =
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, state: Object<'js>, arguments: Rest<Value<'js>>| {
            call::call(&ctx, &group, &state, number, &arguments)
        })?;
    let object = plain::record(&ctx)?;
    object.set("call", call)?;
    object.set("name", name)?;
    object.set("length", length)?;
    Ok(object)
}
