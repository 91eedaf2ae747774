//! The node-log record as the machines see it: shared by the session that writes its log and by whoever recovers it.
//! Keeps the one rule that both sides must agree on: which ensemble holds what was acknowledged and is not in the bucket.

use alloc::vec::Vec;

use holdfast_types::{FollowerName, Incarnation, LogEpoch, LogOffset, Millis, NodeName, SessionId, WriteId};

/// A follower's disk: what an ensemble is made of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId {
    /// The follower's name.
    pub follower: FollowerName,
    /// Its log directory.
    pub incarnation: Incarnation,
}

/// The followers of one log epoch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ensemble {
    /// The log epoch.
    pub log_epoch: LogEpoch,
    /// Its members; none: nothing is acknowledged by an ensemble.
    pub members: Vec<MemberId>,
}

/// Who may write the record next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogState {
    /// The session.
    Open,
    /// Whoever recovers it.
    Recovering,
    /// Nobody.
    Sealed,
}

/// A recovery under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecoveryMark {
    /// Who recovers.
    pub claimant: SessionId,
    /// The node whose session that is, whose lease tells whether it lives. None: an operator's tool, or a release that did
    /// not say.
    pub claimant_node: Option<NodeName>,
    /// Its last progress, wall clock.
    pub heartbeat_ms: Millis,
    /// Every frame below is in its cell's prefix.
    pub done_below: LogOffset,
    /// Whether it could not go on when it last tried.
    pub is_blocked: bool,
}

/// A node-log record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LogRecord {
    /// Unique to the write that made it.
    pub write_id: WriteId,
    /// The node.
    pub node: NodeName,
    /// The session whose log it is.
    pub session: SessionId,
    /// Who may write it next.
    pub state: LogState,
    /// The newest ensemble.
    pub ensemble: Ensemble,
    /// Whether the newest ensemble holds every acknowledged frame that the bucket lacks, bundles included.
    pub active: bool,
    /// While it does not: the ensemble that does.
    pub prior: Option<Ensemble>,
    /// In state `Recovering`.
    pub recovery: Option<RecoveryMark>,
    /// In state `Sealed`: a person declared frames lost.
    pub loss_declared: bool,
    /// Every frame below is in its cell's prefix; from here on bundles follow each other without a gap of the log, as far
    /// as they go. What they hold counts as being in the bucket before it is in the cells' prefixes, so a recovery must
    /// bring it there. None: there are none.
    pub bundles_from: Option<LogOffset>,
}

impl LogRecord {
    /// The ensemble each member of which holds every acknowledged frame that the bucket lacks; none where the bucket
    /// lacks none. While a new ensemble is being set up this is the prior one: what was acknowledged under it is on its
    /// members only.
    #[must_use]
    pub fn witnesses(&self) -> Option<&Ensemble> {
        if self.active { Some(&self.ensemble) } else { self.prior.as_ref() }
    }
}
