//! The two clocks of a process. The monotonic one counts suspended time too, so that a machine that slept knows it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use holdfast_core::lease::Now;
use holdfast_types::{AlarmTime, Millis};
use rustix::time::{ClockId, clock_gettime};

/// Monotonic time since the machine's boot, suspended time included.
#[must_use]
pub fn monotonic() -> Millis {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).expect("time since boot is positive");
    let nanos = u64::try_from(time.tv_nsec).expect("nanoseconds are positive");
    Millis::new(seconds * 1_000 + nanos / 1_000_000)
}

/// Wall clock time since the Unix epoch; zero on a machine whose clock is before it.
#[must_use]
pub fn wall() -> Millis {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis::new(millis(elapsed))
}

/// [`wall`] as alarms have it, so many milliseconds from now.
#[must_use]
pub fn wall_time_in(ms: i64) -> AlarmTime {
    AlarmTime::new(i64::try_from(wall().get()).unwrap_or(i64::MAX).saturating_add(ms))
}

/// A span in milliseconds.
#[must_use]
pub fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Both clocks.
#[must_use]
pub fn now() -> Now {
    Now { monotonic: monotonic(), wall: wall() }
}
