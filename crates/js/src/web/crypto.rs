//! Web Crypto: three lazy parts, `crypto` (random values), `subtle` (digests and secret keys) and `key-pairs`. JavaScript checks arguments,
//! usages and formats and knows what a CryptoKey is; the functions here compute on bytes and keep nothing. One that
//! answers `undefined` refuses its input; JavaScript says which DOMException that is. Work is bounded before it begins
//! ([`bounds`]), for nothing interrupts a host function.

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use rquickjs::{ArrayBuffer, Ctx, Exception, FromJs, Function, IntoJs, Object, Result, TypedArray, Value};

use crate::buffers;
use crate::plain;
use crate::prelude::Part;

mod aes;
pub(crate) mod bounds;
mod elliptic;
mod hash;
mod kdf;
mod octet_pairs;
mod rsa;

pub(crate) const PART: Part = Part {
    name: "crypto",
    source: include_str!("crypto/crypto.js"),
    natives: random_natives,
    globals: &["Crypto", "crypto"],
};

pub(crate) const SUBTLE_PART: Part = Part {
    name: "subtle",
    source: concat!(
        include_str!("crypto/key.js"),
        include_str!("crypto/algorithms.js"),
        include_str!("crypto/secret_keys.js"),
        include_str!("crypto/subtle.js"),
    ),
    natives: subtle_natives,
    globals: &["CryptoKey", "SubtleCrypto"],
};

/// The algorithms of key pairs, which `subtle` asks for when one is used.
pub(crate) const KEY_PAIRS_PART: Part = Part {
    name: "key-pairs",
    source: include_str!("crypto/key_pairs.js"),
    natives: key_pair_natives,
    globals: &[],
};

/// The numbers of a JSON Web Key (RFC 7515, 2): without padding, which is let pass where it is given.
const BASE64_URL: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// A copy of the bytes of a `Uint8Array`; of none if its buffer is detached.
struct Input(Vec<u8>);

impl<'js> FromJs<'js> for Input {
    fn from_js(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        TypedArray::from_js(ctx, value).map(|array| Self(buffers::read(&array)))
    }
}

impl std::ops::Deref for Input {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Bytes for JavaScript: an `ArrayBuffer`.
struct Output(Vec<u8>);

impl<'js> IntoJs<'js> for Output {
    fn into_js(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        ArrayBuffer::new(ctx.clone(), self.0)?.into_js(ctx)
    }
}

/// Bytes, or `undefined`: the input is refused.
type Answer = Option<Output>;

fn answer(bytes: Option<Vec<u8>>) -> Answer {
    bytes.map(Output)
}

/// Random bytes of the operating system.
///
/// # Errors
/// An internal error where the system has none.
fn random_bytes(ctx: &Ctx<'_>, len: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    match getrandom::fill(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(error) => {
            Err(Exception::throw_internal(ctx, &format!("the system gives no random bytes: {error}")))
        }
    }
}

fn random_natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    let random = |ctx: Ctx<'js>, len: usize| -> Result<Output> {
        // The caller has checked it; never more than getRandomValues gives.
        random_bytes(&ctx, len.min(bounds::RANDOM_BYTES_MAX)).map(Output)
    };
    native.set("random", Function::new(ctx.clone(), random)?)?;
    native.set("uuid", Function::new(ctx.clone(), |ctx: Ctx<'js>| uuid(&ctx))?)?;
    Ok(native)
}

/// A version 4 UUID (RFC 9562, 5.4).
fn uuid(ctx: &Ctx<'_>) -> Result<String> {
    let mut bytes = random_bytes(ctx, 16)?;
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for nibble in [byte >> 4, byte & 0x0f] {
            text.push(char::from_digit(u32::from(nibble), 16).expect("a nibble is a digit"));
        }
    }
    Ok(text)
}

fn key_bytes(ctx: Ctx<'_>, len: usize) -> Result<Output> {
    random_bytes(&ctx, len.min(bounds::SECRET_KEY_BYTES_MAX)).map(Output)
}

fn subtle_natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    native.set("random", Function::new(ctx.clone(), key_bytes)?)?;
    native.set("toBase64Url", Function::new(ctx.clone(), |bytes: Input| BASE64_URL.encode(&*bytes))?)?;
    native.set(
        "fromBase64Url",
        Function::new(ctx.clone(), |text: String| answer(BASE64_URL.decode(text).ok()))?,
    )?;
    native.set("utf8", Function::new(ctx.clone(), |text: String| Output(text.into_bytes()))?)?;
    native.set(
        "fromUtf8",
        Function::new(ctx.clone(), |bytes: Input| String::from_utf8_lossy(&bytes).into_owned())?,
    )?;
    hash::install(ctx, &native)?;
    kdf::install(ctx, &native)?;
    aes::install(ctx, &native)?;
    Ok(native)
}

fn key_pair_natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    native.set("random", Function::new(ctx.clone(), key_bytes)?)?;
    native.set("equal", Function::new(ctx.clone(), hash::equal)?)?;
    elliptic::install(ctx, &native)?;
    octet_pairs::install(ctx, &native)?;
    rsa::install(ctx, &native)?;
    Ok(native)
}

#[cfg(test)]
mod tests;
