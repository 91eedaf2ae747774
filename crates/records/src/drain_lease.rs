//! The drain's lease, `fleet/drain.json`: which session gives its cells up now, so that one does at a time. Advisory: a session
//! that has waited long enough goes on without it. Written by whoever takes or renews it, by compare-and-swap.

use holdfast_types::{Millis, NodeName, SessionId, WriteId};
use serde::{Deserialize, Serialize};

use crate::{Record, RecordVersion, hex};

/// Who drains, until when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainLease {
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
    /// When it ends, wall clock, milliseconds since the Unix epoch. 0: given up.
    #[serde(with = "hex::millis")]
    pub expires_ms: Millis,
}

impl Record for DrainLease {
    const KIND: &'static str = "drain lease";
    const VERSION: RecordVersion = RecordVersion { major: 1, minor: 0 };
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: &str = include_str!("../golden/drain_lease-1.0.json");

    #[test]
    fn the_golden_record_decodes_and_encodes_to_itself() {
        let record = DrainLease::decode(GOLDEN.trim().as_bytes()).expect("golden");
        assert_eq!(record.expires_ms, Millis::new(1_700_000_005_000));
        assert_eq!(String::from_utf8(record.encode()).expect("utf-8"), GOLDEN.trim());
    }
}
