//! `TextEncoder`, `TextDecoder`, `atob`, `btoa`. The decoders are encoding_rs, which implements the Encoding Standard;
//! the state of a streaming decoder lives in the Rust closure that its object calls.

use std::cell::RefCell;

use encoding_rs::{DecoderResult, Encoding, REPLACEMENT, UTF_8};
use rquickjs::function::{Func, Opt};
use rquickjs::{Ctx, Exception, Function, Object, Result, String as JsString, TypedArray};

use crate::buffers;
use crate::plain;
use crate::prelude::Part;

pub(crate) const PART: Part = Part {
    name: "encoding",
    source: include_str!("encoding.js"),
    natives,
    globals: &["TextEncoder", "TextDecoder"],
};

pub(super) fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    native.set("encode", Func::from(encode))?;
    native.set("encodeInto", Func::from(encode_into))?;
    native.set("encodingName", Func::from(encoding_name))?;
    native.set("decode", Func::from(decode))?;
    native.set("decoder", Func::from(decoder))?;
    Ok(native)
}

/// UTF-8 of a well-formed string.
fn encode<'js>(ctx: Ctx<'js>, text: JsString<'js>) -> Result<TypedArray<'js, u8>> {
    TypedArray::new(ctx, text.to_string()?.into_bytes())
}

/// Fills `into` with whole characters; answers how many UTF-16 units were read and how many bytes written.
fn encode_into<'js>(ctx: Ctx<'js>, text: JsString<'js>, into: TypedArray<'js, u8>) -> Result<Vec<usize>> {
    let text = text.to_string()?;
    let mut end = text.len().min(into.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    buffers::write(&ctx, &into, &text.as_bytes()[..end])?;
    Ok(vec![text[..end].encode_utf16().count(), end])
}

/// The lower-case name of the encoding that `label` stands for, or nothing.
fn encoding_name(label: String) -> Option<String> {
    lookup(&label).map(|encoding| encoding.name().to_ascii_lowercase())
}

fn lookup(label: &str) -> Option<&'static Encoding> {
    Encoding::for_label(label.as_bytes()).filter(|encoding| *encoding != REPLACEMENT)
}

/// How a decoder was made.
#[derive(Clone, Copy)]
struct Options {
    encoding: &'static Encoding,
    is_fatal: bool,
    keeps_bom: bool,
}

impl Options {
    fn new(ctx: &Ctx<'_>, name: &str, is_fatal: bool, keeps_bom: bool) -> Result<Self> {
        let encoding = lookup(name)
            .ok_or_else(|| Exception::throw_range(ctx, &format!("`{name}` is not a supported encoding")))?;
        Ok(Self { encoding, is_fatal, keeps_bom })
    }

    fn decoder(self) -> encoding_rs::Decoder {
        if self.keeps_bom {
            self.encoding.new_decoder_without_bom_handling()
        } else {
            self.encoding.new_decoder_with_bom_removal()
        }
    }

    /// Decodes `bytes`; `None` for a sequence that is malformed, if the options call that fatal.
    fn run(self, decoder: &mut encoding_rs::Decoder, bytes: &[u8], is_last: bool) -> Option<String> {
        if !self.is_fatal {
            let mut text = String::with_capacity(decoder.max_utf8_buffer_length(bytes.len())?);
            let (_, read, _) = decoder.decode_to_string(bytes, &mut text, is_last);
            assert_eq!(read, bytes.len(), "the text has room for all that the bytes can become");
            return Some(text);
        }
        let capacity = decoder.max_utf8_buffer_length_without_replacement(bytes.len())?;
        let mut text = String::with_capacity(capacity);
        match decoder.decode_to_string_without_replacement(bytes, &mut text, is_last) {
            (DecoderResult::InputEmpty, _) => Some(text),
            (DecoderResult::OutputFull, _) => {
                unreachable!("the text has room for all that the bytes can become")
            }
            (DecoderResult::Malformed(..), _) => None,
        }
    }
}

fn malformed(ctx: &Ctx<'_>) -> rquickjs::Error {
    Exception::throw_type(ctx, "The encoded data was not valid.")
}

/// Decodes a whole input.
fn decode<'js>(
    ctx: Ctx<'js>,
    name: String,
    is_fatal: bool,
    keeps_bom: bool,
    bytes: TypedArray<'js, u8>,
) -> Result<String> {
    let options = Options::new(&ctx, &name, is_fatal, keeps_bom)?;
    buffers::look(&bytes, move |bytes| {
        // Most text is valid UTF-8, which needs one check and one copy.
        if options.encoding == UTF_8
            && let Ok(text) = std::str::from_utf8(bytes)
        {
            let text = if options.keeps_bom { text } else { text.strip_prefix('\u{feff}').unwrap_or(text) };
            return Some(text.to_owned());
        }
        options.run(&mut options.decoder(), bytes, true)
    })
    .ok_or_else(|| malformed(&ctx))
}

/// A function `(bytes, is_last) -> text` that remembers the incomplete end of the bytes before.
fn decoder<'js>(ctx: Ctx<'js>, name: String, is_fatal: bool, keeps_bom: bool) -> Result<Function<'js>> {
    let options = Options::new(&ctx, &name, is_fatal, keeps_bom)?;
    let state = RefCell::new(options.decoder());
    Function::new(ctx, move |ctx: Ctx<'js>, bytes: Opt<TypedArray<'js, u8>>, is_last: Opt<bool>| {
        let bytes = bytes.0.as_ref().map(buffers::read).unwrap_or_default();
        let is_last = is_last.0.unwrap_or(true);
        let text = {
            let mut decoder = state.borrow_mut();
            let text = options.run(&mut decoder, &bytes, is_last);
            if is_last || text.is_none() {
                *decoder = options.decoder();
            }
            text
        };
        // Not borrowed any more: nothing of the engine runs under a borrow of ours.
        text.ok_or_else(|| malformed(&ctx))
    })
}
