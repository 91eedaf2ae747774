//! What a node log knows of its session and of the followers.

use holdfast_types::{HostId, Millis, NodeName, SessionId, Zone};

use crate::log_record::MemberId;

/// Whose log it is, and where that session runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeLogConfig {
    /// The node.
    pub node: NodeName,
    /// The session.
    pub session: SessionId,
    /// Its machine: a follower there would die with it.
    pub host: HostId,
    /// Its zone.
    pub zone: Zone,
    /// Followers on the session's own machine are taken too. Then nothing survives the machine.
    pub own_host_allowed: bool,
    /// How far two machines' clocks may differ, in milliseconds.
    pub clock_skew_max_ms: u64,
}

/// A follower as its lease describes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FollowerView {
    /// Its name and disk.
    pub member: MemberId,
    /// Its machine.
    pub host: HostId,
    /// Its zone.
    pub zone: Zone,
    /// Bytes that it can still take.
    pub free_bytes: u64,
    /// Sessions that append to it.
    pub sessions: u64,
    /// Whether it wants to leave.
    pub draining: bool,
    /// When its lease ends, wall clock.
    pub expires_ms: Millis,
}

/// How much a session may retain in memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RetentionLimits {
    /// Beyond: what is retained goes to the bucket at once instead of at its pace.
    pub upload_bytes: u64,
    /// Beyond: no new write starts.
    pub hold_bytes: u64,
}

/// What the retained bytes ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pressure {
    /// Nothing.
    None,
    /// Upload at once.
    Upload,
    /// Upload at once, and let writes wait.
    Hold,
}

impl RetentionLimits {
    /// What a session that retains `bytes` must do.
    #[must_use]
    pub const fn pressure(&self, bytes: u64) -> Pressure {
        if bytes > self.hold_bytes {
            Pressure::Hold
        } else if bytes > self.upload_bytes {
            Pressure::Upload
        } else {
            Pressure::None
        }
    }
}
