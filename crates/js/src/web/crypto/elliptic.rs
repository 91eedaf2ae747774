//! The NIST curves: ECDSA and ECDH over P-256, P-384 and P-521. A private key is its scalar and a public key its
//! uncompressed point, both in bytes of the curve's fixed lengths; that is what JavaScript keeps.

use rquickjs::{Ctx, Exception, Function, Object, Result};

use super::hash::Hash;
use super::{Answer, Input, Output, answer, random_bytes};

/// Random bytes that go into a signature's nonce beside key and digest (RFC 6979, 3.6).
const NONCE_ENTROPY_BYTES: usize = 32;
/// A random scalar is out of range with a chance of at most one in two for P-521's padded bytes, far less elsewhere.
const GENERATE_TRIES_MAX: usize = 256;

/// One curve: the functions below over its types.
macro_rules! curve {
    ($name:ident, $library:ident, $Curve:ident, $scalar_bytes:literal, $top_byte_mask:literal) => {
        mod $name {
            use ecdsa::hazmat::{sign_prehashed_rfc6979, verify_prehashed};
            use $library::elliptic_curve::sec1::ToSec1Point;
            use $library::pkcs8::{DecodePrivateKey, DecodePublicKey, EncodePrivateKey, EncodePublicKey};
            use $library::{PublicKey, SecretKey, $Curve as Curve};

            pub(super) const SCALAR_BYTES: usize = $scalar_bytes;
            pub(super) const TOP_BYTE_MASK: u8 = $top_byte_mask;

            fn secret(scalar: &[u8]) -> Option<SecretKey> {
                (scalar.len() == SCALAR_BYTES).then(|| SecretKey::from_slice(scalar).ok()).flatten()
            }

            fn point(public: &PublicKey) -> Vec<u8> {
                public.to_sec1_point(false).as_bytes().to_vec()
            }

            pub(super) fn is_scalar(scalar: &[u8]) -> Option<Vec<u8>> {
                secret(scalar).map(|_| scalar.to_vec())
            }

            pub(super) fn public_of(scalar: &[u8]) -> Option<Vec<u8>> {
                secret(scalar).map(|secret| point(&secret.public_key()))
            }

            pub(super) fn import_point(bytes: &[u8]) -> Option<Vec<u8>> {
                PublicKey::from_sec1_bytes(bytes).ok().map(|public| point(&public))
            }

            pub(super) fn from_pkcs8(der: &[u8]) -> Option<Vec<u8>> {
                SecretKey::from_pkcs8_der(der).ok().map(|secret| secret.to_bytes().to_vec())
            }

            pub(super) fn to_pkcs8(scalar: &[u8]) -> Option<Vec<u8>> {
                secret(scalar)?.to_pkcs8_der().ok().map(|document| document.as_bytes().to_vec())
            }

            pub(super) fn from_spki(der: &[u8]) -> Option<Vec<u8>> {
                PublicKey::from_public_key_der(der).ok().map(|public| point(&public))
            }

            pub(super) fn to_spki(bytes: &[u8]) -> Option<Vec<u8>> {
                let public = PublicKey::from_sec1_bytes(bytes).ok()?;
                public.to_public_key_der().ok().map(|document| document.as_bytes().to_vec())
            }

            pub(super) fn sign(scalar: &[u8], digest: &[u8], entropy: &[u8]) -> Option<Vec<u8>> {
                let scalar = secret(scalar)?.to_nonzero_scalar();
                let (signature, _) = sign_prehashed_rfc6979::<Curve, sha2::Sha512>(&scalar, digest, entropy);
                Some(signature.to_bytes().to_vec())
            }

            pub(super) fn verify(bytes: &[u8], digest: &[u8], signature: &[u8]) -> Option<()> {
                let public = PublicKey::from_sec1_bytes(bytes).ok()?;
                let signature = ecdsa::Signature::<Curve>::from_slice(signature).ok()?;
                verify_prehashed(&public.to_projective(), digest, &signature).ok()
            }

            pub(super) fn agree(scalar: &[u8], bytes: &[u8]) -> Option<Vec<u8>> {
                let public = PublicKey::from_sec1_bytes(bytes).ok()?;
                Some(secret(scalar)?.diffie_hellman(&public).raw_secret_bytes().to_vec())
            }
        }
    };
}

curve!(p256_curve, p256, NistP256, 32, 0xff);
curve!(p384_curve, p384, NistP384, 48, 0xff);
curve!(p521_curve, p521, NistP521, 66, 0x01);

/// Calls a function of the curve of that name; `None` for any other name.
macro_rules! on_curve {
    ($curve:expr, $function:ident($($argument:expr),*)) => {
        match $curve.as_str() {
            "P-256" => p256_curve::$function($($argument),*),
            "P-384" => p384_curve::$function($($argument),*),
            "P-521" => p521_curve::$function($($argument),*),
            _ => None,
        }
    };
}

pub(super) fn install<'js>(ctx: &Ctx<'js>, native: &Object<'js>) -> Result<()> {
    native.set("ecGenerate", Function::new(ctx.clone(), generate)?)?;
    native.set("ecIsScalar", Function::new(ctx.clone(), is_scalar)?)?;
    native.set("ecPublicOf", Function::new(ctx.clone(), public_of)?)?;
    native.set("ecImportPoint", Function::new(ctx.clone(), import_point)?)?;
    native.set("ecFromPkcs8", Function::new(ctx.clone(), from_pkcs8)?)?;
    native.set("ecToPkcs8", Function::new(ctx.clone(), to_pkcs8)?)?;
    native.set("ecFromSpki", Function::new(ctx.clone(), from_spki)?)?;
    native.set("ecToSpki", Function::new(ctx.clone(), to_spki)?)?;
    native.set("ecdsaSign", Function::new(ctx.clone(), sign)?)?;
    native.set("ecdsaVerify", Function::new(ctx.clone(), verify)?)?;
    native.set("ecdh", Function::new(ctx.clone(), agree)?)?;
    Ok(())
}

/// A private key: random bytes until they are a scalar of the curve.
fn generate(ctx: Ctx<'_>, curve: String) -> Result<Answer> {
    let (len, mask) = match curve.as_str() {
        "P-256" => (p256_curve::SCALAR_BYTES, p256_curve::TOP_BYTE_MASK),
        "P-384" => (p384_curve::SCALAR_BYTES, p384_curve::TOP_BYTE_MASK),
        "P-521" => (p521_curve::SCALAR_BYTES, p521_curve::TOP_BYTE_MASK),
        _ => return Ok(None),
    };
    for _ in 0..GENERATE_TRIES_MAX {
        let mut scalar = random_bytes(&ctx, len)?;
        scalar[0] &= mask;
        if let Some(scalar) = on_curve!(curve, is_scalar(&scalar)) {
            return Ok(Some(Output(scalar)));
        }
    }
    Err(Exception::throw_internal(&ctx, "the system's random bytes are never a key"))
}

fn is_scalar(curve: String, scalar: Input) -> bool {
    on_curve!(curve, is_scalar(&scalar)).is_some()
}

fn public_of(curve: String, scalar: Input) -> Answer {
    answer(on_curve!(curve, public_of(&scalar)))
}

/// The uncompressed form of a point in either form of SEC 1; `None` where it is not on the curve.
fn import_point(curve: String, bytes: Input) -> Answer {
    answer(on_curve!(curve, import_point(&bytes)))
}

fn from_pkcs8(curve: String, der: Input) -> Answer {
    answer(on_curve!(curve, from_pkcs8(&der)))
}

fn to_pkcs8(curve: String, scalar: Input) -> Answer {
    answer(on_curve!(curve, to_pkcs8(&scalar)))
}

fn from_spki(curve: String, der: Input) -> Answer {
    answer(on_curve!(curve, from_spki(&der)))
}

fn to_spki(curve: String, point: Input) -> Answer {
    answer(on_curve!(curve, to_spki(&point)))
}

/// `r` and `s`, each of the curve's length (IEEE P1363).
fn sign(ctx: Ctx<'_>, curve: String, scalar: Input, hash: String, data: Input) -> Result<Answer> {
    let Some(hash) = Hash::parse(&hash) else { return Ok(None) };
    let entropy = random_bytes(&ctx, NONCE_ENTROPY_BYTES)?;
    Ok(answer(on_curve!(curve, sign(&scalar, &hash.digest(&data), &entropy))))
}

fn verify(curve: String, point: Input, hash: String, data: Input, signature: Input) -> bool {
    let Some(hash) = Hash::parse(&hash) else { return false };
    on_curve!(curve, verify(&point, &hash.digest(&data), &signature)).is_some()
}

/// The shared secret: the x-coordinate (RFC 6090, 4).
fn agree(curve: String, scalar: Input, point: Input) -> Answer {
    answer(on_curve!(curve, agree(&scalar, &point)))
}
