//! What of a cell's history is retired, `cells/<cell>/ltx/retired.json`. Written by the owner of an epoch, by compare-and-swap,
//! after a read of the owner record that named it. What it does not keep of the epochs up to `by` is read by no restore any
//! more: whoever wants to may delete it, however late. INV-GC-1 rests on it.

use holdfast_types::{Epoch, Millis, Txid, WriteId};
use serde::{Deserialize, Serialize};

use crate::{Record, RecordVersion, hex};

/// Which history is retired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retired {
    /// Format version.
    pub version: RecordVersion,
    /// Unique to this write.
    #[serde(with = "hex::write_id")]
    pub write_id: WriteId,
    /// The epoch whose owner wrote it. No restore looks for an opener below.
    #[serde(with = "hex::epoch")]
    pub by: Epoch,
    /// The snapshot that restores begin with; none where they begin with an empty database.
    pub start: Option<SnapshotRecord>,
    /// The epochs before `by` that restores read, oldest first. Others are retired.
    pub epochs: Vec<KeptRecord>,
    /// When the mark was made, in milliseconds since 1970: what it retires stays until `--history-retention` has passed.
    #[serde(with = "hex::millis")]
    pub marked_ms: Millis,
    /// Whether everything that it does not keep was deleted.
    pub swept: bool,
}

/// A snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotRecord {
    /// The epoch that wrote it.
    #[serde(with = "hex::epoch")]
    pub epoch: Epoch,
    /// Its last transaction. Files of the epoch that end there or before are retired.
    #[serde(with = "hex::txid")]
    pub txid: Txid,
    /// Its length in bytes.
    pub len: u64,
}

/// An epoch that restores read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRecord {
    /// The epoch.
    #[serde(with = "hex::epoch")]
    pub epoch: Epoch,
    /// Its last transaction that counts. Files that end later are retired.
    #[serde(with = "hex::txid")]
    pub upto: Txid,
}

impl Record for Retired {
    const KIND: &'static str = "retired history";
    const VERSION: RecordVersion = RecordVersion { major: 1, minor: 0 };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_golden_records_decode_and_encode_to_themselves() {
        for (golden, len) in [
            (include_str!("../golden/retired-1.0.json"), Some(4_096)),
            (include_str!("../golden/retired-1.0-none.json"), None),
        ] {
            let record = Retired::decode(golden.trim().as_bytes()).expect("golden");
            assert_eq!(record.start.map(|start| start.len), len);
            assert_eq!(String::from_utf8(record.encode()).expect("utf-8"), golden.trim());
        }
    }
}
