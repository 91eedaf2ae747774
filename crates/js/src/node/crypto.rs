//! What `node:crypto` computes: hashes and keyed hashes piece by piece, and keys from secrets. Names of hashes are those
//! of Node, in small letters. Work is bounded as that of Web Crypto: nothing interrupts a host function.

use std::cell::RefCell;
use std::rc::Rc;

use hkdf::Hkdf;
use md5::Md5;
use rquickjs::{ArrayBuffer, Ctx, Exception, Function, Object, Result, TypedArray};
use sha1::Sha1;
use sha2::digest::DynDigest;
use sha2::{Sha224, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};
use subtle::ConstantTimeEq;

use crate::buffers;
use crate::plain;
use crate::web::crypto::bounds;

/// Calls `$body` with `$Hash` as the hash of this name; `None` where there is no such hash.
macro_rules! with_hash {
    ($name:expr, $Hash:ident => $body:expr) => {
        match $name {
            "md5" => Some({
                type $Hash = Md5;
                $body
            }),
            "sha1" => Some({
                type $Hash = Sha1;
                $body
            }),
            "sha224" => Some({
                type $Hash = Sha224;
                $body
            }),
            "sha256" => Some({
                type $Hash = Sha256;
                $body
            }),
            "sha384" => Some({
                type $Hash = Sha384;
                $body
            }),
            "sha512" => Some({
                type $Hash = Sha512;
                $body
            }),
            "sha512-224" => Some({
                type $Hash = Sha512_224;
                $body
            }),
            "sha512-256" => Some({
                type $Hash = Sha512_256;
                $body
            }),
            _ => None,
        }
    };
}

pub(super) fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    let new_hash =
        |ctx: Ctx<'js>, name: String| hasher(&name).map(|hash| hash_object(&ctx, hash)).transpose();
    native.set("hasher", Function::new(ctx.clone(), new_hash)?)?;
    native.set("hmac", Function::new(ctx.clone(), hmac)?)?;
    native.set("pbkdf2", Function::new(ctx.clone(), pbkdf2)?)?;
    native.set("hkdf", Function::new(ctx.clone(), hkdf)?)?;
    native.set("random", Function::new(ctx.clone(), random)?)?;
    let equal = |first: TypedArray<'js, u8>, second: TypedArray<'js, u8>| -> bool {
        buffers::read(&first).ct_eq(&buffers::read(&second)).into()
    };
    native.set("equal", Function::new(ctx.clone(), equal)?)?;
    native.set("pbkdf2Work", bounds::PBKDF2_WORK_MAX)?;
    Ok(native)
}

fn hasher(name: &str) -> Option<Box<dyn DynDigest>> {
    with_hash!(name, Hash => Box::new(Hash::default()) as Box<dyn DynDigest>)
}

/// `{ update(bytes), finish(), copy() }`.
fn hash_object<'js>(ctx: &Ctx<'js>, hash: Box<dyn DynDigest>) -> Result<Object<'js>> {
    let hash = Rc::new(RefCell::new(hash));
    let object = plain::record(ctx)?;
    let (updated, finished, copied) = (Rc::clone(&hash), Rc::clone(&hash), hash);
    let update = move |bytes: TypedArray<'js, u8>| updated.borrow_mut().update(&buffers::read(&bytes));
    object.set("update", Function::new(ctx.clone(), update)?)?;
    // Not borrowed while the answer is made: nothing of the engine runs under a borrow of ours.
    let finish = move |ctx: Ctx<'js>| {
        let digest = finished.borrow_mut().finalize_reset().into_vec();
        ArrayBuffer::new(ctx, digest)
    };
    object.set("finish", Function::new(ctx.clone(), finish)?)?;
    let copy = move |ctx: Ctx<'js>| {
        let copy = copied.borrow().box_clone();
        hash_object(&ctx, copy)
    };
    object.set("copy", Function::new(ctx.clone(), copy)?)?;
    Ok(object)
}

/// `{ update(bytes), finish() }` (RFC 2104), or nothing where there is no such hash.
fn hmac<'js>(ctx: Ctx<'js>, name: String, key: TypedArray<'js, u8>) -> Result<Option<Object<'js>>> {
    let (Some(mut inner), Some(mut outer)) = (hasher(&name), hasher(&name)) else { return Ok(None) };
    // SHA-384 and SHA-512, and what is cut from it, work on blocks of 128 bytes, the others on 64.
    let block =
        if matches!(name.as_str(), "sha384" | "sha512" | "sha512-224" | "sha512-256") { 128 } else { 64 };
    let mut key = buffers::read(&key);
    if key.len() > block {
        inner.update(&key);
        key = inner.finalize_reset().into_vec();
    }
    key.resize(block, 0);
    let padded = |with: u8| key.iter().map(|byte| byte ^ with).collect::<Vec<u8>>();
    inner.update(&padded(0x36));
    outer.update(&padded(0x5c));
    let object = plain::record(&ctx)?;
    let state = Rc::new(RefCell::new((inner, outer)));
    let updated = Rc::clone(&state);
    let update = move |bytes: TypedArray<'js, u8>| updated.borrow_mut().0.update(&buffers::read(&bytes));
    object.set("update", Function::new(ctx.clone(), update)?)?;
    let finish = move |ctx: Ctx<'js>| {
        let digest = {
            let (inner, outer) = &mut *state.borrow_mut();
            outer.update(&inner.finalize_reset());
            outer.finalize_reset().into_vec()
        };
        ArrayBuffer::new(ctx, digest)
    };
    object.set("finish", Function::new(ctx, finish)?)?;
    Ok(Some(object))
}

/// RFC 8018; nothing where there is no such hash, or it would take too long.
fn pbkdf2<'js>(
    ctx: Ctx<'js>,
    name: String,
    password: TypedArray<'js, u8>,
    salt: TypedArray<'js, u8>,
    iterations: u32,
    len: usize,
) -> Result<Option<ArrayBuffer<'js>>> {
    let Some(hash_len) = hasher(&name).map(|hash| hash.output_size()) else { return Ok(None) };
    let blocks = u64::try_from(len.div_ceil(hash_len)).unwrap_or(u64::MAX);
    let salt_len = u64::try_from(salt.len()).unwrap_or(u64::MAX);
    if iterations == 0 || bounds::pbkdf2_work(blocks, iterations, salt_len) > bounds::PBKDF2_WORK_MAX {
        return Ok(None);
    }
    let mut derived = vec![0; len];
    let (password, salt) = (buffers::read(&password), buffers::read(&salt));
    let made = with_hash!(name.as_str(), Hash => pbkdf2::pbkdf2_hmac::<Hash>(&password, &salt, iterations, &mut derived));
    made.map(|()| ArrayBuffer::new(ctx, derived)).transpose()
}

/// RFC 5869; nothing where there is no such hash, or `len` is more than it gives.
fn hkdf<'js>(
    ctx: Ctx<'js>,
    name: String,
    secret: TypedArray<'js, u8>,
    salt: TypedArray<'js, u8>,
    info: TypedArray<'js, u8>,
    len: usize,
) -> Result<Option<ArrayBuffer<'js>>> {
    let [secret, salt, info] = [secret, salt, info].map(|bytes| buffers::read(&bytes));
    let Some(hash_len) = hasher(&name).map(|hash| hash.output_size()) else { return Ok(None) };
    if len > 255 * hash_len {
        return Ok(None);
    }
    let mut derived = vec![0; len];
    let made = with_hash!(name.as_str(), Hash => Hkdf::<Hash>::new(Some(&salt), &secret).expand(&info, &mut derived));
    made.and_then(std::result::Result::ok).map(|()| ArrayBuffer::new(ctx, derived)).transpose()
}

/// Fills bytes with random ones.
fn random<'js>(ctx: Ctx<'js>, bytes: TypedArray<'js, u8>) -> Result<()> {
    let mut made = vec![0; bytes.len()];
    if let Err(error) = getrandom::fill(&mut made) {
        return Err(Exception::throw_internal(&ctx, &format!("the system gives no random bytes: {error}")));
    }
    buffers::write(&ctx, &bytes, &made)
}
