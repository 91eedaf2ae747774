//! What is obsolete of a cell's wake entries, `wake/retired/<cell>.json`. Written by the cell's owner, by compare-and-swap,
//! once a durability proof covers the state of the alarm that it tells of. Whoever finds an entry that it proves obsolete
//! may delete it, however late: no later installation has the key. INV-WAKE-1 rests on the exempt identity.

use holdfast_types::{AlarmId, AlarmSeq, CellName, Epoch, WriteId};
use serde::{Deserialize, Serialize};

use crate::{Record, RecordVersion, hex};

/// Through which installation a cell's entries are obsolete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeRetired {
    /// Format version.
    pub version: RecordVersion,
    /// Unique to this write.
    #[serde(with = "hex::write_id")]
    pub write_id: WriteId,
    /// The cell.
    #[serde(with = "hex::cell_name")]
    pub cell: CellName,
    /// Every installation up to this one is obsolete, but the armed one. Never goes back.
    pub mark: AlarmIdRecord,
    /// The installation at or below the mark that is armed.
    pub armed: Option<AlarmIdRecord>,
}

/// An installation, as records name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlarmIdRecord {
    /// The epoch that installed it.
    #[serde(with = "hex::epoch")]
    pub epoch: Epoch,
    /// Its number in the cell.
    #[serde(with = "hex::alarm_seq")]
    pub seq: AlarmSeq,
}

impl From<AlarmId> for AlarmIdRecord {
    fn from(id: AlarmId) -> Self {
        let AlarmId { epoch, seq } = id;
        Self { epoch, seq }
    }
}

impl From<AlarmIdRecord> for AlarmId {
    fn from(id: AlarmIdRecord) -> Self {
        let AlarmIdRecord { epoch, seq } = id;
        Self { epoch, seq }
    }
}

impl Record for WakeRetired {
    const KIND: &'static str = "retired alarms";
    const VERSION: RecordVersion = RecordVersion { major: 1, minor: 0 };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_golden_records_decode_and_encode_to_themselves() {
        for (golden, armed) in [
            (include_str!("../golden/wake_retired-1.0.json"), Some(12)),
            (include_str!("../golden/wake_retired-1.0-none.json"), None),
        ] {
            let record = WakeRetired::decode(golden.trim().as_bytes()).expect("golden");
            assert_eq!(record.armed.map(|id| id.seq.get()), armed);
            assert_eq!(String::from_utf8(record.encode()).expect("utf-8"), golden.trim());
        }
    }
}
