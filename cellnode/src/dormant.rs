//! Cells that this session owns and let sleep, because nobody used them for a while. All of one is in the bucket and in a local
//! file that was closed in order; what is remembered of it here lets it wake without reading the bucket. Nothing rests on it:
//! the claim that wakes a cell is guarded by the version of its record, so whoever changed that meanwhile wins.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdfast_bucket::Version;
use holdfast_core::compaction::ChainSize;
use holdfast_core::ownership::OwnerView;
use holdfast_core::retire::LastMark;
use holdfast_types::{AlarmTime, CellName, Epoch, Position};

use crate::restore::PlannedChain;

/// Cells asleep at once, each a few hundred bytes; beyond it a cell that nobody uses is given up instead.
const DORMANT_MAX: usize = 100_000;

/// A cell as it fell asleep.
#[derive(Clone, Debug)]
pub(crate) struct Asleep {
    /// The owner record, and its version.
    pub(crate) record: (OwnerView, Version),
    /// Where its local file was closed: the epoch that the file is of, and its last transaction.
    pub(crate) slept: Position,
    /// The same place as the chain has it: in an epoch that wrote. None for an empty database.
    pub(crate) end: Option<Position>,
    /// What a restore would read.
    pub(crate) size: ChainSize,
    /// The last mark of its history.
    pub(crate) mark: LastMark,
    /// When its alarm is due.
    pub(crate) alarm: Option<AlarmTime>,
}

impl Asleep {
    /// The chain of a cell whose local file is all of it.
    pub(crate) fn chain(&self) -> PlannedChain {
        PlannedChain {
            files: Vec::new(),
            end: self.end,
            starts_from_local: true,
            kept: None,
            mark: self.mark,
            size: self.size,
        }
    }
}

/// The cells that sleep.
#[derive(Debug, Default)]
pub(crate) struct Dormant {
    sleepers: Mutex<Sleepers>,
}

#[derive(Debug, Default)]
struct Sleepers {
    cells: HashMap<CellName, Asleep>,
    alarms: BTreeSet<(AlarmTime, CellName)>,
}

impl Dormant {
    fn lock(&self) -> MutexGuard<'_, Sleepers> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is no room for another.
    pub(crate) fn is_full(&self) -> bool {
        self.lock().cells.len() >= DORMANT_MAX
    }

    /// Remembers a cell.
    pub(crate) fn put(&self, cell: CellName, asleep: Asleep) {
        let mut sleepers = self.lock();
        if let Some(due) = asleep.alarm {
            sleepers.alarms.insert((due, cell.clone()));
        }
        sleepers.cells.insert(cell, asleep);
    }

    /// What a restore would read has changed since the cell fell asleep in this epoch.
    pub(crate) fn note_chain(&self, cell: &CellName, epoch: Epoch, (size, mark): (ChainSize, LastMark)) {
        let mut sleepers = self.lock();
        if let Some(asleep) = sleepers.cells.get_mut(cell).filter(|asleep| asleep.slept.epoch == epoch) {
            (asleep.size, asleep.mark) = (size, mark);
        }
    }

    /// Forgets a cell, and tells how it fell asleep.
    pub(crate) fn take(&self, cell: &CellName) -> Option<Asleep> {
        let mut sleepers = self.lock();
        let asleep = sleepers.cells.remove(cell)?;
        if let Some(due) = asleep.alarm {
            sleepers.alarms.remove(&(due, cell.clone()));
        }
        Some(asleep)
    }

    /// How many sleep.
    pub(crate) fn len(&self) -> usize {
        self.lock().cells.len()
    }

    /// Who sleeps.
    pub(crate) fn names(&self) -> Vec<CellName> {
        self.lock().cells.keys().cloned().collect()
    }

    /// Whether a cell sleeps.
    pub(crate) fn contains(&self, cell: &CellName) -> bool {
        self.lock().cells.contains_key(cell)
    }

    /// The first cells whose alarm is due by then, each told once; at most so many.
    pub(crate) fn take_due(&self, by: AlarmTime, max: usize) -> Vec<CellName> {
        let mut sleepers = self.lock();
        let mut due = Vec::new();
        while due.len() < max && sleepers.alarms.first().is_some_and(|(at, _)| *at <= by) {
            due.extend(sleepers.alarms.pop_first().map(|(_, cell)| cell));
        }
        due
    }
}
