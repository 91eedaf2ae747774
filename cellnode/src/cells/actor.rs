//! A cell on its thread: one event at a time, each output through the gate. Keeps INV-FENCE-1: after the session's
//! authority no event starts.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use holdfast_core::gate::{FailCause, GateEvent};
use holdfast_rpc::CallError;
use holdfast_sql::{Engine, EngineOptions};
use holdfast_telemetry::metrics;
use holdfast_types::{CellName, Epoch, Millis, Position, Txid};
use tokio::sync::oneshot;

use super::{Event, EventReply, Resident};
use crate::clock;
use crate::node::Node;
use crate::runtime::{CellRuntime, RuntimeContext, RuntimeOutcome, runtime_of};

/// Events that may wait for another caller's transaction.
const BLOCKED_MAX: usize = 128;
/// A WAL longer than this holds events back until it is captured and checkpointed: back-to-back transactions would
/// otherwise never leave a gap for it.
const WAL_HOLD_BYTES: u64 = 16 << 20;
/// Silence after which a cell gives its caches and its third open file back, in milliseconds.
const IDLE_MS: u64 = 10_000;

/// The refusal of an event whose cell has gone while it was queued: it did not run, and the caller may ask again.
pub(super) fn gone(cell: &CellName) -> CallError {
    tracing::debug!(%cell, "an event met a cell that has gone");
    CallError::NotOwner(None)
}

/// A resident cell's engine and handler.
pub(super) struct Actor {
    resident: Arc<Resident>,
    node: Arc<Node>,
    engine: Engine,
    runtime: Box<dyn CellRuntime>,
    /// Events that wait for their turn on the thread.
    queue: VecDeque<Event>,
    /// Events that wait for another caller's transaction to end.
    blocked: VecDeque<Event>,
    is_leaving: bool,
    wal_bytes: u64,
    last_event: Millis,
    /// When to look whether the cell is idle; none once it has been trimmed.
    idle_check: Option<Millis>,
}

impl Actor {
    pub(super) fn open(resident: &Arc<Resident>, database: &Path, position: Txid) -> Result<Self, String> {
        let node = resident.node().ok_or("the node is shutting down")?;
        let options = EngineOptions {
            db_bytes_max: Some(node.config.database_max),
            statement_budget: node.config.statement_budget,
            // A database is reused only within one boot of the machine, so it need not survive a power cut.
            is_synced_on_close: false,
            ..EngineOptions::new(node.data_dir.spool())
        };
        let context = RuntimeContext { cell: resident.cell.clone(), epoch: resident.epoch };
        let runtime = runtime_of(context).map_err(|error| error.to_string())?;
        let engine = Engine::open(database, position, &options).map_err(|error| error.to_string())?;
        metrics().cells_resident_changed(1);
        resident.database_len.store(engine.size_bytes(), Ordering::Relaxed);
        let resident = Arc::clone(resident);
        let last_event = clock::monotonic();
        Ok(Self {
            resident,
            node,
            engine,
            runtime,
            queue: VecDeque::new(),
            blocked: VecDeque::new(),
            is_leaving: false,
            wal_bytes: 0,
            last_event,
            idle_check: Some(last_event.plus(IDLE_MS)),
        })
    }

    /// Queues an event. Tells whether the cell had none: then it needs a turn.
    pub(super) fn enqueue(&mut self, event: Event) -> bool {
        self.queue.push_back(event);
        self.queue.len() == 1
    }

    /// Events that wait for their turn.
    pub(super) fn events(&self) -> usize {
        self.queue.len()
    }

    /// Runs one event. Tells whether more wait.
    pub(super) fn take_turn(&mut self) -> bool {
        if let Some(event) = self.queue.pop_front() {
            self.resident.dequeued();
            self.on_event(event);
        }
        !self.queue.is_empty()
    }

    fn on_event(&mut self, event: Event) {
        self.last_event = clock::monotonic();
        // Set once and looked at when it comes, so that a busy cell does not move its timer with every event.
        self.idle_check.get_or_insert(self.last_event.plus(IDLE_MS));
        self.resident.touched(self.last_event);
        self.run(event);
        self.run_blocked();
    }

    fn run(&mut self, event: Event) {
        if self.is_leaving || self.resident.has_failed() {
            return event.refuse(gone(&self.resident.cell));
        }
        if !self.node.authority.is_live() {
            return event.refuse(CallError::Unavailable { reason: "the node has lost its lease".into() });
        }
        let uncaptured = self.engine.uncaptured_bytes();
        if uncaptured > self.node.config.uncaptured_max {
            let reason = format!(
                "cell `{}` has {uncaptured} bytes that are not in the bucket yet; come again",
                self.resident.cell
            );
            return event.refuse(CallError::Overloaded { reason, retry_after_ms: 1_000 });
        }
        if let Some(bytes) = self.node.log.is_full() {
            let reason =
                format!("node `{}` holds {bytes} bytes that are not in the bucket yet", self.node.name);
            return event.refuse(CallError::Overloaded { reason, retry_after_ms: 1_000 });
        }
        if let Some(bytes) = self.node.answers.is_full() {
            let reason = format!(
                "node `{}` holds {bytes} bytes of answers that wait for their proofs",
                self.node.name
            );
            return event.refuse(CallError::Overloaded { reason, retry_after_ms: 1_000 });
        }
        if self.must_hold_for_checkpoint() {
            return self.block(event);
        }
        if !event.start() {
            return;
        }
        let now = clock::monotonic();
        match self.runtime.handle(&mut self.engine, &event.request, event.access, now) {
            RuntimeOutcome::Blocked => {
                event.requeue();
                self.block(event);
            }
            RuntimeOutcome::Reply(response) => self.output(event, response),
        }
    }

    /// Keeps an event until the cell is free for it.
    fn block(&mut self, event: Event) {
        if self.blocked.len() < BLOCKED_MAX {
            self.blocked.push_back(event);
        } else {
            let reason = format!("{BLOCKED_MAX} requests wait for an open transaction of this cell");
            event.refuse(CallError::Overloaded { reason, retry_after_ms: 1_000 });
        }
    }

    /// Whether the WAL is so long that it must be captured and checkpointed before the next event. What is captured is
    /// checkpointed at once; what is not, is when its capture comes, which the gate has asked for.
    fn must_hold_for_checkpoint(&mut self) -> bool {
        if self.engine.wal_bytes() <= WAL_HOLD_BYTES || self.engine.in_transaction() {
            return false;
        }
        self.checkpoint();
        self.engine.is_dirty()
    }

    fn checkpoint(&mut self) {
        if !self.engine.checkpoint_due() {
            return;
        }
        if let Err(error) = self.engine.checkpoint() {
            tracing::error!(cell = %self.resident.cell, %error, "a checkpoint failed");
            self.resident.on(GateEvent::DatabaseFailed);
        }
    }

    fn output(&mut self, event: Event, response: http::Response<bytes::Bytes>) {
        self.note_wal();
        if let Some(code) = self.engine.fault() {
            tracing::error!(cell = %self.resident.cell, code, "the local database failed");
            self.resident.on(GateEvent::DatabaseFailed);
        }
        let ticket = self.engine.ticket();
        let position = Position { epoch: self.resident.epoch, txid: ticket };
        let reply = event.reply;
        let held = self.node.answers.hold(response.body().len());
        // The proof's time begins now: what the event waited for before is not the store's fault.
        self.resident.output(ticket, self.node.proof_deadline(), move |outcome| {
            let answer = match outcome {
                Ok(()) => Ok(EventReply { response, position }),
                Err(cause) => Err(CallError::OutcomeUnknown { reason: cause.to_string() }),
            };
            // The caller may have gone; its write stands all the same.
            let _ = reply.send(answer);
            drop(held);
        });
    }

    fn run_blocked(&mut self) {
        // Each is tried once; those that still wait go back to the end in order.
        for _ in 0..self.blocked.len() {
            if self.engine.in_transaction() {
                return;
            }
            if let Some(event) = self.blocked.pop_front() {
                self.run(event);
            }
        }
    }

    pub(super) fn capture(&mut self) {
        if self.resident.has_failed() {
            // The gate waits for the answer to what it asked before it failed.
            return self.resident.on(GateEvent::Captured { captured: None });
        }
        let captured = match self.engine.capture(clock::wall()) {
            Ok(captured) => captured,
            Err(error) => {
                tracing::error!(cell = %self.resident.cell, %error, "commits could not be captured");
                return self.resident.on(GateEvent::CaptureFailed);
            }
        };
        self.resident.database_len.store(self.engine.size_bytes(), Ordering::Relaxed);
        let captured = captured.map(|captured| {
            metrics().capture(captured.len);
            let captured = Arc::new(captured);
            let offset = self.node.log.append(&self.resident, &captured);
            self.resident.pending().push(Arc::clone(&captured), offset);
            (captured.txid, offset)
        });
        self.resident.on(GateEvent::Captured { captured });
        self.checkpoint();
        self.note_wal();
        self.run_blocked();
    }

    fn note_wal(&mut self) {
        let now = self.engine.wal_bytes();
        let delta =
            i64::try_from(now).unwrap_or(i64::MAX) - i64::try_from(self.wal_bytes).unwrap_or(i64::MAX);
        if delta != 0 {
            metrics().wal_bytes_changed(delta);
            self.wal_bytes = now;
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Millis> {
        let runtime = self.runtime.next_deadline();
        [runtime, self.idle_check].into_iter().flatten().min()
    }

    pub(super) fn wake(&mut self, now: Millis) {
        self.runtime.expire(&mut self.engine, now);
        self.run_blocked();
        if self.idle_check.is_some_and(|check| check <= now) {
            let idle_at = self.last_event.plus(IDLE_MS);
            let is_idle = idle_at <= now && !self.engine.is_dirty() && !self.engine.in_transaction();
            if is_idle {
                self.engine.trim();
            }
            self.idle_check = (!is_idle).then_some(idle_at.max(now.plus(IDLE_MS / 10)));
        }
    }

    pub(super) fn quiesce(&mut self, done: oneshot::Sender<Result<(), FailCause>>) {
        self.is_leaving = true;
        self.runtime.stop(&mut self.engine);
        self.refuse_all();
        let ticket = self.engine.ticket();
        self.resident.cover(ticket, self.node.proof_deadline(), move |outcome| {
            let _ = done.send(outcome);
        });
    }

    pub(super) fn close(mut self) -> Result<Txid, String> {
        assert!(!self.engine.is_dirty(), "a cell is closed only when everything committed is covered");
        self.left();
        self.refuse_all();
        self.engine.close().map(|closed| closed.txid).map_err(|error| error.to_string())
    }

    pub(super) fn discard(mut self) {
        self.left();
        self.refuse_all();
        let epoch: Epoch = self.resident.epoch;
        if let Err(error) = self.engine.discard() {
            tracing::warn!(cell = %self.resident.cell, %error, "a local database could not be removed");
        }
        self.resident.files.remove_database(epoch);
    }

    /// Nothing that waits has run.
    fn refuse_all(&mut self) {
        for event in self.queue.drain(..) {
            self.resident.dequeued();
            event.refuse(gone(&self.resident.cell));
        }
        for event in self.blocked.drain(..) {
            event.refuse(gone(&self.resident.cell));
        }
    }

    fn left(&mut self) {
        metrics().cells_resident_changed(-1);
        metrics().wal_bytes_changed(-i64::try_from(self.wal_bytes).unwrap_or(i64::MAX));
        self.wal_bytes = 0;
    }
}
