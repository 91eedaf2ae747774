//! Until when this session may act. Read before every event and every output, so that safety never waits for a timer
//! (INV-FENCE-1). Written by the lease alone.

use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_types::Millis;

use crate::clock;

/// The end of the session's authority, monotonic.
#[derive(Debug, Default)]
pub struct Authority {
    until_ms: AtomicU64,
}

impl Authority {
    /// The end.
    #[must_use]
    pub fn until(&self) -> Millis {
        Millis::new(self.until_ms.load(Ordering::Acquire))
    }

    /// Whether the session may act now.
    #[must_use]
    pub fn is_live(&self) -> bool {
        clock::monotonic() < self.until()
    }

    /// A renewal landed.
    pub(crate) fn extend(&self, until: Millis) {
        self.until_ms.store(until.get(), Ordering::Release);
    }

    /// The session is over.
    pub(crate) fn end(&self) {
        self.until_ms.store(0, Ordering::Release);
    }
}
