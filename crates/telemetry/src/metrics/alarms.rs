//! The instruments of alarms.

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{BoundHistogram, BoundUpDownCounter, Counter, Meter};

use super::{Metrics, counter, histogram, up_down};
use crate::names;

/// Part of [`Metrics`].
pub(super) struct AlarmMetrics {
    runs: Counter<u64>,
    lateness: BoundHistogram<f64>,
    abandoned: Counter<u64>,
    armed: BoundUpDownCounter<i64>,
    retrying: BoundUpDownCounter<i64>,
    index: Counter<u64>,
    scheduled: Counter<u64>,
}

impl AlarmMetrics {
    pub(super) fn new(meter: &Meter) -> Self {
        Self {
            runs: counter(meter, &names::ALARM_RUNS),
            lateness: histogram(meter, &names::ALARM_LATENESS).bind(&[]),
            abandoned: counter(meter, &names::ALARMS_ABANDONED),
            armed: up_down(meter, &names::ALARMS_ARMED).bind(&[]),
            retrying: up_down(meter, &names::ALARMS_RETRYING).bind(&[]),
            index: counter(meter, &names::ALARM_INDEX_WRITES),
            scheduled: counter(meter, &names::SCHEDULED_RUNS),
        }
    }
}

impl Metrics {
    /// A run of an alarm's handler begins, so long after it was due.
    pub fn alarm_begun(&self, lateness: Duration) {
        self.alarms.lateness.record(lateness.as_secs_f64());
    }

    /// A run of an alarm's handler has ended.
    pub fn alarm_run(&self, outcome: &'static str) {
        self.alarms.runs.add(1, &[KeyValue::new("outcome", outcome)]);
    }

    /// A run of a `scheduled` handler has ended.
    pub fn scheduled_run(&self, outcome: &'static str) {
        self.alarms.scheduled.add(1, &[KeyValue::new("outcome", outcome)]);
    }

    /// An alarm was given up.
    pub fn alarm_abandoned(&self, cause: &'static str) {
        self.alarms.abandoned.add(1, &[KeyValue::new("cause", cause)]);
    }

    /// Alarms of resident cells were armed, or are not any more.
    pub fn alarms_armed_changed(&self, delta: i64) {
        self.alarms.armed.add(delta);
    }

    /// Alarms of resident cells wait for a retry, or do not any more.
    pub fn alarms_retrying_changed(&self, delta: i64) {
        self.alarms.retrying.add(delta);
    }

    /// A write of the alarm index has ended.
    pub fn alarm_index_write(&self, operation: &'static str, is_ok: bool) {
        let outcome = if is_ok { "ok" } else { "failed" };
        let attributes = [KeyValue::new("operation", operation), KeyValue::new("outcome", outcome)];
        self.alarms.index.add(1, &attributes);
    }
}
