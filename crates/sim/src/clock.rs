//! A node's own clocks, as functions of the true time that only the world knows.

use holdfast_core::lease::Now;
use holdfast_types::Millis;

/// True time zero as a wall clock shows it, in milliseconds since the Unix epoch.
const WALL_START_MS: u64 = 1_800_000_000_000;
const MILLION: u64 = 1_000_000;

/// A node's clocks.
#[derive(Clone, Copy, Debug)]
pub struct NodeClock {
    /// How far the wall clock is ahead of the true time, in milliseconds.
    pub wall_ahead_ms: i64,
    /// How much faster than the truth the monotonic clock runs, in millionths.
    pub drift_ppm: i64,
    /// What the monotonic clock shows at true time zero.
    pub monotonic_start_ms: u64,
}

impl NodeClock {
    /// Both clocks at a true time.
    #[must_use]
    pub fn read(&self, true_ms: u64) -> Now {
        let rate = MILLION.saturating_add_signed(self.drift_ppm);
        Now {
            monotonic: Millis::new(self.monotonic_start_ms + true_ms * rate / MILLION),
            wall: Millis::new((WALL_START_MS + true_ms).saturating_add_signed(self.wall_ahead_ms)),
        }
    }

    /// The first true time at which the monotonic clock shows `monotonic`.
    #[must_use]
    pub fn true_at(&self, monotonic: Millis) -> u64 {
        let rate = MILLION.saturating_add_signed(self.drift_ppm);
        let span = monotonic.get().saturating_sub(self.monotonic_start_ms);
        (span * MILLION).div_ceil(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_never_fires_before_its_monotonic_time() {
        for drift_ppm in [-300, -1, 0, 1, 300] {
            let clock = NodeClock { wall_ahead_ms: 0, drift_ppm, monotonic_start_ms: 777 };
            for at in [778, 1_000, 10_777, 99_999, 123_456] {
                let at = Millis::new(at);
                let due = clock.true_at(at);
                assert!(clock.read(due).monotonic >= at && clock.read(due - 1).monotonic < at, "{at:?}");
            }
        }
    }
}
