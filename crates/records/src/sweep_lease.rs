//! The sweep's lease, `log/sweep.json`: which session looks after the logs of dead ones. Advisory: it saves work, and no
//! promise rests on it. Written by whoever takes or renews it, by compare-and-swap.

use holdfast_types::{Millis, NodeName, SessionId, WriteId};
use serde::{Deserialize, Serialize};

use crate::{Record, RecordVersion, hex};

/// Who sweeps, until when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepLease {
    /// Format version.
    pub version: RecordVersion,
    /// Unique to this write.
    #[serde(with = "hex::write_id")]
    pub write_id: WriteId,
    /// The node.
    #[serde(with = "hex::node_name")]
    pub node: NodeName,
    /// Its session.
    #[serde(with = "hex::session_id")]
    pub session: SessionId,
    /// When it ends, wall clock, milliseconds since the Unix epoch.
    #[serde(with = "hex::millis")]
    pub expires_ms: Millis,
}

impl Record for SweepLease {
    const KIND: &'static str = "sweep lease";
    const VERSION: RecordVersion = RecordVersion { major: 1, minor: 0 };
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: &str = include_str!("../golden/sweep_lease-1.0.json");

    #[test]
    fn the_golden_record_decodes_and_encodes_to_itself() {
        let record = SweepLease::decode(GOLDEN.trim().as_bytes()).expect("golden");
        assert_eq!(record.expires_ms, Millis::new(1_700_000_090_000));
        assert_eq!(String::from_utf8(record.encode()).expect("utf-8"), GOLDEN.trim());
    }
}
