//! What CompressionStream and DecompressionStream do with bytes: a codec takes a chunk and gives its output in pieces of
//! bounded size, so that a small input that grows a thousandfold fills no memory before somebody has read it.

use std::cell::RefCell;
use std::rc::Rc;

use rquickjs::{ArrayBuffer, Ctx, Exception, Function, Object, Result, TypedArray};

use crate::buffers;
use crate::plain;

mod content;
mod decode;
mod encode;

pub use content::{ContentDecoder, ContentError};

use decode::Decoder;
use encode::Encoder;

/// The most bytes that one `next` answers.
const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// The formats of the Compression Standard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    /// RFC 1950: a zlib header and an Adler-32 around the data.
    Deflate,
    /// RFC 1951, with nothing around it.
    DeflateRaw,
    /// RFC 1952, one member.
    Gzip,
}

impl Format {
    fn parse(name: &str) -> Option<Self> {
        match name {
            "deflate" => Some(Self::Deflate),
            "deflate-raw" => Some(Self::DeflateRaw),
            "gzip" => Some(Self::Gzip),
            _ => None,
        }
    }
}

/// Why bytes cannot be decompressed; the texts are those that handlers see in workerd.
#[derive(thiserror::Error, Debug, PartialEq, Eq)]
enum CodecError {
    #[error("Decompression failed.")]
    Corrupt,
    #[error("Decompression failed.")]
    GzipHeader,
    #[error("Decompression failed.")]
    Checksum,
    #[error("Trailing bytes after end of compressed data")]
    Trailing,
    #[error("Called close() on a decompression stream with incomplete data")]
    Truncated,
}

/// One direction of one stream.
trait Codec {
    /// Takes the next input; all output of what came before has been taken.
    fn push(&mut self, bytes: &[u8]) -> std::result::Result<(), CodecError>;
    /// The input has ended.
    fn finish(&mut self) -> std::result::Result<(), CodecError>;
    /// The next output, at most [`OUTPUT_BYTES_MAX`] bytes and never empty; `None` until there is more input.
    fn next(&mut self) -> std::result::Result<Option<Vec<u8>>, CodecError>;
}

/// `compressor(format)` of the streams part.
///
/// # Errors
/// A TypeError for an unknown format.
pub(super) fn compressor<'js>(ctx: Ctx<'js>, format: String) -> Result<Object<'js>> {
    let format = format_of(&ctx, &format)?;
    codec_object(&ctx, Rc::new(RefCell::new(Encoder::new(format))))
}

/// `decompressor(format)` of the streams part.
///
/// # Errors
/// A TypeError for an unknown format.
pub(super) fn decompressor<'js>(ctx: Ctx<'js>, format: String) -> Result<Object<'js>> {
    let format = format_of(&ctx, &format)?;
    codec_object(&ctx, Rc::new(RefCell::new(Decoder::new(format))))
}

fn format_of(ctx: &Ctx<'_>, name: &str) -> Result<Format> {
    Format::parse(name)
        .ok_or_else(|| Exception::throw_type(ctx, &format!("unsupported compression format `{name}`")))
}

/// Nothing is borrowed while an error or a value is made: nothing of the engine runs under a borrow of ours.
fn codec_object<'js, C: Codec + 'static>(ctx: &Ctx<'js>, codec: Rc<RefCell<C>>) -> Result<Object<'js>> {
    let object = plain::record(ctx)?;
    let shared = codec.clone();
    let push = move |ctx: Ctx<'js>, bytes: TypedArray<'js, u8>| {
        let pushed = shared.borrow_mut().push(&buffers::read(&bytes));
        pushed.map_err(|error| throw(&ctx, &error))
    };
    object.set("push", Function::new(ctx.clone(), push)?)?;
    let shared = codec.clone();
    let finish = move |ctx: Ctx<'js>| {
        let finished = shared.borrow_mut().finish();
        finished.map_err(|error| throw(&ctx, &error))
    };
    object.set("finish", Function::new(ctx.clone(), finish)?)?;
    let next = move |ctx: Ctx<'js>| {
        let output = codec.borrow_mut().next();
        let output = output.map_err(|error| throw(&ctx, &error))?;
        output.map(|bytes| ArrayBuffer::new(ctx.clone(), bytes)).transpose()
    };
    object.set("next", Function::new(ctx.clone(), next)?)?;
    Ok(object)
}

fn throw(ctx: &Ctx<'_>, error: &CodecError) -> rquickjs::Error {
    Exception::throw_type(ctx, &error.to_string())
}

#[cfg(test)]
mod tests;
