//! Which cells this session owns, by the last word of the bucket: only for a metric. Nothing may be decided by it.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdfast_telemetry::metrics;
use holdfast_types::CellName;

/// The cells of one session.
#[derive(Debug, Default)]
pub(super) struct Owned {
    cells: Mutex<HashSet<CellName>>,
}

impl Owned {
    fn cells(&self) -> MutexGuard<'_, HashSet<CellName>> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The owner record names this session.
    pub(super) fn add(&self, cell: &CellName) {
        if self.cells().insert(cell.clone()) {
            metrics().cells_owned_changed(1);
        }
    }

    /// It does not, or not any more.
    pub(super) fn remove(&self, cell: &CellName) {
        if self.cells().remove(cell) {
            metrics().cells_owned_changed(-1);
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // A process may run one session after another.
        let left = self.cells().len();
        metrics().cells_owned_changed(-i64::try_from(left).unwrap_or(i64::MAX));
    }
}
