//! RSA: signatures (PKCS #1 v1.5 and PSS), OAEP encryption, and key generation. JavaScript keeps a private key as PKCS #8
//! and a public one as SubjectPublicKeyInfo, both as this module wrote them; their numbers travel as big-endian bytes.

use ::rsa::pkcs1::{self, UintRef};
use ::rsa::pkcs8::{DecodePrivateKey, DecodePublicKey, EncodePrivateKey, EncodePublicKey};
use ::rsa::traits::PublicKeyParts;
use ::rsa::{BoxedUint, Oaep, Pkcs1v15Sign, PrivateKey, Pss, PublicKey};
use getrandom::SysRng;
use pkcs8::PrivateKeyInfoRef;
use pkcs8::spki::der::Decode;
use rquickjs::{Ctx, Function, Object, Result, TypedArray};
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};

use super::hash::Hash;
use super::{Answer, Input, answer, bounds};

pub(super) fn install<'js>(ctx: &Ctx<'js>, native: &Object<'js>) -> Result<()> {
    native.set("rsaGenerate", Function::new(ctx.clone(), generate)?)?;
    native.set("rsaPublicOf", Function::new(ctx.clone(), public_of)?)?;
    native.set("rsaFromPkcs8", Function::new(ctx.clone(), from_pkcs8)?)?;
    native.set("rsaFromSpki", Function::new(ctx.clone(), from_spki)?)?;
    native.set("rsaPublicNumbers", Function::new(ctx.clone(), public_numbers)?)?;
    native.set("rsaPrivateNumbers", Function::new(ctx.clone(), private_numbers)?)?;
    native.set("rsaFromPublicNumbers", Function::new(ctx.clone(), from_public_numbers)?)?;
    native.set("rsaFromPrivateNumbers", Function::new(ctx.clone(), from_private_numbers)?)?;
    native.set("rsaSign", Function::new(ctx.clone(), sign)?)?;
    native.set("rsaVerify", Function::new(ctx.clone(), verify)?)?;
    native.set("rsaEncrypt", Function::new(ctx.clone(), encrypt)?)?;
    native.set("rsaDecrypt", Function::new(ctx.clone(), decrypt)?)?;
    native.set("rsaBitsMin", bounds::RSA_BITS_MIN)?;
    native.set("rsaGenerateBitsMax", bounds::RSA_GENERATE_BITS_MAX)?;
    Ok(())
}

fn is_bounded(key: &impl PublicKeyParts) -> bool {
    (bounds::RSA_BITS_MIN..=bounds::RSA_BITS_MAX)
        .contains(&usize::try_from(key.n().bit_width()).unwrap_or(usize::MAX))
}

fn private_key(der: &[u8]) -> Option<PrivateKey> {
    PrivateKey::from_pkcs8_der(der).ok().filter(is_bounded)
}

fn public_key(der: &[u8]) -> Option<PublicKey> {
    PublicKey::from_public_key_der(der).ok().filter(is_bounded)
}

fn private_der(key: &PrivateKey) -> Option<Vec<u8>> {
    key.to_pkcs8_der().ok().map(|document| document.as_bytes().to_vec())
}

fn public_der(key: &PublicKey) -> Option<Vec<u8>> {
    key.to_public_key_der().ok().map(|document| document.as_bytes().to_vec())
}

fn generate(bits: usize, exponent: u32) -> Answer {
    if !(bounds::RSA_BITS_MIN..=bounds::RSA_GENERATE_BITS_MAX).contains(&bits) {
        return None;
    }
    let key = PrivateKey::new_with_exp(&mut SysRng, bits, BoxedUint::from(exponent)).ok()?;
    answer(private_der(&key))
}

fn public_of(private: Input) -> Answer {
    answer(public_der(private_key(&private)?.as_public_key()))
}

fn from_pkcs8(der: Input) -> Answer {
    answer(private_key(&der).as_ref().and_then(private_der))
}

fn from_spki(der: Input) -> Answer {
    answer(public_key(&der).as_ref().and_then(public_der))
}

/// `[n, e]` of a public key.
fn public_numbers<'js>(ctx: Ctx<'js>, public: Input) -> Result<Option<Vec<TypedArray<'js, u8>>>> {
    let Some(key) = public_key(&public) else { return Ok(None) };
    let numbers = [key.n().as_ref(), key.e()].map(BoxedUint::to_be_bytes_trimmed_vartime);
    numbers
        .into_iter()
        .map(|bytes| TypedArray::new(ctx.clone(), bytes.into_vec()))
        .collect::<Result<_>>()
        .map(Some)
}

/// `[n, e, d, p, q, dp, dq, qi]` of a private key.
fn private_numbers<'js>(ctx: Ctx<'js>, private: Input) -> Result<Option<Vec<TypedArray<'js, u8>>>> {
    let numbers = PrivateKeyInfoRef::from_der(&private).ok().and_then(|info| {
        let key = pkcs1::RsaPrivateKey::<UintRef<'_>>::from_der(info.private_key.as_bytes()).ok()?;
        let numbers = [
            key.modulus,
            key.public_exponent,
            key.private_exponent,
            key.prime1,
            key.prime2,
            key.exponent1,
            key.exponent2,
            key.coefficient,
        ];
        Some(numbers.map(|number| number.as_bytes().to_vec()))
    });
    let Some(numbers) = numbers else { return Ok(None) };
    numbers.into_iter().map(|bytes| TypedArray::new(ctx.clone(), bytes)).collect::<Result<_>>().map(Some)
}

/// `None` for more bytes than any key that is taken here has.
fn number(bytes: &[u8]) -> Option<BoxedUint> {
    (bytes.len() <= bounds::RSA_BITS_MAX.div_ceil(8) + 1).then(|| BoxedUint::from_be_slice_vartime(bytes))
}

fn from_public_numbers(modulus: Input, exponent: Input) -> Answer {
    let key = PublicKey::new(number(&modulus)?, number(&exponent)?).ok().filter(is_bounded)?;
    answer(public_der(&key))
}

/// The numbers that follow from these are computed; that they were given right is not looked at.
fn from_private_numbers(modulus: Input, exponent: Input, private: Input, p: Input, q: Input) -> Answer {
    let primes = vec![number(&p)?, number(&q)?];
    let key = PrivateKey::from_components(number(&modulus)?, number(&exponent)?, number(&private)?, primes);
    answer(key.ok().filter(is_bounded).as_ref().and_then(private_der))
}

/// `salt_len`: of PSS, or `None` for PKCS #1 v1.5.
fn sign(private: Input, hash: String, salt_len: Option<usize>, data: Input) -> Answer {
    let (key, hash) = (private_key(&private)?, Hash::parse(&hash)?);
    let digest = hash.digest(&data);
    let rng = &mut SysRng;
    answer(match (salt_len, hash) {
        (_, Hash::Md5) => None,
        (None, _) => key.sign_with_rng(rng, pkcs1v15_of(hash)?, &digest).ok(),
        (Some(len), Hash::Sha1) => key.sign_with_rng(rng, Pss::<Sha1>::new_with_salt(len), &digest).ok(),
        (Some(len), Hash::Sha256) => key.sign_with_rng(rng, Pss::<Sha256>::new_with_salt(len), &digest).ok(),
        (Some(len), Hash::Sha384) => key.sign_with_rng(rng, Pss::<Sha384>::new_with_salt(len), &digest).ok(),
        (Some(len), Hash::Sha512) => key.sign_with_rng(rng, Pss::<Sha512>::new_with_salt(len), &digest).ok(),
    })
}

fn pkcs1v15_of(hash: Hash) -> Option<Pkcs1v15Sign> {
    match hash {
        Hash::Md5 => None,
        Hash::Sha1 => Some(Pkcs1v15Sign::new::<Sha1>()),
        Hash::Sha256 => Some(Pkcs1v15Sign::new::<Sha256>()),
        Hash::Sha384 => Some(Pkcs1v15Sign::new::<Sha384>()),
        Hash::Sha512 => Some(Pkcs1v15Sign::new::<Sha512>()),
    }
}

fn verify(public: Input, hash: String, salt_len: Option<usize>, data: Input, signature: Input) -> bool {
    verified(&public, &hash, salt_len, &data, &signature).is_some()
}

fn verified(public: &[u8], hash: &str, salt_len: Option<usize>, data: &[u8], signature: &[u8]) -> Option<()> {
    let (key, hash) = (public_key(public)?, Hash::parse(hash)?);
    let digest = hash.digest(data);
    match (salt_len, hash) {
        (_, Hash::Md5) => None,
        (None, _) => key.verify(pkcs1v15_of(hash)?, &digest, signature).ok(),
        (Some(len), Hash::Sha1) => key.verify(Pss::<Sha1>::new_with_salt(len), &digest, signature).ok(),
        (Some(len), Hash::Sha256) => key.verify(Pss::<Sha256>::new_with_salt(len), &digest, signature).ok(),
        (Some(len), Hash::Sha384) => key.verify(Pss::<Sha384>::new_with_salt(len), &digest, signature).ok(),
        (Some(len), Hash::Sha512) => key.verify(Pss::<Sha512>::new_with_salt(len), &digest, signature).ok(),
    }
}

fn encrypt(public: Input, hash: String, label: Input, data: Input) -> Answer {
    let (key, label) = (public_key(&public)?, label.to_vec());
    let rng = &mut SysRng;
    answer(match Hash::parse(&hash)? {
        Hash::Md5 => None,
        Hash::Sha1 => key.encrypt(rng, Oaep::<Sha1>::new_with_label(label), &data).ok(),
        Hash::Sha256 => key.encrypt(rng, Oaep::<Sha256>::new_with_label(label), &data).ok(),
        Hash::Sha384 => key.encrypt(rng, Oaep::<Sha384>::new_with_label(label), &data).ok(),
        Hash::Sha512 => key.encrypt(rng, Oaep::<Sha512>::new_with_label(label), &data).ok(),
    })
}

fn decrypt(private: Input, hash: String, label: Input, data: Input) -> Answer {
    let (key, label) = (private_key(&private)?, label.to_vec());
    let rng = &mut SysRng;
    answer(match Hash::parse(&hash)? {
        Hash::Md5 => None,
        Hash::Sha1 => key.decrypt_blinded(rng, Oaep::<Sha1>::new_with_label(label), &data).ok(),
        Hash::Sha256 => key.decrypt_blinded(rng, Oaep::<Sha256>::new_with_label(label), &data).ok(),
        Hash::Sha384 => key.decrypt_blinded(rng, Oaep::<Sha384>::new_with_label(label), &data).ok(),
        Hash::Sha512 => key.decrypt_blinded(rng, Oaep::<Sha512>::new_with_label(label), &data).ok(),
    })
}
