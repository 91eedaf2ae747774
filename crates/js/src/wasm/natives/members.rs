//! Memories, tables and globals.

use rquickjs::{ArrayBuffer, Ctx, Exception, Object, Result, Value};
use wasmi::{Extern, Global, MemoryType, Mutability, RefType, Table, TableType, ValType};

use super::{GroupHandle, group_of};
use crate::wasm::compiled::GLOBAL_BYTES;
use crate::wasm::group::Group;
use crate::wasm::values::{as_ref, of_ref, to_js, to_wasm};
use crate::wasm::{detach, sync};

/// None where there is no room for it, or bounds that no memory has.
pub(super) fn memory(handle: GroupHandle<'_>, initial: u32, maximum: Option<u32>) -> Option<usize> {
    let mut ty = MemoryType::builder();
    ty.min(u64::from(initial)).max(maximum.map(u64::from));
    group_of(&handle).add_memory(ty.build().ok()?).map(|(number, _)| number)
}

pub(super) fn buffer<'js>(
    ctx: Ctx<'js>,
    handle: GroupHandle<'js>,
    number: usize,
) -> Result<ArrayBuffer<'js>> {
    let group = group_of(&handle);
    let memory = group.memory(&ctx, number)?;
    ArrayBuffer::from_source(ctx, group.view(&memory))
}

/// The pages there were; none where there is no room for more.
pub(super) fn grow<'js>(
    ctx: Ctx<'js>,
    handle: GroupHandle<'js>,
    state: Object<'js>,
    number: usize,
    delta: u32,
) -> Result<Option<u64>> {
    let group = group_of(&handle);
    let memory = group.memory(&ctx, number)?;
    let grown = memory.memory.grow(&mut *group.store.borrow_mut(), u64::from(delta));
    let Ok(before) = grown else { return Ok(None) };
    // Also a growth by nothing ends the buffer.
    memory.unsee();
    detach(&state, number)?;
    sync(&group, &state)?;
    Ok(Some(before))
}

pub(super) fn table<'js>(
    ctx: Ctx<'js>,
    handle: GroupHandle<'js>,
    state: Object<'js>,
    element: String,
    initial: u32,
    maximum: Option<u32>,
    first: Value<'js>,
) -> Result<Option<usize>> {
    let group = group_of(&handle);
    let element = if element == "externref" { RefType::Extern } else { RefType::Func };
    if maximum.is_some_and(|maximum| maximum < initial) {
        return Ok(None);
    }
    let first = as_ref(to_wasm(&ctx, &group, &state, first, ValType::from(element))?);
    let table = Table::new(&mut *group.store.borrow_mut(), TableType::new(element, initial, maximum), first);
    Ok(table.ok().map(|table| group.number(Extern::Table(table), 0)))
}

pub(super) fn table_length(ctx: Ctx<'_>, handle: GroupHandle<'_>, number: usize) -> Result<u64> {
    let group = group_of(&handle);
    let table = group.table(&ctx, number)?;
    Ok(table.size(&*group.store.borrow()))
}

fn element_type(group: &Group, table: Table) -> RefType {
    table.ty(&*group.store.borrow()).element()
}

pub(super) fn table_has_functions(ctx: Ctx<'_>, handle: GroupHandle<'_>, number: usize) -> Result<bool> {
    let group = group_of(&handle);
    Ok(element_type(&group, group.table(&ctx, number)?) == RefType::Func)
}

pub(super) fn table_get<'js>(
    ctx: Ctx<'js>,
    handle: GroupHandle<'js>,
    state: Object<'js>,
    number: usize,
    index: u32,
) -> Result<Value<'js>> {
    let group = group_of(&handle);
    let element = group.table(&ctx, number)?.get(&*group.store.borrow(), u64::from(index));
    match element {
        Some(element) => to_js(&ctx, &group, &state, &of_ref(element)),
        None => Ok(Value::new_null(ctx)),
    }
}

pub(super) fn table_set<'js>(
    ctx: Ctx<'js>,
    handle: GroupHandle<'js>,
    state: Object<'js>,
    number: usize,
    index: u32,
    value: Value<'js>,
) -> Result<()> {
    let group = group_of(&handle);
    let table = group.table(&ctx, number)?;
    let ty = ValType::from(element_type(&group, table));
    let value = as_ref(to_wasm(&ctx, &group, &state, value, ty)?);
    let set = table.set(&mut *group.store.borrow_mut(), u64::from(index), value);
    set.map_err(|error| Exception::throw_range(&ctx, &error.to_string()))
}

/// The elements there were; none where there is no room for more.
pub(super) fn table_grow<'js>(
    ctx: Ctx<'js>,
    handle: GroupHandle<'js>,
    state: Object<'js>,
    number: usize,
    delta: u32,
    value: Value<'js>,
) -> Result<Option<u64>> {
    let group = group_of(&handle);
    let table = group.table(&ctx, number)?;
    let ty = ValType::from(element_type(&group, table));
    let value = as_ref(to_wasm(&ctx, &group, &state, value, ty)?);
    Ok(table.grow(&mut *group.store.borrow_mut(), u64::from(delta), value).ok())
}

pub(super) fn global<'js>(
    ctx: Ctx<'js>,
    handle: GroupHandle<'js>,
    state: Object<'js>,
    ty: String,
    is_mutable: bool,
    value: Value<'js>,
) -> Result<usize> {
    let group = group_of(&handle);
    let value = to_wasm(&ctx, &group, &state, value, value_type(&ty))?;
    let has_room = group.store.borrow_mut().data_mut().charge(GLOBAL_BYTES);
    if !has_room {
        return Err(Exception::throw_range(&ctx, "WebAssembly.Global(): could not allocate the global"));
    }
    let mutability = if is_mutable { Mutability::Var } else { Mutability::Const };
    let global = Global::new(&mut *group.store.borrow_mut(), value, mutability);
    Ok(group.number(Extern::Global(global), 0))
}

pub(super) fn global_is_mutable(ctx: Ctx<'_>, handle: GroupHandle<'_>, number: usize) -> Result<bool> {
    let group = group_of(&handle);
    let ty = group.global(&ctx, number)?.ty(&*group.store.borrow());
    Ok(ty.mutability() == Mutability::Var)
}

pub(super) fn global_get<'js>(
    ctx: Ctx<'js>,
    handle: GroupHandle<'js>,
    state: Object<'js>,
    number: usize,
) -> Result<Value<'js>> {
    let group = group_of(&handle);
    let value = group.global(&ctx, number)?.get(&*group.store.borrow());
    to_js(&ctx, &group, &state, &value)
}

pub(super) fn global_set<'js>(
    ctx: Ctx<'js>,
    handle: GroupHandle<'js>,
    state: Object<'js>,
    number: usize,
    value: Value<'js>,
) -> Result<()> {
    let group = group_of(&handle);
    let global = group.global(&ctx, number)?;
    let ty = global.ty(&*group.store.borrow()).content();
    let value = to_wasm(&ctx, &group, &state, value, ty)?;
    let set = global.set(&mut *group.store.borrow_mut(), value);
    set.map_err(|error| Exception::throw_type(&ctx, &error.to_string()))
}

fn value_type(name: &str) -> ValType {
    match name {
        "i32" => ValType::I32,
        "i64" => ValType::I64,
        "f32" => ValType::F32,
        "f64" => ValType::F64,
        "externref" => ValType::ExternRef,
        _ => ValType::FuncRef,
    }
}
