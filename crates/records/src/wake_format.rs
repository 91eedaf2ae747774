//! The format of the alarm index, `wake/format.json`. Created once, by the first program that uses the index. A program that
//! does not know the major version refuses to start: an index that is read in another way than it was written loses alarms.

use holdfast_types::WriteId;
use serde::{Deserialize, Serialize};

use crate::{Record, RecordVersion, hex};

/// How the keys below `wake/` are to be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeFormat {
    /// The format's version.
    pub version: RecordVersion,
    /// Unique to this write.
    #[serde(with = "hex::write_id")]
    pub write_id: WriteId,
    /// Into how many parts the wakers divide the cells; at least 1.
    pub shards: u16,
}

impl Record for WakeFormat {
    const KIND: &'static str = "alarm index format";
    const VERSION: RecordVersion = RecordVersion { major: 1, minor: 0 };
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: &str = include_str!("../golden/wake_format-1.0.json");

    #[test]
    fn the_golden_record_decodes_and_encodes_to_itself() {
        let record = WakeFormat::decode(GOLDEN.trim().as_bytes()).expect("golden");
        assert_eq!(record.shards, 8);
        assert_eq!(String::from_utf8(record.encode()).expect("utf-8"), GOLDEN.trim());
    }

    #[test]
    fn a_newer_format_is_refused_by_name() {
        let error = WakeFormat::decode(br#"{"version":"2.0","rings":3}"#).expect_err("too new");
        assert_eq!(
            error.to_string(),
            "alarm index format record has version 2.x, this program reads up to 1.x: upgrade this program"
        );
    }
}
