//! What the machines know of records and of themselves.

use holdfast_types::{Epoch, Millis, NodeName, Position, SessionId, WriteId};

/// Protocol versions that a session speaks, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Protocol {
    /// Oldest.
    pub min: u32,
    /// Newest.
    pub max: u32,
}

impl Protocol {
    /// Whether two sessions have a version in common.
    #[must_use]
    pub const fn is_compatible_with(self, other: Self) -> bool {
        self.min <= other.max && other.min <= self.max
    }
}

/// Who claims.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claimant {
    /// The node.
    pub node: NodeName,
    /// Its session, which holds the node's lease.
    pub session: SessionId,
    /// What it speaks.
    pub protocol: Protocol,
    /// How far two machines' clocks may differ, in milliseconds.
    pub clock_skew_max_ms: u64,
}

/// What a claim is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Intent {
    /// To serve the cell.
    Own,
    /// To make all its history unreachable.
    Purge,
}

/// State of an ownership.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OwnerState {
    /// The session serves the cell, or is about to.
    Owned,
    /// Given up in order.
    Released,
    /// Deleted by an operator.
    Purged,
}

/// An owner record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OwnerView {
    /// The node.
    pub node: NodeName,
    /// Its session.
    pub session: SessionId,
    /// The fencing number.
    pub epoch: Epoch,
    /// The state.
    pub state: OwnerState,
    /// No restore reads an epoch below this.
    pub floor: Epoch,
    /// Unique to the write that made the record.
    pub write_id: WriteId,
}

impl OwnerView {
    /// Whether the record says that this session serves the cell at this epoch.
    #[must_use]
    pub fn is_owned_by(&self, node: &NodeName, session: SessionId, epoch: Epoch) -> bool {
        self.state == OwnerState::Owned
            && &self.node == node
            && self.session == session
            && self.epoch == epoch
    }
}

/// A node's lease record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseView {
    /// The session that holds it.
    pub session: SessionId,
    /// When it ends, wall clock.
    pub expires_ms: Millis,
    /// What the session speaks.
    pub protocol: Protocol,
}

impl LeaseView {
    /// Whether a reader with this wall clock must take the lease for dead: only when its end is past by more than two
    /// clocks may differ.
    #[must_use]
    pub fn is_dead(&self, wall_now: Millis, clock_skew_max_ms: u64) -> bool {
        self.expires_ms.plus(clock_skew_max_ms) <= wall_now
    }
}

/// Whether the session that once held a node's lease is dead for a reader of that lease: the record is gone, names
/// another session, or has ended beyond what clocks may differ. `wall_now` was taken before the read began.
#[must_use]
pub fn is_session_dead(
    lease: Option<&LeaseView>,
    session: SessionId,
    wall_now: Millis,
    clock_skew_max_ms: u64,
) -> bool {
    lease.is_none_or(|lease| lease.session != session || lease.is_dead(wall_now, clock_skew_max_ms))
}

/// What the cell was before a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Previous {
    /// It had no record.
    Absent,
    /// Owned by this very session, which let it sleep, and untouched since: a local file that was closed then is all of it.
    Asleep,
    /// Owned by this very session: its local files may be reused.
    LocalWake,
    /// Released.
    Released,
    /// Purged.
    Purged,
    /// Owned by a session that is dead.
    Dead,
}

impl Previous {
    /// Whether the owner before ended without a release. None where that was this very session: then what it found with its
    /// own claim stands.
    #[must_use]
    pub const fn is_orphan(self) -> Option<bool> {
        match self {
            Self::Dead => Some(true),
            Self::Absent | Self::Released | Self::Purged => Some(false),
            Self::Asleep | Self::LocalWake => None,
        }
    }

    /// Whether the local file at `local` is the whole cell, so that the bucket need not be asked: it is the one that was
    /// closed, at `slept`, when the cell fell asleep.
    #[must_use]
    pub fn is_whole(self, slept: Position, local: Option<Position>) -> bool {
        self == Self::Asleep && local == Some(slept)
    }
}
