//! A node's lease, `nodes/<node>.json`: a session's published liveness, its addresses and its load. Written by that
//! node only, by compare-and-swap, until a waker finds it long over. It protects liveness, never acknowledged writes.

use holdfast_types::{HostId, Incarnation, Millis, NodeName, SessionId, WriteId, Zone};
use serde::{Deserialize, Serialize};

use crate::{Record, RecordVersion, hex};

/// The lease of one session of one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLease {
    /// Format version.
    pub version: RecordVersion,
    /// Unique to this write.
    #[serde(with = "hex::write_id")]
    pub write_id: WriteId,
    /// The node.
    #[serde(with = "hex::node_name")]
    pub node: NodeName,
    /// The session that holds the lease.
    #[serde(with = "hex::session_id")]
    pub session: SessionId,
    /// The data directory's own id: a restart on the same directory replaces its own lease at once.
    #[serde(with = "hex::incarnation")]
    pub incarnation: Incarnation,
    /// Wall clock time, in milliseconds since the Unix epoch, at which the lease ends. 0: given up in order.
    #[serde(with = "hex::millis")]
    pub expires_ms: Millis,
    /// When the session began, wall clock, milliseconds since the Unix epoch.
    #[serde(with = "hex::millis")]
    pub started_ms: Millis,
    /// `host:port` of the internal gRPC listener.
    pub address: String,
    /// The machine.
    #[serde(with = "hex::host_id")]
    pub host: HostId,
    /// The failure zone.
    #[serde(with = "hex::zone")]
    pub zone: Zone,
    /// The protocol versions that the session speaks.
    pub protocol: ProtocolRange,
    /// How busy it is; advisory.
    pub load: NodeLoad,
    /// Takes no new ownership.
    pub draining: bool,
    /// When a waker found it long over, wall clock, milliseconds since the Unix epoch; it is deleted some time later. No session
    /// writes it. Since 1.1.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "hex::millis_or_none")]
    pub tombstone_ms: Option<Millis>,
}

/// Protocol versions, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtocolRange {
    /// Oldest.
    pub min: u32,
    /// Newest.
    pub max: u32,
}

impl ProtocolRange {
    /// Whether two sessions have a version in common.
    #[must_use]
    pub const fn is_compatible_with(self, other: Self) -> bool {
        self.min <= other.max && other.min <= self.max
    }
}

/// A node's load, as of its last renewal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLoad {
    /// Relative capacity; 100 unless configured.
    pub weight: u32,
    /// Cells owned.
    pub cells: u64,
    /// Requests in flight.
    pub requests: u64,
}

impl Record for NodeLease {
    const KIND: &'static str = "node lease";
    const VERSION: RecordVersion = RecordVersion { major: 1, minor: 1 };
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: &str = include_str!("../golden/node_lease-1.0.json");

    #[test]
    fn the_golden_record_decodes_and_encodes_to_itself() {
        let record = NodeLease::decode(GOLDEN.trim().as_bytes()).expect("golden");
        assert_eq!((record.load.cells, record.tombstone_ms), (12, None));
        assert_eq!(String::from_utf8(record.encode()).expect("utf-8"), GOLDEN.trim());
    }

    #[test]
    fn the_golden_tombstone_decodes_and_encodes_to_itself() {
        let golden = include_str!("../golden/node_lease-1.1.json").trim();
        let record = NodeLease::decode(golden.as_bytes()).expect("golden");
        assert_eq!(record.tombstone_ms, Some(Millis::new(1_790_000_900_000)));
        assert_eq!(String::from_utf8(record.encode()).expect("utf-8"), golden);
    }
}
