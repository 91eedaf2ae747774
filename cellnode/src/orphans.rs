//! Cells that this session claimed from an owner that ended without a release, until it is settled what that says of their
//! alarms (`core/alarm`). Remembered beside the cells, because an activation may fail, and the next one finds this session's
//! own claim.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdfast_core::alarm::{Armed, Orphan};
use holdfast_core::ownership::Previous;
use holdfast_types::CellName;

/// Cells remembered at once. Those beyond it, which could not be activated, are taken for cells that were released.
const ORPHANS_MAX: usize = 16_384;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    cells: Mutex<HashMap<CellName, Orphan>>,
}

impl Orphans {
    fn lock(&self) -> MutexGuard<'_, HashMap<CellName, Orphan>> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A cell was claimed.
    pub(crate) fn claimed(&self, cell: &CellName, previous: Previous) {
        let mut cells = self.lock();
        match previous.is_orphan() {
            Some(true) if cells.len() < ORPHANS_MAX => {
                cells.insert(cell.clone(), Orphan::default());
            }
            Some(_) => {
                cells.remove(cell);
            }
            None => {}
        }
    }

    /// What is known of a cell that is opened.
    pub(crate) fn of(&self, cell: &CellName) -> Option<Orphan> {
        self.lock().get(cell).copied()
    }

    /// A run of its alarm is counted before it begins; the proof of that is under way.
    pub(crate) fn counted(&self, cell: &CellName, armed: Armed) {
        if let Some(orphan) = self.lock().get_mut(cell) {
            orphan.counted = Some(armed);
        }
    }

    /// It is settled, or the cell is somebody else's.
    pub(crate) fn forget(&self, cell: &CellName) {
        self.lock().remove(cell);
    }
}

#[cfg(test)]
mod tests {
    use holdfast_types::{AlarmId, AlarmSeq, AlarmTime, Epoch};

    use super::*;

    #[test]
    fn an_orphan_stays_one_until_it_is_settled_or_was_released() {
        let (orphans, cell) = (Orphans::default(), CellName::parse("db:a").unwrap());
        orphans.claimed(&cell, Previous::LocalWake);
        assert_eq!(orphans.of(&cell), None);
        orphans.claimed(&cell, Previous::Dead);
        let id = AlarmId { epoch: Epoch::new(1), seq: AlarmSeq::new(1) };
        let armed = Armed::new(id, AlarmTime::new(1));
        orphans.counted(&cell, armed);
        // The activation failed, and this session claims the cell from itself.
        orphans.claimed(&cell, Previous::LocalWake);
        assert_eq!(orphans.of(&cell), Some(Orphan { counted: Some(armed) }));
        orphans.claimed(&cell, Previous::Released);
        assert_eq!(orphans.of(&cell), None);
        orphans.claimed(&cell, Previous::Dead);
        orphans.forget(&cell);
        orphans.counted(&cell, armed);
        assert_eq!(orphans.of(&cell), None);
    }
}
