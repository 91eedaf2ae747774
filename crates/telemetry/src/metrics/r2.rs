//! The instruments of R2 buckets.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Meter};

use super::{Metrics, counter};
use crate::names;

/// Part of [`Metrics`].
pub(super) struct R2Metrics {
    operations: Counter<u64>,
    bytes: Counter<u64>,
}

impl R2Metrics {
    pub(super) fn new(meter: &Meter) -> Self {
        Self { operations: counter(meter, &names::R2_OPERATIONS), bytes: counter(meter, &names::R2_BYTES) }
    }
}

impl Metrics {
    /// An operation on an R2 bucket has ended: `head`, `get`, `put`, `delete`, `list`, and those of multipart uploads.
    pub fn r2_operation(&self, operation: &'static str, is_ok: bool) {
        let outcome = if is_ok { "ok" } else { "failed" };
        let attributes = [KeyValue::new("operation", operation), KeyValue::new("outcome", outcome)];
        self.r2.operations.add(1, &attributes);
    }

    /// Bytes of an object went `in`, or were asked for (`out`).
    pub fn r2_bytes(&self, direction: &'static str, bytes: u64) {
        self.r2.bytes.add(bytes, &[KeyValue::new("direction", direction)]);
    }
}
