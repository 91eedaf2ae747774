//! Hashes and what is made of one: digests, whole or piece by piece, and HMAC.

use std::cell::RefCell;
use std::rc::Rc;

use hmac::{KeyInit, Mac};
use md5::Md5;
use rquickjs::{Ctx, Function, Object, Result};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};
use subtle::ConstantTimeEq;

use super::{Answer, Input, Output, answer};
use crate::plain;

/// A hash, by the name that Web Crypto gives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hash {
    Md5,
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    /// JavaScript has normalised the name: anything else is a fault of ours, answered as a refusal.
    pub(super) fn parse(name: &str) -> Option<Self> {
        match name {
            "MD5" => Some(Self::Md5),
            "SHA-1" => Some(Self::Sha1),
            "SHA-256" => Some(Self::Sha256),
            "SHA-384" => Some(Self::Sha384),
            "SHA-512" => Some(Self::Sha512),
            _ => None,
        }
    }

    /// Bytes of a digest.
    pub(super) fn output_len(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    pub(super) fn digest(self, data: &[u8]) -> Vec<u8> {
        match self {
            Self::Md5 => Md5::digest(data).to_vec(),
            Self::Sha1 => Sha1::digest(data).to_vec(),
            Self::Sha256 => Sha256::digest(data).to_vec(),
            Self::Sha384 => Sha384::digest(data).to_vec(),
            Self::Sha512 => Sha512::digest(data).to_vec(),
        }
    }

    /// `None` for MD5, which no algorithm but `digest` takes.
    pub(super) fn hmac(self, key: &[u8], data: &[u8]) -> Option<Vec<u8>> {
        fn of<M: Mac + KeyInit>(key: &[u8], data: &[u8]) -> Vec<u8> {
            let mut mac = <M as KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length");
            mac.update(data);
            mac.finalize().into_bytes().to_vec()
        }
        match self {
            Self::Md5 => None,
            Self::Sha1 => Some(of::<hmac::Hmac<Sha1>>(key, data)),
            Self::Sha256 => Some(of::<hmac::Hmac<Sha256>>(key, data)),
            Self::Sha384 => Some(of::<hmac::Hmac<Sha384>>(key, data)),
            Self::Sha512 => Some(of::<hmac::Hmac<Sha512>>(key, data)),
        }
    }
}

enum Hasher {
    Md5(Md5),
    Sha1(Sha1),
    Sha256(Sha256),
    Sha384(Sha384),
    Sha512(Sha512),
}

impl Hasher {
    fn new(hash: Hash) -> Self {
        match hash {
            Hash::Md5 => Self::Md5(Md5::new()),
            Hash::Sha1 => Self::Sha1(Sha1::new()),
            Hash::Sha256 => Self::Sha256(Sha256::new()),
            Hash::Sha384 => Self::Sha384(Sha384::new()),
            Hash::Sha512 => Self::Sha512(Sha512::new()),
        }
    }

    fn update(&mut self, data: &[u8]) {
        match self {
            Self::Md5(hasher) => hasher.update(data),
            Self::Sha1(hasher) => hasher.update(data),
            Self::Sha256(hasher) => hasher.update(data),
            Self::Sha384(hasher) => hasher.update(data),
            Self::Sha512(hasher) => hasher.update(data),
        }
    }

    /// The digest; the hasher begins anew.
    fn finish(&mut self) -> Vec<u8> {
        match self {
            Self::Md5(hasher) => hasher.finalize_reset().to_vec(),
            Self::Sha1(hasher) => hasher.finalize_reset().to_vec(),
            Self::Sha256(hasher) => hasher.finalize_reset().to_vec(),
            Self::Sha384(hasher) => hasher.finalize_reset().to_vec(),
            Self::Sha512(hasher) => hasher.finalize_reset().to_vec(),
        }
    }
}

pub(super) fn install<'js>(ctx: &Ctx<'js>, native: &Object<'js>) -> Result<()> {
    native.set("digest", Function::new(ctx.clone(), digest)?)?;
    native.set("hasher", Function::new(ctx.clone(), hasher)?)?;
    native.set("hmac", Function::new(ctx.clone(), hmac)?)?;
    native.set("hmacVerify", Function::new(ctx.clone(), hmac_verify)?)?;
    native.set("equal", Function::new(ctx.clone(), equal)?)?;
    Ok(())
}

fn digest(hash: String, data: Input) -> Answer {
    answer(Hash::parse(&hash).map(|hash| hash.digest(&data)))
}

/// `{ update(bytes), finish() }`, for a stream that is hashed.
fn hasher<'js>(ctx: Ctx<'js>, hash: String) -> Result<Option<Object<'js>>> {
    let Some(hash) = Hash::parse(&hash) else { return Ok(None) };
    let hasher = Rc::new(RefCell::new(Hasher::new(hash)));
    let object = plain::record(&ctx)?;
    let shared = hasher.clone();
    let update = move |data: Input| shared.borrow_mut().update(&data);
    object.set("update", Function::new(ctx.clone(), update)?)?;
    object.set("finish", Function::new(ctx.clone(), move || Output(hasher.borrow_mut().finish()))?)?;
    Ok(Some(object))
}

fn hmac(hash: String, key: Input, data: Input) -> Answer {
    answer(Hash::parse(&hash).and_then(|hash| hash.hmac(&key, &data)))
}

fn hmac_verify(hash: String, key: Input, data: Input, signature: Input) -> bool {
    let expected = Hash::parse(&hash).and_then(|hash| hash.hmac(&key, &data));
    expected.is_some_and(|expected| expected.ct_eq(&signature).into())
}

/// Whether two buffers of one length are the same, in a time that tells nothing about them.
pub(super) fn equal(first: Input, second: Input) -> bool {
    first.ct_eq(&second).into()
}
