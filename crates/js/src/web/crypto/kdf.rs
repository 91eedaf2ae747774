//! Key derivation from secrets: HKDF (RFC 5869) and PBKDF2 (RFC 8018).

use hkdf::Hkdf;
use rquickjs::{Ctx, Function, Object, Result};
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};

use super::hash::Hash;
use super::{Answer, Input, answer, bounds};

/// RFC 5869, 2.3: at most so many blocks of the hash.
const HKDF_BLOCKS_MAX: usize = 255;

pub(super) fn install<'js>(ctx: &Ctx<'js>, native: &Object<'js>) -> Result<()> {
    native.set("hkdf", Function::new(ctx.clone(), derive_hkdf)?)?;
    native.set("pbkdf2", Function::new(ctx.clone(), derive_pbkdf2)?)?;
    native.set("pbkdf2Iterations", bounds::PBKDF2_ITERATIONS_MAX)?;
    native.set("pbkdf2Work", bounds::PBKDF2_WORK_MAX)?;
    Ok(())
}

fn derive_hkdf(hash: String, secret: Input, salt: Input, info: Input, len: usize) -> Answer {
    let hash = Hash::parse(&hash)?;
    if len > HKDF_BLOCKS_MAX * hash.output_len() {
        return None;
    }
    let mut derived = vec![0; len];
    let expanded = match hash {
        Hash::Md5 => return None,
        Hash::Sha1 => Hkdf::<Sha1>::new(Some(&salt), &secret).expand(&info, &mut derived),
        Hash::Sha256 => Hkdf::<Sha256>::new(Some(&salt), &secret).expand(&info, &mut derived),
        Hash::Sha384 => Hkdf::<Sha384>::new(Some(&salt), &secret).expand(&info, &mut derived),
        Hash::Sha512 => Hkdf::<Sha512>::new(Some(&salt), &secret).expand(&info, &mut derived),
    };
    answer(expanded.ok().map(|()| derived))
}

fn derive_pbkdf2(hash: String, password: Input, salt: Input, iterations: u32, len: usize) -> Answer {
    let hash = Hash::parse(&hash)?;
    let blocks = u64::try_from(len.div_ceil(hash.output_len())).ok()?;
    let is_bounded = (1..=bounds::PBKDF2_ITERATIONS_MAX).contains(&iterations)
        && bounds::pbkdf2_work(blocks, iterations, u64::try_from(salt.len()).ok()?)
            <= bounds::PBKDF2_WORK_MAX;
    if !is_bounded {
        return None;
    }
    let mut derived = vec![0; len];
    match hash {
        Hash::Md5 => return None,
        Hash::Sha1 => pbkdf2::pbkdf2_hmac::<Sha1>(&password, &salt, iterations, &mut derived),
        Hash::Sha256 => pbkdf2::pbkdf2_hmac::<Sha256>(&password, &salt, iterations, &mut derived),
        Hash::Sha384 => pbkdf2::pbkdf2_hmac::<Sha384>(&password, &salt, iterations, &mut derived),
        Hash::Sha512 => pbkdf2::pbkdf2_hmac::<Sha512>(&password, &salt, iterations, &mut derived),
    }
    answer(Some(derived))
}
