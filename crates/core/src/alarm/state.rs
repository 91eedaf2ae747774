//! The alarm as the cell's database holds it.

use holdfast_types::{AlarmId, AlarmSeq, AlarmTime, WakeMinute};

/// A committed state of a cell's alarm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AlarmState {
    /// The number of the last installation; it never goes back and is never used twice.
    pub last: AlarmSeq,
    /// What is armed.
    pub armed: Option<Armed>,
}

/// An installation that is neither consumed, replaced, deleted nor given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Armed {
    /// Which installation; the same over takeovers.
    pub id: AlarmId,
    /// When it was asked for.
    pub deadline: AlarmTime,
    /// When it runs next: the deadline, or the time of a retry.
    pub due: AlarmTime,
    /// Runs that ended without success, and those that count of the others.
    pub attempts: u32,
    /// Of them, those that count. One more than `attempts` or further ahead: the last was counted before it began, and has not
    /// ended.
    pub failures: u32,
}

impl Armed {
    /// A fresh installation.
    #[must_use]
    pub const fn new(id: AlarmId, deadline: AlarmTime) -> Self {
        Self { id, deadline, due: deadline, attempts: 0, failures: 0 }
    }

    /// The name of its wake entry.
    #[must_use]
    pub const fn entry(&self) -> EntryName {
        EntryName { minute: self.deadline.minute(), id: self.id }
    }
}

/// The name of a wake entry of the cell. No two installations share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryName {
    /// Below which minute it stands.
    pub minute: WakeMinute,
    /// The installation.
    pub id: AlarmId,
}
