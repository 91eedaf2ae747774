//! Which epochs a restore reads, and up to where (design 4.4). Keeps INV-CHAIN-2 (a superseded epoch's late write changes
//! no later restore) and INV-ACK-1.
//!
//! From the newest epoch below mine that has an opener, down its bases: each predecessor counts exactly up to the base
//! position that its successor opened with. An epoch without an opener never acknowledged anything and is skipped. The
//! newest epoch has no clip yet: its end is confirmed by reading the keys that would come next, because a listing may be
//! stale.

mod machine;

use alloc::vec::Vec;

use holdfast_types::{Epoch, Position, Txid};

pub use machine::Lineage;

/// An opener as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenerView {
    /// The position that the epoch continues; none for an empty database.
    pub base: Option<Position>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineageEvent {
    /// The openers asked for were read, in the order asked.
    OpenersRead(Vec<(Epoch, Option<OpenerView>)>),
    /// The epoch asked for was listed and planned.
    EpochPlanned {
        /// Where its files begin.
        start: SegmentStart,
        /// The last transaction of the epoch that counts: the clip, or the confirmed end. Where the epoch holds nothing
        /// it is the base's transaction, or 0.
        end: Txid,
    },
}

/// Where a segment's files begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentStart {
    /// With a whole-database snapshot: no earlier epoch is needed.
    Snapshot,
    /// After the local file's position: no earlier epoch is needed.
    Local,
    /// Right after the epoch's base.
    Base,
}

/// What the shell must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineageEffect {
    /// Read these epochs' openers.
    ReadOpeners(Vec<Epoch>),
    /// List one epoch's files and plan which to read.
    PlanEpoch(Segment),
    /// The chain is known.
    Finish(Chain),
    /// The chain is broken.
    Fail(LineageError),
}

/// One epoch's part of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The epoch.
    pub epoch: Epoch,
    /// Its first transaction follows this one; 0 when it began empty.
    pub after: Txid,
    /// Its last transaction that counts; none for the newest epoch.
    pub clip: Option<Txid>,
    /// Whether the end must be confirmed by reads of the next keys.
    pub confirm_tail: bool,
    /// Where the local file stands in this epoch, if it does: a start as good as a snapshot when the chain reaches it.
    pub local: Option<Txid>,
}

/// A chain of epochs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The segments to apply, oldest first.
    pub segments: Vec<Segment>,
    /// The restored position, which the next epoch opens with; none for an empty database.
    pub end: Option<Position>,
}

/// Why there is no chain. Disposition: corrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineageError {
    /// An epoch that a later one continues has no opener.
    #[error("epoch {missing} has no opener, but epoch {successor} continues it")]
    MissingOpener {
        /// The epoch.
        missing: Epoch,
        /// Its successor.
        successor: Epoch,
    },
    /// A base does not lie below its epoch.
    #[error("the opener of epoch {epoch} continues epoch {base}, which is not an earlier one")]
    BaseNotEarlier {
        /// The epoch.
        epoch: Epoch,
        /// Its base.
        base: Epoch,
    },
}

#[cfg(test)]
mod tests;
