//! The instruments of what applications ask of servers outside.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{BoundUpDownCounter, Counter, Meter};

use super::{InFlight, Metrics, counter, up_down};
use crate::names;

/// Part of [`Metrics`].
pub(super) struct OutboundMetrics {
    connections: BoundUpDownCounter<i64>,
    opened: Counter<u64>,
}

impl OutboundMetrics {
    pub(super) fn new(meter: &Meter) -> Self {
        Self {
            connections: up_down(meter, &names::OUTBOUND_CONNECTIONS).bind(&[]),
            opened: counter(meter, &names::OUTBOUND_CONNECTIONS_OPENED),
        }
    }
}

impl Metrics {
    /// A TCP connection of the application is open until what this gives is dropped.
    #[must_use]
    pub fn outbound_connection(&'static self) -> InFlight {
        InFlight::new(&self.outbound.connections)
    }

    /// A TCP connection was asked for: `ok`, `refused`, `failed`.
    pub fn outbound_connection_opened(&self, outcome: &'static str) {
        self.outbound.opened.add(1, &[KeyValue::new("outcome", outcome)]);
    }
}
