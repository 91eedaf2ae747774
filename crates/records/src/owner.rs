//! The owner record, `cells/<cell>/own.json`: which session may acknowledge a cell's writes. Written by claimants
//! only, by compare-and-swap, never deleted. Keeps INV-OWN-1 and INV-OWN-2: the epoch only grows.

use holdfast_types::{Epoch, NodeName, SessionId, WriteId};
use serde::{Deserialize, Serialize};

use crate::{Record, RecordVersion, hex};

/// Who owns a cell, or owned it last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerRecord {
    /// Format version.
    pub version: RecordVersion,
    /// Unique to this write.
    #[serde(with = "hex::write_id")]
    pub write_id: WriteId,
    /// The node.
    #[serde(with = "hex::node_name")]
    pub node: NodeName,
    /// The node's session.
    #[serde(with = "hex::session_id")]
    pub session: SessionId,
    /// The fencing number of this ownership.
    #[serde(with = "hex::epoch")]
    pub epoch: Epoch,
    /// What the ownership is.
    pub state: OwnerState,
    /// No restore reads an epoch below this one: set by a purge, carried along by every later claim.
    #[serde(with = "hex::epoch", default)]
    pub floor: Epoch,
}

/// State of an ownership.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnerState {
    /// The session serves the cell, or is about to.
    Owned,
    /// Given up in order: everything acknowledged is in the bucket.
    Released,
    /// Deleted by an operator: all history below the epoch is unreachable.
    Purged,
}

impl Record for OwnerRecord {
    const KIND: &'static str = "owner";
    const VERSION: RecordVersion = RecordVersion { major: 1, minor: 0 };
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: &str = include_str!("../golden/owner-1.0.json");

    #[test]
    fn the_golden_record_decodes_and_encodes_to_itself() {
        let record = OwnerRecord::decode(GOLDEN.trim().as_bytes()).expect("golden");
        assert_eq!(record.epoch, Epoch::new(7));
        assert_eq!(record.state, OwnerState::Owned);
        assert_eq!(String::from_utf8(record.encode()).expect("utf-8"), GOLDEN.trim());
    }

    #[test]
    fn a_field_of_a_newer_minor_is_ignored() {
        let newer = GOLDEN.trim().replacen("\"1.0\"", "\"1.4\",\"colour\":\"red\"", 1);
        assert_eq!(OwnerRecord::decode(newer.as_bytes()).expect("decodes").epoch, Epoch::new(7));
    }
}
