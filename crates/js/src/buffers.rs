//! Bytes of JavaScript buffers. The unsafe code of this module reads the memory of a buffer between two moments at which
//! no JavaScript runs; a slice of it never leaves a function.
#![allow(unsafe_code)]

use rquickjs::TypedArray;

/// A copy of the bytes of a `Uint8Array`; empty if its buffer is detached.
pub(crate) fn read(array: &TypedArray<'_, u8>) -> Vec<u8> {
    // SAFETY: the slice is copied before anything else can run.
    unsafe { array.as_bytes() }.unwrap_or_default().to_vec()
}
