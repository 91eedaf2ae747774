//! The record of a multipart upload to an R2 bucket, `r2/<bucket>/u/<key>/<upload>`: written once, and deleted when the upload
//! is over. Which parts the object has that came of it says the object's own record, behind its line.

use holdfast_types::{R2BodyId, WriteId};
use serde::{Deserialize, Serialize};

use crate::{R2HttpMetadata, Record, RecordVersion, hex};

/// A multipart upload that is not over: what the object will have beside its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct R2Upload {
    /// Format version.
    pub version: RecordVersion,
    /// Random, and told to nobody: the etags of the upload's parts are signed with it.
    #[serde(with = "hex::write_id")]
    pub secret: WriteId,
    /// What HTTP is to be told.
    #[serde(default, skip_serializing_if = "R2HttpMetadata::is_empty")]
    pub http: R2HttpMetadata,
    /// Names and values of the application, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub custom: Vec<(String, String)>,
    /// As the writer named it; none: `Standard`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<String>,
}

impl Record for R2Upload {
    const KIND: &'static str = "R2 upload";
    const VERSION: RecordVersion = RecordVersion { major: 1, minor: 0 };
}

impl R2Upload {
    /// A new one.
    #[must_use]
    pub fn new(
        secret: WriteId,
        http: R2HttpMetadata,
        custom: Vec<(String, String)>,
        storage_class: Option<String>,
    ) -> Self {
        Self { version: Self::VERSION, secret, http, custom, storage_class }
    }
}

/// A part of an object, in the list behind its record's line: `["<id>",<bytes>]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct R2Part(
    /// Its id: it lies at `r2/<bucket>/m/<key>/<upload>/<id>`.
    #[serde(with = "hex::r2_body_id")]
    pub R2BodyId,
    /// Bytes.
    pub u64,
);

impl R2Part {
    /// The list.
    ///
    /// # Panics
    /// Never: ids and numbers have a spelling.
    #[must_use]
    pub fn encode_list(parts: &[Self]) -> Vec<u8> {
        serde_json::to_vec(parts).expect("ids and numbers have a spelling")
    }

    /// Reads the list back; none for anything else.
    #[must_use]
    pub fn decode_list(bytes: &[u8]) -> Option<Vec<Self>> {
        serde_json::from_slice(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_golden_record_decodes_and_encodes_to_itself() {
        let golden = include_str!("../golden/r2_upload-1.0.json").trim();
        let upload = R2Upload::decode(golden.as_bytes()).expect("golden");
        assert_eq!(upload.secret, WriteId::from_bits(0xaa));
        assert_eq!(String::from_utf8(upload.encode()).expect("utf-8"), golden);
    }

    #[test]
    fn a_list_of_parts_reads_back() {
        let parts = [R2Part(R2BodyId::new(0x18b_cfe5_6800, 3), 5 << 20), R2Part(R2BodyId::new(1, 2), 0)];
        let list = R2Part::encode_list(&parts);
        assert_eq!(
            String::from_utf8(list.clone()).expect("utf-8"),
            r#"[["018bcfe5680000000000000000000003",5242880],["00000000000100000000000000000002",0]]"#
        );
        assert_eq!(R2Part::decode_list(&list).as_deref(), Some(parts.as_slice()));
        for bad in [&b""[..], b"{}", b"[[1,2]]", b"[[\"x\",2]]"] {
            assert_eq!(R2Part::decode_list(bad), None);
        }
    }
}
