//! The instruments of the Cache API.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{BoundUpDownCounter, Counter, Meter};

use super::{Metrics, counter, up_down};
use crate::names;

/// Part of [`Metrics`].
pub(super) struct CacheMetrics {
    lookups: Counter<u64>,
    puts: Counter<u64>,
    bytes: BoundUpDownCounter<i64>,
}

impl CacheMetrics {
    pub(super) fn new(meter: &Meter) -> Self {
        Self {
            lookups: counter(meter, &names::CACHE_LOOKUPS),
            puts: counter(meter, &names::CACHE_PUTS),
            bytes: up_down(meter, &names::CACHE_BYTES).bind(&[]),
        }
    }
}

impl Metrics {
    /// Somebody has looked for an answer.
    pub fn cache_lookup(&self, is_hit: bool) {
        let outcome = if is_hit { "hit" } else { "miss" };
        self.cache.lookups.add(1, &[KeyValue::new("outcome", outcome)]);
    }

    /// An answer was put.
    pub fn cache_put(&self, is_kept: bool) {
        let outcome = if is_kept { "kept" } else { "passed" };
        self.cache.puts.add(1, &[KeyValue::new("outcome", outcome)]);
    }

    /// Bytes of answers came or went.
    pub fn cache_bytes_changed(&self, by: i64) {
        self.cache.bytes.add(by);
    }
}
