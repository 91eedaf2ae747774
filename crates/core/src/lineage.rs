//! Which epochs a restore reads, and up to where (design 4.4). Keeps INV-CHAIN-2 (a superseded epoch's late write changes
//! no later restore) and INV-ACK-1.
//!
//! From the newest epoch below mine that has an opener, down its bases: each predecessor counts exactly up to the base
//! position that its successor opened with. An epoch without an opener never acknowledged anything and is skipped. The
//! newest epoch has no clip yet: its end is confirmed by reading the keys that would come next, because a listing may be
//! stale.
//!
//! What the mark of [`crate::retire`] has given up is never looked at. The mark is read before the walk and again after it:
//! one that changed meanwhile may have let objects disappear that the walk relied on, so the walk begins anew. Therefore
//! neither an old listing nor a history that is half deleted leads to another state than before, and an opener that is lost
//! stays an error: below the mark there is nothing to fall back to.

mod bookmark;
mod machine;
mod past;

use alloc::vec::Vec;

use holdfast_types::{Epoch, Position, Txid};

use crate::retire::{Kept, Mark, SnapshotAt};

pub use bookmark::{Bookmark, BookmarkError};
pub use machine::Lineage;
pub use past::{FileSpan, Past, PastEffect, PastError, PastEvent, PastTarget};

/// An opener as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenerView {
    /// The position that the epoch continues; none for an empty database.
    pub base: Option<Position>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineageEvent {
    /// The mark was read.
    MarkRead(Option<Mark>),
    /// What was planned so far is forgotten.
    Forgotten,
    /// The shell could not do what it was asked to, for another reason than a store that failed: an object is missing.
    Broken,
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
    /// With a whole-database snapshot, or with the first transaction of all: no earlier epoch is needed. The last
    /// transaction and the length of the snapshot, where it is a file of that level.
    Snapshot(Option<(Txid, u64)>),
    /// After the local file's position: no earlier epoch is needed.
    Local,
    /// Right after the epoch's base.
    Base,
}

/// What the shell must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineageEffect {
    /// Read the mark of what is retired.
    ReadMark,
    /// The walk begins anew: forget what was planned.
    Forget,
    /// Read these epochs' openers.
    ReadOpeners(Vec<Epoch>),
    /// List one epoch's files and plan which to read.
    PlanEpoch(Segment),
    /// The chain is known.
    Finish(Chain),
    /// The chain is broken.
    Fail(LineageError),
    /// What was [`LineageEvent::Broken`] is no passing state: it is the shell's error.
    GiveUp,
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
    /// The snapshot that restores of this epoch begin with: it is there, whatever the listing says, and files that end at or
    /// before it may be gone.
    pub snapshot: Option<SnapshotAt>,
}

/// A chain of epochs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The segments to apply, oldest first.
    pub segments: Vec<Segment>,
    /// The restored position, which the next epoch opens with; none for an empty database.
    pub end: Option<Position>,
    /// What restores read of this history; none where the chain was not walked to its start, because a local file lies on it.
    pub kept: Option<Kept>,
    /// The mark that was in force.
    pub mark: Option<Mark>,
}

/// Why there is no chain. Disposition: corrupt, unless said otherwise.
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
    /// The epoch that retired what came before it has no opener, nor has a later one.
    #[error("epoch {by} has retired what came before it, but it has no opener, nor has a later epoch")]
    RetiringOpenerLost {
        /// The epoch.
        by: Epoch,
    },
    /// A later epoch has retired history: this claim is over. Disposition: reread.
    #[error("epoch {by} is in charge of the cell's history meanwhile; come again")]
    Superseded {
        /// The epoch.
        by: Epoch,
    },
    /// The mark changed with every try. Disposition: retry.
    #[error("history was retired again and again while it was planned; come again")]
    Moving,
}

#[cfg(test)]
mod tests;
