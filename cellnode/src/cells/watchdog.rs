//! Notices cells that hold their thread. Limits interrupt what can be interrupted; a few things of the engines cannot be
//! (one sort of a billion elements, for example), and an operator must be able to see which cell does them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_types::{CellName, Millis};

use super::Resident;

/// A turn that takes longer is told of, in milliseconds: well beyond the limits of what can be interrupted.
const PATIENCE_MS: u64 = 2_000;
/// It is told of again after this, in milliseconds.
const AGAIN_MS: u64 = 30_000;

#[derive(Debug)]
struct Turn {
    resident: Arc<Resident>,
    began: Millis,
    told: Option<Millis>,
}

/// What one thread does.
#[derive(Clone, Debug, Default)]
pub(super) struct Watchdog(Arc<Mutex<Option<Turn>>>);

impl Watchdog {
    fn lock(&self) -> MutexGuard<'_, Option<Turn>> {
        // Every step leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A cell takes a turn.
    pub(super) fn begin(&self, resident: &Arc<Resident>, now: Millis) {
        *self.lock() = Some(Turn { resident: Arc::clone(resident), began: now, told: None });
    }

    /// The turn is over.
    pub(super) fn end(&self) {
        // Dropped after the lock: it may be the last that knows the residency.
        let turn = self.lock().take();
        drop(turn);
    }

    /// The cell whose turn is to be told of, for how long it has gone on, and whether for the first time.
    pub(super) fn stalled(&self, now: Millis) -> Option<(CellName, u64, bool)> {
        let mut slot = self.lock();
        let turn = slot.as_mut()?;
        let for_ms = now.since(turn.began);
        let is_due = turn.told.is_none_or(|told| now.since(told) >= AGAIN_MS);
        if for_ms < PATIENCE_MS || !is_due {
            return None;
        }
        let is_first = turn.told.replace(now).is_none();
        Some((turn.resident.cell.clone(), for_ms, is_first))
    }
}
