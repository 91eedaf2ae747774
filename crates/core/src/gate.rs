//! The output gate of one cell in one epoch (design 4.5): what is captured and uploaded when, what proves that it is
//! stored, and which output may leave. Keeps INV-OWN-3, INV-ACK-1, INV-ACK-2 and INV-FENCE-1.
//!
//! Each output carries a ticket, the highest transaction that it may reveal. It leaves when a [`DurabilityProof`] covers
//! its ticket, in order, and never after the session's authority has ended. When a proof fails, every waiting output fails
//! as "outcome unknown" and the cell is discarded: the next read must not serve what a caller was told failed. The first
//! output of an epoch waits for one owner read even when nothing is uncovered, so that INV-ACK-2 needs no clock.
//!
//! A captured transaction that the node log took is *logged*: an ensemble may prove it, and its upload may take its time
//! and share an object with others. One that it did not take goes to the bucket at once. What was logged must reach the
//! bucket whatever becomes of the cell: a gate that has failed goes on uploading until then, and only then is the cell
//! settled and may be activated again.

mod effect;
mod event;
mod machine;
mod proof;
mod uploads;
mod waiting;

pub use effect::{Clearance, FailCause, GateEffect};
pub use event::{GateEvent, OutputId};
pub use machine::{Gate, GateOwner};
pub use proof::{DurabilityProof, ProofKind};

#[cfg(test)]
mod tests;
