//! The Rust side of an isolate, which the natives of its parts reach through the context. It must never hold a value
//! of the engine: a runtime that is dropped while one is alive ends the process.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use rquickjs::Ctx;

use super::budget::Budget;
use super::console::LogLines;
use super::kind::IsolateKind;
use super::limits::Limits;
use super::ops::Ops;
use super::timers::Timers;
use crate::application::Application;
use crate::effect::{BrokenCause, Effect, EventId, Now, SocketId};
use crate::foreign::Shared;
use crate::wasm::WasmHost;

/// What ends with a turn: the implicit transaction of a Durable Object's storage.
pub(crate) trait TurnStorage {
    /// Commits what the turn wrote.
    ///
    /// # Errors
    /// Why nothing of it may be believed: the isolate breaks.
    fn commit_turn(&self) -> Result<(), String>;

    /// Rolls back what a broken turn wrote.
    fn abandon_turn(&self);
}

/// The Rust side of an isolate.
pub(crate) struct Host {
    pub(crate) code: Arc<Application>,
    pub(crate) kind: IsolateKind,
    pub(crate) limits: Limits,
    pub(crate) budget: Rc<Budget>,
    pub(crate) timers: RefCell<Timers>,
    pub(crate) ops: RefCell<Ops>,
    pub(crate) log: RefCell<LogLines>,
    pub(crate) wasm: WasmHost,
    effects: RefCell<Vec<Effect>>,
    /// The events that are not done.
    events: RefCell<BTreeSet<EventId>>,
    /// Sockets that were accepted by `accept()`, until they are over.
    sockets: RefCell<BTreeSet<SocketId>>,
    /// Sockets numbered so far, in a Worker.
    sockets_made: Cell<u64>,
    /// TCP connections that are open or opening.
    connections: Cell<usize>,
    /// The event that runs, if one does.
    event: Cell<Option<EventId>>,
    broken: RefCell<Option<BrokenCause>>,
    /// A promise was rejected that nothing waited for.
    rejections: Cell<bool>,
    /// The input gate was opened, and events wait in front of it.
    resume: Cell<bool>,
    storage: RefCell<Option<Rc<dyn TurnStorage>>>,
    started: Now,
    now: Cell<Now>,
    turn_began: Cell<Instant>,
    /// The last that was told.
    elapsed_ms: Cell<f64>,
}

impl Host {
    pub(crate) fn new(
        code: &Arc<Application>,
        kind: IsolateKind,
        limits: Limits,
        now: Now,
        budget: &Rc<Budget>,
    ) -> Rc<Self> {
        Rc::new(Self {
            code: Arc::clone(code),
            kind,
            limits,
            budget: Rc::clone(budget),
            timers: RefCell::default(),
            ops: RefCell::default(),
            log: RefCell::default(),
            wasm: WasmHost::new(limits.memory_bytes),
            effects: RefCell::default(),
            events: RefCell::default(),
            sockets: RefCell::default(),
            sockets_made: Cell::default(),
            connections: Cell::default(),
            event: Cell::default(),
            broken: RefCell::default(),
            rejections: Cell::default(),
            resume: Cell::default(),
            storage: RefCell::default(),
            started: now,
            now: Cell::new(now),
            turn_began: Cell::new(Instant::now()),
            elapsed_ms: Cell::default(),
        })
    }

    /// Enters a turn.
    pub(crate) fn enter(&self, now: Now) {
        self.now.set(now);
        self.turn_began.set(Instant::now());
        self.event.set(None);
        self.wasm.enter();
        self.log.borrow_mut().enter();
    }

    /// The clocks as the turn began.
    pub(crate) fn now(&self) -> Now {
        self.now.get()
    }

    /// Milliseconds since the isolate began; goes on within a turn, and never back.
    pub(crate) fn elapsed_ms(&self) -> f64 {
        let turns = self.now.get().monotonic.since(self.started.monotonic);
        let elapsed = turns as f64 + self.turn_began.get().elapsed().as_secs_f64() * 1000.0;
        self.elapsed_ms.set(elapsed.max(self.elapsed_ms.get()));
        self.elapsed_ms.get()
    }

    /// The wall clock as the isolate began.
    pub(crate) fn time_origin_ms(&self) -> f64 {
        self.started.wall.get() as f64
    }

    /// Asks the embedder for something.
    pub(crate) fn emit(&self, effect: Effect) {
        self.effects.borrow_mut().push(effect);
    }

    /// What the turn has asked for.
    pub(crate) fn take_effects(&self) -> Vec<Effect> {
        std::mem::take(&mut self.effects.borrow_mut())
    }

    /// The event that runs, if one does.
    pub(crate) fn event(&self) -> Option<EventId> {
        self.event.get()
    }

    /// Says which event runs from here on. The one that is named last is charged with the whole turn.
    pub(crate) fn set_event(&self, event: Option<EventId>) {
        self.event.set(event);
    }

    /// An event begins.
    pub(crate) fn begin_event(&self, event: EventId) {
        assert!(self.events.borrow_mut().insert(event), "the embedder uses an event's number once");
    }

    /// All of an event has ended. One that is not under way stays as it is: the number comes by way of JavaScript.
    pub(crate) fn end_event(&self, event: EventId) {
        let was_under_way = self.events.borrow_mut().remove(&event);
        if !was_under_way {
            return;
        }
        self.budget.forget(event);
        self.emit(Effect::Done { event });
    }

    /// Whether an event is under way.
    pub(crate) fn is_under_way(&self, event: EventId) -> bool {
        self.events.borrow().contains(&event)
    }

    /// Whether no event is under way.
    pub(crate) fn has_no_event(&self) -> bool {
        self.events.borrow().is_empty()
    }

    /// A number that no socket has had.
    pub(crate) fn next_socket(&self) -> SocketId {
        if let IsolateKind::Object(object) = &self.kind {
            return object.sockets.borrow_mut().next_id();
        }
        self.sockets_made.set(self.sockets_made.get() + 1);
        SocketId::new(self.sockets_made.get())
    }

    /// Whether a socket of `accept()` is open.
    pub(crate) fn socket_listens(&self, socket: SocketId, listens: bool) {
        let mut sockets = self.sockets.borrow_mut();
        if listens {
            sockets.insert(socket);
        } else {
            sockets.remove(&socket);
        }
    }

    /// Whether no socket of `accept()` is open.
    pub(crate) fn has_no_socket(&self) -> bool {
        self.sockets.borrow().is_empty()
    }

    /// TCP connections that are open or opening.
    pub(crate) fn connections(&self) -> usize {
        self.connections.get()
    }

    /// A TCP connection begins, or is over.
    pub(crate) fn connection_is_open(&self, is_open: bool) {
        let open = self.connections.get();
        self.connections.set(if is_open { open + 1 } else { open.saturating_sub(1) });
    }

    /// A promise was rejected that nothing waits for.
    pub(crate) fn note_rejection(&self) {
        self.rejections.set(true);
    }

    /// Whether there are rejections to report.
    pub(crate) fn take_rejections(&self) -> bool {
        self.rejections.take()
    }

    /// The input gate was opened: what waits in front of it is entered once no job is left.
    pub(crate) fn resume_soon(&self) {
        self.resume.set(true);
    }

    /// Whether something may be entered that waited in front of the gate.
    pub(crate) fn take_resume(&self) -> bool {
        self.resume.take()
    }

    /// Breaks the isolate: the turn ends at the next chance, and its effects do not leave. The first cause stays.
    pub(crate) fn break_with(&self, cause: BrokenCause) {
        self.budget.stop();
        self.broken.borrow_mut().get_or_insert(cause);
    }

    /// Why the isolate is broken, if it is.
    pub(crate) fn broken(&self) -> Option<BrokenCause> {
        self.broken.borrow().clone()
    }

    /// Gives what ends with each turn.
    pub(crate) fn set_storage(&self, storage: Rc<dyn TurnStorage>) {
        *self.storage.borrow_mut() = Some(storage);
    }

    /// What ends with each turn.
    pub(crate) fn storage(&self) -> Option<Rc<dyn TurnStorage>> {
        self.storage.borrow().clone()
    }
}

/// The host of a context.
pub(crate) fn host(ctx: &Ctx<'_>) -> Rc<Host> {
    let shared = ctx.userdata::<Shared<Host>>().expect("the host is there before any code runs");
    Rc::clone(&shared.0)
}
