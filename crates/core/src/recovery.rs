//! Recovery of a dead session's node log (design 5.4): freeze its record, seal the followers, have what only they hold
//! brought into the cells' prefixes, then write `sealed`. Whoever starts it has judged the session dead
//! ([`crate::ownership::is_session_dead`]). Any number of recoverers may race: uploads are idempotent and the record is
//! written by compare-and-swap only. Keeps INV-REC-1 (recovered means that the record says `sealed`), INV-REC-2 (`sealed`
//! means that every acknowledged frame is in its cell's prefix) and INV-REC-3 (only a person declares loss).

mod effect;
mod event;
mod gather;
mod machine;
mod record;
mod seal;
mod standing;
mod state;
mod witness;

pub use effect::{Missing, MissingMember, RecoveryEffect, RecoveryFailure, RecoveryOutcome};
pub use event::{GatherFault, RecoveryEvent};
pub use machine::Recovery;
pub use standing::Standing;
pub use state::{HEARTBEAT_INTERVAL_MS, Holdings, RECOVERY_SILENCE_MS, Recoverer};

#[cfg(test)]
mod tests;
