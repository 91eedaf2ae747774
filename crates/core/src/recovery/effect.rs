//! What the shell must do.

use alloc::string::String;
use alloc::vec::Vec;

use holdfast_types::{Incarnation, LogEpoch, LogOffset, NodeName, SessionId};

use crate::log_record::{LogRecord, MemberId};
use crate::store::Guard;

/// An effect of a recovery.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RecoveryEffect<V> {
    /// Read the node-log record.
    ReadRecord,
    /// Write the record under the guard, and settle an open answer by reading back.
    WriteRecord {
        /// The record to write.
        record: LogRecord,
        /// The condition.
        guard: Guard<V>,
        /// Where the record is marked as blocked: the members whose answers would unblock it. For people.
        missing: Vec<MissingMember>,
    },
    /// Seal these followers, all at once, and report each answer.
    SealMembers {
        /// The members.
        members: Vec<MemberId>,
    },
    /// Bring frames from this member into their cells' prefixes. Seals may still be answered meanwhile.
    Gather {
        /// The member.
        member: MemberId,
        /// The first offset.
        start: LogOffset,
        /// The offset after the last.
        end: LogOffset,
        /// False after a declared loss: frames may be missing, and those of a cell that do not continue what its prefix
        /// holds must be left out, for a chain with a gap restores nothing.
        is_whole: bool,
    },
    /// Bring the frames of the session's bundles into their cells' prefixes: of the one that begins with `from`, of the one
    /// that begins where it ends, and so on until one is not there. Reads begin now, not earlier.
    GatherBundles {
        /// What the first begins with.
        from: LogOffset,
        /// As for `Gather`; a bundle that is damaged then counts as lost.
        is_whole: bool,
    },
    /// Look whether a person declared the loss.
    LookForLoss,
    /// Read the lease of another recoverer's node.
    ReadClaimantLease {
        /// The node.
        node: NodeName,
    },
    /// The recovery is over; an unfinished gathering is to be ended.
    Finish(RecoveryOutcome),
}

/// How a recovery ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RecoveryOutcome {
    /// The record says `sealed`: nothing of the session is left to recover.
    Recovered {
        /// The record. Its followers may drop what they hold.
        record: LogRecord,
    },
    /// Another recoverer is at it.
    Busy {
        /// Which.
        claimant: SessionId,
    },
    /// Another recoverer took over.
    Superseded,
    /// No follower can show that it holds everything.
    Blocked {
        /// The log epoch whose members are needed.
        log_epoch: LogEpoch,
        /// All of them: one suffices.
        missing: Vec<MissingMember>,
    },
    /// Given up for now.
    Failed(RecoveryFailure),
}

/// Why a recovery was given up.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum RecoveryFailure {
    /// Disposition: retry.
    #[error("the bucket could not be read")]
    Unreadable,
    /// Disposition: retry.
    #[error("the outcome of a write of the log record stayed unknown")]
    Unknown,
    /// Disposition: retry.
    #[error("others wrote the log record again and again")]
    Contended,
    /// Disposition: retry.
    #[error("the frames could not be brought into the bucket: {0}")]
    Gather(String),
    /// Disposition: corrupt.
    #[error("the log record names another session")]
    OtherSession,
    /// Disposition: corrupt.
    #[error("the log record was deleted during the recovery")]
    RecordGone,
}

/// A member that is no witness.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("`{}` (disk {}): {why}", .member.follower, .member.incarnation)]
pub struct MissingMember {
    /// The member.
    pub member: MemberId,
    /// Why it is none.
    pub why: Missing,
}

/// Why a member is no witness.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Missing {
    /// It did not answer.
    #[error("no answer: {0}")]
    NoAnswer(String),
    /// The follower has another disk now.
    #[error("the follower has another disk now ({found})")]
    OtherDisk {
        /// Which.
        found: Incarnation,
    },
    /// It does not hold the session's log at the epoch.
    #[error("it has the log at epoch {found} only")]
    OlderLogEpoch {
        /// At which epoch.
        found: LogEpoch,
    },
    /// Frames that it had fsynced may be missing.
    #[error("its log is damaged and may lack frames")]
    Incomplete,
    /// It did not seal the log.
    #[error("it did not seal the log")]
    NotSealed,
    /// It is a witness, but its frames cannot be read.
    #[error("its frames could not be read: {0}")]
    TailFailed(String),
}
