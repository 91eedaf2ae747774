//! A follower's lease, `followers/<follower>.json`: where it is, which disk it has, how much room. Written by that
//! follower only, by compare-and-swap. It helps to find and to choose followers; no promise rests on it.

use holdfast_types::{FollowerName, HostId, Incarnation, Millis, SessionId, WriteId, Zone};
use serde::{Deserialize, Serialize};

use crate::{ProtocolRange, Record, RecordVersion, hex};

/// The lease of one process of one follower.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowerLease {
    /// Format version.
    pub version: RecordVersion,
    /// Unique to this write.
    #[serde(with = "hex::write_id")]
    pub write_id: WriteId,
    /// The follower.
    #[serde(with = "hex::follower_name")]
    pub follower: FollowerName,
    /// The process that holds the lease: what callers pin.
    #[serde(with = "hex::session_id")]
    pub session: SessionId,
    /// The log directory's own id, made with the directory: another disk is another follower.
    #[serde(with = "hex::incarnation")]
    pub incarnation: Incarnation,
    /// Wall clock time, in milliseconds since the Unix epoch, at which the lease ends. 0: given up in order.
    #[serde(with = "hex::millis")]
    pub expires_ms: Millis,
    /// When the process began, wall clock, milliseconds since the Unix epoch.
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
    /// The protocol versions that it speaks.
    pub protocol: ProtocolRange,
    /// Bytes that it can still take.
    pub free_bytes: u64,
    /// Bytes that it holds for sessions.
    pub retained_bytes: u64,
    /// Sessions that append now.
    pub sessions: u64,
    /// Takes no new session; owners move their ensembles away.
    pub draining: bool,
}

impl Record for FollowerLease {
    const KIND: &'static str = "follower lease";
    const VERSION: RecordVersion = RecordVersion { major: 1, minor: 0 };
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: &str = include_str!("../golden/follower_lease-1.0.json");

    #[test]
    fn the_golden_record_decodes_and_encodes_to_itself() {
        let record = FollowerLease::decode(GOLDEN.trim().as_bytes()).expect("golden");
        assert_eq!(record.free_bytes, 1_000_000);
        assert_eq!(String::from_utf8(record.encode()).expect("utf-8"), GOLDEN.trim());
    }
}
