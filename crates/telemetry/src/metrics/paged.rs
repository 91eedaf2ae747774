//! The instruments of databases that were opened before all of them was there.

use std::time::Duration;

use opentelemetry::metrics::{BoundHistogram, BoundUpDownCounter, Meter};

use super::{Counters, Metrics, histogram, up_down};
use crate::labels::{Outcome, PageUse};
use crate::names;

/// Part of [`Metrics`].
pub(super) struct PagedMetrics {
    pages: Counters<PageUse>,
    bytes: Counters<PageUse>,
    fetches: Counters<Outcome>,
    fetch_duration: BoundHistogram<f64>,
    unfinished: BoundUpDownCounter<i64>,
}

impl PagedMetrics {
    pub(super) fn new(meter: &Meter) -> Self {
        Self {
            pages: Counters::new(meter, &names::PAGED_PAGES),
            bytes: Counters::new(meter, &names::PAGED_BYTES),
            fetches: Counters::new(meter, &names::PAGED_FETCHES),
            fetch_duration: histogram(meter, &names::PAGED_FETCH_DURATION).bind(&[]),
            unfinished: up_down(meter, &names::PAGED_UNFINISHED).bind(&[]),
        }
    }
}

impl Metrics {
    /// Pages came into a file that lacked them.
    pub fn paged_pages(&self, used: PageUse, pages: u64) {
        self.paged.pages.of(used).add(pages);
    }

    /// Bytes were read for a file that lacks pages.
    pub fn paged_bytes(&self, used: PageUse, bytes: u64) {
        self.paged.bytes.of(used).add(bytes);
    }

    /// A range of pages that a statement waited for has come, or has not.
    pub fn paged_fetch(&self, outcome: Outcome, elapsed: Duration) {
        self.paged.fetches.of(outcome).add(1);
        self.paged.fetch_duration.record(elapsed.as_secs_f64());
    }

    /// A cell runs on a file that is not whole, or does not any more.
    pub fn paged_unfinished_changed(&self, delta: i64) {
        self.paged.unfinished.add(delta);
    }
}
