//! What of a cell's history no restore reads any more, and who may delete it when (design 3.3: `retired.json`).
//!
//! The owner of an epoch writes a *mark*: through which epoch history is settled, with which snapshot a restore begins, and
//! which earlier epochs are read up to where. A mark is written by compare-and-swap, after one read of the owner record that
//! follows everything the mark rests on (the epoch's opener, the snapshot): whoever claims the cell later plans after that
//! read, and so finds both. From then on what the mark does not keep is unreachable for ever. It may be deleted by anybody,
//! at any time, in any order: a paused owner that goes on, or a deletion that lands late, does no harm.
//!
//! A restore reads the mark before and after it plans. It never looks below the mark, so a listing that is old, or half
//! deleted, cannot mislead it. Keeps INV-GC-1.

mod machine;

use alloc::vec::Vec;

use holdfast_types::{Epoch, Millis, Txid, WriteId};

use crate::mutant::{self, Mutant};

pub use machine::{Retire, RetireEffect, RetireEvent, RetireOutcome, RetireOwner};

/// Epochs since the last mark after which another is due: so many openers a cell that only sleeps and wakes piles up.
pub const EPOCHS_MAX: u64 = 16;
/// Most epochs that a mark names. A longer chain waits for its snapshot, which compaction asks for long before.
pub const KEPT_EPOCHS_MAX: usize = 512;

/// A whole-database snapshot that restores begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotAt {
    /// The epoch that wrote it.
    pub epoch: Epoch,
    /// Its last transaction.
    pub txid: Txid,
    /// Its length in bytes.
    pub len: u64,
}

/// An earlier epoch that restores read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeptEpoch {
    /// The epoch.
    pub epoch: Epoch,
    /// Its last transaction that counts.
    pub upto: Txid,
}

/// What restores read of a history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Kept {
    /// What they begin with; none where they begin with an empty database.
    pub start: Option<SnapshotAt>,
    /// The epochs before the newest one, oldest first.
    pub epochs: Vec<KeptEpoch>,
}

/// A mark.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mark {
    /// Unique to the write that made the record.
    pub write_id: WriteId,
    /// The epoch whose owner wrote it, and which has an opener.
    pub by: Epoch,
    /// What is kept of the epochs up to that one.
    pub kept: Kept,
    /// When it was written, by its writer's wall clock.
    pub marked_ms: Millis,
    /// Whether everything that it does not keep was deleted.
    pub is_swept: bool,
}

/// What an object of a cell's history is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryObject {
    /// An epoch's opener.
    Opener,
    /// A file that is no whole-database snapshot, by its last transaction.
    File(Txid),
    /// A whole-database snapshot, by its last transaction.
    Snapshot(Txid),
}

impl Kept {
    /// With what another mark says of the same history: restores begin with the newer snapshot. None where the two do not
    /// belong to one history.
    #[must_use]
    pub fn merged(mut self, other: &Self, by: Epoch) -> Option<Self> {
        let place = |start: &Option<SnapshotAt>| start.map(|at| (at.epoch, at.txid));
        if place(&other.start) > place(&self.start) {
            let start = other.start?;
            let is_known = start.epoch == by
                || self.epochs.iter().any(|kept| kept.epoch == start.epoch && kept.upto >= start.txid);
            if !is_known {
                return None;
            }
            self.start = Some(start);
        }
        if let Some(start) = self.start {
            self.epochs.retain(|kept| kept.epoch >= start.epoch);
        }
        Some(self)
    }
}

impl Mark {
    /// Whether a restore may read the object.
    #[must_use]
    pub fn keeps(&self, epoch: Epoch, object: HistoryObject) -> bool {
        if epoch > self.by {
            return true;
        }
        let upto = if epoch == self.by {
            None
        } else {
            let ignores = mutant::is(Mutant::RetirePredecessors);
            match self.kept.epochs.iter().find(|kept| kept.epoch == epoch) {
                Some(kept) if !ignores => Some(kept.upto),
                _ => return false,
            }
        };
        let start = self.kept.start.filter(|start| start.epoch == epoch).map(|start| start.txid);
        let is_beyond = |txid: Txid| upto.is_some_and(|upto| txid > upto);
        match object {
            HistoryObject::Opener => true,
            HistoryObject::Snapshot(txid) => !is_beyond(txid) && start.is_none_or(|start| txid >= start),
            HistoryObject::File(txid) => {
                let above = if mutant::is(Mutant::RetireAboveSnapshot) { 2 } else { 0 };
                !is_beyond(txid) && start.is_none_or(|start| txid.get() > start.get() + above)
            }
        }
    }
}

/// Whether the owner of an epoch should look at what can be retired.
#[must_use]
pub fn is_due(epoch: Epoch, last: LastMark) -> bool {
    last.is_pending || last.has_snapshot || epoch.get().saturating_sub(last.by.get()) >= EPOCHS_MAX
}

/// What is remembered of a cell's last mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastMark {
    /// The epoch that wrote it; zero where there is none.
    pub by: Epoch,
    /// Whether it was not swept.
    pub is_pending: bool,
    /// Whether there is a snapshot that no mark names yet.
    pub has_snapshot: bool,
}

impl From<&Mark> for LastMark {
    fn from(mark: &Mark) -> Self {
        Self { by: mark.by, is_pending: !mark.is_swept, has_snapshot: false }
    }
}

#[cfg(test)]
mod tests;
