//! Streams of the Web platform and what is made of them: three lazy parts, each loaded when a handler or a body first
//! needs it. Their JavaScript is one module each in several files, joined here in the order in which they use each other.

use rquickjs::{ArrayBuffer, Ctx, Function, Object, Result};

use super::compression;
use crate::plain;
use crate::prelude::{Part, no_natives};

/// Readable streams: all that bodies need.
pub(crate) const PART: Part = Part {
    name: "streams",
    source: concat!(
        include_str!("streams/base.js"),
        include_str!("streams/readable.js"),
        include_str!("streams/controllers.js"),
        include_str!("streams/byte_controller.js"),
        include_str!("streams/tee.js"),
        include_str!("streams/inside.js"),
    ),
    natives: no_natives,
    globals: &[
        "ReadableByteStreamController",
        "ReadableStream",
        "ReadableStreamBYOBReader",
        "ReadableStreamBYOBRequest",
        "ReadableStreamDefaultController",
        "ReadableStreamDefaultReader",
    ],
};

/// Writable streams, pipes, transform streams.
pub(crate) const WRITABLE_PART: Part = Part {
    name: "writable-streams",
    source: concat!(
        include_str!("streams/writable_head.js"),
        include_str!("streams/writable.js"),
        include_str!("streams/writer.js"),
        include_str!("streams/pipe.js"),
        include_str!("streams/transform.js"),
        include_str!("streams/writable_end.js"),
    ),
    natives: no_natives,
    globals: &[
        "TransformStream",
        "TransformStreamDefaultController",
        "WritableStream",
        "WritableStreamDefaultController",
        "WritableStreamDefaultWriter",
    ],
};

/// The transform streams that the platform has, and queuing strategies.
pub(crate) const TRANSFORMS_PART: Part = Part {
    name: "transforms",
    source: include_str!("streams/platform_transforms.js"),
    natives,
    globals: &[
        "ByteLengthQueuingStrategy",
        "CompressionStream",
        "CountQueuingStrategy",
        "DecompressionStream",
        "FixedLengthStream",
        "IdentityTransformStream",
        "TextDecoderStream",
        "TextEncoderStream",
    ],
};

fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    native.set("compressor", Function::new(ctx.clone(), compression::compressor)?)?;
    native.set("decompressor", Function::new(ctx.clone(), compression::decompressor)?)?;
    native.set("utf8", Function::new(ctx.clone(), utf8)?)?;
    Ok(native)
}

/// UTF-8 of a string without lone surrogates.
fn utf8(ctx: Ctx<'_>, text: String) -> Result<ArrayBuffer<'_>> {
    ArrayBuffer::new(ctx, text.into_bytes())
}

#[cfg(test)]
mod tests;
