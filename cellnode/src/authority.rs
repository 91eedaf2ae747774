//! Until when this session may act. Read before every event and every output, so that safety never waits for a timer
//! (INV-FENCE-1). Written by the lease alone, and ended by a fence for good.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use holdfast_types::Millis;

use crate::clock;

/// The end of the session's authority, monotonic.
#[derive(Debug, Default)]
pub struct Authority {
    until_ms: AtomicU64,
    /// A renewal that was on its way when the session ended must not revive it.
    is_over: AtomicBool,
}

impl Authority {
    /// The end.
    #[must_use]
    pub fn until(&self) -> Millis {
        if self.is_over.load(Ordering::Acquire) {
            return Millis::ZERO;
        }
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
        self.is_over.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_renewal_does_not_revive_a_session_that_is_over() {
        let authority = Authority::default();
        authority.extend(clock::monotonic().plus(60_000));
        assert!(authority.is_live());
        authority.end();
        authority.extend(clock::monotonic().plus(60_000));
        assert!(!authority.is_live());
    }
}
