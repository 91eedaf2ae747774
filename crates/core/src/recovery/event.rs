//! What happened.

use alloc::string::String;

use holdfast_types::LogOffset;

use super::Holdings;
use crate::log_record::{LogRecord, MemberId};
use crate::ownership::LeaseView;
use crate::store::Answer;

/// An event of a recovery.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RecoveryEvent<V> {
    /// The record was read.
    RecordRead {
        /// The record and its version; none where there is none.
        record: Option<(LogRecord, V)>,
    },
    /// The record, the loss record or the lease could not be read within the shell's patience.
    ReadFailed,
    /// The conditional write of the record was answered.
    RecordAnswered(Answer<V>),
    /// A member answered a seal.
    MemberSealed {
        /// The member that was asked for.
        member: MemberId,
        /// What the follower under its name holds.
        holdings: Holdings,
    },
    /// A member did not answer, or with an error. That is not evidence of anything.
    MemberUnreachable {
        /// The member that was asked for.
        member: MemberId,
        /// Why, for people.
        reason: String,
    },
    /// Whether a person declared the loss.
    LossLookedFor {
        /// The loss record is there.
        is_declared: bool,
    },
    /// The lease of the other recoverer's node was read.
    ClaimantLeaseRead {
        /// The lease; none where there is none.
        lease: Option<LeaseView>,
    },
    /// Of what was to be gathered, every frame below this offset is in its cell's prefix. Reported now and then, also
    /// without progress.
    Progress {
        /// The offset; of bundles zero, for they are read from their first one again.
        done_below: LogOffset,
    },
    /// Everything that was to be gathered, of a member or of bundles, is in its cell's prefix.
    Gathered,
    /// Gathering ended early.
    GatherFailed(GatherFault),
}

/// Who is to blame for an end of gathering.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GatherFault {
    /// The member: its tail ended early, or had a frame that does not match its crc.
    Member(String),
    /// The bucket, or this machine.
    Here(String),
    /// A bundle is damaged.
    Bundle(String),
}
