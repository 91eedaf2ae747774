//! Whether cells may be moved to even nodes out, `fleet/rebalance.json`. Written by operators only, by compare-and-swap; absent:
//! they may. Wakers read it before each round.

use holdfast_types::{Millis, WriteId};
use serde::{Deserialize, Serialize};

use crate::{Record, RecordVersion, hex};

/// Paused or not, and by whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RebalanceSwitch {
    /// Format version.
    pub version: RecordVersion,
    /// Unique to this write.
    #[serde(with = "hex::write_id")]
    pub write_id: WriteId,
    /// Nothing is to move.
    pub paused: bool,
    /// Who said so, as they call themselves.
    pub by: String,
    /// When, wall clock, milliseconds since the Unix epoch.
    #[serde(with = "hex::millis")]
    pub at_ms: Millis,
}

impl Record for RebalanceSwitch {
    const KIND: &'static str = "rebalance switch";
    const VERSION: RecordVersion = RecordVersion { major: 1, minor: 0 };
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: &str = include_str!("../golden/rebalance_switch-1.0.json");

    #[test]
    fn the_golden_record_decodes_and_encodes_to_itself() {
        let record = RebalanceSwitch::decode(GOLDEN.trim().as_bytes()).expect("golden");
        assert!(record.paused);
        assert_eq!(record.by, "ada@ops-1");
        assert_eq!(String::from_utf8(record.encode()).expect("utf-8"), GOLDEN.trim());
    }
}
