//! A load of the application in `tests/peers/objects`, on whatever serves it: counters, work of the CPU, WebSockets. It
//! holds every answer against what it knows: a figure of wrong answers is no figure.

mod connection;
mod counters;
mod sockets;
mod work;

use std::time::{Duration, Instant};

use serde::Serialize;

pub use counters::{Each, EachReport, Rate, RateReport, each, rate};
pub use sockets::{Sockets, hold};
pub use work::{Work, WorkReport, work};

/// Time before anything is measured: connections, caches, and routes settle.
const WARM_UP: Duration = Duration::from_millis(500);

/// Latencies of what was measured, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Latencies {
    /// The median.
    pub p50_us: u64,
    /// What 99 of 100 do not exceed.
    pub p99_us: u64,
    /// The longest.
    pub max_us: u64,
}

impl Latencies {
    fn of(mut latencies_us: Vec<u64>) -> Self {
        latencies_us.sort_unstable();
        let permille = |permille: usize| {
            let rank = (latencies_us.len() * permille).div_ceil(1000).max(1) - 1;
            latencies_us.get(rank).copied().unwrap_or(0)
        };
        Self { p50_us: permille(500), p99_us: permille(990), max_us: permille(1000) }
    }
}

fn micros_since(sent: Instant) -> u64 {
    u64::try_from(sent.elapsed().as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_ranks() {
        let latencies = Latencies::of((1..=100).rev().collect());
        assert_eq!(latencies, Latencies { p50_us: 50, p99_us: 99, max_us: 100 });
        assert_eq!(Latencies::of(Vec::new()), Latencies { p50_us: 0, p99_us: 0, max_us: 0 });
    }
}
