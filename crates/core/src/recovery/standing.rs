//! Where the recovery of a dead session's log stands, for those who wait for it and for those who are told.

use crate::log_record::{LogRecord, LogState};

/// What a log record says of its recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Nobody has begun, or somebody is at it.
    Pending,
    /// Whoever tried last could not go on.
    Blocked,
    /// It has ended.
    Ended,
}

impl Standing {
    /// Of this record; of none where there is none, for then the session may still have to be kept from beginning.
    #[must_use]
    pub fn of(record: Option<&LogRecord>) -> Self {
        let Some(record) = record else { return Self::Pending };
        let is_blocked = record.recovery.as_ref().is_some_and(|mark| mark.is_blocked);
        match record.state {
            LogState::Sealed => Self::Ended,
            LogState::Recovering if is_blocked => Self::Blocked,
            LogState::Open | LogState::Recovering => Self::Pending,
        }
    }
}
