//! Which cells have an upload due, and when: one timer for all of them, so that an idle cell costs nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use holdfast_types::Millis;

use crate::cells::Resident;

type Entries = BTreeMap<(Millis, u64), Weak<Resident>>;

/// Uploads to come.
#[derive(Debug, Default)]
pub struct DueUploads {
    entries: Mutex<(u64, Entries)>,
}

impl DueUploads {
    /// The cell wants to be told at this time.
    pub(crate) fn add(&self, at: Millis, resident: &Arc<Resident>) {
        let (made, entries) = &mut *self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        *made += 1;
        entries.insert((at, *made), Arc::downgrade(resident));
    }

    /// The cells whose time has come.
    pub(crate) fn take(&self, now: Millis) -> Vec<Arc<Resident>> {
        let (_, entries) = &mut *self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let later = entries.split_off(&(now.plus(1), 0));
        let due = std::mem::replace(entries, later);
        due.into_values().filter_map(|resident| resident.upgrade()).collect()
    }
}
