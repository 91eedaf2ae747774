//! What the shell must do.

use holdfast_types::{Epoch, NodeName, SessionId};

use super::{OwnerView, Previous, Protocol};
use crate::store::Guard;

/// An effect of a claim. Exactly one is outstanding at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ClaimEffect<V> {
    /// Read the cell's owner record.
    ReadOwner,
    /// Read a node's lease.
    ReadLease {
        /// The node.
        node: NodeName,
    },
    /// See to it that the bucket holds all that the dead session acknowledged (design 5.4).
    RecoverLog {
        /// The node.
        node: NodeName,
        /// Its dead session.
        session: SessionId,
    },
    /// Look whether the bucket holds data of the cell although it has no owner record.
    LookForHistory,
    /// Write the owner record under the guard, and settle an open answer by reading back.
    WriteOwner {
        /// The record to write.
        owner: OwnerView,
        /// The condition.
        guard: Guard<V>,
    },
    /// The claim is over.
    Finish(ClaimOutcome<V>),
}

/// How a claim ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ClaimOutcome<V> {
    /// The claimant owns the epoch (or, for a purge, has purged the cell at it).
    Claimed {
        /// The record, as written.
        owner: OwnerView,
        /// Its version.
        version: V,
        /// What was before.
        previous: Previous,
    },
    /// Another live session owns the cell.
    NotOwner {
        /// The owner.
        node: NodeName,
        /// Its session.
        session: SessionId,
    },
    /// The owner is live and speaks no common protocol version; never a takeover.
    Incompatible {
        /// The owner.
        node: NodeName,
        /// What it speaks.
        theirs: Protocol,
    },
    /// A purge found no cell.
    NothingToPurge,
    /// Given up; the claimant owns nothing that it may use.
    Failed(ClaimFailure),
}

/// Why a claim was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ClaimFailure {
    /// Disposition: retry.
    #[error("the bucket could not be read")]
    Unreadable,
    /// Disposition: retry.
    #[error("the outcome of the claim stayed unknown")]
    Unknown,
    /// Disposition: retry.
    #[error("others claimed the cell again and again")]
    Contended,
    /// Disposition: retry.
    #[error("the log of the cell's dead owner is not recovered yet")]
    RecoveryBlocked,
    /// Disposition: corrupt.
    #[error(
        "the cell has data but its owner record is gone; restore the record from a backup of the bucket, or delete the data"
    )]
    RecordLost,
    /// Disposition: bug.
    #[error("the epoch cannot grow any further")]
    EpochExhausted,
}

/// An effect of a release.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReleaseEffect<V> {
    /// Write the owner record under the guard, and settle an open answer by reading back.
    WriteOwner {
        /// The record to write.
        owner: OwnerView,
        /// The condition.
        guard: Guard<V>,
    },
    /// Read the cell's owner record.
    ReadOwner,
    /// The release is over.
    Finish(ReleaseOutcome),
}

/// How a release ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReleaseOutcome {
    /// The record says released at this epoch.
    Released(Epoch),
    /// Somebody had claimed the cell already; there was nothing to give up.
    AlreadyLost,
    /// Unknown; the lease's end gives the cell up anyway.
    Unknown,
}
