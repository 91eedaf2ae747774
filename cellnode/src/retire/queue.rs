//! Which cells' histories are to be looked after, and when. A cell that leaves memory leaves the queue.

use std::sync::Arc;

use holdfast_telemetry::metrics;
use holdfast_types::Millis;

use crate::cells::Resident;
use crate::replication::DueCells;

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct Retirements {
    due: DueCells,
}

impl Retirements {
    /// The cell wants to be looked after at this time.
    pub(crate) fn add(&self, at: Millis, resident: &Arc<Resident>) {
        self.due.add(at, resident);
        metrics().retirements_waiting_changed(1);
    }

    /// The cells whose time has come.
    pub(crate) fn take(&self, now: Millis) -> Vec<Arc<Resident>> {
        let (due, taken) = self.due.take_counted(now);
        if taken > 0 {
            metrics().retirements_waiting_changed(-i64::try_from(taken).unwrap_or(i64::MAX));
        }
        due
    }
}
