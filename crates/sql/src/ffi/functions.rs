//! SQL functions of SQLite that take time in the product of two arguments, here in linear time: `instr`, `replace`,
//! `trim`, `ltrim`, `rtrim`, `unhex`. With values of megabytes SQLite's own run for hours inside one virtual machine
//! instruction, where no budget and no interrupt reaches them. Results are SQLite's, but for sets of characters that are not
//! UTF-8: half a character trims nothing here.

use std::collections::HashSet;
use std::ffi::{CStr, c_int};

use libsqlite3_sys as ffi;
use memchr::memmem;
use rusqlite::Connection;

use super::bytes;
use crate::options::VALUE_LEN_MAX;

type Function = unsafe extern "C" fn(*mut ffi::sqlite3_context, c_int, *mut *mut ffi::sqlite3_value);

/// Replaces the functions on a connection.
pub(crate) fn install(connection: &Connection) -> Result<(), rusqlite::Error> {
    let functions: [(&CStr, c_int, Function); 10] = [
        (c"instr", 2, instr),
        (c"replace", 3, replace),
        (c"trim", 1, trim),
        (c"trim", 2, trim),
        (c"ltrim", 1, ltrim),
        (c"ltrim", 2, ltrim),
        (c"rtrim", 1, rtrim),
        (c"rtrim", 2, rtrim),
        (c"unhex", 1, unhex),
        (c"unhex", 2, unhex),
    ];
    let flags = ffi::SQLITE_UTF8 | ffi::SQLITE_DETERMINISTIC | ffi::SQLITE_INNOCUOUS;
    for (name, arguments, function) in functions {
        // SAFETY: the handle is live while `connection` is borrowed, the name is a C string, and the function lives
        // for ever and needs no user data.
        let code = unsafe {
            let user_data = std::ptr::null_mut();
            let handle = connection.handle();
            let name = name.as_ptr();
            ffi::sqlite3_create_function_v2(
                handle,
                name,
                arguments,
                flags,
                user_data,
                Some(function),
                None,
                None,
                None,
            )
        };
        if code != ffi::SQLITE_OK {
            return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
        }
    }
    Ok(())
}

/// A call of a function.
struct Call<'a> {
    context: *mut ffi::sqlite3_context,
    arguments: &'a [*mut ffi::sqlite3_value],
}

impl<'a> Call<'a> {
    /// # Safety
    /// The arguments of an SQL function, during its call.
    unsafe fn new(
        context: *mut ffi::sqlite3_context,
        count: c_int,
        arguments: *mut *mut ffi::sqlite3_value,
    ) -> Self {
        let count = usize::try_from(count).unwrap_or(0);
        // SAFETY: SQLite passes `count` values.
        Self { context, arguments: unsafe { std::slice::from_raw_parts(arguments, count) } }
    }

    fn is_blob(&self, index: usize) -> bool {
        // SAFETY: a live value during the call.
        unsafe { ffi::sqlite3_value_type(self.arguments[index]) == ffi::SQLITE_BLOB }
    }

    /// The bytes of an argument: a blob's own, anything else's as text. None for NULL. Valid during the call, because
    /// each argument is asked once and nothing else changes it.
    fn bytes(&self, index: usize) -> Option<&'a [u8]> {
        let value = self.arguments[index];
        // SAFETY: a live value during the call; the length is asked after the pointer, as SQLite demands.
        unsafe {
            match ffi::sqlite3_value_type(value) {
                ffi::SQLITE_NULL => None,
                ffi::SQLITE_BLOB => {
                    let data = ffi::sqlite3_value_blob(value).cast::<u8>();
                    Some(bytes(data, ffi::sqlite3_value_bytes(value)))
                }
                _ => {
                    let data = ffi::sqlite3_value_text(value);
                    Some(bytes(data, ffi::sqlite3_value_bytes(value)))
                }
            }
        }
    }

    fn return_text(&self, text: &[u8]) {
        // SAFETY: the text is copied before the call returns. SQLite refuses what is too long.
        unsafe {
            let (data, len, copy) = (text.as_ptr().cast(), text.len() as u64, ffi::SQLITE_TRANSIENT());
            ffi::sqlite3_result_text64(self.context, data, len, copy, ffi::SQLITE_UTF8 as u8);
        }
    }

    fn return_too_big(&self) {
        // SAFETY: the context of the running call.
        unsafe { ffi::sqlite3_result_error_toobig(self.context) };
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// The length of the first character, by SQLite's rule for text that need not be UTF-8.
fn first_char_len(text: &[u8]) -> usize {
    match text {
        [] => 0,
        [lead, rest @ ..] if *lead >= 0xc0 => {
            1 + rest.iter().take_while(|byte| is_continuation(**byte)).count()
        }
        _ => 1,
    }
}

/// The characters of a text up to its first NUL, as SQLite reads a set of characters.
fn chars(text: &[u8]) -> HashSet<&[u8]> {
    let mut rest = &text[..memchr::memchr(0, text).unwrap_or(text.len())];
    let mut chars = HashSet::new();
    while !rest.is_empty() {
        let (first, others) = rest.split_at(first_char_len(rest));
        chars.insert(first);
        rest = others;
    }
    chars
}

unsafe extern "C" fn instr(
    context: *mut ffi::sqlite3_context,
    count: c_int,
    arguments: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: called by SQLite as an SQL function.
    let call = unsafe { Call::new(context, count, arguments) };
    let is_text = !(call.is_blob(0) && call.is_blob(1));
    let (Some(haystack), Some(needle)) = (call.bytes(0), call.bytes(1)) else { return };
    // In text a match begins where a character does.
    let found = memmem::find(haystack, needle)
        .filter(|at| !is_text || *at == 0 || needle.first().is_none_or(|byte| !is_continuation(*byte)));
    let position = match found {
        None => 0,
        Some(at) if is_text => 1 + haystack[..at].iter().filter(|byte| !is_continuation(**byte)).count(),
        Some(at) => 1 + at,
    };
    // SAFETY: the context of the running call.
    unsafe { ffi::sqlite3_result_int64(context, i64::try_from(position).unwrap_or(0)) };
}

unsafe extern "C" fn replace(
    context: *mut ffi::sqlite3_context,
    count: c_int,
    arguments: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: called by SQLite as an SQL function.
    let call = unsafe { Call::new(context, count, arguments) };
    let (Some(text), Some(pattern)) = (call.bytes(0), call.bytes(1)) else { return };
    if pattern.first().is_none_or(|byte| *byte == 0) {
        return call.return_text(text);
    }
    let Some(replacement) = call.bytes(2) else { return };
    let mut replaced = Vec::with_capacity(text.len());
    let mut from = 0;
    for at in memmem::find_iter(text, pattern) {
        replaced.extend_from_slice(&text[from..at]);
        replaced.extend_from_slice(replacement);
        from = at + pattern.len();
        if replaced.len() > VALUE_LEN_MAX as usize {
            return call.return_too_big();
        }
    }
    replaced.extend_from_slice(&text[from..]);
    call.return_text(&replaced);
}

/// # Safety
/// The arguments of an SQL function, during its call.
unsafe fn trim_sides(
    context: *mut ffi::sqlite3_context,
    count: c_int,
    arguments: *mut *mut ffi::sqlite3_value,
    (left, right): (bool, bool),
) {
    // SAFETY: by this function's contract.
    let call = unsafe { Call::new(context, count, arguments) };
    let Some(mut text) = call.bytes(0) else { return };
    let set = if count == 1 { Some(&b" "[..]) } else { call.bytes(1) };
    let Some(set) = set.map(chars) else { return };
    while left && !text.is_empty() {
        let (first, rest) = text.split_at(first_char_len(text));
        if !set.contains(first) {
            break;
        }
        text = rest;
    }
    while right && !text.is_empty() {
        let start = text.iter().rposition(|byte| !is_continuation(*byte)).unwrap_or(0);
        let (rest, last) = text.split_at(start);
        if !set.contains(last) {
            break;
        }
        text = rest;
    }
    call.return_text(text);
}

unsafe extern "C" fn trim(
    context: *mut ffi::sqlite3_context,
    count: c_int,
    arguments: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: called by SQLite as an SQL function.
    unsafe { trim_sides(context, count, arguments, (true, true)) };
}

unsafe extern "C" fn ltrim(
    context: *mut ffi::sqlite3_context,
    count: c_int,
    arguments: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: called by SQLite as an SQL function.
    unsafe { trim_sides(context, count, arguments, (true, false)) };
}

unsafe extern "C" fn rtrim(
    context: *mut ffi::sqlite3_context,
    count: c_int,
    arguments: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: called by SQLite as an SQL function.
    unsafe { trim_sides(context, count, arguments, (false, true)) };
}

unsafe extern "C" fn unhex(
    context: *mut ffi::sqlite3_context,
    count: c_int,
    arguments: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: called by SQLite as an SQL function.
    let call = unsafe { Call::new(context, count, arguments) };
    let ignored = if count == 1 { Some(&b""[..]) } else { call.bytes(1) };
    let (Some(text), Some(ignored)) = (call.bytes(0), ignored) else { return };
    let Some(blob) = decode_hex(&text[..memchr::memchr(0, text).unwrap_or(text.len())], &chars(ignored))
    else {
        return;
    };
    // SAFETY: the blob is copied before the call returns.
    unsafe {
        let (data, len, copy) = (blob.as_ptr().cast(), blob.len() as u64, ffi::SQLITE_TRANSIENT());
        ffi::sqlite3_result_blob64(context, data, len, copy);
    }
}

/// Pairs of hex digits, between which characters of a set may stand.
fn decode_hex(mut text: &[u8], ignored: &HashSet<&[u8]>) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut blob = Vec::with_capacity(text.len() / 2);
    while let Some(&first) = text.first() {
        match digit(first) {
            Some(high) => {
                blob.push(high << 4 | digit(*text.get(1)?)?);
                text = &text[2..];
            }
            None => {
                let (skipped, rest) = text.split_at(first_char_len(text));
                if !ignored.contains(skipped) {
                    return None;
                }
                text = rest;
            }
        }
    }
    Some(blob)
}
