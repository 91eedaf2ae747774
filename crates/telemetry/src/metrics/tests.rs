//! The instruments against the list of names, and the list against docs/metrics.md.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::*;
use crate::labels::PageUse;
use crate::names::{METRICS, SPANS};
use crate::pipeline::Pipeline;

fn touch_everything(metrics: &'static Metrics) {
    let elapsed = Duration::from_millis(3);
    metrics.ingress_request(http::StatusCode::OK, RequestOutcome::Answered, elapsed);
    drop(metrics.ingress_in_flight());
    metrics.socket_opened().closed("client");
    metrics.socket_message(SocketDirection::In);
    metrics.cell_sockets_changed(1);
    metrics.cell_sockets_hibernated_changed(1);
    metrics.cell_socket_message(SocketDirection::Automatic);
    metrics.worker_event(WorkerOutcome::Threw);
    metrics.worker_turn(elapsed);
    metrics.worker_isolates_changed(1);
    metrics.worker_broke("cpu");
    metrics.routing_lookup(LookupResult::Hit);
    metrics.routing_retry("not_owner");
    metrics.cellnode_request(RequestOutcome::Unknown, elapsed);
    drop(metrics.cellnode_in_flight());
    metrics.activation(ActivationOutcome::Resident, elapsed);
    metrics.activation_stage(Stage::Recover, elapsed);
    metrics.gate_wait(elapsed);
    metrics.gate_waiting_changed(10);
    metrics.recovery(RecoveryResult::Blocked);
    metrics.recoveries_blocked_changed(1);
    metrics.recovery_bytes(10);
    metrics.proof(ProofKind::Ensemble, ProofOutcome::Superseded);
    metrics.upload(Outcome::Ok, 10, elapsed);
    metrics.capture(10);
    metrics.lease_renewal(RenewalOutcome::Applied);
    metrics.lease_authority("n1", 2.5);
    metrics.self_fence("lease_expired");
    metrics.cell_isolates_changed(1);
    metrics.cell_isolate_start(Outcome::Ok);
    metrics.cell_isolate_reset("cpu_exceeded");
    metrics.cell_fell_asleep();
    metrics.handoff(HandoffOutcome::Taken);
    metrics.thread_stalled();
    metrics.alarm_begun(elapsed);
    metrics.alarm_run("succeeded");
    metrics.alarm_abandoned("failures");
    metrics.alarms_armed_changed(1);
    metrics.alarms_retrying_changed(1);
    metrics.alarm_index_write("put", true);
    metrics.scheduled_run("ok");
    drop(metrics.outbound_connection());
    metrics.outbound_connection_opened("ok");
    metrics.r2_operation("put", true);
    metrics.r2_bytes("in", 10);
    metrics.cache_lookup(true);
    metrics.cache_put(false);
    metrics.cache_bytes_changed(10);
    metrics.restore(RestoreSource::Local, Outcome::Failed, 7, 3);
    metrics.paged_pages(PageUse::Demand, 3);
    metrics.paged_bytes(PageUse::Fill, 4096);
    metrics.paged_fetch(Outcome::Failed, elapsed);
    metrics.paged_unfinished_changed(1);
    metrics.wal_bytes_changed(4096);
    metrics.cells_owned_changed(2);
    metrics.log_retained_changed(10);
    metrics.bundle(Outcome::Ok, 10, elapsed);
    metrics.log_by_ensemble(true);
    metrics.log_ensemble(2);
    metrics.log_eviction("slow");
    metrics.cells_resident_changed(1);
    metrics.compaction(CompactionKind::Snapshot, Outcome::Ok);
    metrics.local_files_changed(4096);
    metrics.local_files_removed(4096);
    metrics.retired(3, 4096);
    metrics.retirement_failed();
    metrics.retirements_waiting_changed(1);
    metrics.follower_batch(3, 4096, elapsed);
    metrics.follower_retained_changed(10);
    metrics.follower_streams_changed(1);
    metrics.follower_seal();
    metrics.follower_refusal("sealed");
    metrics.follower_poisoned();
    metrics.waker_listed(Outcome::Ok);
    metrics.waker_due(2);
    metrics.waker_deleted(1);
    metrics.waker_hint(HintResult::Armed, elapsed);
    metrics.waker_backlog("w1", WakerLevels { cells: 3, oldest: elapsed, ..WakerLevels::default() });
    metrics.waker_shards("w1", 8);
    metrics.waker_lease_write(LeaseWriteOutcome::Rejected);
    metrics.waker_sweep(SweepResult::NotYet);
    metrics.waker_moved(3);
    metrics.waker_buried(1);
    metrics.bucket_operation(BucketOperation::DeleteMany, BucketOutcome::Failed, elapsed);
}

fn prometheus_name(metric: &Metric) -> String {
    let suffix = if metric.kind == Kind::Counter { "_total" } else { "" };
    metric.name.replace('.', "_") + suffix
}

#[test]
fn the_exposition_has_every_metric_and_no_other() {
    let resource = opentelemetry_sdk::Resource::builder_empty().build();
    let pipeline: &'static Pipeline = Box::leak(Box::new(Pipeline::new(resource, None)));
    touch_everything(&pipeline.metrics);
    let text = pipeline.render();
    let exposed: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let listed: Vec<String> = METRICS.iter().map(prometheus_name).collect();
    assert_eq!(exposed, listed.iter().map(String::as_str).collect::<BTreeSet<_>>(), "{text}");
    for line in [
        "holdfast_ingress_requests_count_total{outcome=\"answered\",status_class=\"2xx\"} 1",
        "holdfast_cellnode_proofs_count_total{kind=\"ensemble\",outcome=\"superseded\"} 1",
        "holdfast_bucket_operations_count_total{operation=\"delete_many\",outcome=\"failed\"} 1",
        "holdfast_cellnode_activations_stage_seconds_count{stage=\"recover\"} 1",
        "holdfast_cellnode_lease_authority_seconds{node=\"n1\"} 2.5",
        "holdfast_cellnode_wal_bytes 4096",
        "holdfast_waker_backlog_count{waker=\"w1\"} 3",
        "holdfast_ingress_requests_in_flight_count 0",
    ] {
        assert!(text.contains(line), "`{line}` is not in\n{text}");
    }
}

#[test]
fn names_are_unique_and_well_formed() {
    let names: Vec<&str> = METRICS.iter().map(|m| m.name).chain(SPANS.iter().map(|s| s.name)).collect();
    let unique: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(unique.len(), names.len());
    for name in names {
        let well_formed = name.bytes().all(|b| b.is_ascii_lowercase() || b == b'.' || b == b'_');
        assert!(name.starts_with("holdfast.") && well_formed, "{name}");
    }
    for metric in METRICS {
        let unit = metric.name.rsplit('.').next().unwrap();
        let expected = match metric.unit {
            "s" => "seconds",
            "By" => "bytes",
            _ => "count",
        };
        assert_eq!(unit, expected, "the name of `{}` must end with its unit", metric.name);
    }
}

fn document() -> String {
    let mut out = String::from(
        "# Metrics and spans\n\nGenerated from `crates/telemetry/src/names.rs`; \
         `HOLDFAST_BLESS=1 cargo nextest run -p holdfast-telemetry` writes it anew.\n\
         Every program serves these as Prometheus text at `/metrics` on its admin listener, dots as underscores and\n\
         `_total` added to counters, and pushes them by OTLP when `OTEL_EXPORTER_OTLP_ENDPOINT` is set.\n\n\
         ## Metrics\n\n| name | kind | unit | attributes | meaning |\n|---|---|---|---|---|\n",
    );
    for metric in METRICS {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::UpDown => "up-down counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        let attributes: Vec<String> = metric.attributes.iter().map(|a| format!("`{a}`")).collect();
        let Metric { name, unit, meaning, .. } = metric;
        let attributes = attributes.join(", ");
        writeln!(out, "| `{name}` | {kind} | `{unit}` | {attributes} | {meaning} |").unwrap();
    }
    out += "\n## Spans\n\n| name | covers |\n|---|---|\n";
    for span in SPANS {
        writeln!(out, "| `{}` | {} |", span.name, span.meaning).unwrap();
    }
    out
}

#[test]
fn the_document_lists_every_name() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    if std::env::var_os("HOLDFAST_BLESS").is_some() {
        std::fs::write(path, document()).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(found, document(), "docs/metrics.md is stale: run with HOLDFAST_BLESS=1");
}
