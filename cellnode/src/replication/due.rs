//! Which cells have something due, and when: one timer for all of them, so that an idle cell costs nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use holdfast_types::Millis;

use crate::cells::Resident;

type Entries = BTreeMap<(Millis, u64), Weak<Resident>>;

/// Cells with something to come.
#[derive(Debug, Default)]
pub struct DueCells {
    entries: Mutex<(u64, Entries)>,
}

impl DueCells {
    /// The cell wants to be told at this time.
    pub(crate) fn add(&self, at: Millis, resident: &Arc<Resident>) {
        let (made, entries) = &mut *self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        *made += 1;
        entries.insert((at, *made), Arc::downgrade(resident));
    }

    /// The cells whose time has come.
    pub(crate) fn take(&self, now: Millis) -> Vec<Arc<Resident>> {
        self.take_counted(now).0
    }

    /// As [`Self::take`], and how many entries went, those of cells that have left memory included.
    pub(crate) fn take_counted(&self, now: Millis) -> (Vec<Arc<Resident>>, usize) {
        let (_, entries) = &mut *self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let later = entries.split_off(&(now.plus(1), 0));
        let due = std::mem::replace(entries, later);
        let taken = due.len();
        (due.into_values().filter_map(|resident| resident.upgrade()).collect(), taken)
    }
}
