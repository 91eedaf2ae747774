//! Pauses between tries: doubling up to a bound, with jitter, so that those who failed together do not return together.
//! How often to try, and whether it may help, is the caller's.

use std::time::Duration;

use crate::random;

/// How long the pauses are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    first_ms: u64,
    doublings_max: u32,
}

impl Backoff {
    /// Pauses of `first_ms`, doubled at most `doublings_max` times.
    pub(crate) const fn new(first_ms: u64, doublings_max: u32) -> Self {
        assert!(first_ms.leading_zeros() > doublings_max, "the longest pause must be a number");
        Self { first_ms, doublings_max }
    }

    /// Pauses after failure number `failures`, counted from zero.
    pub(crate) async fn pause(self, failures: u32) {
        tokio::time::sleep(self.length(failures, random::byte())).await;
    }

    /// Pauses before a try, unless it is the first, number zero.
    pub(crate) async fn pause_before(self, attempt: u32) {
        if let Some(failures) = attempt.checked_sub(1) {
            self.pause(failures).await;
        }
    }

    /// Between a half and the whole of the doubled length.
    fn length(self, failures: u32, jitter: u8) -> Duration {
        let whole = self.first_ms << failures.min(self.doublings_max);
        Duration::from_micros(whole * 1_000 - whole * 1_000 / 512 * u64::from(jitter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_their_bound_and_jitter_takes_less_than_half() {
        let backoff = Backoff::new(50, 5);
        for (failures, whole) in [(0, 50), (1, 100), (5, 1_600), (6, 1_600), (u32::MAX, 1_600)] {
            let whole = Duration::from_millis(whole);
            assert_eq!(backoff.length(failures, 0), whole);
            let least = backoff.length(failures, u8::MAX);
            assert!(least > whole / 2 && least < whole * 51 / 100, "{failures}: {least:?}");
        }
    }
}
