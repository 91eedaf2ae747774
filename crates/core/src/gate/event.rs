//! What happened to a cell's writes and outputs.

use holdfast_types::{Millis, Txid};

use crate::ownership::OwnerView;

/// Names an output of one residency of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutputId(pub u64);

/// An event of a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateEvent {
    /// An output wants to leave.
    OutputReady {
        /// Its name; ids grow.
        output: OutputId,
        /// The highest transaction that it may reveal, committed or captured.
        ticket: Txid,
        /// When it gives up, monotonic.
        deadline: Millis,
    },
    /// The capture asked for is done; none when there was nothing to capture.
    Captured {
        /// The transaction made.
        txid: Option<Txid>,
    },
    /// The capture asked for failed: the local database cannot be trusted.
    CaptureFailed,
    /// The transaction's object is in the bucket.
    Uploaded {
        /// The transaction.
        txid: Txid,
    },
    /// The upload failed or was not answered in time; it may have landed.
    UploadFailed {
        /// The transaction.
        txid: Txid,
    },
    /// The owner record was read; the read began after the effect was issued.
    OwnerRead {
        /// The record; none where there is no record.
        owner: Option<OwnerView>,
    },
    /// The owner record could not be read.
    OwnerUnreadable,
    /// Time passed.
    Tick,
    /// The session has lost its lease, or the cell is given up without regard to its outputs.
    Fenced,
}
