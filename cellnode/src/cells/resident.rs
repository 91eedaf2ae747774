//! One residency of one cell: its gate, and the execution of what the gate asks for. Keeps INV-OWN-3 and INV-FENCE-1 by
//! doing nothing that the gate did not ask for.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use holdfast_bucket::Version;
use holdfast_core::compaction::{ChainSize, Compaction};
use holdfast_core::gate::ProofKind as CoreProofKind;
use holdfast_core::gate::{Clearance, FailCause, Gate, GateEffect, GateEvent, GateOwner, OutputId};
use holdfast_core::ownership::OwnerView;
use holdfast_core::retire::LastMark;
use holdfast_telemetry::names::span;
use holdfast_telemetry::{ProofKind, ProofOutcome, metrics};
use holdfast_types::{AlarmTime, CellName, Epoch, Millis, Position, Txid};
use tokio::sync::watch;
use tracing::Instrument as _;

use super::worker::{Job, WorkerHandle};
use super::{Event, EventHandle};
use crate::clock;
use crate::critical;
use crate::data_dir::CellFiles;
use crate::node::Node;
use crate::paged::PagedDatabase;
use crate::replication::{self, Pending};
use crate::retire::{RetireState, locked};

/// Called once when an output leaves or fails.
type OnOutcome = Box<dyn FnOnce(Result<(), FailCause>) + Send>;

struct Output {
    since: Instant,
    on_outcome: OnOutcome,
}

struct GateState {
    machine: Gate,
    outputs_made: u64,
    outputs: HashMap<OutputId, Output>,
}

/// What a residency is made from.
#[derive(Debug)]
pub(crate) struct ResidentParts {
    /// The cell.
    pub(crate) cell: CellName,
    /// Whether it has a thread of its own: its first work takes long.
    pub(crate) is_alone: bool,
    /// The owner record as claimed.
    pub(crate) owner: OwnerView,
    /// Its version.
    pub(crate) version: Version,
    /// Where the database stands, all of it in the bucket: as a position of an epoch that wrote, none for an empty one, and
    /// as a transaction.
    pub(crate) restored: (Option<Position>, Txid),
    /// What a restore would read.
    pub(crate) chain: ChainSize,
    /// The last mark of its history.
    pub(crate) mark: LastMark,
    /// Local files.
    pub(crate) files: CellFiles,
    /// The database, where it was opened before all of it was here.
    pub(crate) paged: Option<Arc<PagedDatabase>>,
}

/// A cell in memory, in one epoch.
pub(crate) struct Resident {
    /// The cell.
    pub(crate) cell: CellName,
    /// The epoch.
    pub(crate) epoch: Epoch,
    /// The owner record as claimed.
    pub(crate) owner: OwnerView,
    /// Its version.
    pub(crate) version: Version,
    /// Where the epoch begins.
    base: Option<Position>,
    /// Local files.
    pub(crate) files: CellFiles,
    /// The database, where it was opened before all of it was here.
    pub(crate) paged: Option<Arc<PagedDatabase>>,
    /// When chains are shortened.
    pub(crate) compaction: Mutex<Compaction>,
    /// The database's length at its last capture, in bytes.
    pub(crate) database_len: AtomicU64,
    retire: Mutex<RetireState>,
    history_holds: AtomicUsize,
    node: Weak<Node>,
    worker: WorkerHandle,
    gate: Mutex<GateState>,
    pending: Mutex<Pending>,
    /// Set when the cell was discarded and the bucket has all that the node log took.
    settled: watch::Sender<bool>,
    /// The last transaction in the bucket.
    uploaded: watch::Sender<Txid>,
    waiting: AtomicUsize,
    queued: AtomicUsize,
    open: AtomicUsize,
    sockets: AtomicUsize,
    messages: AtomicUsize,
    in_transaction: AtomicBool,
    restoring: AtomicBool,
    failed: AtomicBool,
    position: AtomicU64,
    last_event_ms: AtomicU64,
    /// When the alarm is due by the wall clock; the maximum while none is armed.
    alarm_due: AtomicI64,
    made: Millis,
}

impl std::fmt::Debug for Resident {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resident")
            .field("cell", &self.cell)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

impl Resident {
    pub(crate) fn new(node: &Arc<Node>, parts: ResidentParts) -> Arc<Self> {
        let ResidentParts {
            cell,
            is_alone,
            owner,
            version,
            restored: (base, restored),
            chain,
            mark,
            files,
            paged,
        } = parts;
        let gate_owner = GateOwner { node: node.name.clone(), session: node.session, epoch: owner.epoch };
        let pace_ms = clock::millis(node.config.upload_pace);
        let machine = Gate::new(gate_owner, restored, pace_ms);
        let made = clock::monotonic();
        Arc::new(Self {
            worker: if is_alone { node.workers.alone(&cell) } else { node.workers.of(&cell) },
            epoch: owner.epoch,
            compaction: Mutex::new(Compaction::new(node.triggers, restored, chain)),
            retire: Mutex::new(RetireState::new(mark)),
            history_holds: AtomicUsize::new(0),
            pending: Mutex::default(),
            settled: watch::Sender::new(false),
            uploaded: watch::Sender::new(restored),
            database_len: AtomicU64::new(0),
            node: Arc::downgrade(node),
            gate: Mutex::new(GateState { machine, outputs_made: 0, outputs: HashMap::new() }),
            waiting: AtomicUsize::new(0),
            queued: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            sockets: AtomicUsize::new(0),
            messages: AtomicUsize::new(0),
            in_transaction: AtomicBool::new(false),
            restoring: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            position: AtomicU64::new(restored.get()),
            last_event_ms: AtomicU64::new(made.get()),
            made,
            alarm_due: AtomicI64::new(i64::MAX),
            base,
            cell,
            owner,
            version,
            files,
            paged,
        })
    }

    /// The node, unless it is shutting down.
    pub(crate) fn node(&self) -> Option<Arc<Node>> {
        self.node.upgrade()
    }

    /// What is remembered of the retirement of its history. Held for a moment only.
    pub(crate) fn retire_state(&self) -> std::sync::MutexGuard<'_, RetireState> {
        locked(&self.retire)
    }

    /// How many hold its history.
    pub(crate) fn history_holds(&self) -> &AtomicUsize {
        &self.history_holds
    }

    /// Whether somebody reads objects that were planned: a snapshot under way, or a file that is being filled.
    pub(crate) fn is_history_held(&self) -> bool {
        self.history_holds.load(Ordering::Acquire) > 0 || self.reads_chain()
    }

    /// The position of the last output.
    pub(crate) fn position(&self) -> Position {
        Position { epoch: self.epoch, txid: Txid::new(self.position.load(Ordering::Relaxed)) }
    }

    /// Whether the cell still reads objects of the chain that it was opened from: then none of the chain may be deleted.
    pub(crate) fn reads_chain(&self) -> bool {
        self.paged.as_ref().is_some_and(|paged| paged.reads_chain())
    }

    /// An event came.
    pub(super) fn touched(&self, now: Millis) {
        self.last_event_ms.store(now.get(), Ordering::Relaxed);
    }

    /// The position whose content the database has when it stands at this transaction: of an epoch that wrote.
    pub(crate) fn end_at(&self, txid: Txid) -> Option<Position> {
        match self.base {
            Some(base) if base.txid == txid => Some(base),
            _ => (txid > Txid::ZERO).then_some(Position { epoch: self.epoch, txid }),
        }
    }

    /// When the last event came, monotonic; before the first, when it was made.
    pub(crate) fn last_event(&self) -> Millis {
        Millis::new(self.last_event_ms.load(Ordering::Relaxed))
    }

    /// For how long there was no event, in milliseconds.
    pub(crate) fn idle_ms(&self) -> u64 {
        clock::monotonic().since(self.last_event())
    }

    /// The alarm has changed.
    pub(super) fn note_alarm(&self, due: Option<AlarmTime>) {
        self.alarm_due.store(due.map_or(i64::MAX, AlarmTime::get), Ordering::Relaxed);
    }

    /// When the alarm is due.
    pub(crate) fn alarm_due(&self) -> Option<AlarmTime> {
        let due = self.alarm_due.load(Ordering::Relaxed);
        (due != i64::MAX).then_some(AlarmTime::new(due))
    }

    /// Events that are open now.
    pub(super) fn note_open(&self, events: usize) {
        self.open.store(events, Ordering::Relaxed);
    }

    /// Sockets that are open now.
    pub(super) fn note_sockets(&self, sockets: usize) {
        self.sockets.store(sockets, Ordering::Relaxed);
    }

    /// Messages of sockets, and ends of them, that the cell has not been told.
    pub(super) fn note_messages(&self, messages: usize) {
        self.messages.store(messages, Ordering::Relaxed);
    }

    /// Whether an event is under way between turns, or a restore that events wait for.
    pub(crate) fn has_running_events(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0 || self.restoring.load(Ordering::Relaxed)
    }

    /// The same, or a socket or a connection is open.
    pub(crate) fn has_open_events(&self) -> bool {
        self.has_running_events() || self.sockets.load(Ordering::Relaxed) > 0
    }

    /// A restore that the object wished for is under way, or is not any more.
    pub(super) fn note_restoring(&self, is_restoring: bool) {
        self.restoring.store(is_restoring, Ordering::Relaxed);
    }

    /// A caller's transaction is open between its requests, or is not any more.
    pub(super) fn note_transaction(&self, is_open: bool) {
        self.in_transaction.store(is_open, Ordering::Relaxed);
    }

    /// Whether an event or a message waits for its turn or is under way between turns, or a caller's transaction is open
    /// between its requests.
    pub(crate) fn is_busy(&self) -> bool {
        self.has_running_events()
            || self.queued.load(Ordering::Relaxed) > 0
            || self.messages.load(Ordering::Relaxed) > 0
            || self.in_transaction.load(Ordering::Relaxed)
    }

    /// Whether clients hold sockets of it, or it holds connections.
    pub(crate) fn has_sockets(&self) -> bool {
        self.sockets.load(Ordering::Relaxed) > 0
    }

    /// Whether an event has come since it was made.
    pub(crate) fn was_used(&self) -> bool {
        self.last_event() > self.made
    }

    /// Whether its alarm is due within so many milliseconds.
    pub(crate) fn alarm_within(&self, span_ms: i64) -> bool {
        self.alarm_due().is_some_and(|due| due <= clock::wall_time_in(span_ms))
    }

    /// Whether its chain is being shortened.
    #[cfg(test)]
    pub(crate) fn is_compacting(&self) -> bool {
        self.compaction.lock().unwrap_or_else(PoisonError::into_inner).is_running()
    }

    /// Whether the gate has failed: this residency is over.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Has the cell told that something else is deployed.
    pub(crate) fn tell_deployed(self: &Arc<Self>) {
        self.send(Job::Deployed(Arc::clone(self)));
    }

    /// Puts a job into the queue of the cell's thread.
    pub(crate) fn send(&self, job: Job) {
        self.worker.send(job);
    }

    /// Queues a request, unless too many wait already.
    pub(crate) fn submit(
        self: &Arc<Self>,
        queue_max: usize,
        (event, handle): (Event, EventHandle),
    ) -> Result<EventHandle, usize> {
        let before = self.queued.fetch_add(1, Ordering::Relaxed);
        if before >= queue_max {
            self.queued.fetch_sub(1, Ordering::Relaxed);
            return Err(before);
        }
        self.send(Job::Event(Arc::clone(self), Box::new(event)));
        Ok(handle)
    }

    /// An event left the queue.
    pub(super) fn dequeued(&self) {
        self.queued.fetch_sub(1, Ordering::Relaxed);
    }

    /// What is captured and not in the bucket.
    pub(crate) fn pending(&self) -> std::sync::MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells when the cell is settled after it was discarded.
    pub(crate) fn settled(&self) -> watch::Receiver<bool> {
        self.settled.subscribe()
    }

    /// Tells the gate whether what is logged may wait. Read under the gate's lock, so that the last word is the newest.
    pub(crate) fn pace(self: &Arc<Self>) {
        let Some(node) = self.node() else { return };
        self.with_gate(|_| GateEvent::PaceChanged { rounds: node.log.rounds() });
    }

    /// Resolves once the bucket holds everything that was acknowledged before. False when the cell was given up before
    /// that: then its state has to be found out anew.
    pub(crate) async fn covered(self: &Arc<Self>) -> bool {
        self.on(GateEvent::Cover);
        let wanted = self.gate.lock().unwrap_or_else(PoisonError::into_inner).machine.captured();
        self.uploaded(wanted).await
    }

    /// Resolves once the bucket holds everything up to a transaction, which the gate was asked for. False as
    /// [`Resident::covered`].
    pub(crate) async fn uploaded(&self, wanted: Txid) -> bool {
        let (mut uploaded, mut settled) = (self.uploaded.subscribe(), self.settled());
        tokio::select! {
            biased;
            uploaded = uploaded.wait_for(|uploaded| *uploaded >= wanted) => uploaded.is_ok(),
            settled = settled.wait_for(|settled| *settled) => settled.is_ok(),
        }
    }

    /// The bucket holds everything up to the transaction.
    pub(crate) fn note_uploaded(&self, last: Txid) {
        // Answers of two uploads may be told in the other order.
        self.uploaded.send_if_modified(|uploaded| {
            let is_news = last > *uploaded;
            *uploaded = last.max(*uploaded);
            is_news
        });
    }

    /// An output wants to leave. `on_outcome` is called exactly once.
    pub(crate) fn output(
        self: &Arc<Self>,
        ticket: Txid,
        deadline: Millis,
        on_outcome: impl FnOnce(Result<(), FailCause>) + Send + 'static,
    ) {
        self.ready((ticket, deadline, false), on_outcome);
    }

    /// Calls `on_outcome` once the bucket has everything up to the ticket.
    pub(crate) fn cover(
        self: &Arc<Self>,
        ticket: Txid,
        deadline: Millis,
        on_outcome: impl FnOnce(Result<(), FailCause>) + Send + 'static,
    ) {
        self.ready((ticket, deadline, true), on_outcome);
    }

    fn ready(
        self: &Arc<Self>,
        (ticket, deadline, in_bucket): (Txid, Millis, bool),
        on_outcome: impl FnOnce(Result<(), FailCause>) + Send + 'static,
    ) {
        self.position.fetch_max(ticket.get(), Ordering::Relaxed);
        self.with_gate(|state| {
            let output = OutputId(state.outputs_made);
            state.outputs_made += 1;
            let on_outcome = Box::new(on_outcome);
            state.outputs.insert(output, Output { since: Instant::now(), on_outcome });
            GateEvent::OutputReady { output, ticket, deadline, in_bucket }
        });
    }

    /// Takes an event to the gate.
    pub(crate) fn on(self: &Arc<Self>, event: GateEvent) {
        self.with_gate(|_| event);
    }

    /// Time passed: outputs whose deadline has come fail. Cheap where none waits.
    pub(crate) fn tick(self: &Arc<Self>) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.on(GateEvent::Tick);
        }
    }

    fn with_gate(self: &Arc<Self>, event: impl FnOnce(&mut GateState) -> GateEvent) {
        let Some(node) = self.node() else { return };
        let mut done: Vec<(Output, bool, Result<Clearance, FailCause>)> = Vec::new();
        let effects = {
            let mut state = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
            let made_before = state.outputs_made;
            let event = event(&mut state);
            let mut effects = state.machine.on(event, clock::monotonic(), node.authority.until());
            effects.retain(|effect| {
                let (output, outcome) = match effect {
                    GateEffect::Release { output, clearance } => (output, Ok(*clearance)),
                    GateEffect::Fail { output, cause } => (output, Err(*cause)),
                    _ => return true,
                };
                // One that is answered by the call that made it has not waited.
                let waited = output.0 < made_before;
                let output = state.outputs.remove(output).expect("an output is answered once");
                done.push((output, waited, outcome));
                false
            });
            let before = self.waiting.swap(state.outputs.len(), Ordering::Relaxed);
            // Under the lock, so that the node's sum never counts a change twice.
            node.waiting.fetch_add(state.outputs.len(), Ordering::Relaxed);
            node.waiting.fetch_sub(before, Ordering::Relaxed);
            if state.machine.has_failed() {
                self.failed.store(true, Ordering::Release);
            }
            effects
        };
        for (output, waited, outcome) in done {
            answer(output, waited, outcome);
        }
        for effect in effects {
            self.execute(&node, effect);
        }
    }

    fn execute(self: &Arc<Self>, node: &Arc<Node>, effect: GateEffect) {
        match effect {
            GateEffect::Capture => self.send(Job::Capture(Arc::clone(self), std::time::Instant::now())),
            GateEffect::Upload { first, last, attempt } => {
                let span = tracing::debug_span!(span::UPLOAD, cell = %self.cell, %first, %last, attempt);
                let upload = replication::upload(Arc::clone(self), (first, last), attempt);
                critical::spawn(&node.runtime, "upload", upload.instrument(span));
            }
            GateEffect::WakeAt(due) => node.due_uploads.add(due, self),
            GateEffect::ReadOwner { attempt } => {
                critical::spawn(
                    &node.runtime,
                    "owner read",
                    replication::read_owner(Arc::clone(self), attempt),
                );
            }
            GateEffect::Discard { cause } => self.discard(node, cause),
            GateEffect::Settled => {
                self.settled.send_replace(true);
                node.cells.forget_left(self);
            }
            GateEffect::Release { .. } | GateEffect::Fail { .. } => unreachable!("answered before"),
        }
    }

    fn discard(self: &Arc<Self>, node: &Arc<Node>, cause: FailCause) {
        if cause == FailCause::LeaseLost {
            tracing::debug!(cell = %self.cell, epoch = %self.epoch, "the cell stops with its node's lease");
        } else {
            tracing::warn!(
                cell = %self.cell, epoch = %self.epoch, cause = cause.name(),
                "the cell is discarded: {cause}; its next activation restores it from the bucket"
            );
        }
        metrics().proof(ProofKind::Bucket, proof_outcome(cause));
        if cause == FailCause::OwnershipLost {
            node.owners.lost(&self.cell);
        }
        node.cells.discard(self);
        self.send(Job::Drop(Arc::clone(self)));
    }
}

fn answer(output: Output, waited: bool, outcome: Result<Clearance, FailCause>) {
    match outcome {
        Ok(clearance) => {
            if let Clearance::Proved(proof) = clearance {
                let kind = match proof.kind() {
                    CoreProofKind::Ensemble => ProofKind::Ensemble,
                    CoreProofKind::Bucket => ProofKind::Bucket,
                };
                metrics().proof(kind, ProofOutcome::Covered);
            }
            if waited {
                metrics().gate_wait(output.since.elapsed());
            }
            (output.on_outcome)(Ok(()));
        }
        Err(cause) => (output.on_outcome)(Err(cause)),
    }
}

fn proof_outcome(cause: FailCause) -> ProofOutcome {
    match cause {
        FailCause::OwnershipLost => ProofOutcome::Superseded,
        FailCause::TimedOut | FailCause::LeaseLost | FailCause::CaptureFailed | FailCause::Abandoned => {
            ProofOutcome::Failed
        }
    }
}
