//! A wake entry, `wake/entries/<minute>/<cell>/<epoch>-<seq>`: one committed installation of a cell's alarm. It is a hint to
//! open the cell and look; the cell's own database says whether an alarm is armed, and when. Put once by the owner, without
//! a condition: the bytes of one identity are always the same, and no later installation has its key (INV-WAKE-1).

use holdfast_types::{AlarmId, AlarmSeq, AlarmTime, CellName, Epoch};
use serde::{Deserialize, Serialize};

use crate::{Key, Record, RecordVersion, hex};

/// One installation of one alarm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeEntry {
    /// Format version.
    pub version: RecordVersion,
    /// The cell.
    #[serde(with = "hex::cell_name")]
    pub cell: CellName,
    /// When the alarm is due, in milliseconds since the Unix epoch; may be negative.
    #[serde(with = "hex::alarm_time")]
    pub deadline_ms: AlarmTime,
    /// The epoch that installed it.
    #[serde(with = "hex::epoch")]
    pub epoch: Epoch,
    /// Its number in the cell.
    #[serde(with = "hex::alarm_seq")]
    pub seq: AlarmSeq,
}

impl WakeEntry {
    /// The entry of an installation.
    #[must_use]
    pub const fn new(cell: CellName, deadline_ms: AlarmTime, id: AlarmId) -> Self {
        let AlarmId { epoch, seq } = id;
        Self { version: Self::VERSION, cell, deadline_ms, epoch, seq }
    }

    /// Where it stands.
    #[must_use]
    pub fn key(&self) -> Key {
        let id = AlarmId { epoch: self.epoch, seq: self.seq };
        Key::WakeEntry { minute: self.deadline_ms.minute(), cell: self.cell.clone(), id }
    }
}

impl Record for WakeEntry {
    const KIND: &'static str = "wake entry";
    const VERSION: RecordVersion = RecordVersion { major: 1, minor: 0 };
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: &str = include_str!("../golden/wake_entry-1.0.json");

    #[test]
    fn the_golden_record_decodes_and_encodes_to_itself() {
        let record = WakeEntry::decode(GOLDEN.trim().as_bytes()).expect("golden");
        assert_eq!(record.deadline_ms, AlarmTime::new(-1));
        assert_eq!(String::from_utf8(record.encode()).expect("utf-8"), GOLDEN.trim());
        assert_eq!(
            record.key().to_string(),
            "wake/entries/0000000000000000/Room:a%2Fb/0000000000000003-000000000000000c"
        );
    }
}
