//! What the shell must do for a lease.

use holdfast_types::{Millis, SessionId, WriteId};

use crate::store::Guard;

/// An effect of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseEffect<V> {
    /// Read the node's lease record.
    Read,
    /// Write the lease record under the guard.
    Write {
        /// Identifies the write.
        write_id: WriteId,
        /// The end to publish, wall clock.
        expires_ms: Millis,
        /// The condition.
        guard: Guard<V>,
        /// How long to wait for an answer.
        deadline_ms: u64,
    },
    /// Come back with `Woke` at this monotonic time.
    WakeAt(Millis),
    /// The session may act until this monotonic time.
    Authority {
        /// Monotonic end.
        until: Millis,
    },
    /// Another data directory holds the name; waiting for its lease to end.
    Waiting {
        /// The holder's session.
        holder: SessionId,
        /// When its lease is dead, wall clock.
        until_wall: Millis,
    },
    /// Stop at once, for good.
    Fence(FenceCause),
}

/// Why a session stopped by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FenceCause {
    /// The published end passed without a renewal.
    Expired,
    /// The lease record is gone.
    RecordMissing,
    /// The lease record is not what this session published.
    RecordMismatch,
    /// The session's log record is not what it wrote: somebody recovers the session, which therefore counts as dead.
    LogTaken,
}

impl FenceCause {
    /// The name in logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Expired => "lease_expired",
            Self::RecordMissing => "lease_record_missing",
            Self::RecordMismatch => "lease_record_mismatch",
            Self::LogTaken => "log_record_taken",
        }
    }
}
