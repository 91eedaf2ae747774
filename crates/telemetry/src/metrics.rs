//! The instruments, one method each. Those on hot paths are bound to their attributes when the process starts, so that
//! recording is an atomic addition.

mod alarms;
mod cache;
mod files;
mod outbound;
mod paged;
mod r2;

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{
    BoundCounter, BoundHistogram, BoundUpDownCounter, Counter, Gauge, Histogram, Meter, UpDownCounter,
};

use crate::labels::{
    ActivationOutcome, BucketOperation, BucketOutcome, CompactionKind, HandoffOutcome, HintResult, Label,
    LeaseWriteOutcome, LookupResult, Outcome, ProofKind, ProofOutcome, RecoveryResult, RenewalOutcome,
    RequestOutcome, RestoreSource, SocketDirection, Stage, StatusClass, SweepResult, WorkerOutcome,
};
use crate::names::{self, Kind, Metric};
use crate::pipeline;

/// The process's instruments.
#[must_use]
pub fn metrics() -> &'static Metrics {
    &pipeline::pipeline().metrics
}

/// Every instrument. Get it by [`metrics`].
pub struct Metrics {
    ingress_requests: Counters2<StatusClass, RequestOutcome>,
    ingress_duration: Histograms<StatusClass>,
    ingress_in_flight: BoundUpDownCounter<i64>,
    sockets: BoundUpDownCounter<i64>,
    sockets_closed: Counter<u64>,
    socket_messages: Counters<SocketDirection>,
    worker_events: Counters<WorkerOutcome>,
    worker_turn: BoundHistogram<f64>,
    worker_isolates: BoundUpDownCounter<i64>,
    worker_breaks: Counter<u64>,
    routing_lookups: Counters<LookupResult>,
    routing_retries: Counter<u64>,
    cellnode_requests: Counters<RequestOutcome>,
    cellnode_duration: BoundHistogram<f64>,
    cellnode_in_flight: BoundUpDownCounter<i64>,
    activations: Counters<ActivationOutcome>,
    activation_duration: BoundHistogram<f64>,
    activation_stage: Histograms<Stage>,
    gate_wait: BoundHistogram<f64>,
    gate_waiting: BoundUpDownCounter<i64>,
    proofs: Counters2<ProofKind, ProofOutcome>,
    uploads: Counters<Outcome>,
    upload_bytes: BoundCounter<u64>,
    upload_duration: BoundHistogram<f64>,
    captures: BoundCounter<u64>,
    capture_bytes: BoundCounter<u64>,
    lease_renewals: Counters<RenewalOutcome>,
    lease_authority: Gauge<f64>,
    self_fences: Counter<u64>,
    cell_sockets: BoundUpDownCounter<i64>,
    cell_sockets_hibernated: BoundUpDownCounter<i64>,
    cell_socket_messages: Counters<SocketDirection>,
    cell_isolates: BoundUpDownCounter<i64>,
    cell_isolate_starts: Counters<Outcome>,
    cell_isolate_resets: Counter<u64>,
    cell_sleeps: BoundCounter<u64>,
    cell_handoffs: Counters<HandoffOutcome>,
    thread_stalls: BoundCounter<u64>,
    alarms: alarms::AlarmMetrics,
    outbound: outbound::OutboundMetrics,
    r2: r2::R2Metrics,
    cache: cache::CacheMetrics,
    paged: paged::PagedMetrics,
    restores: Counters2<RestoreSource, Outcome>,
    restore_bytes: BoundCounter<u64>,
    restore_files: BoundCounter<u64>,
    wal_bytes: BoundUpDownCounter<i64>,
    log_retained: BoundUpDownCounter<i64>,
    log_bundles: Counters<Outcome>,
    log_bundle_bytes: BoundCounter<u64>,
    log_bundle_duration: BoundHistogram<f64>,
    log_by_ensemble: BoundUpDownCounter<i64>,
    log_ensembles: Counter<u64>,
    log_evictions: Counter<u64>,
    recoveries: Counters<RecoveryResult>,
    recoveries_blocked: BoundUpDownCounter<i64>,
    recovery_bytes: BoundCounter<u64>,
    cells_owned: BoundUpDownCounter<i64>,
    cells_resident: BoundUpDownCounter<i64>,
    compactions: Counters2<CompactionKind, Outcome>,
    files: files::FileMetrics,
    follower_fsync: BoundHistogram<f64>,
    follower_batch_entries: BoundHistogram<f64>,
    follower_written: BoundCounter<u64>,
    follower_retained: BoundUpDownCounter<i64>,
    follower_streams: BoundUpDownCounter<i64>,
    follower_seals: BoundCounter<u64>,
    follower_refusals: Counter<u64>,
    follower_poisoned: BoundCounter<u64>,
    waker: WakerMetrics,
    deploy_loads: Counters<Outcome>,
    bucket_operations: Counters2<BucketOperation, BucketOutcome>,
    bucket_duration: Histograms2<BucketOperation, BucketOutcome>,
}

impl Metrics {
    pub(crate) fn new(meter: &Meter) -> Self {
        let one = |metric: &Metric| counter(meter, metric).bind(&[]);
        let level = |metric: &Metric| up_down(meter, metric).bind(&[]);
        let spread = |metric: &Metric| histogram(meter, metric).bind(&[]);
        Self {
            ingress_requests: Counters2::new(meter, &names::INGRESS_REQUESTS),
            ingress_duration: Histograms::new(meter, &names::INGRESS_DURATION),
            ingress_in_flight: level(&names::INGRESS_IN_FLIGHT),
            sockets: level(&names::INGRESS_SOCKETS),
            sockets_closed: counter(meter, &names::INGRESS_SOCKETS_CLOSED),
            socket_messages: Counters::new(meter, &names::INGRESS_SOCKET_MESSAGES),
            worker_events: Counters::new(meter, &names::WORKER_EVENTS),
            worker_turn: spread(&names::WORKER_TURN),
            worker_isolates: level(&names::WORKER_ISOLATES),
            worker_breaks: counter(meter, &names::WORKER_BREAKS),
            routing_lookups: Counters::new(meter, &names::ROUTING_LOOKUPS),
            routing_retries: counter(meter, &names::ROUTING_RETRIES),
            cellnode_requests: Counters::new(meter, &names::CELLNODE_REQUESTS),
            cellnode_duration: spread(&names::CELLNODE_DURATION),
            cellnode_in_flight: level(&names::CELLNODE_IN_FLIGHT),
            activations: Counters::new(meter, &names::ACTIVATIONS),
            activation_duration: spread(&names::ACTIVATION_DURATION),
            activation_stage: Histograms::new(meter, &names::ACTIVATION_STAGE),
            gate_wait: spread(&names::GATE_WAIT),
            gate_waiting: level(&names::GATE_WAITING),
            proofs: Counters2::new(meter, &names::PROOFS),
            uploads: Counters::new(meter, &names::UPLOADS),
            upload_bytes: one(&names::UPLOAD_BYTES),
            upload_duration: spread(&names::UPLOAD_DURATION),
            captures: one(&names::CAPTURES),
            capture_bytes: one(&names::CAPTURE_BYTES),
            lease_renewals: Counters::new(meter, &names::LEASE_RENEWALS),
            lease_authority: gauge(meter, &names::LEASE_AUTHORITY),
            self_fences: counter(meter, &names::SELF_FENCES),
            cell_sockets: level(&names::CELL_SOCKETS),
            cell_sockets_hibernated: level(&names::CELL_SOCKETS_HIBERNATED),
            cell_socket_messages: Counters::new(meter, &names::CELL_SOCKET_MESSAGES),
            cell_isolates: level(&names::CELL_ISOLATES),
            cell_isolate_starts: Counters::new(meter, &names::CELL_ISOLATE_STARTS),
            cell_isolate_resets: counter(meter, &names::CELL_ISOLATE_RESETS),
            cell_sleeps: one(&names::CELL_SLEEPS),
            cell_handoffs: Counters::new(meter, &names::CELL_HANDOFFS),
            thread_stalls: one(&names::THREAD_STALLS),
            alarms: alarms::AlarmMetrics::new(meter),
            outbound: outbound::OutboundMetrics::new(meter),
            r2: r2::R2Metrics::new(meter),
            cache: cache::CacheMetrics::new(meter),
            paged: paged::PagedMetrics::new(meter),
            restores: Counters2::new(meter, &names::RESTORES),
            restore_bytes: one(&names::RESTORE_BYTES),
            restore_files: one(&names::RESTORE_FILES),
            wal_bytes: level(&names::WAL_BYTES),
            log_retained: level(&names::LOG_RETAINED),
            log_bundles: Counters::new(meter, &names::LOG_BUNDLES),
            log_bundle_bytes: one(&names::LOG_BUNDLE_BYTES),
            log_bundle_duration: spread(&names::LOG_BUNDLE_DURATION),
            log_by_ensemble: level(&names::LOG_BY_ENSEMBLE),
            log_ensembles: counter(meter, &names::LOG_ENSEMBLES),
            log_evictions: counter(meter, &names::LOG_EVICTIONS),
            recoveries: Counters::new(meter, &names::RECOVERIES),
            recoveries_blocked: level(&names::RECOVERIES_BLOCKED),
            recovery_bytes: one(&names::RECOVERY_BYTES),
            cells_owned: level(&names::CELLS_OWNED),
            cells_resident: level(&names::CELLS_RESIDENT),
            compactions: Counters2::new(meter, &names::COMPACTIONS),
            files: files::FileMetrics::new(meter),
            follower_fsync: spread(&names::FOLLOWER_FSYNC),
            follower_batch_entries: spread(&names::FOLLOWER_BATCH_ENTRIES),
            follower_written: one(&names::FOLLOWER_WRITTEN),
            follower_retained: level(&names::FOLLOWER_RETAINED),
            follower_streams: level(&names::FOLLOWER_STREAMS),
            follower_seals: one(&names::FOLLOWER_SEALS),
            follower_refusals: counter(meter, &names::FOLLOWER_REFUSALS),
            follower_poisoned: one(&names::FOLLOWER_POISONED),
            waker: WakerMetrics::new(meter),
            deploy_loads: Counters::new(meter, &names::DEPLOY_LOADS),
            bucket_operations: Counters2::new(meter, &names::BUCKET_OPERATIONS),
            bucket_duration: Histograms2::new(meter, &names::BUCKET_DURATION),
        }
    }

    /// A WebSocket of a client is open until what this gives is dropped.
    #[must_use]
    pub fn socket_opened(&'static self) -> OpenSocket {
        OpenSocket { _open: InFlight::new(&self.sockets), closed: &self.sockets_closed }
    }

    /// A message of a WebSocket passed the edge.
    pub fn socket_message(&self, direction: SocketDirection) {
        self.socket_messages.of(direction).add(1);
    }

    /// WebSockets were taken by objects, or have left them.
    pub fn cell_sockets_changed(&self, delta: i64) {
        self.cell_sockets.add(delta);
    }

    /// WebSockets of objects have no isolate any more, or have one again.
    pub fn cell_sockets_hibernated_changed(&self, delta: i64) {
        self.cell_sockets_hibernated.add(delta);
    }

    /// A message reached an object, left it, or was answered for it.
    pub fn cell_socket_message(&self, direction: SocketDirection) {
        self.cell_socket_messages.of(direction).add(1);
    }

    /// An event of the Worker has ended.
    pub fn worker_event(&self, outcome: WorkerOutcome) {
        self.worker_events.of(outcome).add(1);
    }

    /// A thread of the Worker has done what it was told, with this much CPU time.
    pub fn worker_turn(&self, cpu: Duration) {
        self.worker_turn.record(cpu.as_secs_f64());
    }

    /// Isolates of the Worker were started, or dropped.
    pub fn worker_isolates_changed(&self, delta: i64) {
        self.worker_isolates.add(delta);
    }

    /// An isolate of the Worker broke.
    pub fn worker_broke(&self, cause: &'static str) {
        self.worker_breaks.add(1, &[KeyValue::new("cause", cause)]);
    }

    /// Answers began to wait for their proof, or have ended to.
    pub fn gate_waiting_changed(&self, delta: i64) {
        self.gate_waiting.add(delta);
    }

    /// A request at the public edge has ended.
    pub fn ingress_request(&self, status: http::StatusCode, outcome: RequestOutcome, elapsed: Duration) {
        let class = StatusClass::from(status);
        self.ingress_requests.of(class, outcome).add(1);
        self.ingress_duration.of(class).record(elapsed.as_secs_f64());
    }

    /// A request is inside the public edge until the guard drops.
    #[must_use]
    pub fn ingress_in_flight(&'static self) -> InFlight {
        InFlight::new(&self.ingress_in_flight)
    }

    /// A cell was resolved to its owner.
    pub fn routing_lookup(&self, result: LookupResult) {
        self.routing_lookups.of(result).add(1);
    }

    /// A call is sent again, since the handler did not run: `not_owner`, `draining`, `never_connected`, `unavailable`.
    pub fn routing_retry(&self, reason: &'static str) {
        self.routing_retries.add(1, &[KeyValue::new("reason", reason)]);
    }

    /// A call to a cell has ended at its node.
    pub fn cellnode_request(&self, outcome: RequestOutcome, elapsed: Duration) {
        self.cellnode_requests.of(outcome).add(1);
        self.cellnode_duration.record(elapsed.as_secs_f64());
    }

    /// A call is inside the node until the guard drops.
    #[must_use]
    pub fn cellnode_in_flight(&'static self) -> InFlight {
        InFlight::new(&self.cellnode_in_flight)
    }

    /// An activation has ended.
    pub fn activation(&self, outcome: ActivationOutcome, elapsed: Duration) {
        self.activations.of(outcome).add(1);
        self.activation_duration.record(elapsed.as_secs_f64());
    }

    /// A stage of an activation has ended.
    pub fn activation_stage(&self, stage: Stage, elapsed: Duration) {
        self.activation_stage.of(stage).record(elapsed.as_secs_f64());
    }

    /// An output has waited for its proof.
    pub fn gate_wait(&self, elapsed: Duration) {
        self.gate_wait.record(elapsed.as_secs_f64());
    }

    /// A durability proof has ended.
    pub fn proof(&self, kind: ProofKind, outcome: ProofOutcome) {
        self.proofs.of(kind, outcome).add(1);
    }

    /// An upload of an LTX object has ended.
    pub fn upload(&self, outcome: Outcome, bytes: u64, elapsed: Duration) {
        self.uploads.of(outcome).add(1);
        self.upload_duration.record(elapsed.as_secs_f64());
        if outcome == Outcome::Ok {
            self.upload_bytes.add(bytes);
        }
    }

    /// An LTX transaction was captured.
    pub fn capture(&self, bytes: u64) {
        self.captures.add(1);
        self.capture_bytes.add(bytes);
    }

    /// An attempt to renew the lease has ended.
    pub fn lease_renewal(&self, outcome: RenewalOutcome) {
        self.lease_renewals.of(outcome).add(1);
    }

    /// How long the session of `node` may still act.
    pub fn lease_authority(&self, node: &str, seconds: f64) {
        self.lease_authority.record(seconds, &[KeyValue::new("node", node.to_owned())]);
    }

    /// A session has stopped itself; `cause` is the one of its log line.
    pub fn self_fence(&self, cause: &'static str) {
        self.self_fences.add(1, &[KeyValue::new("cause", cause)]);
    }

    /// Isolates of Durable Objects came into memory, or left it.
    pub fn cell_isolates_changed(&self, delta: i64) {
        self.cell_isolates.add(delta);
    }

    /// An isolate of a Durable Object has started, or could not.
    pub fn cell_isolate_start(&self, outcome: Outcome) {
        self.cell_isolate_starts.of(outcome).add(1);
    }

    /// An isolate of a Durable Object could not go on.
    pub fn cell_isolate_reset(&self, cause: &'static str) {
        self.cell_isolate_resets.add(1, &[KeyValue::new("cause", cause)]);
    }

    /// A cell left memory and stays owned.
    pub fn cell_fell_asleep(&self) {
        self.cell_sleeps.add(1);
    }

    /// A cell was to be given to another node.
    pub fn handoff(&self, outcome: HandoffOutcome) {
        self.cell_handoffs.of(outcome).add(1);
    }

    /// A turn of a cell holds its thread.
    pub fn thread_stalled(&self) {
        self.thread_stalls.add(1);
    }

    /// A restore has ended: `bytes` and `files` count what was read from the bucket.
    pub fn restore(&self, source: RestoreSource, outcome: Outcome, bytes: u64, files: u64) {
        self.restores.of(source, outcome).add(1);
        self.restore_bytes.add(bytes);
        self.restore_files.add(files);
    }

    /// A cell's write-ahead log has grown or shrunk; a closed cell takes its whole size away.
    pub fn wal_bytes_changed(&self, delta: i64) {
        self.wal_bytes.add(delta);
    }

    /// The frames that a session retains have grown or shrunk.
    pub fn log_retained_changed(&self, delta: i64) {
        self.log_retained.add(delta);
    }

    /// A put of a bundle has ended.
    pub fn bundle(&self, outcome: Outcome, bytes: u64, elapsed: Duration) {
        self.log_bundles.of(outcome).add(1);
        self.log_bundle_duration.record(elapsed.as_secs_f64());
        if outcome == Outcome::Ok {
            self.log_bundle_bytes.add(bytes);
        }
    }

    /// A session's writes are proved by followers from now on, or no longer.
    pub fn log_by_ensemble(&self, by_ensemble: bool) {
        self.log_by_ensemble.add(if by_ensemble { 1 } else { -1 });
    }

    /// An ensemble became active.
    pub fn log_ensemble(&self, members: usize) {
        let members = i64::try_from(members).unwrap_or(i64::MAX);
        self.log_ensembles.add(1, &[KeyValue::new("members", members)]);
    }

    /// A session gave a follower up; `reason` is the one of its log line.
    pub fn log_eviction(&self, reason: &'static str) {
        self.log_evictions.add(1, &[KeyValue::new("reason", reason)]);
    }

    /// An attempt to recover a dead session's log has ended.
    pub fn recovery(&self, result: RecoveryResult) {
        self.recoveries.of(result).add(1);
    }

    /// A dead session was found to be blocked, or no longer.
    pub fn recoveries_blocked_changed(&self, delta: i64) {
        self.recoveries_blocked.add(delta);
    }

    /// A recovery brought an object into the bucket.
    pub fn recovery_bytes(&self, bytes: u64) {
        self.recovery_bytes.add(bytes);
    }

    /// Cells were claimed, or given up.
    pub fn cells_owned_changed(&self, delta: i64) {
        self.cells_owned.add(delta);
    }

    /// Cells were opened, or closed.
    pub fn cells_resident_changed(&self, delta: i64) {
        self.cells_resident.add(delta);
    }

    /// A version of the application was loaded, or could not be.
    pub fn deployment_loaded(&self, outcome: Outcome) {
        self.deploy_loads.of(outcome).add(1);
    }

    /// A compaction or a snapshot has ended.
    pub fn compaction(&self, kind: CompactionKind, outcome: Outcome) {
        self.compactions.of(kind, outcome).add(1);
    }

    /// A follower has fsynced a batch.
    pub fn follower_batch(&self, entries: usize, bytes: usize, fsync: Duration) {
        self.follower_fsync.record(fsync.as_secs_f64());
        self.follower_batch_entries.record(u32::try_from(entries).unwrap_or(u32::MAX).into());
        self.follower_written.add(u64::try_from(bytes).unwrap_or(u64::MAX));
    }

    /// The frames that a follower retains have grown or shrunk.
    pub fn follower_retained_changed(&self, delta: i64) {
        self.follower_retained.add(delta);
    }

    /// A session began to append, or ended to.
    pub fn follower_streams_changed(&self, delta: i64) {
        self.follower_streams.add(delta);
    }

    /// A seal was answered.
    pub fn follower_seal(&self) {
        self.follower_seals.add(1);
    }

    /// A message of an append stream was refused; `reason` is the one of its log line.
    pub fn follower_refusal(&self, reason: &'static str) {
        self.follower_refusals.add(1, &[KeyValue::new("reason", reason)]);
    }

    /// The disk of a follower failed.
    pub fn follower_poisoned(&self) {
        self.follower_poisoned.add(1);
    }

    /// A page of the alarm index was read, or could not be.
    pub fn waker_listed(&self, outcome: Outcome) {
        self.waker.lists.of(outcome).add(1);
    }

    /// So many due entries are looked after from now on.
    pub fn waker_due(&self, entries: usize) {
        self.waker.due.add(u64::try_from(entries).unwrap_or(u64::MAX));
    }

    /// Obsolete entries were deleted.
    pub fn waker_deleted(&self, entries: usize) {
        self.waker.deletes.add(u64::try_from(entries).unwrap_or(u64::MAX));
    }

    /// A hint has ended.
    pub fn waker_hint(&self, result: HintResult, elapsed: Duration) {
        self.waker.hints.of(result).add(1);
        self.waker.hint_duration.record(elapsed.as_secs_f64());
    }

    /// How much is due, as of now.
    pub fn waker_backlog(&self, waker: &str, levels: WakerLevels) {
        let WakerLevels { cells, in_flight, window, overdue, oldest } = levels;
        let attributes = [KeyValue::new("waker", waker.to_owned())];
        self.waker.backlog.record(level_of(cells), &attributes);
        self.waker.in_flight.record(level_of(in_flight), &attributes);
        self.waker.window.record(f64::from(window), &attributes);
        self.waker.overdue.record(level_of(overdue), &attributes);
        self.waker.oldest.record(oldest.as_secs_f64(), &attributes);
    }

    /// So many shards are looked after.
    pub fn waker_shards(&self, waker: &str, shards: usize) {
        self.waker.shards.record(level_of(shards), &[KeyValue::new("waker", waker.to_owned())]);
    }

    /// A lease on a shard was written, or was not.
    pub fn waker_lease_write(&self, outcome: LeaseWriteOutcome) {
        self.waker.lease_writes.of(outcome).add(1);
    }

    /// Cells moved because this waker asked for it.
    pub fn waker_moved(&self, cells: u64) {
        self.waker.moves.add(cells);
    }

    /// Leases of nodes long gone were deleted.
    pub fn waker_buried(&self, leases: usize) {
        self.waker.burials.add(u64::try_from(leases).unwrap_or(u64::MAX));
    }

    /// A cellnode was asked to recover the log of a dead session.
    pub fn waker_sweep(&self, result: SweepResult) {
        self.waker.sweeps.of(result).add(1);
    }

    /// A store operation has ended.
    pub fn bucket_operation(&self, operation: BucketOperation, outcome: BucketOutcome, elapsed: Duration) {
        self.bucket_operations.of(operation, outcome).add(1);
        self.bucket_duration.of(operation, outcome).record(elapsed.as_secs_f64());
    }
}

/// How much is due at a waker.
#[derive(Clone, Copy, Debug, Default)]
pub struct WakerLevels {
    /// Cells with due entries.
    pub cells: usize,
    /// Those that are being looked at.
    pub in_flight: usize,
    /// So many may be at most.
    pub window: u32,
    /// Those whose oldest entry was due more than a minute ago.
    pub overdue: usize,
    /// How long ago the oldest was due.
    pub oldest: Duration,
}

/// The instruments of wakers.
struct WakerMetrics {
    lists: Counters<Outcome>,
    due: BoundCounter<u64>,
    deletes: BoundCounter<u64>,
    hints: Counters<HintResult>,
    hint_duration: BoundHistogram<f64>,
    backlog: Gauge<f64>,
    in_flight: Gauge<f64>,
    window: Gauge<f64>,
    overdue: Gauge<f64>,
    oldest: Gauge<f64>,
    shards: Gauge<f64>,
    lease_writes: Counters<LeaseWriteOutcome>,
    sweeps: Counters<SweepResult>,
    moves: BoundCounter<u64>,
    burials: BoundCounter<u64>,
}

impl WakerMetrics {
    fn new(meter: &Meter) -> Self {
        Self {
            lists: Counters::new(meter, &names::WAKER_LISTS),
            due: counter(meter, &names::WAKER_DUE).bind(&[]),
            deletes: counter(meter, &names::WAKER_DELETES).bind(&[]),
            hints: Counters::new(meter, &names::WAKER_HINTS),
            hint_duration: histogram(meter, &names::WAKER_HINT_DURATION).bind(&[]),
            backlog: gauge(meter, &names::WAKER_BACKLOG),
            in_flight: gauge(meter, &names::WAKER_IN_FLIGHT),
            window: gauge(meter, &names::WAKER_WINDOW),
            overdue: gauge(meter, &names::WAKER_OVERDUE),
            oldest: gauge(meter, &names::WAKER_OLDEST),
            shards: gauge(meter, &names::WAKER_SHARDS),
            lease_writes: Counters::new(meter, &names::WAKER_LEASE_WRITES),
            sweeps: Counters::new(meter, &names::WAKER_SWEEPS),
            moves: counter(meter, &names::WAKER_MOVES).bind(&[]),
            burials: counter(meter, &names::WAKER_BURIALS).bind(&[]),
        }
    }
}

fn level_of(count: usize) -> f64 {
    u32::try_from(count).unwrap_or(u32::MAX).into()
}

/// Counts one request as in flight until it drops.
pub struct InFlight(&'static BoundUpDownCounter<i64>);

impl InFlight {
    fn new(counter: &'static BoundUpDownCounter<i64>) -> Self {
        counter.add(1);
        Self(counter)
    }
}

/// A WebSocket that is open.
pub struct OpenSocket {
    _open: InFlight,
    closed: &'static Counter<u64>,
}

impl OpenSocket {
    /// It ended by this.
    pub fn closed(self, cause: &'static str) {
        self.closed.add(1, &[KeyValue::new("cause", cause)]);
    }
}

impl std::fmt::Debug for OpenSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenSocket").finish_non_exhaustive()
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.add(-1);
    }
}

fn counter(meter: &Meter, metric: &Metric) -> Counter<u64> {
    assert_eq!(metric.kind, Kind::Counter, "`{}` is listed as another kind", metric.name);
    meter.u64_counter(metric.name).with_unit(metric.unit).with_description(metric.meaning).build()
}

fn up_down(meter: &Meter, metric: &Metric) -> UpDownCounter<i64> {
    assert_eq!(metric.kind, Kind::UpDown, "`{}` is listed as another kind", metric.name);
    meter.i64_up_down_counter(metric.name).with_unit(metric.unit).with_description(metric.meaning).build()
}

fn gauge(meter: &Meter, metric: &Metric) -> Gauge<f64> {
    assert_eq!(metric.kind, Kind::Gauge, "`{}` is listed as another kind", metric.name);
    meter.f64_gauge(metric.name).with_unit(metric.unit).with_description(metric.meaning).build()
}

fn histogram(meter: &Meter, metric: &Metric) -> Histogram<f64> {
    let Kind::Histogram(bounds) = metric.kind else { panic!("`{}` is listed as another kind", metric.name) };
    meter
        .f64_histogram(metric.name)
        .with_unit(metric.unit)
        .with_description(metric.meaning)
        .with_boundaries(bounds.to_vec())
        .build()
}

fn pair<L: Label>(label: L) -> KeyValue {
    KeyValue::new(L::KEY, label.as_str())
}

/// One bound instrument per value of `A`.
struct Family<A, I> {
    bound: Box<[I]>,
    label: std::marker::PhantomData<fn(A)>,
}

/// One bound instrument per pair of values.
struct Family2<A, B, I> {
    bound: Box<[I]>,
    labels: std::marker::PhantomData<fn(A, B)>,
}

type Counters<A> = Family<A, BoundCounter<u64>>;
type Counters2<A, B> = Family2<A, B, BoundCounter<u64>>;
type Histograms<A> = Family<A, BoundHistogram<f64>>;
type Histograms2<A, B> = Family2<A, B, BoundHistogram<f64>>;

impl<A: Label, I> Family<A, I> {
    fn bind(metric: &Metric, bind: impl Fn(&[KeyValue]) -> I) -> Self {
        assert_eq!(metric.attributes, [A::KEY], "attributes of `{}`", metric.name);
        Self { bound: A::ALL.iter().map(|a| bind(&[pair(*a)])).collect(), label: std::marker::PhantomData }
    }

    fn of(&self, a: A) -> &I {
        &self.bound[a.index()]
    }
}

impl<A: Label, B: Label, I> Family2<A, B, I> {
    fn bind(metric: &Metric, bind: impl Fn(&[KeyValue]) -> I) -> Self {
        assert_eq!(metric.attributes, [A::KEY, B::KEY], "attributes of `{}`", metric.name);
        let pairs = A::ALL.iter().flat_map(|a| B::ALL.iter().map(move |b| (a, b)));
        Self {
            bound: pairs.map(|(a, b)| bind(&[pair(*a), pair(*b)])).collect(),
            labels: std::marker::PhantomData,
        }
    }

    fn of(&self, a: A, b: B) -> &I {
        &self.bound[a.index() * B::ALL.len() + b.index()]
    }
}

impl<A: Label> Counters<A> {
    fn new(meter: &Meter, metric: &Metric) -> Self {
        let counter = counter(meter, metric);
        Self::bind(metric, |attributes| counter.bind(attributes))
    }
}

impl<A: Label, B: Label> Counters2<A, B> {
    fn new(meter: &Meter, metric: &Metric) -> Self {
        let counter = counter(meter, metric);
        Self::bind(metric, |attributes| counter.bind(attributes))
    }
}

impl<A: Label> Histograms<A> {
    fn new(meter: &Meter, metric: &Metric) -> Self {
        let histogram = histogram(meter, metric);
        Self::bind(metric, |attributes| histogram.bind(attributes))
    }
}

impl<A: Label, B: Label> Histograms2<A, B> {
    fn new(meter: &Meter, metric: &Metric) -> Self {
        let histogram = histogram(meter, metric);
        Self::bind(metric, |attributes| histogram.bind(attributes))
    }
}

#[cfg(test)]
mod tests;
