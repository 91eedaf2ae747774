//! Every metric and span name, with unit and meaning. Dashboards, alerts and docs/metrics.md use only these; no other
//! file spells one. Names are `holdfast.<program>.<noun>.<unit>`; Prometheus shows dots as underscores and adds
//! `_total` to counters.

/// What kind of instrument a metric is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// A sum that grows and shrinks; adds up over everything in the process.
    UpDown,
    /// The last value written.
    Gauge,
    /// A distribution; the bounds of its buckets.
    Histogram(&'static [f64]),
}

/// One metric.
#[derive(Debug)]
pub struct Metric {
    /// The OpenTelemetry name.
    pub name: &'static str,
    /// The kind of instrument.
    pub kind: Kind,
    /// The unit, in UCUM notation.
    pub unit: &'static str,
    /// Its attributes.
    pub attributes: &'static [&'static str],
    /// What it says.
    pub meaning: &'static str,
}

/// One span.
#[derive(Debug)]
pub struct Span {
    /// The span's name.
    pub name: &'static str,
    /// What it covers.
    pub meaning: &'static str,
}

/// Bounds for whole requests and activations: 250 us to 60 s.
const REQUEST_SECONDS: &[f64] = &[
    0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];

/// Bounds for one wait or one store operation: 50 us to 30 s.
const WAIT_SECONDS: &[f64] = &[
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    10.0, 30.0,
];

/// Bounds for the entries of one batch.
const BATCH_ENTRIES: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 4096.0];

macro_rules! metrics {
    ($($id:ident: $kind:expr, $name:literal, $unit:literal, [$($attribute:literal),*], $meaning:literal;)*) => {
        $(
            #[doc = $meaning]
            pub const $id: Metric = Metric {
                name: $name, kind: $kind, unit: $unit, attributes: &[$($attribute),*], meaning: $meaning,
            };
        )*
        /// Every metric.
        pub const METRICS: &[Metric] = &[$($id),*];
    };
}

metrics! {
    INGRESS_REQUESTS: Kind::Counter, "holdfast.ingress.requests.count", "{request}", ["status_class", "outcome"],
        "Requests answered at the public edge, by class of status and by what the caller may conclude.";
    INGRESS_DURATION: Kind::Histogram(REQUEST_SECONDS), "holdfast.ingress.requests.duration.seconds", "s", ["status_class"],
        "From the request's head to the end of its response, at the public edge.";
    INGRESS_IN_FLIGHT: Kind::UpDown, "holdfast.ingress.requests.in_flight.count", "{request}", [],
        "Requests now inside the public edge.";
    INGRESS_SOCKETS: Kind::UpDown, "holdfast.ingress.sockets.count", "{socket}", [],
        "WebSockets of clients that are open at the public edge.";
    INGRESS_SOCKETS_CLOSED: Kind::Counter, "holdfast.ingress.sockets.closed.count", "{socket}", ["cause"],
        "WebSockets that ended: client, object, restart (their object moved or was restarted), lost (their client broke off), invalid, drain.";
    INGRESS_SOCKET_MESSAGES: Kind::Counter, "holdfast.ingress.sockets.messages.count", "{message}", ["direction"],
        "Messages of WebSockets, in from clients and out to them.";
    WORKER_EVENTS: Kind::Counter, "holdfast.ingress.worker.events.count", "{event}", ["outcome"],
        "Events of the application's Worker, by what came of them.";
    WORKER_TURN: Kind::Histogram(WAIT_SECONDS), "holdfast.ingress.worker.turns.seconds", "s", [],
        "CPU time of one turn of a thread that runs the Worker; the sum is the CPU time of all its JavaScript.";
    WORKER_ISOLATES: Kind::UpDown, "holdfast.ingress.worker.isolates.count", "{isolate}", [],
        "Isolates of the Worker: one for each thread and version that has been asked for.";
    WORKER_BREAKS: Kind::Counter, "holdfast.ingress.worker.breaks.count", "{break}", ["cause"],
        "Isolates of the Worker that broke and were replaced: by cpu, memory, or another cause.";
    ROUTING_LOOKUPS: Kind::Counter, "holdfast.routing.lookups.count", "{lookup}", ["result"],
        "Resolutions of a cell to its owner: from the cache, from the bucket, or placed anew.";
    ROUTING_RETRIES: Kind::Counter, "holdfast.routing.retries.count", "{retry}", ["reason"],
        "Calls sent again after an answer that proves that the handler did not run.";
    CELLNODE_REQUESTS: Kind::Counter, "holdfast.cellnode.requests.count", "{request}", ["outcome"],
        "Calls to cells of this node, by what the caller may conclude.";
    CELLNODE_DURATION: Kind::Histogram(REQUEST_SECONDS), "holdfast.cellnode.requests.duration.seconds", "s", [],
        "From a call's arrival at the node to the release of its output.";
    CELLNODE_IN_FLIGHT: Kind::UpDown, "holdfast.cellnode.requests.in_flight.count", "{request}", [],
        "Calls now inside the node.";
    ACTIVATIONS: Kind::Counter, "holdfast.cellnode.activations.count", "{activation}", ["outcome"],
        "Attempts to make a cell resident.";
    ACTIVATION_DURATION: Kind::Histogram(REQUEST_SECONDS), "holdfast.cellnode.activations.duration.seconds", "s", [],
        "A whole activation, failed ones included.";
    ACTIVATION_STAGE: Kind::Histogram(REQUEST_SECONDS), "holdfast.cellnode.activations.stage.seconds", "s", ["stage"],
        "One stage of an activation: claim, recover, restore, open.";
    GATE_WAIT: Kind::Histogram(WAIT_SECONDS), "holdfast.cellnode.gate.wait.seconds", "s", [],
        "How long an output waited for its durability proof; outputs with nothing uncovered are not counted.";
    GATE_WAITING: Kind::UpDown, "holdfast.cellnode.gate.waiting.bytes", "By", [],
        "Bytes of answers that wait for their durability proof.";
    PROOFS: Kind::Counter, "holdfast.cellnode.proofs.count", "{proof}", ["kind", "outcome"],
        "Durability proofs, by kind and outcome.";
    UPLOADS: Kind::Counter, "holdfast.cellnode.uploads.count", "{upload}", ["outcome"],
        "Uploads of LTX objects.";
    UPLOAD_BYTES: Kind::Counter, "holdfast.cellnode.uploads.bytes", "By", [],
        "Bytes of LTX objects uploaded.";
    UPLOAD_DURATION: Kind::Histogram(WAIT_SECONDS), "holdfast.cellnode.uploads.duration.seconds", "s", [],
        "One upload of an LTX object, failed ones included.";
    CAPTURES: Kind::Counter, "holdfast.cellnode.captures.count", "{transaction}", [],
        "LTX transactions captured from the WAL.";
    CAPTURE_BYTES: Kind::Counter, "holdfast.cellnode.captures.bytes", "By", [],
        "Bytes of LTX transactions captured from the WAL.";
    LEASE_RENEWALS: Kind::Counter, "holdfast.cellnode.lease.renewals.count", "{renewal}", ["outcome"],
        "Attempts to renew the node's lease.";
    LEASE_AUTHORITY: Kind::Gauge, "holdfast.cellnode.lease.authority.seconds", "s", ["node"],
        "How long the session may still act, as of its last look; below zero it is fenced.";
    SELF_FENCES: Kind::Counter, "holdfast.cellnode.self_fences.count", "{fence}", ["cause"],
        "Sessions that stopped themselves, by cause.";
    RESTORES: Kind::Counter, "holdfast.cellnode.restores.count", "{restore}", ["source", "outcome"],
        "Restores of a cell's database.";
    RESTORE_BYTES: Kind::Counter, "holdfast.cellnode.restores.bytes", "By", [],
        "Bytes read from the bucket by restores.";
    RESTORE_FILES: Kind::Counter, "holdfast.cellnode.restores.files.count", "{file}", [],
        "LTX objects read by restores.";
    PAGED_PAGES: Kind::Counter, "holdfast.cellnode.paged.pages.count", "{page}", ["use"],
        "Pages that came into the files of large cells after they were opened.";
    PAGED_BYTES: Kind::Counter, "holdfast.cellnode.paged.bytes", "By", ["use"],
        "Bytes of LTX objects read for large cells after they were opened.";
    PAGED_FETCHES: Kind::Counter, "holdfast.cellnode.paged.fetches.count", "{fetch}", ["outcome"],
        "Ranges of pages that a statement waited for.";
    PAGED_FETCH_DURATION: Kind::Histogram(WAIT_SECONDS), "holdfast.cellnode.paged.fetches.duration.seconds", "s", [],
        "How long a cell's thread waited for a range of pages, failures included.";
    PAGED_UNFINISHED: Kind::UpDown, "holdfast.cellnode.paged.unfinished.count", "{cell}", [],
        "Resident cells whose file is not whole yet.";
    WAL_BYTES: Kind::UpDown, "holdfast.cellnode.wal.bytes", "By", [],
        "Size of the write-ahead logs of all resident cells.";
    CELLS_OWNED: Kind::UpDown, "holdfast.cellnode.cells.owned.count", "{cell}", [],
        "Cells owned by this process.";
    CELLS_RESIDENT: Kind::UpDown, "holdfast.cellnode.cells.resident.count", "{cell}", [],
        "Cells with an open database.";
    CELL_SOCKETS: Kind::UpDown, "holdfast.cellnode.sockets.count", "{socket}", [],
        "WebSockets that objects hold.";
    CELL_SOCKETS_HIBERNATED: Kind::UpDown, "holdfast.cellnode.sockets.hibernated.count", "{socket}", [],
        "Those whose object has no isolate in memory.";
    CELL_SOCKET_MESSAGES: Kind::Counter, "holdfast.cellnode.sockets.messages.count", "{message}", ["direction"],
        "Messages of WebSockets: in to objects, out from them, and answered for them without waking them.";
    CELL_SLEEPS: Kind::Counter, "holdfast.cellnode.cells.sleeps.count", "{cell}", [],
        "Cells that left memory because nobody used them, and stayed owned.";
    CELL_HANDOFFS: Kind::Counter, "holdfast.cellnode.cells.handoffs.count", "{cell}", ["outcome"],
        "Cells that were to go to another node, by a drain or to even nodes out: taken by it, left (given up, and not taken), kept.";
    CELL_ISOLATES: Kind::UpDown, "holdfast.cellnode.isolates.count", "{isolate}", [],
        "Durable Objects with an isolate in memory; the others have only their database.";
    CELL_ISOLATE_STARTS: Kind::Counter, "holdfast.cellnode.isolates.starts.count", "{start}", ["outcome"],
        "Starts of an isolate for a Durable Object.";
    CELL_ISOLATE_RESETS: Kind::Counter, "holdfast.cellnode.isolates.resets.count", "{reset}", ["cause"],
        "Isolates of Durable Objects that could not go on, by cause.";
    THREAD_STALLS: Kind::Counter, "holdfast.cellnode.threads.stalls.count", "{stall}", [],
        "Turns of a cell that held its thread for more than 2 s; the log names the cell.";
    ALARM_RUNS: Kind::Counter, "holdfast.cellnode.alarms.runs.count", "{run}", ["outcome"],
        "Runs of alarm handlers that have ended: succeeded, failed (it threw or broke a limit), broken_off, no_handler.";
    ALARM_LATENESS: Kind::Histogram(REQUEST_SECONDS), "holdfast.cellnode.alarms.lateness.seconds", "s", [],
        "From the time at which a run of an alarm's handler was due, by the wall clock, to its begin.";
    ALARMS_ABANDONED: Kind::Counter, "holdfast.cellnode.alarms.abandoned.count", "{alarm}", ["cause"],
        "Alarms that were given up, by cause: failures, unended (its runs ended their processes), no_handler. The log names each.";
    ALARMS_ARMED: Kind::UpDown, "holdfast.cellnode.alarms.armed.count", "{alarm}", [],
        "Armed alarms of resident cells.";
    ALARMS_RETRYING: Kind::UpDown, "holdfast.cellnode.alarms.retrying.count", "{alarm}", [],
        "Armed alarms of resident cells whose last run did not succeed.";
    ALARM_INDEX_WRITES: Kind::Counter, "holdfast.cellnode.alarms.index.writes.count", "{write}", ["operation", "outcome"],
        "Writes of the alarm index: wake entries put, retired records written, obsolete entries deleted.";
    SCHEDULED_RUNS: Kind::Counter, "holdfast.cellnode.scheduled.runs.count", "{run}", ["outcome"],
        "Runs of `scheduled` handlers that have ended: ok, failed (it threw, or took 15 minutes), given_up (it began three times and never ended).";
    OUTBOUND_CONNECTIONS: Kind::UpDown, "holdfast.outbound.connections.count", "{connection}", [],
        "TCP connections that the application's `connect()` holds open.";
    OUTBOUND_CONNECTIONS_OPENED: Kind::Counter, "holdfast.outbound.connections.opened.count", "{connection}", ["outcome"],
        "TCP connections that the application asked for: ok, refused (it may not be made), failed.";
    R2_OPERATIONS: Kind::Counter, "holdfast.app_buckets.operations.count", "{operation}", ["operation", "outcome"],
        "Operations on R2 buckets of the application, by method and outcome: ok, failed.";
    R2_BYTES: Kind::Counter, "holdfast.app_buckets.objects.bytes", "By", ["direction"],
        "Bytes of objects that went into R2 buckets of the application and that were asked of them.";
    CACHE_LOOKUPS: Kind::Counter, "holdfast.app_cache.lookups.count", "{lookup}", ["outcome"],
        "Looks into the caches of the Cache API: hit, miss.";
    CACHE_PUTS: Kind::Counter, "holdfast.app_cache.puts.count", "{answer}", ["outcome"],
        "Answers that were put into them: kept, passed (they are not to be kept, or too large).";
    CACHE_BYTES: Kind::UpDown, "holdfast.app_cache.bytes", "By", [],
        "Bytes of the answers in them.";
    LOG_RETAINED: Kind::UpDown, "holdfast.cellnode.log.retained.bytes", "By", [],
        "Bytes of frames in the memory of sessions that the bucket does not store yet.";
    LOG_BUNDLES: Kind::Counter, "holdfast.cellnode.log.bundles.count", "{bundle}", ["outcome"],
        "Puts of bundles: one object with the frames of many cells.";
    LOG_BUNDLE_BYTES: Kind::Counter, "holdfast.cellnode.log.bundles.bytes", "By", [],
        "Bytes of bundles stored.";
    LOG_BUNDLE_DURATION: Kind::Histogram(WAIT_SECONDS), "holdfast.cellnode.log.bundles.duration.seconds", "s", [],
        "One put of a bundle, failed ones included.";
    LOG_BY_ENSEMBLE: Kind::UpDown, "holdfast.cellnode.log.by_ensemble.count", "{session}", [],
        "Sessions whose writes followers prove now; the others wait for the bucket.";
    LOG_ENSEMBLES: Kind::Counter, "holdfast.cellnode.log.ensembles.count", "{ensemble}", ["members"],
        "Ensembles that became active, by their number of members.";
    LOG_EVICTIONS: Kind::Counter, "holdfast.cellnode.log.evictions.count", "{eviction}", ["reason"],
        "Followers that sessions gave up, by reason.";
    RECOVERIES: Kind::Counter, "holdfast.cellnode.recoveries.count", "{recovery}", ["outcome"],
        "Attempts to recover the log of a dead session, by outcome.";
    RECOVERIES_BLOCKED: Kind::UpDown, "holdfast.cellnode.recoveries.blocked.count", "{session}", [],
        "Dead sessions whose acknowledged writes are only on followers that do not answer, as this process found, and as their records still said within the last half minute.";
    RECOVERY_BYTES: Kind::Counter, "holdfast.cellnode.recoveries.bytes", "By", [],
        "Bytes of LTX that recoveries brought from followers into the bucket.";
    COMPACTIONS: Kind::Counter, "holdfast.cellnode.compactions.count", "{compaction}", ["kind", "outcome"],
        "Level-1 compactions and level-9 snapshots.";
    LOCAL_FILES_BYTES: Kind::UpDown, "holdfast.cellnode.local_files.bytes", "By", [],
        "Disk taken by the files of cells that are not in memory; bounded by `--local-files-max`.";
    LOCAL_FILES_REMOVED: Kind::Counter, "holdfast.cellnode.local_files.removed.cells.count", "{cell}", [],
        "Cells whose files were removed to keep to that bound; the next request of one restores it from the bucket.";
    LOCAL_FILES_REMOVED_BYTES: Kind::Counter, "holdfast.cellnode.local_files.removed.bytes", "By", [],
        "Bytes of those files.";
    RETIRED_OBJECTS: Kind::Counter, "holdfast.cellnode.retired.objects.count", "{object}", [],
        "Objects of cells' histories that were deleted because no restore reads them any more.";
    RETIRED_BYTES: Kind::Counter, "holdfast.cellnode.retired.bytes", "By", [],
        "Bytes of those objects.";
    RETIREMENT_FAILURES: Kind::Counter, "holdfast.cellnode.retired.failures.count", "{failure}", [],
        "Looks at a cell's history that failed; they are repeated after 30 s to 8 minutes.";
    RETIREMENTS_WAITING: Kind::UpDown, "holdfast.cellnode.retired.waiting.cells.count", "{cell}", [],
        "Resident cells whose history is to be looked after, those that wait for `--history-retention` included.";
    FOLLOWER_FSYNC: Kind::Histogram(WAIT_SECONDS), "holdfast.follower.fsync.duration.seconds", "s", [],
        "One fsync of the journal: one batch, whatever the number of sessions.";
    FOLLOWER_BATCH_ENTRIES: Kind::Histogram(BATCH_ENTRIES), "holdfast.follower.batch.entries.count", "{entry}", [],
        "Entries of one batch.";
    FOLLOWER_WRITTEN: Kind::Counter, "holdfast.follower.written.bytes", "By", [],
        "Bytes written to the journal, padding included.";
    FOLLOWER_RETAINED: Kind::UpDown, "holdfast.follower.retained.bytes", "By", [],
        "Bytes of retained frames of all sessions; `holdfast log list` tells them by session.";
    FOLLOWER_STREAMS: Kind::UpDown, "holdfast.follower.streams.count", "{stream}", [],
        "Sessions that append now.";
    FOLLOWER_SEALS: Kind::Counter, "holdfast.follower.seals.count", "{seal}", [],
        "Seals answered.";
    FOLLOWER_REFUSALS: Kind::Counter, "holdfast.follower.refusals.count", "{refusal}", ["reason"],
        "Messages of append streams that were refused, by reason.";
    FOLLOWER_POISONED: Kind::Counter, "holdfast.follower.poisoned.count", "{failure}", [],
        "Writes or fsyncs that the disk failed: the process stops at the first.";
    WAKER_LISTS: Kind::Counter, "holdfast.waker.lists.count", "{listing}", ["outcome"],
        "Listings of the alarm index: one a tick, and one for every thousand entries that are due.";
    WAKER_DUE: Kind::Counter, "holdfast.waker.entries.due.count", "{entry}", [],
        "Due entries of this waker's shards that it began to look after.";
    WAKER_DELETES: Kind::Counter, "holdfast.waker.entries.deleted.count", "{entry}", [],
        "Entries deleted because they were proved obsolete.";
    WAKER_HINTS: Kind::Counter, "holdfast.waker.hints.count", "{hint}", ["outcome"],
        "Hints to open a cell and look at its alarm, by what came of them.";
    WAKER_HINT_DURATION: Kind::Histogram(REQUEST_SECONDS), "holdfast.waker.hints.duration.seconds", "s", [],
        "One hint, the opening of its cell included.";
    WAKER_BACKLOG: Kind::Gauge, "holdfast.waker.backlog.count", "{cell}", ["waker"],
        "Cells with due entries that this waker knows of.";
    WAKER_IN_FLIGHT: Kind::Gauge, "holdfast.waker.in_flight.count", "{cell}", ["waker"],
        "Cells that this waker is looking at now.";
    WAKER_WINDOW: Kind::Gauge, "holdfast.waker.window.count", "{cell}", ["waker"],
        "Cells that this waker looks at at once at most; it halves when a node says that it has enough.";
    WAKER_OVERDUE: Kind::Gauge, "holdfast.waker.overdue.count", "{cell}", ["waker"],
        "Cells with an entry that was due more than a minute ago: a handler that is retried, a cell that cannot be opened.";
    WAKER_OLDEST: Kind::Gauge, "holdfast.waker.overdue.age.seconds", "s", ["waker"],
        "How long ago the oldest entry was due that this waker knows of.";
    WAKER_SHARDS: Kind::Gauge, "holdfast.waker.shards.count", "{shard}", ["waker"],
        "Shards of the alarm index that this waker looks after.";
    WAKER_LEASE_WRITES: Kind::Counter, "holdfast.waker.leases.writes.count", "{write}", ["outcome"],
        "Writes of leases on shards, by outcome; another waker's write in between is a rejection.";
    WAKER_SWEEPS: Kind::Counter, "holdfast.waker.sweeps.recoveries.count", "{recovery}", ["outcome"],
        "Dead sessions whose logs cellnodes were asked to recover, by what came of it.";
    WAKER_MOVES: Kind::Counter, "holdfast.waker.moves.count", "{cell}", [],
        "Cells that nodes gave to others because this waker asked for it, to even them out.";
    WAKER_BURIALS: Kind::Counter, "holdfast.waker.leases.buried.count", "{lease}", [],
        "Leases of cellnodes long gone that this waker deleted.";
    DEPLOY_LOADS: Kind::Counter, "holdfast.deploy.loads.count", "{load}", ["outcome"],
        "Loads of a version of the application that is to run; after a failed one the version before goes on.";
    BUCKET_OPERATIONS: Kind::Counter, "holdfast.bucket.operations.count", "{operation}", ["operation", "outcome"],
        "Store operations, by operation and outcome.";
    BUCKET_DURATION: Kind::Histogram(WAIT_SECONDS), "holdfast.bucket.operations.duration.seconds", "s", ["operation", "outcome"],
        "One store operation, its retries included.";
}

macro_rules! spans {
    ($($id:ident: $name:literal, $meaning:literal;)*) => {
        /// Names of spans, for `tracing::info_span!(names::span::…)`.
        pub mod span {
            $(#[doc = $meaning] pub const $id: &str = $name;)*
        }
        /// Every span.
        pub const SPANS: &[Span] = &[$(Span { name: $name, meaning: $meaning }),*];
    };
}

spans! {
    INGRESS_REQUEST: "holdfast.ingress.request", "A request at the public edge, until the end of its response.";
    ROUTING_RESOLVE: "holdfast.routing.resolve", "Finding or placing the owner of a cell.";
    CELLNODE_CALL: "holdfast.cellnode.call", "A call to a cell, until its output is released.";
    ACTIVATION: "holdfast.cellnode.activation", "Making a cell resident. Runs outside the request that asked, linked to it.";
    CLAIM: "holdfast.cellnode.activation.claim", "Reading the owner record and claiming the next epoch.";
    RECOVER: "holdfast.cellnode.activation.recover", "Recovering the dead session's log.";
    RESTORE: "holdfast.cellnode.activation.restore", "Rebuilding the database.";
    OPEN: "holdfast.cellnode.activation.open", "Writing the opener and opening SQLite.";
    GATE_WAIT: "holdfast.cellnode.gate.wait", "An output waiting for its durability proof.";
    ALARM: "holdfast.cellnode.alarm", "One run of an alarm's handler, from its begin to its end. A trace of its own.";
    UPLOAD: "holdfast.cellnode.upload", "One upload of an LTX object.";
    COMPACTION: "holdfast.cellnode.compaction", "One compaction or snapshot.";
    LEASE_RENEWAL: "holdfast.cellnode.lease.renewal", "One attempt to renew the lease.";
    RELEASE: "holdfast.cellnode.release", "Giving a cell up in order.";
}
