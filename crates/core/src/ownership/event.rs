//! What happened.

use holdfast_types::Millis;

use super::{LeaseView, OwnerView};
use crate::store::Answer;

/// An event of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ClaimEvent<V> {
    /// The owner record was read.
    OwnerRead {
        /// The record and its version; none where there is no record.
        owner: Option<(OwnerView, V)>,
    },
    /// The lease of the node that was asked for was read.
    LeaseRead {
        /// The lease; none where there is no record.
        lease: Option<LeaseView>,
        /// The wall clock before the read began: an answer that comes late, or that a stopped process looks at late,
        /// must not make a lease look dead that was renewed meanwhile.
        wall_now: Millis,
    },
    /// Whether there is data of a cell that has no owner record.
    HistoryLookedFor {
        /// There is.
        is_there: bool,
    },
    /// A record could not be read within the caller's patience.
    ReadFailed,
    /// The dead session's log holds nothing that the bucket lacks.
    LogRecovered,
    /// The dead session's log cannot be recovered now.
    LogBlocked,
    /// The claim's conditional write was answered.
    ClaimAnswered(Answer<V>),
}

/// An event of a release.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReleaseEvent<V> {
    /// The conditional write was answered.
    Answered(Answer<V>),
    /// The owner record was read.
    OwnerRead {
        /// The record and its version.
        owner: Option<(OwnerView, V)>,
    },
    /// The owner record could not be read.
    ReadFailed,
}
