//! `ctx.storage.sql`: values to and from SQLite, and rows in pieces.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::vec;

use holdfast_sql::{ExecLimits, ExecRows, SqlValue};
use rquickjs::function::Func;
use rquickjs::{Array, ArrayBuffer, Ctx, Function, IntoJs, Object, Result, TypedArray, Value};

use super::state::{RESULT_BYTES_MAX, storage};
use crate::buffers;
use crate::isolate::host::host;
use crate::plain;

/// A piece of a result ends after this many rows or bytes.
const PIECE_ROWS_MAX: usize = 64;
const PIECE_BYTES_MAX: usize = 256 << 10;

pub(super) fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    native.set("exec", Func::from(exec))?;
    native.set(
        "databaseSize",
        Func::from(|ctx: Ctx<'_>| storage(&ctx).run(&ctx, |engine| engine.object_size_bytes())),
    )?;
    Ok(native)
}

/// `{ columns, rows, more, rowsRead, rowsWritten }`: `rows` are the first ones, `more` gives the next and an empty array
/// at the end; it is missing where there are no more.
fn exec<'js>(ctx: Ctx<'js>, query: String, bindings: Vec<Value<'js>>) -> Result<Object<'js>> {
    let bindings = bindings.iter().map(value_from_js).collect::<Result<Vec<_>>>()?;
    let storage = storage(&ctx);
    // The handler must have time left to hear of a statement that took too long.
    let time = host(&ctx).budget.left() * 3 / 4;
    let limits = ExecLimits { time, result_bytes: RESULT_BYTES_MAX.saturating_sub(storage.buffered.get()) };
    let done = storage.run(&ctx, |engine| engine.object_exec(&query, &bindings, limits))?;
    let ExecRows { columns, values, bytes, rows_read, rows_written } = done;
    let object = plain::record(&ctx)?;
    let mut left = Left {
        values: values.into_iter(),
        columns: columns.len(),
        bytes: 0,
        all: Rc::clone(&storage.buffered),
    };
    object.set("columns", columns)?;
    object.set("rowsRead", rows_read as f64)?;
    object.set("rowsWritten", rows_written as f64)?;
    object.set("rows", rows_to_js(&ctx, left.piece())?)?;
    if left.values.len() > 0 {
        left.count(bytes);
        let left = RefCell::new(left);
        let more = move |ctx: Ctx<'js>| {
            // Not borrowed while JavaScript is made of it, which may run code of the application.
            let rows = left.borrow_mut().piece();
            rows_to_js(&ctx, rows)
        };
        object.set("more", Function::new(ctx.clone(), more)?)?;
    }
    Ok(object)
}

/// The rows that JavaScript has not taken.
struct Left {
    values: vec::IntoIter<SqlValue>,
    columns: usize,
    /// What is counted in `all` for it.
    bytes: usize,
    all: Rc<Cell<usize>>,
}

impl Left {
    fn count(&mut self, bytes: usize) {
        self.bytes = bytes;
        self.all.set(self.all.get() + bytes);
    }

    /// The next rows.
    fn piece(&mut self) -> Vec<Vec<SqlValue>> {
        let mut rows = Vec::new();
        let mut bytes = 0;
        while self.values.len() > 0 && rows.len() < PIECE_ROWS_MAX && bytes < PIECE_BYTES_MAX {
            let row: Vec<SqlValue> = self.values.by_ref().take(self.columns).collect();
            bytes += row.iter().map(len_of).sum::<usize>();
            rows.push(row);
        }
        rows
    }
}

/// Rows, each an array.
fn rows_to_js<'js>(ctx: &Ctx<'js>, rows: Vec<Vec<SqlValue>>) -> Result<Array<'js>> {
    let all = Array::new(ctx.clone())?;
    for values in rows {
        let row = Array::new(ctx.clone())?;
        for value in values {
            plain::append(&row, value_to_js(ctx, value)?)?;
        }
        plain::append(&all, row)?;
    }
    Ok(all)
}

impl Drop for Left {
    fn drop(&mut self) {
        self.all.set(self.all.get() - self.bytes);
    }
}

fn len_of(value: &SqlValue) -> usize {
    match value {
        SqlValue::Text(text) => text.len(),
        SqlValue::Blob(blob) => blob.len(),
        SqlValue::Null | SqlValue::Integer(_) | SqlValue::Real(_) => 0,
    }
}

/// What `sql.js` made of a binding: null, a number, a string, or a `Uint8Array`.
fn value_from_js(value: &Value<'_>) -> Result<SqlValue> {
    if let Some(number) = value.as_number() {
        // SQLite has no NaN.
        return Ok(if number.is_nan() { SqlValue::Null } else { SqlValue::Real(number) });
    }
    if let Some(text) = value.as_string() {
        return Ok(SqlValue::Text(text.to_string()?));
    }
    if value.is_null() {
        return Ok(SqlValue::Null);
    }
    let bytes: TypedArray<'_, u8> = value.get()?;
    Ok(SqlValue::Blob(buffers::read(&bytes)))
}

fn value_to_js<'js>(ctx: &Ctx<'js>, value: SqlValue) -> Result<Value<'js>> {
    match value {
        SqlValue::Null => Ok(Value::new_null(ctx.clone())),
        SqlValue::Integer(integer) => match i32::try_from(integer) {
            Ok(small) => Ok(Value::new_int(ctx.clone(), small)),
            Err(_) => Ok(Value::new_float(ctx.clone(), integer as f64)),
        },
        // A number that is an integer becomes one of the engine's, which has no -0.
        SqlValue::Real(float) if float == 0.0 => Ok(Value::new_float(ctx.clone(), float)),
        SqlValue::Real(float) => Ok(Value::new_number(ctx.clone(), float)),
        SqlValue::Text(text) => text.into_js(ctx),
        SqlValue::Blob(blob) => Ok(ArrayBuffer::new_copy(ctx.clone(), &blob)?.into_value()),
    }
}
