//! What happened to one session's log at a follower.

use holdfast_types::{LogEpoch, LogOffset};

use super::Ticket;
use crate::log_record::LogRecord;

/// Names an append stream of a session at one process of a follower. Ids grow: a newer stream takes the place of an older.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// Names a call that waits for a seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// What the border found when it looked at the frames of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FramesCheck {
    /// Consecutive offsets, every crc right.
    Sound,
    /// The offsets are not consecutive.
    Scattered,
    /// A frame does not match its crc.
    Corrupt,
}

/// An event of a session's log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FollowerEvent {
    /// The session asks on a stream to adopt a log epoch. Nothing more is read from that stream before it is answered,
    /// unless the answer is not a refusal and still on its way to the disk.
    AdoptAsked {
        /// The stream.
        stream: StreamId,
        /// The epoch.
        log_epoch: LogEpoch,
        /// The first offset that the session retains.
        start: LogOffset,
        /// Whether the follower takes no new log epochs.
        is_draining: bool,
    },
    /// The log record was read; the read began after the effect that asked for it.
    RecordRead {
        /// The stream that waits for it.
        stream: StreamId,
        /// The record; none where there is none.
        record: Option<LogRecord>,
    },
    /// The log record could not be read.
    RecordUnreadable {
        /// The stream that waits for it.
        stream: StreamId,
    },
    /// Frames arrived, both ends included.
    FramesArrived {
        /// The stream.
        stream: StreamId,
        /// The epoch that they are meant for.
        log_epoch: LogEpoch,
        /// The first offset.
        first: LogOffset,
        /// The last offset.
        last: LogOffset,
        /// How they look.
        check: FramesCheck,
        /// Whether the disk and the session's share have room for them.
        has_room: bool,
    },
    /// The session says that everything below is in the bucket.
    ReleaseAsked {
        /// The stream.
        stream: StreamId,
        /// The first offset that it retains.
        start: LogOffset,
    },
    /// The stream has ended.
    StreamEnded {
        /// The stream.
        stream: StreamId,
    },
    /// Somebody wants the log sealed.
    SealAsked {
        /// The call that waits.
        call: CallId,
    },
    /// Every entry up to this one is fsynced.
    Persisted {
        /// The entry.
        upto: Ticket,
    },
    /// Frames that were fsynced may be missing.
    DamageFound,
    /// The log record says `sealed`, which is final.
    RecordSealed,
}
