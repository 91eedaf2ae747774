//! What the shell must do for a node log.

use alloc::vec::Vec;

use holdfast_types::{LogEpoch, LogOffset};

use super::{EnsembleProof, MemberFailure};
use crate::log_record::{LogRecord, MemberId};
use crate::store::Guard;

/// An effect of a node log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NodeLogEffect<V> {
    /// Write the session's log record under the guard.
    WriteRecord {
        /// The record.
        record: LogRecord,
        /// The condition.
        guard: Guard<V>,
        /// 0 for the first try in a row; later ones pause before.
        attempt: u32,
    },
    /// Read the session's log record.
    ReadRecord {
        /// 0 for the first try in a row; later ones pause before.
        attempt: u32,
    },
    /// Read the followers' leases.
    ReadFollowers,
    /// Connect to the member where that is not done, and have it adopt the epoch. No frame is sent until it did.
    Adopt {
        /// The member.
        member: MemberId,
        /// The epoch.
        log_epoch: LogEpoch,
        /// The first retained offset.
        start: LogOffset,
    },
    /// Send every frame from this one on, those to come as well.
    Stream {
        /// The member.
        member: MemberId,
        /// The epoch that the frames carry.
        log_epoch: LogEpoch,
        /// The first frame.
        from: LogOffset,
    },
    /// Close the link to the member.
    Close {
        /// The member.
        member: MemberId,
    },
    /// Store the frames from `first` on that are not covered as one bundle, or as many of them as one holds, under a key
    /// that `first` names; until it is stored, or nothing is left to store.
    Bundle {
        /// What the bundle begins with. Frames from here to the first retained one are covered.
        first: LogOffset,
        /// The first frame that does not belong into it.
        below: LogOffset,
    },
    /// Delete bundles. Nobody reads them any more.
    DeleteBundles {
        /// What each began with.
        firsts: Vec<LogOffset>,
    },
    /// Over how many rounds a cell's frames gather for one upload.
    Rounds {
        /// How many.
        rounds: u32,
    },
    /// Tell every linked member that frames below are stored in the bucket.
    Release {
        /// The first frame that is retained.
        start: LogOffset,
    },
    /// Every frame below the proof's bound is durable: tell the gates.
    Proved(EnsembleProof),
    /// Whether frames may be appended. When not, gates prove by the bucket, what is retained included.
    Durability {
        /// Whether an ensemble proves.
        by_ensemble: bool,
    },
    /// An ensemble became active; for the log and the metrics.
    Active {
        /// Its epoch.
        log_epoch: LogEpoch,
        /// Its members.
        members: Vec<MemberId>,
    },
    /// A member was given up; for the log and the metrics.
    Evicted {
        /// The member.
        member: MemberId,
        /// Why.
        failure: MemberFailure,
    },
    /// Somebody else has written the record: this session counts as dead. Stop at once.
    Fence,
    /// The log is closed in order.
    Closed,
}
