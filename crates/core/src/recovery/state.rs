//! What a recovery knows of itself and of a follower.

use holdfast_types::{Incarnation, LogEpoch, LogOffset, NodeName, SessionId};

/// A recovery that shows no progress for this long may be taken over, in milliseconds, whoever is at it: a tool has no
/// lease, and a process that lives may still do nothing. One whose lease is dead is taken over at once.
pub const RECOVERY_SILENCE_MS: u64 = 30_000;
/// Progress is written into the record at most this often, in milliseconds: six times before anybody takes over.
pub const HEARTBEAT_INTERVAL_MS: u64 = 5_000;

/// Who recovers what.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Recoverer {
    /// The session that recovers; a tool makes one for itself. It runs one recovery of a log at a time.
    pub claimant: SessionId,
    /// The node whose lease that session holds; none of a tool, which has no lease.
    pub claimant_node: Option<NodeName>,
    /// The dead session's node.
    pub node: NodeName,
    /// The dead session.
    pub session: SessionId,
    /// How far two machines' clocks may differ, in milliseconds.
    pub clock_skew_max_ms: u64,
}

/// What a follower answers to a seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Holdings {
    /// Its disk.
    pub incarnation: Incarnation,
    /// The newest log epoch of the session that it adopted; 0 for none.
    pub log_epoch: LogEpoch,
    /// The first offset that it holds; everything below is in the bucket.
    pub start: LogOffset,
    /// The offset after the last that it holds.
    pub end: LogOffset,
    /// Whether it knows that it holds all that it ever fsynced from `start` on.
    pub is_complete: bool,
    /// Whether it refuses appends of the session from now on.
    pub is_sealed: bool,
}
