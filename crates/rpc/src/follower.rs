//! What a cellnode, a recoverer and a follower say to each other, as both ends see it: frames, appends and their answers,
//! what is held. A follower's error is never evidence that something is absent.

mod frame;
mod wire;

use async_trait::async_trait;
use futures::stream::BoxStream;
use holdfast_types::{FollowerName, Incarnation, LogEpoch, LogOffset, NodeName, SessionId};

pub use frame::LogFrame;
pub(crate) use wire::{WireFault, frames_from_wire, frames_to_wire};

/// The log of one session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LogName {
    /// The node.
    pub node: NodeName,
    /// Its session.
    pub session: SessionId,
}

impl std::fmt::Display for LogName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "node `{}` session {}", self.node, self.session)
    }
}

/// What a session says on its append stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppendMessage {
    /// First on every stream, and again for every new log epoch.
    Adopt {
        /// The log.
        log: LogName,
        /// The epoch.
        log_epoch: LogEpoch,
        /// The first offset that the session still retains.
        start: LogOffset,
    },
    /// Frames with consecutive offsets.
    Frames {
        /// The epoch that they are meant for.
        log_epoch: LogEpoch,
        /// The frames.
        frames: Vec<LogFrame>,
    },
    /// Frames below are in the bucket. Not answered.
    Release {
        /// The first offset that the session still retains.
        start: LogOffset,
    },
}

/// What a follower answers on an append stream. It speaks of fsynced frames only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppendAnswer {
    /// The epoch is adopted.
    Adopted {
        /// The epoch.
        log_epoch: LogEpoch,
        /// The next offset that is accepted; everything retained below is fsynced.
        next: LogOffset,
    },
    /// Every frame up to `offset` is fsynced.
    Durable {
        /// The epoch.
        log_epoch: LogEpoch,
        /// The last frame.
        offset: LogOffset,
    },
    /// Nothing of a message was appended; the stream ends.
    Refused {
        /// Why.
        reason: AppendRefusal,
        /// In the follower's words.
        detail: String,
    },
}

/// Why a message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AppendRefusal {
    /// The log is sealed. Final.
    Sealed,
    /// The log record does not allow it: another epoch, not a member, another disk.
    NotAMember,
    /// The log record has moved on and names the follower still. Ask with its epoch.
    StaleEpoch {
        /// The epoch that the record names.
        found: LogEpoch,
    },
    /// The log record could not be read. Try again.
    RecordUnreadable,
    /// The frames do not follow what is held; adopt again.
    Gap,
    /// A frame does not match its crc; send it again.
    Corrupt,
    /// The disk is full, or the session holds more than its share.
    Full,
    /// The follower takes no new log epochs.
    Draining,
    /// What was held of this log is damaged; it cannot be a member again.
    Damaged,
    /// A reason of a newer follower. Try another one.
    Other,
}

/// What a follower holds of a log: `start <= offset < end`, all fsynced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLog {
    /// The follower's disk.
    pub incarnation: Incarnation,
    /// The newest adopted log epoch; zero when it never adopted one.
    pub log_epoch: LogEpoch,
    /// The first retained frame.
    pub start: LogOffset,
    /// After the last.
    pub end: LogOffset,
    /// False when fsynced frames may be missing. True makes it a conclusive witness of `log_epoch`.
    pub complete: bool,
    /// Whether it is sealed.
    pub sealed: bool,
    /// Bytes of the retained frames.
    pub bytes: u64,
}

/// What a follower says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowerDescription {
    /// Its name.
    pub follower: FollowerName,
    /// The process.
    pub session: SessionId,
    /// Its disk.
    pub incarnation: Incarnation,
    /// Its release.
    pub version: String,
    /// Bytes that it can still take.
    pub free_bytes: u64,
    /// Bytes that it holds.
    pub retained_bytes: u64,
    /// Whether it takes no new log epochs.
    pub draining: bool,
    /// The logs that it holds.
    pub logs: Vec<(LogName, HeldLog)>,
}

/// Why a follower did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FollowerError {
    /// It cannot now. Disposition: retry.
    #[error("{0}")]
    Unavailable(String),
    /// It will not. Disposition: reject.
    #[error("{0}")]
    Rejected(String),
}

/// What arrives on an append stream: messages until the session ends the stream, or the fault that broke it.
pub type AppendMessages = BoxStream<'static, Result<AppendMessage, String>>;
/// Answers to them. The stream ends when its last answer is out.
pub type AppendAnswers = BoxStream<'static, AppendAnswer>;
/// Frames in order, in pieces.
pub type TailFrames = BoxStream<'static, Result<Vec<LogFrame>, FollowerError>>;

/// A follower behind its internal listener, which has checked who calls.
#[async_trait]
pub trait FollowerHost: Send + Sync + 'static {
    /// Takes the one stream of a session. Each `Adopt` names that session.
    fn append(&self, session: SessionId, messages: AppendMessages) -> AppendAnswers;

    /// Refuses appends of the log for ever, and says what is held.
    async fn seal(&self, log: LogName) -> Result<HeldLog, FollowerError>;

    /// The retained frames from `start` on, to `last` when it is given.
    async fn tail(
        &self,
        log: LogName,
        start: LogOffset,
        last: Option<LogOffset>,
    ) -> Result<TailFrames, FollowerError>;

    /// Forgets a log whose record says `sealed`.
    async fn release(&self, log: LogName) -> Result<(), FollowerError>;

    /// Describes itself.
    async fn describe(&self) -> FollowerDescription;
}
