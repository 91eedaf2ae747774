//! The loss record, `log/<node>/<session>.loss.json`: a person declared that the frames which no follower can show are
//! lost. Created by an operator's command only, never changed, never deleted. Keeps INV-REC-3.

use holdfast_types::{Millis, NodeName, SessionId, WriteId};
use serde::{Deserialize, Serialize};

use crate::{Record, RecordVersion, hex};

/// A loss that a person declared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLoss {
    /// Format version.
    pub version: RecordVersion,
    /// Unique to this write.
    #[serde(with = "hex::write_id")]
    pub write_id: WriteId,
    /// The node.
    #[serde(with = "hex::node_name")]
    pub node: NodeName,
    /// The session whose frames are given up.
    #[serde(with = "hex::session_id")]
    pub session: SessionId,
    /// When, wall clock, milliseconds since the Unix epoch.
    #[serde(with = "hex::millis")]
    pub declared_ms: Millis,
    /// Why, in the operator's words.
    pub reason: String,
}

impl Record for LogLoss {
    const KIND: &'static str = "log loss";
    const VERSION: RecordVersion = RecordVersion { major: 1, minor: 0 };
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: &str = include_str!("../golden/log_loss-1.0.json");

    #[test]
    fn the_golden_record_decodes_and_encodes_to_itself() {
        let record = LogLoss::decode(GOLDEN.trim().as_bytes()).expect("golden");
        assert_eq!(record.reason, "both disks burnt");
        assert_eq!(String::from_utf8(record.encode()).expect("utf-8"), GOLDEN.trim());
    }
}
