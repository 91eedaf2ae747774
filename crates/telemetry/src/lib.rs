//! Telemetry of every program: start-up and flush ([`init`]), every metric and span name ([`names`]), the instruments
//! ([`metrics`]), trace context on the wire ([`trace_context`]) and the admin listener ([`serve_admin`]).
//! It must never decide anything, nor slow a request down: hot instruments are bound to their attributes beforehand.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod admin;
mod labels;
mod metered_bucket;
mod metrics;
pub mod names;
mod pipeline;
pub mod program;
mod start;
pub mod trace_context;

pub use admin::{Readiness, serve_admin};
pub use labels::{
    ActivationOutcome, BucketOperation, BucketOutcome, CompactionKind, HandoffOutcome, HintResult, Label,
    LeaseWriteOutcome, LookupResult, Outcome, PageUse, ProofKind, ProofOutcome, RecoveryResult,
    RenewalOutcome, RequestOutcome, RestoreSource, SocketDirection, Stage, StatusClass, SweepResult,
    WorkerOutcome,
};
pub use metered_bucket::MeteredBucket;
pub use metrics::{InFlight, Metrics, OpenSocket, WakerLevels, metrics};
pub use pipeline::render_prometheus;
pub use start::{LogFormat, Telemetry, TelemetryError, TelemetryOptions, init};
