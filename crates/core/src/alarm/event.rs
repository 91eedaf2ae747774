//! What happened to a cell's alarm.

use holdfast_types::{AlarmId, AlarmTime, Millis, Txid};

use super::{AlarmState, EntryName};

/// The clocks when an event happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AlarmNow {
    /// By which alarms are due. May step in either direction.
    pub wall: AlarmTime,
    /// By which pauses are counted.
    pub monotonic: Millis,
}

/// An event of an alarm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AlarmEvent {
    /// A commit changed the alarm. Several changes within one commit are one event.
    Committed {
        /// The state now.
        state: AlarmState,
        /// The transaction that will hold it.
        ticket: Txid,
    },
    /// The wake entry of an installation is in the bucket.
    Published(AlarmId),
    /// Its write failed or was not answered; it may have landed, or land later.
    PublishFailed(AlarmId),
    /// The handler's run has ended; a state that its last commit made was told before.
    Ended(AlarmId, HandlerEnd),
    /// What [`super::AlarmEffect::Count`] asked for is proved.
    Counted(AlarmId),
    /// The output that [`super::AlarmEffect::Prove`] asked for was let go.
    Proved,
    /// The retired record says what was asked, or more.
    RetiredWritten,
    /// Its write failed.
    RetireFailed,
    /// The retired record is by a later epoch: this session is not the owner any more.
    RetiredByAnother,
    /// The entries are deleted.
    Deleted,
    /// Some may still be there.
    DeleteFailed,
    /// Somebody saw this entry in the bucket.
    Hinted(EntryName),
    /// The cell begins no run any more.
    Stopped,
    /// Time passed.
    Tick,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HandlerEnd {
    /// Well. Its last commit consumed the installation, if that was still armed.
    Succeeded,
    /// It threw, or broke a limit.
    Failed,
    /// It was broken off for no fault of its own, for example by a deployment.
    BrokenOff,
    /// It could not begin: nothing of it ran.
    NotBegun,
    /// There is no handler any more.
    NoHandler,
}
