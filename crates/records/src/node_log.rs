//! The node-log record, `log/<node>/<session>.json`: which followers hold the session's acknowledged frames. Written by
//! that session and by whoever recovers it, by compare-and-swap. Keeps INV-LOG-1, INV-REC-1 and INV-REC-2.

use holdfast_types::{FollowerName, Incarnation, LogEpoch, LogOffset, Millis, NodeName, SessionId, WriteId};
use serde::{Deserialize, Serialize};

use crate::{Record, RecordVersion, hex};

/// The log of one session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLogRecord {
    /// Format version.
    pub version: RecordVersion,
    /// Unique to this write.
    #[serde(with = "hex::write_id")]
    pub write_id: WriteId,
    /// The node.
    #[serde(with = "hex::node_name")]
    pub node: NodeName,
    /// The session whose log it is.
    #[serde(with = "hex::session_id")]
    pub session: SessionId,
    /// Who may write it next.
    pub state: NodeLogState,
    /// The newest ensemble.
    pub ensemble: EnsembleRecord,
    /// Whether the newest ensemble holds every acknowledged frame that the bucket lacks.
    pub active: bool,
    /// While the newest ensemble is not active: the one that still holds them. None: the bucket holds all.
    pub prior: Option<EnsembleRecord>,
    /// The recovery under way, in state `recovering`.
    pub recovery: Option<RecoveryRecord>,
    /// In state `sealed`: a person declared frames lost.
    #[serde(default)]
    pub loss_declared: bool,
    /// Every frame below is in its cell's prefix; from here on the session's bundles follow each other, as far as they go.
    /// None: there are none.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "hex::log_offset_or_none")]
    pub bundles_from: Option<LogOffset>,
}

/// Who may write the record next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeLogState {
    /// The session.
    Open,
    /// Whoever recovers the session; the session never again.
    Recovering,
    /// Nobody: every acknowledged frame is in its cell's prefix, or was declared lost.
    Sealed,
}

/// The followers of one log epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnsembleRecord {
    /// The log epoch.
    #[serde(with = "hex::log_epoch")]
    pub log_epoch: LogEpoch,
    /// Its members; none: proofs ride the bucket.
    pub members: Vec<MemberRecord>,
}

/// One member: a follower's name alone says nothing, its disk does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberRecord {
    /// The follower.
    #[serde(with = "hex::follower_name")]
    pub follower: FollowerName,
    /// Its disk.
    #[serde(with = "hex::incarnation")]
    pub incarnation: Incarnation,
}

/// A recovery under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryRecord {
    /// The session that recovers; an operator's tool has one too.
    #[serde(with = "hex::session_id")]
    pub claimant: SessionId,
    /// The node whose lease tells whether that session lives. None: a tool, or a release that did not say.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "hex::optional_node_name")]
    pub claimant_node: Option<NodeName>,
    /// When it last showed progress, wall clock, milliseconds since the Unix epoch.
    #[serde(with = "hex::millis")]
    pub heartbeat_ms: Millis,
    /// Every frame below this offset is in its cell's prefix.
    #[serde(with = "hex::log_offset")]
    pub done_below: LogOffset,
    /// Why it cannot go on, for people; empty while it can.
    #[serde(default)]
    pub blocked: String,
}

impl Record for NodeLogRecord {
    const KIND: &'static str = "node log";
    const VERSION: RecordVersion = RecordVersion { major: 1, minor: 2 };
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: &str = include_str!("../golden/node_log-1.0.json");
    const GOLDEN_WITH_BUNDLES: &str = include_str!("../golden/node_log-1.1.json");
    const GOLDEN_WITH_A_NODE: &str = include_str!("../golden/node_log-1.2.json");

    #[test]
    fn the_golden_record_decodes_and_encodes_to_itself() {
        let record = NodeLogRecord::decode(GOLDEN.trim().as_bytes()).expect("golden");
        assert_eq!(record.state, NodeLogState::Recovering);
        assert_eq!(record.prior.as_ref().map(|prior| prior.log_epoch), Some(LogEpoch::new(2)));
        assert_eq!(record.bundles_from, None);
        assert_eq!(String::from_utf8(record.encode()).expect("utf-8"), GOLDEN.trim());
        let record = NodeLogRecord::decode(GOLDEN_WITH_BUNDLES.trim().as_bytes()).expect("golden");
        assert_eq!(record.bundles_from, Some(LogOffset::new(29)));
        assert_eq!(record.recovery.as_ref().and_then(|recovery| recovery.claimant_node.as_ref()), None);
        assert_eq!(String::from_utf8(record.encode()).expect("utf-8"), GOLDEN_WITH_BUNDLES.trim());
        let record = NodeLogRecord::decode(GOLDEN_WITH_A_NODE.trim().as_bytes()).expect("golden");
        let node = record.recovery.as_ref().and_then(|recovery| recovery.claimant_node.as_ref());
        assert_eq!(node.map(NodeName::as_str), Some("node-2"));
        assert_eq!(String::from_utf8(record.encode()).expect("utf-8"), GOLDEN_WITH_A_NODE.trim());
    }
}
