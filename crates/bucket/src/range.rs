//! Arithmetic of byte ranges and body hashes that several stores share.

use std::ops::Range;

use md5::{Digest, Md5};

use crate::{BucketError, ByteRange, ErrorKind, Version};

impl ByteRange {
    /// The bytes that this range means in an object of `object_len` bytes: never empty, inside the object.
    ///
    /// # Errors
    /// `RangeNotSatisfiable` when the range begins at or past the end; `Invalid` for a range of length 0.
    pub fn resolve(
        self,
        operation: &'static str,
        key: &str,
        object_len: u64,
    ) -> Result<Range<u64>, BucketError> {
        let (start, end) = match self {
            Self::Span { len: 0, .. } | Self::Suffix { len: 0 } => {
                let detail = "a range of length 0 was asked for";
                return Err(BucketError::new(operation, key, ErrorKind::Invalid, detail));
            }
            Self::Span { offset, len } => (offset, offset.saturating_add(len).min(object_len)),
            Self::From { offset } => (offset, object_len),
            Self::Suffix { len } => (object_len.saturating_sub(len), object_len),
        };
        if start >= object_len {
            let detail = format!("the range {self:?} begins at or past the end of {object_len} bytes");
            return Err(BucketError::new(operation, key, ErrorKind::RangeNotSatisfiable, detail));
        }
        Ok(start..end)
    }
}

/// The version of a body in the stores of this crate: the MD5 in lower-case hex, as S3 spells an etag.
pub(crate) fn version_of(body: &[u8]) -> Version {
    version_of_digest(Md5::digest(body).into())
}

/// As [`version_of`], of a digest taken in pieces.
pub(crate) fn version_of_digest(digest: [u8; 16]) -> Version {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(32);
    for byte in digest {
        text.push(char::from(HEX[usize::from(byte >> 4)]));
        text.push(char::from(HEX[usize::from(byte & 15)]));
    }
    Version::new(text)
}

/// Longest key in bytes, as S3 has it.
pub const KEY_LEN_MAX: usize = 1024;

/// Refuses keys that no store takes.
pub(crate) fn check_key(operation: &'static str, key: &str) -> Result<(), BucketError> {
    let detail = match key.len() {
        0 => "the key is empty".to_owned(),
        len if len > KEY_LEN_MAX => format!("the key is {len} bytes long; the limit is {KEY_LEN_MAX}"),
        _ => return Ok(()),
    };
    Err(BucketError::new(operation, key, ErrorKind::Invalid, detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_at_the_end() {
        let resolve = |range: ByteRange, len| range.resolve("get_range", "k", len).map_err(|e| e.kind);
        assert_eq!(resolve(ByteRange::Span { offset: 3, len: 4 }, 10), Ok(3..7));
        assert_eq!(resolve(ByteRange::Span { offset: 8, len: u64::MAX }, 10), Ok(8..10));
        assert_eq!(resolve(ByteRange::From { offset: 9 }, 10), Ok(9..10));
        assert_eq!(resolve(ByteRange::Suffix { len: 4 }, 10), Ok(6..10));
        assert_eq!(resolve(ByteRange::Suffix { len: 40 }, 10), Ok(0..10));
        for past in [ByteRange::From { offset: 10 }, ByteRange::Span { offset: 11, len: 1 }] {
            assert_eq!(resolve(past, 10), Err(ErrorKind::RangeNotSatisfiable));
        }
        assert_eq!(resolve(ByteRange::Suffix { len: 1 }, 0), Err(ErrorKind::RangeNotSatisfiable));
        assert_eq!(resolve(ByteRange::Span { offset: 0, len: 0 }, 1), Err(ErrorKind::Invalid));
    }

    #[test]
    fn a_version_is_the_md5_in_hex() {
        assert_eq!(version_of(b"").as_str(), "d41d8cd98f00b204e9800998ecf8427e");
    }
}
