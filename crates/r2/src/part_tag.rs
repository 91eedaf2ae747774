//! Etags of parts: all that the store needs to know of a part, signed with the secret of its upload, so that completing an
//! upload of many parts reads none of them, and whoever carries etags around can make up none.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use holdfast_types::{R2BodyId, WriteId};
use sha2::Sha256;

/// Bytes of an id, an MD5 and a signature, each.
const FIELD_LEN: usize = 16;
/// Bytes of all fields but the signature: an id, an MD5, a length.
const FIELDS_LEN: usize = 2 * FIELD_LEN + 8;

/// A part that is in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartTag {
    /// Its id.
    pub(crate) id: R2BodyId,
    /// The MD5 of its bytes.
    pub(crate) md5: [u8; 16],
    /// How many they are.
    pub(crate) len: u64,
}

impl PartTag {
    /// The etag of the part of this number of an upload.
    pub(crate) fn sign(&self, secret: WriteId, number: u32) -> String {
        let mut bytes = Vec::with_capacity(FIELDS_LEN + FIELD_LEN);
        bytes.extend_from_slice(&self.id.bits().to_be_bytes());
        bytes.extend_from_slice(&self.md5);
        bytes.extend_from_slice(&self.len.to_be_bytes());
        bytes.extend_from_slice(&signature(secret, number, &bytes));
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads an etag; none for one that the part of this number of this upload never had.
    pub(crate) fn read(etag: &str, secret: WriteId, number: u32) -> Option<Self> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(etag).ok()?;
        let (fields, signed) = bytes.split_at_checked(FIELDS_LEN)?;
        if signed != signature(secret, number, fields) {
            return None;
        }
        let (id, rest) = fields.split_at(FIELD_LEN);
        let (md5, len) = rest.split_at(FIELD_LEN);
        Some(Self {
            id: R2BodyId::from_bits(u128::from_be_bytes(id.try_into().ok()?)),
            md5: md5.try_into().ok()?,
            len: u64::from_be_bytes(len.try_into().ok()?),
        })
    }
}

fn signature(secret: WriteId, number: u32, fields: &[u8]) -> [u8; FIELD_LEN] {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.to_string().as_bytes()).expect("any length will do");
    mac.update(&number.to_be_bytes());
    mac.update(fields);
    let whole = mac.finalize().into_bytes();
    let mut signature = [0; FIELD_LEN];
    signature.copy_from_slice(&whole[..FIELD_LEN]);
    signature
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_reads_back_for_its_upload_and_number_alone() {
        let tag = PartTag { id: R2BodyId::new(1_700_000_000_000, 7), md5: [9; 16], len: 5 << 20 };
        let (secret, other) = (WriteId::from_bits(1), WriteId::from_bits(2));
        let etag = tag.sign(secret, 3);
        assert_eq!(PartTag::read(&etag, secret, 3), Some(tag));
        assert_eq!(PartTag::read(&etag, secret, 4), None);
        assert_eq!(PartTag::read(&etag, other, 3), None);
        for bad in ["", "x", "!", &etag[1..], &format!("{etag}AA"), &etag.replacen('A', "B", 1)] {
            assert_eq!(PartTag::read(bad, secret, 3), None, "{bad}");
        }
    }
}
