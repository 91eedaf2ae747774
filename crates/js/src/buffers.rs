//! Bytes of JavaScript buffers, in and out. The unsafe code of this module reads and writes the memory of a buffer
//! between two moments at which no JavaScript runs; a slice of it never leaves a function.
#![allow(unsafe_code)]

use rquickjs::{Ctx, Exception, Result, TypedArray};

/// A copy of the bytes of a `Uint8Array`; empty if its buffer is detached.
pub(crate) fn read(array: &TypedArray<'_, u8>) -> Vec<u8> {
    // SAFETY: the slice is copied before anything else can run.
    unsafe { array.as_bytes() }.unwrap_or_default().to_vec()
}

/// Lets `look` see the bytes of a `Uint8Array` without a copy. `look` gets no context, so it cannot run JavaScript.
pub(crate) fn look<T>(array: &TypedArray<'_, u8>, look: impl FnOnce(&[u8]) -> T + 'static) -> T
where
    T: 'static,
{
    // SAFETY: `look` is 'static, so it holds no value of the engine and cannot enter it; its answer borrows nothing.
    look(unsafe { array.as_bytes() }.unwrap_or_default())
}

/// Writes `bytes` at the start of a `Uint8Array`.
///
/// # Errors
/// A `RangeError` in `ctx` if it is shorter than `bytes`, or detached.
pub(crate) fn write(ctx: &Ctx<'_>, array: &TypedArray<'_, u8>, bytes: &[u8]) -> Result<()> {
    let room = array.as_raw().filter(|room| room.len() >= bytes.len());
    let Some(mut room) = room else {
        return Err(Exception::throw_range(ctx, "the destination is too short"));
    };
    // SAFETY: pointer and length are of this moment, no JavaScript runs before the copy is done, and `bytes` is memory
    // of Rust, which no buffer of the engine overlaps.
    let room = unsafe { room.as_mut() };
    room[..bytes.len()].copy_from_slice(bytes);
    Ok(())
}
