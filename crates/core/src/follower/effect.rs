//! What the shell must do for one session's log at a follower.

use holdfast_types::{LogEpoch, LogOffset};

use super::{CallId, HeldLog, LogEntry, StreamId, Ticket};

/// An effect of a session's log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FollowerEffect {
    /// Read the session's log record for this stream.
    ReadRecord {
        /// The stream.
        stream: StreamId,
    },
    /// Put the entry into the journal, behind the one before it, and report when it is fsynced.
    Persist {
        /// Its number.
        ticket: Ticket,
        /// What it says. Of frames only those of this range: the others are there already.
        entry: LogEntry,
        /// Whether somebody waits for it. What nobody waits for may share a later fsync.
        is_awaited: bool,
    },
    /// Frames below this offset are not asked for any more.
    DropBelow {
        /// The first offset still retained.
        start: LogOffset,
    },
    /// Answer on the stream that the epoch is adopted.
    AnswerAdopted {
        /// The stream.
        stream: StreamId,
        /// The epoch.
        log_epoch: LogEpoch,
        /// The next offset that is accepted; everything retained below is fsynced.
        next: LogOffset,
    },
    /// Answer on the stream that everything up to `offset` is fsynced.
    AnswerDurable {
        /// The stream.
        stream: StreamId,
        /// The epoch under which the frames were accepted.
        log_epoch: LogEpoch,
        /// The last fsynced offset.
        offset: LogOffset,
    },
    /// Answer on the stream that nothing of the message was appended, and end it.
    Refuse {
        /// The stream.
        stream: StreamId,
        /// Why.
        refusal: Refusal,
    },
    /// Answer the call: the seal is fsynced.
    AnswerSealed {
        /// The call.
        call: CallId,
        /// What is held.
        state: HeldLog,
    },
    /// The session is gone from the disk: drop this machine.
    Forgotten,
}

/// Why a message on a stream was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// Final.
    #[error("the log is sealed")]
    Sealed,
    /// Another epoch, not a member, another disk, or no adoption on this stream.
    #[error("this follower's disk is not a member of that log epoch")]
    NotAMember,
    /// The record has moved on since the session asked, and this disk is a member still. Ask with the epoch of the record.
    #[error("the log record names log epoch {found} by now")]
    StaleEpoch {
        /// The epoch that the record names.
        found: LogEpoch,
    },
    /// Try again.
    #[error("the log record could not be read")]
    RecordUnreadable,
    /// Adopt again.
    #[error("the frames do not follow what is held")]
    Gap,
    /// Send again.
    #[error("a frame does not match its crc")]
    Corrupt,
    /// The disk is full, or the session holds more than its share.
    #[error("no room")]
    Full,
    /// Ask another follower.
    #[error("the follower is draining")]
    Draining,
    /// Final.
    #[error("what was held of this log is damaged")]
    Damaged,
}

impl Refusal {
    /// The name in logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sealed => "sealed",
            Self::NotAMember => "not_a_member",
            Self::StaleEpoch { .. } => "stale_epoch",
            Self::RecordUnreadable => "record_unreadable",
            Self::Gap => "gap",
            Self::Corrupt => "corrupt",
            Self::Full => "full",
            Self::Draining => "draining",
            Self::Damaged => "damaged",
        }
    }
}
