//! The alarm index in the bucket: pages of it, what is retired of a cell, deletes.

use std::sync::Arc;

use holdfast_bucket::Bucket;
use holdfast_core::waker::{DueEntry, Retirement, WakerEvent};
use holdfast_records::{Key, OwnerRecord, Record, WAKE_ENTRIES_PREFIX, WakeRetired};
use holdfast_telemetry::{Outcome, metrics};
use holdfast_types::{AlarmId, CellName, WakeMinute};

/// Reads and cleans the index. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    records: Arc<dyn Bucket>,
}

impl Index {
    pub(crate) fn new(records: Arc<dyn Bucket>) -> Self {
        Self { records }
    }

    /// One page.
    pub(crate) async fn list(&self, after: Option<String>, limit: usize) -> WakerEvent {
        let listing = self.records.list(WAKE_ENTRIES_PREFIX, after.as_deref(), limit).await;
        metrics().waker_listed(if listing.is_ok() { Outcome::Ok } else { Outcome::Failed });
        let listing = match listing {
            Ok(listing) => listing,
            Err(error) => {
                tracing::warn!(%error, "the alarm index could not be listed; the next tick goes on");
                return WakerEvent::ListFailed;
            }
        };
        let entry = |key: &str| match Key::parse(key) {
            Ok(Key::WakeEntry { minute, cell, id }) => Some(DueEntry { minute, cell, id }),
            Ok(_) | Err(_) => {
                tracing::debug!(key, "this is no wake entry");
                None
            }
        };
        let entries = listing.objects.iter().filter_map(|object| entry(&object.key)).collect();
        WakerEvent::Listed { entries, next: listing.next }
    }

    /// What the bucket says of a cell's entries.
    pub(crate) async fn retirement(&self, cell: CellName, with_floor: bool) -> WakerEvent {
        let retirement = self.read_retirement(&cell, with_floor).await;
        WakerEvent::RetirementRead { cell, retirement }
    }

    async fn read_retirement(&self, cell: &CellName, with_floor: bool) -> Option<Retirement> {
        let mut retirement = Retirement::default();
        if let Some(WakeRetired { mark, armed, .. }) = self.read(&Key::WakeRetired(cell.clone())).await? {
            retirement.mark = Some(mark.into());
            retirement.armed = armed.map(AlarmId::from);
        }
        if with_floor && let Some(OwnerRecord { floor, .. }) = self.read(&Key::Owner(cell.clone())).await? {
            retirement.floor = floor;
        }
        Some(retirement)
    }

    /// A record, where there is one; `None` when it cannot be told.
    async fn read<R: Record>(&self, key: &Key) -> Option<Option<R>> {
        let key = key.to_string();
        match self.records.get(&key).await {
            Ok(None) => Some(None),
            Ok(Some(object)) => match R::decode(&object.body) {
                Ok(record) => Some(Some(record)),
                Err(error) => {
                    tracing::error!(key, %error, "a record of the alarm index cannot be used");
                    None
                }
            },
            Err(error) => {
                tracing::debug!(key, %error, "a record of the alarm index could not be read");
                None
            }
        }
    }

    /// Deletes entries that are proved obsolete.
    pub(crate) async fn delete(&self, cell: CellName, entries: Vec<(WakeMinute, AlarmId)>) -> WakerEvent {
        let key = |(minute, id)| Key::WakeEntry { minute, cell: cell.clone(), id }.to_string();
        let keys: Vec<String> = entries.into_iter().map(key).collect();
        let deleted = self.records.delete_many(&keys).await;
        match &deleted {
            Ok(()) => metrics().waker_deleted(keys.len()),
            Err(error) => tracing::debug!(%cell, %error, "obsolete entries could not be deleted"),
        }
        WakerEvent::Deleted { cell, all: deleted.is_ok() }
    }
}
