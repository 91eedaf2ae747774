//! Memories, tables and globals.

use rquickjs::{ArrayBuffer, Ctx, Exception, Object, Result, Value};
use wasmi::{Extern, Global, MemoryType, Mutability, RefType, Table, TableType, ValType};

use super::{GroupHandle, group_of};
use crate::wasm::group::Group;
use crate::wasm::values::{as_ref, of_ref, to_js, to_wasm};
use crate::wasm::{detach, sync};

pub(super) fn memory(handle: GroupHandle<'_>, initial: u32, maximum: Option<u32>) -> Option<usize> {
    group_of(&handle).add_memory(MemoryType::new(initial, maximum))
}

pub(super) fn buffer<'js>(
    ctx: Ctx<'js>,
    handle: GroupHandle<'js>,
    number: usize,
) -> Result<ArrayBuffer<'js>> {
    ArrayBuffer::from_source(ctx, group_of(&handle).view(number))
}

/// The pages there were; none where there is no room for more.
pub(super) fn grow<'js>(
    handle: GroupHandle<'js>,
    state: Object<'js>,
    number: usize,
    delta: u32,
) -> Result<Option<u64>> {
    let group = group_of(&handle);
    let memory = group.members.borrow().memories.get(number).memory;
    let Ok(before) = memory.grow(&mut *group.store.borrow_mut(), u64::from(delta)) else { return Ok(None) };
    // Also a growth by nothing ends the buffer.
    group.unsee(number);
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
    let first = as_ref(to_wasm(&ctx, &group, &state, first, ValType::from(element))?);
    let table = Table::new(&mut *group.store.borrow_mut(), TableType::new(element, initial, maximum), first);
    Ok(table.ok().map(|table| group.number(Extern::Table(table), 0)))
}

fn table_of(group: &Group, number: usize) -> Table {
    *group.members.borrow().tables.get(number)
}

pub(super) fn table_length(handle: GroupHandle<'_>, number: usize) -> u64 {
    let group = group_of(&handle);
    let table = table_of(&group, number);
    table.size(&*group.store.borrow())
}

fn element_type(group: &Group, table: Table) -> RefType {
    table.ty(&*group.store.borrow()).element()
}

pub(super) fn table_has_functions(handle: GroupHandle<'_>, number: usize) -> bool {
    let group = group_of(&handle);
    element_type(&group, table_of(&group, number)) == RefType::Func
}

pub(super) fn table_get<'js>(
    ctx: Ctx<'js>,
    handle: GroupHandle<'js>,
    state: Object<'js>,
    number: usize,
    index: u32,
) -> Result<Value<'js>> {
    let group = group_of(&handle);
    let element = table_of(&group, number).get(&*group.store.borrow(), u64::from(index));
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
    let table = table_of(&group, number);
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
    let table = table_of(&group, number);
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
    let mutability = if is_mutable { Mutability::Var } else { Mutability::Const };
    let global = Global::new(&mut *group.store.borrow_mut(), value, mutability);
    Ok(group.number(Extern::Global(global), 0))
}

fn global_of(group: &Group, number: usize) -> Global {
    *group.members.borrow().globals.get(number)
}

pub(super) fn global_is_mutable(handle: GroupHandle<'_>, number: usize) -> bool {
    let group = group_of(&handle);
    let ty = global_of(&group, number).ty(&*group.store.borrow());
    ty.mutability() == Mutability::Var
}

pub(super) fn global_get<'js>(
    ctx: Ctx<'js>,
    handle: GroupHandle<'js>,
    state: Object<'js>,
    number: usize,
) -> Result<Value<'js>> {
    let group = group_of(&handle);
    let value = global_of(&group, number).get(&*group.store.borrow());
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
    let global = global_of(&group, number);
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
