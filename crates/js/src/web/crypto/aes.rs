//! AES in the modes of Web Crypto: CBC, CTR and GCM with the parameters that it leaves open (a counter of any width, an
//! initialization vector of any length, short tags), and key wrap.

use ::aes::cipher::{
    Array, Block, BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, KeyInit,
    KeyIvInit,
};
use ::aes::{Aes128, Aes192, Aes256};
use aes_kw::AesKw;
use cbc::cipher::block_padding::Pkcs7;
use ghash::GHash;
use ghash::universal_hash::UniversalHash;
use rquickjs::{Ctx, Function, Object, Result};
use subtle::ConstantTimeEq;

use super::{Answer, Input, answer};

const BLOCK_BYTES: usize = 16;
/// RFC 3394: the integrity check value in front of a wrapped key.
const WRAP_BYTES: usize = 8;
/// Blocks of key stream that are made at once, so that the processor's AES units are busy.
const BATCH_BLOCKS: usize = 8;

/// Calls `$function::<Aes…>($arguments)` for the length of the key; `None` for any other length.
macro_rules! with_key {
    ($key:expr, $function:ident($($argument:expr),*)) => {
        match $key.len() {
            16 => $function::<Aes128>($key, $($argument),*),
            24 => $function::<Aes192>($key, $($argument),*),
            32 => $function::<Aes256>($key, $($argument),*),
            _ => None,
        }
    };
}

/// What the modes here want of AES: a block cipher of 16 bytes with a key.
trait Cipher: KeyInit + BlockCipherEncrypt<BlockSize = ghash::universal_hash::consts::U16> {}
impl<C: KeyInit + BlockCipherEncrypt<BlockSize = ghash::universal_hash::consts::U16>> Cipher for C {}

pub(super) fn install<'js>(ctx: &Ctx<'js>, native: &Object<'js>) -> Result<()> {
    native.set("aesCbcEncrypt", Function::new(ctx.clone(), cbc_encrypt)?)?;
    native.set("aesCbcDecrypt", Function::new(ctx.clone(), cbc_decrypt)?)?;
    native.set("aesCtr", Function::new(ctx.clone(), ctr)?)?;
    native.set("aesGcmEncrypt", Function::new(ctx.clone(), gcm_encrypt)?)?;
    native.set("aesGcmDecrypt", Function::new(ctx.clone(), gcm_decrypt)?)?;
    native.set("aesWrap", Function::new(ctx.clone(), wrap)?)?;
    native.set("aesUnwrap", Function::new(ctx.clone(), unwrap)?)?;
    Ok(())
}

fn cbc_encrypt(key: Input, iv: Input, data: Input) -> Answer {
    let (key, iv, data) = (&*key, &*iv, &*data);
    answer(match key.len() {
        16 => cbc::Encryptor::<Aes128>::new_from_slices(key, iv)
            .ok()
            .map(|mode| mode.encrypt_padded_vec::<Pkcs7>(data)),
        24 => cbc::Encryptor::<Aes192>::new_from_slices(key, iv)
            .ok()
            .map(|mode| mode.encrypt_padded_vec::<Pkcs7>(data)),
        32 => cbc::Encryptor::<Aes256>::new_from_slices(key, iv)
            .ok()
            .map(|mode| mode.encrypt_padded_vec::<Pkcs7>(data)),
        _ => None,
    })
}

fn cbc_decrypt(key: Input, iv: Input, data: Input) -> Answer {
    let (key, iv, data) = (&*key, &*iv, &*data);
    answer(match key.len() {
        16 => cbc::Decryptor::<Aes128>::new_from_slices(key, iv).ok()?.decrypt_padded_vec::<Pkcs7>(data).ok(),
        24 => cbc::Decryptor::<Aes192>::new_from_slices(key, iv).ok()?.decrypt_padded_vec::<Pkcs7>(data).ok(),
        32 => cbc::Decryptor::<Aes256>::new_from_slices(key, iv).ok()?.decrypt_padded_vec::<Pkcs7>(data).ok(),
        _ => None,
    })
}

/// Encrypts or decrypts; the rightmost `counter_bits` (1 to 128) of the counter block count, and must not come back to
/// where they began.
fn ctr(key: Input, counter: Input, counter_bits: u32, data: Input) -> Answer {
    let start = u128::from_be_bytes((*counter).try_into().ok()?);
    answer(with_key!(&*key, ctr_with(start, counter_bits, &data)))
}

fn ctr_with<C: Cipher>(key: &[u8], start: u128, counter_bits: u32, data: &[u8]) -> Option<Vec<u8>> {
    if !(1..=128).contains(&counter_bits) {
        return None;
    }
    let blocks = u128::try_from(data.len().div_ceil(BLOCK_BYTES)).ok()?;
    if counter_bits < 128 && blocks > 1 << counter_bits {
        return None;
    }
    let cipher = C::new_from_slice(key).ok()?;
    let mut output = data.to_vec();
    apply_key_stream(&cipher, start, counter_bits, &mut output);
    Some(output)
}

fn apply_key_stream<C: Cipher>(cipher: &C, start: u128, counter_bits: u32, data: &mut [u8]) {
    let mask = if counter_bits == 128 { u128::MAX } else { (1 << counter_bits) - 1 };
    let mut counter = start;
    for piece in data.chunks_mut(BATCH_BLOCKS * BLOCK_BYTES) {
        let mut blocks = [Block::<C>::default(); BATCH_BLOCKS];
        for block in &mut blocks {
            *block = Array(counter.to_be_bytes());
            counter = (counter & !mask) | (counter.wrapping_add(1) & mask);
        }
        cipher.encrypt_blocks(&mut blocks);
        for (byte, key) in piece.iter_mut().zip(blocks.iter().flatten()) {
            *byte ^= key;
        }
    }
}

/// The cipher of one message of NIST SP 800-38D: hash key, and the counter block before the first.
struct Gcm<C> {
    cipher: C,
    hash: GHash,
    first: u128,
}

/// NIST SP 800-38D, 7.1: the counter is the last 32 bits.
const GCM_COUNTER_BITS: u32 = 32;
/// The length of a vector that is used as it is; any other is hashed.
const GCM_IV_BYTES: usize = 12;

impl<C: Cipher> Gcm<C> {
    fn new(key: &[u8], iv: &[u8]) -> Option<Self> {
        let cipher = C::new_from_slice(key).ok()?;
        let mut hash_key = Block::<C>::default();
        cipher.encrypt_block(&mut hash_key);
        let hash = GHash::new(&hash_key);
        let first = if iv.len() == GCM_IV_BYTES {
            let mut block = [0; BLOCK_BYTES];
            block[..GCM_IV_BYTES].copy_from_slice(iv);
            block[BLOCK_BYTES - 1] = 1;
            u128::from_be_bytes(block)
        } else {
            u128::from_be_bytes(hashed(hash.clone(), &[], iv))
        };
        Some(Self { cipher, hash, first })
    }

    fn crypt(&self, data: &mut [u8]) {
        let second = (self.first & !0xffff_ffff) | (self.first.wrapping_add(1) & 0xffff_ffff);
        apply_key_stream(&self.cipher, second, GCM_COUNTER_BITS, data);
    }

    fn tag(&self, additional: &[u8], encrypted: &[u8]) -> [u8; BLOCK_BYTES] {
        let mut tag = hashed(self.hash.clone(), additional, encrypted);
        apply_key_stream(&self.cipher, self.first, GCM_COUNTER_BITS, &mut tag);
        tag
    }
}

/// GHASH of both, each padded to whole blocks, and of their lengths in bits.
fn hashed(mut hash: GHash, additional: &[u8], data: &[u8]) -> [u8; BLOCK_BYTES] {
    hash.update_padded(additional);
    hash.update_padded(data);
    let bits = |bytes: &[u8]| u64::try_from(bytes.len()).expect("a length fits 64 bits") * 8;
    let lengths = (u128::from(bits(additional)) << 64) | u128::from(bits(data));
    hash.update(&[Array(lengths.to_be_bytes())]);
    hash.finalize().0
}

fn gcm_encrypt(key: Input, iv: Input, additional: Input, tag_len: usize, data: Input) -> Answer {
    answer(with_key!(&*key, gcm_seal(&iv, &additional, tag_len, &data)))
}

fn gcm_seal<C: Cipher>(
    key: &[u8],
    iv: &[u8],
    additional: &[u8],
    tag_len: usize,
    data: &[u8],
) -> Option<Vec<u8>> {
    let gcm = Gcm::<C>::new(key, iv)?;
    let mut output = data.to_vec();
    gcm.crypt(&mut output);
    let tag = gcm.tag(additional, &output);
    output.extend_from_slice(tag.get(..tag_len)?);
    Some(output)
}

fn gcm_decrypt(key: Input, iv: Input, additional: Input, tag_len: usize, data: Input) -> Answer {
    answer(with_key!(&*key, gcm_open(&iv, &additional, tag_len, &data)))
}

fn gcm_open<C: Cipher>(
    key: &[u8],
    iv: &[u8],
    additional: &[u8],
    tag_len: usize,
    data: &[u8],
) -> Option<Vec<u8>> {
    let gcm = Gcm::<C>::new(key, iv)?;
    let (encrypted, given) = data.split_at_checked(data.len().checked_sub(tag_len)?)?;
    let tag = gcm.tag(additional, encrypted);
    if !bool::from(tag.get(..tag_len)?.ct_eq(given)) {
        return None;
    }
    let mut output = encrypted.to_vec();
    gcm.crypt(&mut output);
    Some(output)
}

fn wrap(key: Input, data: Input) -> Answer {
    answer(with_key!(&*key, wrap_with(&data)))
}

fn wrap_with<C: Cipher>(key: &[u8], data: &[u8]) -> Option<Vec<u8>> {
    let mut output = vec![0; data.len() + WRAP_BYTES];
    AesKw::<C>::new_from_slice(key).ok()?.wrap_key(data, &mut output).ok()?;
    Some(output)
}

fn unwrap(key: Input, data: Input) -> Answer {
    answer(with_key!(&*key, unwrap_with(&data)))
}

fn unwrap_with<C: KeyInit + BlockCipherDecrypt<BlockSize = ghash::universal_hash::consts::U16>>(
    key: &[u8],
    data: &[u8],
) -> Option<Vec<u8>> {
    let mut output = vec![0; data.len().checked_sub(WRAP_BYTES)?];
    AesKw::<C>::new_from_slice(key).ok()?.unwrap_key(data, &mut output).ok()?;
    Some(output)
}
