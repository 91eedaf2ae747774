//! What the shell must do for a gate.

use holdfast_types::{Millis, Txid};

use super::{DurabilityProof, OutputId};

/// An effect of a gate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GateEffect {
    /// Capture everything committed and not yet captured as one transaction.
    Capture,
    /// Put captured transactions into the bucket, as one object of level 0.
    Upload {
        /// The first.
        first: Txid,
        /// The last.
        last: Txid,
        /// 0 for the first try; later ones pause before.
        attempt: u32,
    },
    /// Read the cell's owner record.
    ReadOwner {
        /// 0 for the first try; later ones pause before.
        attempt: u32,
    },
    /// Let the output leave.
    Release {
        /// The output.
        output: OutputId,
        /// Why it may.
        clearance: Clearance,
    },
    /// Answer the output's caller that the outcome is unknown.
    Fail {
        /// The output.
        output: OutputId,
        /// Why.
        cause: FailCause,
    },
    /// Drop the local database and leave the cell; the next activation asks the bucket who owns it, once the cell is
    /// settled.
    Discard {
        /// Why.
        cause: FailCause,
    },
    /// Come back with a `Tick` at this monotonic time: an upload is due.
    WakeAt(Millis),
    /// After `Discard`: the bucket holds everything of this epoch that the node log took.
    Settled,
}

/// Why an output may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Clearance {
    /// Everything that it may reveal was covered, and the epoch confirmed, before it was ready.
    NothingUncovered,
    /// A proof covered it while it waited.
    Proved(DurabilityProof),
}

/// Why outputs failed with an unknown outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum FailCause {
    /// The session's lease has ended.
    #[error("the node lost its lease")]
    LeaseLost,
    /// The owner record names another session or epoch.
    #[error("another session owns the cell now")]
    OwnershipLost,
    /// No proof came in time.
    #[error("the write could not be proved durable in time")]
    TimedOut,
    /// The local database could not be captured.
    #[error("the write could not be captured")]
    CaptureFailed,
    /// The cell was given up, and its release did not come to its end.
    #[error("the cell was being given up")]
    Abandoned,
}

impl FailCause {
    /// The name in logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LeaseLost => "lease_lost",
            Self::OwnershipLost => "ownership_lost",
            Self::TimedOut => "timed_out",
            Self::CaptureFailed => "capture_failed",
            Self::Abandoned => "abandoned",
        }
    }
}
