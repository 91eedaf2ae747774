//! The instruments of what cells leave behind: files on the local disk, history in the bucket.

use opentelemetry::metrics::{BoundCounter, BoundUpDownCounter, Meter};

use super::{Metrics, counter, up_down};
use crate::names;

/// Part of [`Metrics`].
pub(super) struct FileMetrics {
    local_bytes: BoundUpDownCounter<i64>,
    local_removed: BoundCounter<u64>,
    local_removed_bytes: BoundCounter<u64>,
    retired_objects: BoundCounter<u64>,
    retired_bytes: BoundCounter<u64>,
    retirement_failures: BoundCounter<u64>,
    retirements_waiting: BoundUpDownCounter<i64>,
}

impl FileMetrics {
    pub(super) fn new(meter: &Meter) -> Self {
        Self {
            local_bytes: up_down(meter, &names::LOCAL_FILES_BYTES).bind(&[]),
            local_removed: counter(meter, &names::LOCAL_FILES_REMOVED).bind(&[]),
            local_removed_bytes: counter(meter, &names::LOCAL_FILES_REMOVED_BYTES).bind(&[]),
            retired_objects: counter(meter, &names::RETIRED_OBJECTS).bind(&[]),
            retired_bytes: counter(meter, &names::RETIRED_BYTES).bind(&[]),
            retirement_failures: counter(meter, &names::RETIREMENT_FAILURES).bind(&[]),
            retirements_waiting: up_down(meter, &names::RETIREMENTS_WAITING).bind(&[]),
        }
    }
}

impl Metrics {
    /// The files of cells that are not in memory take more of the disk, or less.
    pub fn local_files_changed(&self, delta: i64) {
        self.files.local_bytes.add(delta);
    }

    /// The files of a cell were removed to make room.
    pub fn local_files_removed(&self, bytes: u64) {
        self.files.local_removed.add(1);
        self.files.local_removed_bytes.add(bytes);
    }

    /// Objects of a cell's history were deleted.
    pub fn retired(&self, objects: u64, bytes: u64) {
        self.files.retired_objects.add(objects);
        self.files.retired_bytes.add(bytes);
    }

    /// A look at a cell's history failed.
    pub fn retirement_failed(&self) {
        self.files.retirement_failures.add(1);
    }

    /// Cells wait for a look at their history, or do not any more.
    pub fn retirements_waiting_changed(&self, delta: i64) {
        self.files.retirements_waiting.add(delta);
    }
}
