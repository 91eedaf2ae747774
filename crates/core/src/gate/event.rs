//! What happened to a cell's writes and outputs.

use holdfast_types::{LogOffset, Millis, Txid};

use crate::ensemble::EnsembleProof;
use crate::ownership::OwnerView;

/// Names an output of one residency of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutputId(pub u64);

/// An event of a gate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GateEvent {
    /// An output wants to leave.
    OutputReady {
        /// Its name; ids grow.
        output: OutputId,
        /// The highest transaction that it may reveal, committed or captured.
        ticket: Txid,
        /// When it gives up, monotonic.
        deadline: Millis,
        /// Whether a proof is not enough: the bucket must hold the ticket, as for a release.
        in_bucket: bool,
    },
    /// The capture asked for is done; none when there was nothing to capture.
    Captured {
        /// The transaction made, and its offset where the node log took it.
        captured: Option<(Txid, Option<LogOffset>)>,
        /// How long it is, in bytes: what is to be uploaded, or logged.
        len: u64,
    },
    /// An ensemble proved the frame of a transaction, and with it all before it.
    EnsembleProved {
        /// The proof.
        proof: EnsembleProof,
        /// The frame.
        offset: LogOffset,
        /// The transaction in it.
        txid: Txid,
    },
    /// How long what is logged may wait for its upload.
    PaceChanged {
        /// In times of the pace. 0: not at all, since no ensemble proves, or the node's memory is short. More than one
        /// while the node log bundles.
        rounds: u32,
    },
    /// The capture asked for failed: the local database cannot be trusted.
    CaptureFailed,
    /// The local database failed otherwise. A capture that was asked for is still answered.
    DatabaseFailed,
    /// The object that ends with the transaction is in the bucket.
    Uploaded {
        /// The transaction.
        last: Txid,
    },
    /// Its upload failed or was not answered in time; it may have landed.
    UploadFailed {
        /// The transaction.
        last: Txid,
    },
    /// The owner record was read; the read began after the effect was issued.
    OwnerRead {
        /// The record; none where there is no record.
        owner: Option<OwnerView>,
    },
    /// The owner record could not be read.
    OwnerUnreadable,
    /// Everything captured so far is wanted in the bucket soon, for example for a backup.
    Cover,
    /// The object that holds this transaction is to end with it, and soon: a state of the past is found where objects end.
    Cut {
        /// The transaction: not before what is captured.
        at: Txid,
    },
    /// What outputs from this ticket on may reveal has no wake entry yet: they wait for `Revealed` besides their proofs.
    Withhold {
        /// The first such ticket.
        from: Txid,
    },
    /// Outputs that were withheld may leave with a proof of this ticket.
    Revealed {
        /// The ticket. Those of outputs that were withheld are raised to it.
        through: Txid,
        /// From where on outputs are still withheld.
        from: Option<Txid>,
    },
    /// Time passed.
    Tick,
    /// The session has lost its lease.
    Fenced,
    /// The cell is given up without regard to its outputs; the session goes on.
    Abandoned,
}
