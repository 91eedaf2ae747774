//! What happened to a node log.

use alloc::vec::Vec;

use holdfast_types::{LogEpoch, LogOffset, Millis};

use super::FollowerView;
use crate::log_record::{LogRecord, MemberId};
use crate::store::Answer;

/// An event of a node log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NodeLogEvent<V> {
    /// The followers' leases were read.
    FollowersRead {
        /// All of them, dead ones too.
        followers: Vec<FollowerView>,
        /// The wall clock at the read.
        wall_now: Millis,
    },
    /// A member adopted a log epoch, and fsynced that it did.
    Adopted {
        /// The member.
        member: MemberId,
        /// The epoch.
        log_epoch: LogEpoch,
        /// The next offset that it accepts: it has fsynced all retained frames below.
        next: LogOffset,
    },
    /// A member has fsynced every frame up to and with this one.
    Durable {
        /// The member.
        member: MemberId,
        /// The frame.
        offset: LogOffset,
    },
    /// The link of a member has still to send frames that are retained no more: they are stored in the bucket.
    MemberFellBehind {
        /// The member.
        member: MemberId,
    },
    /// A member can no longer be used on its present link.
    MemberFailed {
        /// The member.
        member: MemberId,
        /// Why.
        failure: MemberFailure,
    },
    /// The record's write was answered.
    RecordAnswered {
        /// The settled answer.
        answer: Answer<V>,
    },
    /// The record was read.
    RecordRead {
        /// The record and its version; none where there is no record.
        record: Option<(LogRecord, V)>,
    },
    /// The record could not be read.
    RecordUnreadable,
    /// Every frame below is in its cell's prefix in the bucket.
    Covered {
        /// The first frame that is not.
        below: LogOffset,
    },
    /// A round of uploads begins.
    Round {
        /// Cells with frames that are retained and not covered.
        cells: u64,
    },
    /// The bundle that was asked for is stored.
    Bundled {
        /// The first frame that is not in it. It holds every frame before that was not covered.
        below: LogOffset,
    },
    /// Everything that was to be bundled is covered.
    NothingToBundle,
    /// Time passed. Wanted every 50 ms or so.
    Tick,
    /// The session ends in order: no more frames will come.
    Closing,
}

impl<V> NodeLogEvent<V> {
    /// Whether the event may change which followers the session wants, or what its record has to keep of those it had. A member
    /// that is lost meanwhile, whatever the event, changes it too. Pauses of followers end at a tick.
    pub(super) const fn may_change_choice(&self) -> bool {
        match self {
            Self::FollowersRead { .. }
            | Self::MemberFailed { .. }
            | Self::RecordAnswered { .. }
            | Self::RecordRead { .. }
            | Self::Covered { .. }
            | Self::Round { .. }
            | Self::Bundled { .. }
            | Self::NothingToBundle
            | Self::Tick
            | Self::Closing => true,
            Self::Adopted { .. }
            | Self::Durable { .. }
            | Self::MemberFellBehind { .. }
            | Self::RecordUnreadable => false,
        }
    }
}

/// Why a member is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemberFailure {
    /// No connection, or it broke.
    Unreachable,
    /// It refused: its disk is full.
    Full,
    /// It refused: it is draining.
    Draining,
    /// It refused: it does not find itself in the record, or cannot read it, or misses frames.
    Refused,
    /// It refused: the record names this newer log epoch by now, and the member with it. It is asked anew, not given up.
    StaleEpoch {
        /// The epoch that the member read.
        found: LogEpoch,
    },
    /// It refused: the session's log is sealed there. Somebody recovers this session.
    Sealed,
    /// It refused: it lost frames.
    Damaged,
    /// It fsyncs too slowly.
    Slow,
}

impl MemberFailure {
    /// The name in logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Full => "full",
            Self::Draining => "draining",
            Self::Refused => "refused",
            Self::StaleEpoch { .. } => "stale_epoch",
            Self::Sealed => "sealed",
            Self::Damaged => "damaged",
            Self::Slow => "slow",
        }
    }
}
