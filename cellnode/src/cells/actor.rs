//! A cell on its thread: one turn at a time, each output through the gate. Keeps INV-FENCE-1: after the session's
//! authority no turn begins.

mod alarm;
mod history;
mod leave;
mod open;
mod replace;
mod turn;
mod wish;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use holdfast_core::gate::GateEvent;
use holdfast_js::{SocketEvent, SocketId};
use holdfast_rpc::CallError;
use holdfast_sql::{Engine, EngineOptions};
use holdfast_telemetry::metrics;
use holdfast_types::{CellName, Millis, Txid};

pub(crate) use self::alarm::AlarmInput;
use self::alarm::CellAlarm;
pub(crate) use self::leave::Closed;
use self::leave::Leaving;
use self::open::{OpenEvents, Operations};
pub(crate) use self::turn::cancel_at;
use self::wish::Restoring;
use super::{Event, Resident};
use crate::clock;
use crate::node::Node;
use crate::paged;
use crate::runtime::{
    Begun, CellRuntime, EventId, OpAnswer, OpId, ReplyBody, RuntimeContext, SharedEngine, Turn,
};

/// Events that may wait for another caller's transaction.
const BLOCKED_MAX: usize = 128;
/// Events of one cell that may be open.
const OPEN_MAX: usize = 1_024;
/// A WAL longer than this holds turns back until it is captured and checkpointed: back-to-back transactions would
/// otherwise never leave a gap for it.
const WAL_HOLD_BYTES: u64 = 16 << 20;
/// While the node has no room for messages of sockets: when to look again, in milliseconds. What makes room does not know
/// who waits for it.
const ROOM_CHECK_MS: u64 = 50;
/// Silence after which a cell gives its caches and its third open file back, in milliseconds.
const IDLE_MS: u64 = 10_000;

/// The refusal of an event whose cell has gone while it was queued: it did not run, and the caller may ask again.
pub(super) fn gone(cell: &CellName) -> CallError {
    tracing::debug!(%cell, "an event met a cell that has gone");
    CallError::NotOwner(None)
}

/// What a cell's runtime is to be told.
#[derive(Debug)]
pub(super) enum Input {
    /// A request.
    Event(Box<Event>),
    /// An operation's answer.
    Completed(OpId, OpAnswer),
    /// The caller of an open event has gone.
    Cancel(EventId),
    /// Of the cell's alarm.
    Alarm(Box<AlarmInput>),
    /// Something came for a socket.
    Socket(SocketId, SocketEvent),
    /// What is deployed has changed.
    Deployed,
}

/// A resident cell's engine and handler.
pub(super) struct Actor {
    resident: Arc<Resident>,
    node: Arc<Node>,
    /// Before the engine, which it shares: dropped first.
    runtime: Box<dyn CellRuntime>,
    engine: SharedEngine,
    /// What waits for its turn on the thread.
    queue: VecDeque<Input>,
    /// Events that wait for another caller's transaction to end.
    blocked: VecDeque<Box<Event>>,
    /// Answers that wait for the WAL to be captured. Bounded by the operations that may be under way.
    held: VecDeque<(OpId, OpAnswer)>,
    /// What came for sockets and waits for the WAL, or until the node has room again, in order. Bounded by the sockets that
    /// are open: each of them tells one thing at a time, and its client is held back.
    messages: VecDeque<(SocketId, SocketEvent)>,
    /// Ends of sockets of which no message waits: told at once, whatever waits for the others. Bounded likewise.
    endings: VecDeque<(SocketId, SocketEvent)>,
    /// When to look again whether the node has room for them.
    room_check: Option<Millis>,
    open: OpenEvents,
    operations: Operations,
    /// The turn that runs; kept for its memory.
    turn: Turn,
    leaving: Leaving,
    /// The last ticket is taken: nothing is committed any more.
    is_settled: bool,
    alarm: Option<Box<CellAlarm>>,
    /// The restore that the object wished for, while it is under way.
    restoring: Option<Restoring>,
    /// Where the database stood when it was opened.
    restored: Txid,
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
        let engine = match &resident.paged {
            None => Engine::open(database, position, &options),
            Some(paged) => {
                let pages = Arc::new(paged::Source(Arc::clone(paged)));
                Engine::open_paged(database, position, &options, pages)
            }
        };
        let mut engine = engine.map_err(|error| error.to_string())?;
        engine.set_alarm_epoch(resident.epoch);
        let alarm = engine.alarm_state().map_err(|failure| failure.to_string())?;
        resident.database_len.store(engine.size_bytes(), Ordering::Relaxed);
        let engine = Rc::new(RefCell::new(engine));
        let runtime = node.classes.runtime(context, &engine)?;
        metrics().cells_resident_changed(1);
        let resident = Arc::clone(resident);
        let last_event = clock::monotonic();
        let mut actor = Self {
            open: OpenEvents::new(Arc::clone(&resident)),
            operations: Operations::default(),
            resident,
            node,
            runtime,
            engine,
            queue: VecDeque::new(),
            blocked: VecDeque::new(),
            held: VecDeque::new(),
            messages: VecDeque::new(),
            endings: VecDeque::new(),
            room_check: None,
            turn: Turn::default(),
            leaving: Leaving::No,
            is_settled: false,
            alarm: None,
            restoring: None,
            restored: position,
            wal_bytes: 0,
            last_event,
            idle_check: Some(last_event.plus(IDLE_MS)),
        };
        actor.start_alarm(alarm);
        // What is counted of it is committed before anything else of the cell.
        actor.settle_runs();
        Ok(actor)
    }

    /// Queues what the runtime is to be told. Tells whether nothing waited: then the cell needs a turn.
    pub(super) fn enqueue(&mut self, input: Input) -> bool {
        self.queue.push_back(input);
        self.queue.len() == 1
    }

    /// Whose actor it is.
    pub(super) fn resident(&self) -> &Arc<Resident> {
        &self.resident
    }

    /// What waits for its turn.
    pub(super) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Tells the runtime one thing. Answers whether more waits.
    pub(super) fn take_turn(&mut self) -> bool {
        match self.queue.pop_front() {
            Some(Input::Event(event)) => {
                self.resident.dequeued();
                self.on_event(event);
            }
            Some(Input::Completed(op, answer)) => {
                self.complete(op, answer);
                self.run_blocked();
            }
            Some(Input::Cancel(event)) => {
                self.cancel(event);
                self.run_blocked();
            }
            Some(Input::Alarm(input)) => {
                self.on_alarm(*input);
                self.run_blocked();
            }
            Some(Input::Socket(socket, event)) => {
                self.heard(socket, event);
                self.run_blocked();
            }
            Some(Input::Deployed) => self.deployed(),
            None => {}
        }
        self.settle_runs();
        self.look_for_wish();
        !self.queue.is_empty()
    }

    fn on_event(&mut self, event: Box<Event>) {
        self.touch(clock::monotonic());
        self.run(event);
        self.run_blocked();
    }

    /// Somebody uses the cell.
    fn touch(&mut self, now: Millis) {
        self.last_event = now;
        // Set once and looked at when it comes, so that a busy cell does not move its timer with every event.
        self.idle_check.get_or_insert(now.plus(IDLE_MS));
        self.resident.touched(now);
    }

    fn run(&mut self, mut event: Box<Event>) {
        if let Err(error) = self.may_begin() {
            return event.refuse(error);
        }
        if self.must_hold() {
            return self.block(event);
        }
        if !event.start() {
            return;
        }
        let name = self.open.next_name();
        self.turn.now = clock::monotonic();
        match self.runtime.begin(name, &mut event.call, &mut self.turn) {
            Begun::Blocked => {
                event.requeue();
                self.block(event);
            }
            Begun::Reply(response) => self.output(*event, response),
            Begun::Open => {
                if !event.open(name) {
                    cancel_at(&self.resident, name);
                }
                self.open.insert(name, *event);
                self.end_turn();
            }
        }
    }

    /// What keeps a new event from beginning.
    fn may_begin(&self) -> Result<(), CallError> {
        if !self.leaving.takes_events() || self.resident.has_failed() {
            return Err(gone(&self.resident.cell));
        }
        self.node.check_authority()?;
        let too_many_open = (self.open.len() >= OPEN_MAX)
            .then(|| format!("{OPEN_MAX} requests of cell `{}` are not finished", self.resident.cell));
        match self.overload().or(too_many_open) {
            Some(reason) => Err(CallError::Overloaded { reason, retry_after_ms: 1_000 }),
            None => Ok(()),
        }
    }

    /// Why nothing new may begin here, although the cell takes events: too much of what ran before waits.
    fn overload(&self) -> Option<String> {
        let (cell, node) = (&self.resident.cell, &self.node.name);
        let uncaptured = self.engine.borrow().uncaptured_bytes();
        if uncaptured > self.node.config.uncaptured_max {
            return Some(format!(
                "cell `{cell}` has {uncaptured} bytes that are not in the bucket yet; come again"
            ));
        }
        if let Some(bytes) = self.node.log.is_full() {
            return Some(format!("node `{node}` holds {bytes} bytes that are not in the bucket yet"));
        }
        if let Some(bytes) = self.node.answers.is_full() {
            return Some(format!("node `{node}` holds {bytes} bytes of answers that wait for their proofs"));
        }
        let entries = self.node.index.is_full()?;
        Some(format!("node `{node}` has {entries} alarms whose entries are not in the bucket yet"))
    }

    /// Keeps an event until the cell is free for it.
    fn block(&mut self, event: Box<Event>) {
        if self.blocked.len() < BLOCKED_MAX {
            self.blocked.push_back(event);
        } else {
            let what = if self.restoring.is_some() { "the restore" } else { "an open transaction" };
            let reason = format!("{BLOCKED_MAX} requests wait for {what} of this cell");
            event.refuse(CallError::Overloaded { reason, retry_after_ms: 1_000 });
        }
    }

    /// Whether nothing may begin before a restore, or a capture, has ended.
    fn must_hold(&mut self) -> bool {
        self.must_restore_first() || self.must_hold_for_checkpoint()
    }

    /// Whether the WAL is so long that it must be captured and checkpointed before the next turn. What is captured is
    /// checkpointed at once; what is not, is when its capture comes, which the gate has asked for.
    fn must_hold_for_checkpoint(&mut self) -> bool {
        {
            let engine = self.engine.borrow();
            if engine.wal_bytes() <= WAL_HOLD_BYTES || engine.in_transaction() {
                return false;
            }
        }
        self.checkpoint();
        self.engine.borrow().is_dirty()
    }

    fn checkpoint(&mut self) {
        let mut engine = self.engine.borrow_mut();
        if !engine.checkpoint_due() {
            return;
        }
        if let Err(error) = engine.checkpoint() {
            tracing::error!(cell = %self.resident.cell, %error, "a checkpoint failed");
            self.resident.on(GateEvent::DatabaseFailed);
        }
    }

    /// The answer of an event that is over in its first turn.
    fn output(&mut self, event: Event, response: http::Response<bytes::Bytes>) {
        let ticket = self.after_turn();
        let Event { reply, held: admission, .. } = event;
        self.send_reply(reply, (response.map(ReplyBody::Whole), None), ticket);
        drop(admission);
    }

    fn run_blocked(&mut self) {
        for _ in 0..self.held.len() {
            if let Some((op, answer)) = self.held.pop_front() {
                self.complete(op, answer);
            }
        }
        self.run_messages();
        // Each is tried once; those that still wait go back to the end in order.
        for _ in 0..self.blocked.len() {
            if self.engine.borrow().in_transaction() {
                return;
            }
            if let Some(event) = self.blocked.pop_front() {
                self.run(event);
            }
        }
    }

    /// Captures what is committed and gives it to the node log, which has it sent when [`crate::node_log::NodeLog::announce`] is
    /// called. True: [`Self::after_capture`] is to follow.
    pub(super) fn capture(&mut self) -> bool {
        if self.resident.has_failed() {
            // The gate waits for the answer to what it asked before it failed.
            self.resident.on(GateEvent::Captured { captured: None, len: 0 });
            return false;
        }
        let captured = self.engine.borrow_mut().capture(clock::wall());
        let captured = match captured {
            Ok(captured) => captured,
            Err(error) => {
                tracing::error!(cell = %self.resident.cell, %error, "commits could not be captured");
                self.resident.on(GateEvent::CaptureFailed);
                return false;
            }
        };
        self.resident.database_len.store(self.engine.borrow().size_bytes(), Ordering::Relaxed);
        let len = captured.as_ref().map_or(0, |captured| captured.len);
        let captured = captured.map(|captured| {
            metrics().capture(captured.len);
            let captured = Arc::new(captured);
            let offset = self.node.log.append(&self.resident, &captured);
            self.resident.pending().push(Arc::clone(&captured), offset);
            (captured.txid, offset)
        });
        self.resident.on(GateEvent::Captured { captured, len });
        true
    }

    /// What a capture makes room for.
    pub(super) fn after_capture(&mut self) {
        self.checkpoint();
        self.note_wal();
        self.run_blocked();
        self.settle_runs();
        self.look_for_wish();
    }

    /// Keeps what came for a socket until its turn. What comes for one socket stays in order.
    fn heard(&mut self, socket: SocketId, event: SocketEvent) {
        let is_message = matches!(event, SocketEvent::Message(_));
        let queue = if is_message || self.messages.iter().any(|(other, _)| *other == socket) {
            &mut self.messages
        } else {
            &mut self.endings
        };
        queue.push_back((socket, event));
    }

    /// Tells the runtime what came for sockets, as far as there is room for what that begins.
    fn run_messages(&mut self) {
        self.room_check = None;
        while let Some((socket, event)) = self.next_heard() {
            self.socket(socket, event);
        }
        self.resident.note_messages(self.messages.len() + self.endings.len());
    }

    /// What is to be told next of sockets, if anything may be.
    fn next_heard(&mut self) -> Option<(SocketId, SocketEvent)> {
        if self.messages.is_empty() && self.endings.is_empty() {
            return None;
        }
        if !self.may_turn() {
            self.messages.clear();
            self.endings.clear();
            return None;
        }
        if self.must_hold() {
            // Its end, or its capture, comes.
            return None;
        }
        // That a client has gone is told whatever the load: nothing more comes from it, and it makes room.
        if let Some(ending) = self.endings.pop_front() {
            return Some(ending);
        }
        let (_, event) = self.messages.front()?;
        if matches!(event, SocketEvent::Message(_)) && self.overload().is_some() {
            self.room_check = Some(clock::monotonic().plus(ROOM_CHECK_MS));
            return None;
        }
        self.messages.pop_front()
    }

    fn note_wal(&mut self) {
        let now = self.engine.borrow().wal_bytes();
        let delta =
            i64::try_from(now).unwrap_or(i64::MAX) - i64::try_from(self.wal_bytes).unwrap_or(i64::MAX);
        if delta != 0 {
            metrics().wal_bytes_changed(delta);
            self.wal_bytes = now;
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Millis> {
        let runtime = if self.may_turn() { self.runtime.next_deadline() } else { None };
        let alarm = self.alarm_wake().filter(|_| self.may_turn());
        let others = [self.room_check, self.idle_check, self.leaving.until()];
        [runtime, alarm].into_iter().chain(others).flatten().min()
    }

    pub(super) fn wake(&mut self, now: Millis) {
        if self.may_turn() && self.runtime.next_deadline().is_some_and(|at| at <= now) {
            self.turn.now = now;
            self.runtime.wake(&mut self.turn);
            self.end_turn();
        }
        if self.may_turn() {
            self.wake_alarm(now);
        }
        self.look_for_wish();
        self.run_blocked();
        self.leave_if_late(now);
        if self.idle_check.is_some_and(|check| check <= now) {
            let idle_at = self.last_event.plus(IDLE_MS);
            let mut engine = self.engine.borrow_mut();
            let is_idle = idle_at <= now && !engine.is_dirty() && !engine.in_transaction();
            if is_idle {
                engine.trim();
            }
            self.idle_check = (!is_idle).then_some(idle_at.max(now.plus(IDLE_MS / 10)));
        }
    }
}
