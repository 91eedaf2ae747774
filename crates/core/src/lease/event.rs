//! What happened to a lease.

use holdfast_types::{Incarnation, Millis, SessionId, WriteId};

use super::Now;
use crate::store::Answer;

/// A lease record as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRecord {
    /// Unique to the write.
    pub write_id: WriteId,
    /// The session that holds the lease.
    pub session: SessionId,
    /// The data directory behind it.
    pub incarnation: Incarnation,
    /// Published end, wall clock; 0 when given up in order.
    pub expires_ms: Millis,
}

/// An event of a lease. `jitter` is fresh randomness, spread over the whole range of the type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseEvent<V> {
    /// The time asked for by `WakeAt` has come.
    Woke {
        /// Both clocks.
        now: Now,
        /// Fresh randomness for the write id.
        write_id: WriteId,
    },
    /// The record was read.
    Read {
        /// The record and its version; none where there is no record.
        record: Option<(LeaseRecord, V)>,
        /// Both clocks after the read.
        now: Now,
        /// Fresh randomness for the write id.
        write_id: WriteId,
    },
    /// The record could not be read.
    ReadFailed {
        /// Both clocks.
        now: Now,
        /// Fresh randomness.
        jitter: u8,
    },
    /// The write was answered.
    Written {
        /// The settled answer.
        answer: Answer<V>,
        /// Both clocks after the answer.
        now: Now,
        /// Fresh randomness.
        jitter: u8,
    },
}
