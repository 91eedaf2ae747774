//! A waker's lease on one shard of the alarm index, `wake/waker-<shard>.json`. Advisory: it shares work out, and no promise
//! rests on it. Written by whoever takes, renews or gives it up, and by a waker that wishes for it, by compare-and-swap.

use holdfast_types::{Millis, SessionId, WakerName, WriteId};
use serde::{Deserialize, Serialize};

use crate::{Record, RecordVersion, hex};

/// Who looks after a shard, until when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakerLease {
    /// Format version.
    pub version: RecordVersion,
    /// Unique to this write.
    #[serde(with = "hex::write_id")]
    pub write_id: WriteId,
    /// The waker.
    #[serde(with = "hex::waker_name")]
    pub waker: WakerName,
    /// Its session.
    #[serde(with = "hex::session_id")]
    pub session: SessionId,
    /// When it ends, wall clock, milliseconds since the Unix epoch. 0: given up in order.
    #[serde(with = "hex::millis")]
    pub expires_ms: Millis,
    /// Another waker that has less than its share and asks for this one.
    pub wish: Option<ShardWish>,
}

/// Who asks for a shard, until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardWish {
    /// The session that asks.
    #[serde(with = "hex::session_id")]
    pub session: SessionId,
    /// When the wish ends, wall clock, milliseconds since the Unix epoch.
    #[serde(with = "hex::millis")]
    pub expires_ms: Millis,
}

impl Record for WakerLease {
    const KIND: &'static str = "waker lease";
    const VERSION: RecordVersion = RecordVersion { major: 1, minor: 0 };
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: &str = include_str!("../golden/waker_lease-1.0.json");

    #[test]
    fn the_golden_record_decodes_and_encodes_to_itself() {
        let record = WakerLease::decode(GOLDEN.trim().as_bytes()).expect("golden");
        assert_eq!(record.wish.map(|wish| wish.expires_ms), Some(Millis::new(1_700_000_015_000)));
        assert_eq!(String::from_utf8(record.encode()).expect("utf-8"), GOLDEN.trim());
    }
}
