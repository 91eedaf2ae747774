//! The record of an object of an R2 bucket, `r2/<bucket>/o/<key>`: one line of JSON, and behind it the object's bytes
//! where they are few. Replaced by compare-and-swap and never deleted: what is deleted leaves a record without an object,
//! so that a late write can be told from a fresh one. The bytes of a larger object lie under a key of their own, which is
//! written first and never again; those of a multipart upload in its parts, whose list stands behind the line.

use holdfast_types::{Millis, R2BodyId, WriteId};
use serde::{Deserialize, Serialize};

use crate::{Record, RecordVersion, hex};

/// What is at a key of an R2 bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct R2Record {
    /// Format version.
    pub version: RecordVersion,
    /// Unique to this write.
    #[serde(with = "hex::write_id")]
    pub write_id: WriteId,
    /// Bodies and multipart uploads that a sweep deletes: no writer may name them any more. Whoever replaces the record carries them on.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "hex::r2_body_ids")]
    pub barred: Vec<R2BodyId>,
    /// The object; none: it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<R2ObjectHead>,
}

/// All of an object but its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct R2ObjectHead {
    /// Its key, as the application knows it.
    pub key: String,
    /// When it was put, in milliseconds since 1970, by the clock of whoever put it.
    #[serde(with = "hex::millis")]
    pub uploaded_ms: Millis,
    /// Bytes.
    pub size: u64,
    /// Unique to this put: what the API calls the object's version.
    #[serde(with = "hex::write_id")]
    pub revision: WriteId,
    /// The MD5 of the bytes in hex; of a multipart upload that of its parts' MD5s, and how many they are: `…-3`.
    pub etag: String,
    /// Other checksums that its writer gave, and that were right.
    #[serde(default, skip_serializing_if = "R2Checksums::is_empty")]
    pub checksums: R2Checksums,
    /// What HTTP is to be told.
    #[serde(default, skip_serializing_if = "R2HttpMetadata::is_empty")]
    pub http: R2HttpMetadata,
    /// Names and values of the application, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub custom: Vec<(String, String)>,
    /// As the writer named it; none: `Standard`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<String>,
    /// Where the bytes are.
    pub body: R2Body,
}

/// Where the bytes of an object are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum R2Body {
    /// Behind the line of the record.
    Inline,
    /// At `r2/<bucket>/b/<key>/<id>`.
    Blob(#[serde(with = "hex::r2_body_id")] R2BodyId),
    /// At `r2/<bucket>/m/<key>/<upload>/…`: the parts of this upload that [`crate::R2Part`]s behind the line of the record name, one
    /// after the other. A release that does not know it refuses the record, and deletes nothing of it.
    Parts(#[serde(with = "hex::r2_body_id")] R2BodyId),
}

impl R2Body {
    /// The id of a body of its own.
    #[must_use]
    pub const fn id(&self) -> Option<R2BodyId> {
        match self {
            Self::Inline | Self::Parts(_) => None,
            Self::Blob(id) => Some(*id),
        }
    }

    /// The multipart upload whose parts it is.
    #[must_use]
    pub const fn upload(&self) -> Option<R2BodyId> {
        match self {
            Self::Inline | Self::Blob(_) => None,
            Self::Parts(upload) => Some(*upload),
        }
    }
}

/// Checksums in hex.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct R2Checksums {
    /// SHA-1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha1: Option<String>,
    /// SHA-256.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// SHA-384.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha384: Option<String>,
    /// SHA-512.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha512: Option<String>,
}

impl R2Checksums {
    /// Whether none was given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What HTTP is to be told with an object, spelled as the API spells it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct R2HttpMetadata {
    /// `Content-Type`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// `Content-Language`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_language: Option<String>,
    /// `Content-Disposition`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_disposition: Option<String>,
    /// `Content-Encoding`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_encoding: Option<String>,
    /// `Cache-Control`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<String>,
    /// `Expires`, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_expiry: Option<i64>,
}

impl R2HttpMetadata {
    /// Whether nothing was given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Record for R2Record {
    const KIND: &'static str = "R2 object";
    const VERSION: RecordVersion = RecordVersion { major: 1, minor: 1 };
}

impl R2Record {
    /// Length in bytes of a record without an object and without barred bodies. No other record is as short, so a listing
    /// tells what was deleted without reading it.
    pub const DELETED_LEN: u64 = 64;

    /// A record of this object, or of its absence.
    #[must_use]
    pub fn new(write_id: WriteId, barred: Vec<R2BodyId>, object: Option<R2ObjectHead>) -> Self {
        Self { version: Self::VERSION, write_id, barred, object }
    }

    /// The line and the bytes behind it.
    #[must_use]
    pub fn encode_with(&self, body: &[u8]) -> Vec<u8> {
        let mut bytes = self.encode();
        bytes.push(b'\n');
        bytes.extend_from_slice(body);
        bytes
    }

    /// Where the line ends and the bytes behind it begin; none where the line is not all here.
    #[must_use]
    pub fn line_len(bytes: &[u8]) -> Option<usize> {
        bytes.iter().position(|byte| *byte == b'\n')
    }
}

/// An application's key as the last segments of a key of the store. Escaped keys sort as the keys do, no two are equal, and
/// what a key begins with, escaped, is what the escaped key begins with. No segment is empty or one of dots, and there is
/// nothing of control characters or spaces, which servers and file systems like to change.
///
/// `=` stands in front of every segment; what sorts up to `!` becomes `!` and two hex digits, `~` and DEL become `~0` and `~1`.
#[must_use]
pub fn escape_r2_key(key: &str) -> String {
    let mut out = String::with_capacity(key.len() + 8);
    out.push('=');
    for c in key.chars() {
        match c {
            '\0'..='!' => out.push_str(&format!("!{:02x}", u32::from(c))),
            '/' => out.push_str("/="),
            '~' => out.push_str("~0"),
            '\u{7f}' => out.push_str("~1"),
            c => out.push(c),
        }
    }
    out
}

/// Reads [`escape_r2_key`] back; none for what it never writes.
#[must_use]
pub fn unescape_r2_key(text: &str) -> Option<String> {
    let mut rest = text.strip_prefix('=')?.chars();
    let mut key = String::with_capacity(text.len());
    while let Some(c) = rest.next() {
        key.push(match c {
            '!' => {
                let (tens, units) = (rest.next()?.to_digit(16)?, rest.next()?.to_digit(16)?);
                char::from_u32(tens * 16 + units)?
            }
            '/' => {
                rest.next().filter(|c| *c == '=')?;
                '/'
            }
            '~' => match rest.next()? {
                '0' => '~',
                '1' => '\u{7f}',
                _ => return None,
            },
            c => c,
        });
    }
    (escape_r2_key(&key) == text).then_some(key)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_golden_records_decode_and_encode_to_themselves() {
        for (golden, size) in [
            (include_str!("../golden/r2_object-1.0.json"), Some(20_000)),
            (include_str!("../golden/r2_object-1.0-inline.json"), Some(2)),
            (include_str!("../golden/r2_object-1.0-deleted.json"), None),
            (include_str!("../golden/r2_object-1.1-parts.json"), Some(10_000_000)),
        ] {
            let record = R2Record::decode(golden.trim().as_bytes()).expect("golden");
            assert_eq!(record.object.as_ref().map(|object| object.size), size);
            assert_eq!(String::from_utf8(record.encode()).expect("utf-8"), golden.trim());
        }
    }

    #[test]
    fn a_record_of_what_was_deleted_has_a_length_of_its_own() {
        let write_id = WriteId::from_bits(7);
        let deleted = R2Record::new(write_id, Vec::new(), None);
        assert_eq!(deleted.encode_with(b"").len() as u64, R2Record::DELETED_LEN);
        let barred = R2Record::new(write_id, vec![R2BodyId::new(1, 2)], None);
        assert!(barred.encode_with(b"").len() as u64 > R2Record::DELETED_LEN);
    }

    #[test]
    fn a_line_ends_where_the_bytes_begin() {
        let record = R2Record::new(WriteId::from_bits(7), Vec::new(), None);
        let bytes = record.encode_with(b"\nx");
        let line = R2Record::line_len(&bytes).expect("there is a line");
        assert_eq!(R2Record::decode(&bytes[..line]).expect("decodes"), record);
        assert_eq!(&bytes[line + 1..], b"\nx");
    }

    #[test]
    fn what_is_never_written_is_not_read() {
        for bad in ["", "a", "=/", "=a/b", "=!", "=!4", "=!41", "=!0g", "=!2F", "=~", "=~2", "= "] {
            assert_eq!(unescape_r2_key(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn escaped_keys_read_back_sort_alike_and_begin_alike(
            left in "(?s)[/.!~\u{7f}\u{0}\u{1f} -0a\u{ffff}é]{0,6}|(?s).{0,12}",
            right in "(?s)[/.!~\u{7f}\u{0}\u{1f} -0a\u{ffff}é]{0,6}|(?s).{0,12}",
        ) {
            let (one, other) = (escape_r2_key(&left), escape_r2_key(&right));
            prop_assert_eq!(unescape_r2_key(&one), Some(left.clone()));
            prop_assert_eq!(left.cmp(&right), one.cmp(&other));
            prop_assert_eq!(left.starts_with(&right), one.starts_with(&other));
            let joined = escape_r2_key(&format!("{left}{right}"));
            prop_assert!(joined.starts_with(&one));
            for segment in one.split('/') {
                prop_assert!(segment.starts_with('='), "{}", one);
                prop_assert!(segment.chars().all(|c| c > ' ' && c != '\u{7f}'), "{}", one);
            }
        }
    }
}
