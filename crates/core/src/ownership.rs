//! Who may write a cell: claims, releases and purges of its owner record (design 4.1). Keeps INV-OWN-1 (an epoch has at
//! most one claimant), INV-OWN-2 (epochs never decrease) and INV-REC-1 (no claim before the dead session's log is
//! recovered).

mod claim;
mod effect;
mod event;
mod forced;
mod release;
mod state;

pub use claim::Claim;
pub use effect::{ClaimEffect, ClaimFailure, ClaimOutcome, ReleaseEffect, ReleaseOutcome};
pub use event::{ClaimEvent, ReleaseEvent};
pub use forced::{
    FORCED_EPOCH_GAP, ForcedPurge, ForcedPurgeEffect, ForcedPurgeEvent, ForcedPurgeFailure,
    ForcedPurgeOutcome, Sighting,
};
pub use release::Release;
pub use state::{Claimant, Intent, LeaseView, OwnerState, OwnerView, Previous, Protocol, is_session_dead};

#[cfg(test)]
mod tests;
