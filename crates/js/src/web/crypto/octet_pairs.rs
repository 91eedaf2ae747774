//! Curve25519: Ed25519 signatures (RFC 8032) and X25519 agreement (RFC 7748), and the encodings that both share (RFC
//! 8410). Keys are 32 bytes: a seed or a clamped scalar, and a point.

use curve25519_dalek::MontgomeryPoint;
use curve25519_dalek::edwards::CompressedEdwardsY;
use pkcs8::PrivateKeyInfo;
use pkcs8::spki::der::asn1::{AnyRef, BitStringRef, OctetStringRef};
use pkcs8::spki::der::{Decode, Encode};
use pkcs8::spki::{AlgorithmIdentifier, ObjectIdentifier, SubjectPublicKeyInfo};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use rquickjs::{Ctx, Function, Object, Result};
use subtle::ConstantTimeEq;

use super::{Answer, Input, answer};

const KEY_BYTES: usize = 32;

/// The object identifiers of RFC 8410, 3.
fn identifier_of(algorithm: &str) -> Option<ObjectIdentifier> {
    match algorithm {
        "X25519" => Some(ObjectIdentifier::new_unwrap("1.3.101.110")),
        "Ed25519" => Some(ObjectIdentifier::new_unwrap("1.3.101.112")),
        _ => None,
    }
}

pub(super) fn install<'js>(ctx: &Ctx<'js>, native: &Object<'js>) -> Result<()> {
    native.set("okpPublicOf", Function::new(ctx.clone(), public_of)?)?;
    native.set("okpFromPkcs8", Function::new(ctx.clone(), from_pkcs8)?)?;
    native.set("okpToPkcs8", Function::new(ctx.clone(), to_pkcs8)?)?;
    native.set("okpFromSpki", Function::new(ctx.clone(), from_spki)?)?;
    native.set("okpToSpki", Function::new(ctx.clone(), to_spki)?)?;
    native.set("ed25519Sign", Function::new(ctx.clone(), ed25519_sign)?)?;
    native.set("ed25519Verify", Function::new(ctx.clone(), ed25519_verify)?)?;
    native.set("x25519", Function::new(ctx.clone(), x25519)?)?;
    Ok(())
}

fn key_of(bytes: &[u8]) -> Option<[u8; KEY_BYTES]> {
    bytes.try_into().ok()
}

fn public_of(algorithm: String, private: Input) -> Answer {
    let private = key_of(&private)?;
    answer(match algorithm.as_str() {
        "X25519" => Some(MontgomeryPoint::mul_base_clamped(private).to_bytes().to_vec()),
        "Ed25519" => Some(Ed25519KeyPair::from_seed_unchecked(&private).ok()?.public_key().as_ref().to_vec()),
        _ => None,
    })
}

/// The parameters are absent (RFC 8410, 3), and the key is an octet string in an octet string (7).
fn from_pkcs8(algorithm: String, der: Input) -> Answer {
    let info = PrivateKeyInfo::<AnyRef<'_>, &OctetStringRef, BitStringRef<'_>>::from_der(&der).ok()?;
    if info.algorithm.oid != identifier_of(&algorithm)? || info.algorithm.parameters.is_some() {
        return None;
    }
    let inner = <&OctetStringRef>::from_der(info.private_key.as_bytes()).ok()?;
    answer(key_of(inner.as_bytes()).map(|key| key.to_vec()))
}

fn to_pkcs8(algorithm: String, private: Input) -> Answer {
    let inner = OctetStringRef::new(&private).ok()?.to_der().ok()?;
    let algorithm = AlgorithmIdentifier::<AnyRef<'_>> { oid: identifier_of(&algorithm)?, parameters: None };
    let key = OctetStringRef::new(&inner).ok()?;
    let info = PrivateKeyInfo::<AnyRef<'_>, &OctetStringRef, BitStringRef<'_>>::new(algorithm, key);
    answer(info.to_der().ok())
}

fn from_spki(algorithm: String, der: Input) -> Answer {
    let info = SubjectPublicKeyInfo::<AnyRef<'_>, BitStringRef<'_>>::from_der(&der).ok()?;
    if info.algorithm.oid != identifier_of(&algorithm)? || info.algorithm.parameters.is_some() {
        return None;
    }
    answer(key_of(info.subject_public_key.as_bytes()?).map(|key| key.to_vec()))
}

fn to_spki(algorithm: String, public: Input) -> Answer {
    let algorithm = AlgorithmIdentifier::<AnyRef<'_>> { oid: identifier_of(&algorithm)?, parameters: None };
    let subject_public_key = BitStringRef::from_bytes(&public).ok()?;
    answer(SubjectPublicKeyInfo { algorithm, subject_public_key }.to_der().ok())
}

fn ed25519_sign(private: Input, data: Input) -> Answer {
    let pair = Ed25519KeyPair::from_seed_unchecked(&private).ok()?;
    answer(Some(pair.sign(&data).as_ref().to_vec()))
}

/// A key or a point of the signature of small order is refused (Web Crypto, 22.4): it fits many messages.
fn ed25519_verify(public: Input, data: Input, signature: Input) -> bool {
    let is_sound = |bytes: &[u8]| {
        let point = CompressedEdwardsY::from_slice(bytes).ok().and_then(|point| point.decompress());
        point.is_some_and(|point| !point.is_small_order())
    };
    let Some(commitment) = signature.get(..KEY_BYTES) else { return false };
    is_sound(&public)
        && is_sound(commitment)
        && UnparsedPublicKey::new(&ED25519, &*public).verify(&data, &signature).is_ok()
}

/// `None` for a point of small order, whose secret is the same for every key (RFC 7748, 6.1).
fn x25519(private: Input, public: Input) -> Answer {
    let shared = MontgomeryPoint(key_of(&public)?).mul_clamped(key_of(&private)?).to_bytes();
    if shared.ct_eq(&[0; KEY_BYTES]).into() {
        return None;
    }
    answer(Some(shared.to_vec()))
}
