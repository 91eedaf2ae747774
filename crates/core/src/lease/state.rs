//! Times and spans of a lease.

use holdfast_types::Millis;

/// Both clocks, read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Monotonic, from any start.
    pub monotonic: Millis,
    /// Wall clock, since the Unix epoch.
    pub wall: Millis,
}

/// Spans of a lease, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTiming {
    /// Lifetime of one renewal.
    pub ttl_ms: u64,
    /// How far two machines' clocks may differ.
    pub clock_skew_max_ms: u64,
    /// First pause after a failed renewal; doubles from there.
    pub retry_ms_min: u64,
    /// Longest pause after a failed renewal.
    pub retry_ms_max: u64,
}

impl LeaseTiming {
    /// The defaults for a lifetime: renewals at a third of it, retries from 100 ms to 1 s.
    #[must_use]
    pub const fn with_ttl(ttl_ms: u64, clock_skew_max_ms: u64) -> Self {
        Self { ttl_ms, clock_skew_max_ms, retry_ms_min: 100, retry_ms_max: 1_000 }
    }

    /// Span between renewals.
    #[must_use]
    pub const fn renew_every_ms(&self) -> u64 {
        self.ttl_ms / 3
    }
}
