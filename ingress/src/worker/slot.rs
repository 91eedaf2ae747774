//! One isolate of the Worker, and everything that is under way in it: events, operations, bodies.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use holdfast_js::{
    Application, BrokenCause, Effect, Ending, EventCall, EventId, IncomingBody, IncomingBodyId, Isolate,
    IsolateKind, JsError, OpAnswer, OpId, OutgoingBody, OutgoingBodyId, OutgoingResponse, SocketId,
    StartError, Turn, TurnEnd,
};
use holdfast_outbound::outgoing_response;
use holdfast_rpc::{Body, LateBody};
use holdfast_telemetry::{WorkerOutcome, metrics};
use holdfast_types::Millis;
use http_body::Body as _;
use tokio::task::AbortHandle;

use super::body::Sink;
use super::event::Event;
use super::message::{NewEvent, Outcome};
use super::thread::{Clock, Thread};
use super::{WorkerError, log};

mod operations;
mod sockets;

use sockets::Socket;

/// An operation that is under way.
struct Running {
    task: Option<AbortHandle>,
    /// The event that waits for it, where one does.
    event: Option<EventId>,
    /// The body that it reads, and has meanwhile.
    reads: Option<IncomingBodyId>,
    /// The socket that it is to open.
    opens: Option<(SocketId, LateBody)>,
    /// The socket is a session of RPC: its end says nothing of the event, whose isolate ends it.
    is_session: bool,
}

/// A body that comes in.
struct Upload {
    body: Body,
    /// With it the body goes.
    event: Option<EventId>,
}

/// An isolate and what it does.
pub(super) struct Slot {
    number: u64,
    pub(super) code: Arc<Application>,
    isolate: Isolate,
    events: HashMap<EventId, Event>,
    /// Events whose answer is out, and when they end, whatever they wait for.
    ending: BTreeSet<(Millis, EventId)>,
    ops: HashMap<OpId, Running>,
    incoming: HashMap<IncomingBodyId, Upload>,
    outgoing: HashMap<OutgoingBodyId, Sink>,
    sockets: HashMap<SocketId, Socket>,
    bodies: u64,
    thread: Thread,
}

impl Slot {
    /// Starts an isolate.
    pub(super) fn start(number: u64, code: Arc<Application>, thread: &Thread) -> Result<Self, StartError> {
        let isolate =
            Isolate::new(&code, IsolateKind::Worker, thread.context.options.limits, thread.clock.now())?;
        metrics().worker_isolates_changed(1);
        Ok(Self {
            number,
            code,
            isolate,
            events: HashMap::new(),
            ending: BTreeSet::new(),
            ops: HashMap::new(),
            incoming: HashMap::new(),
            outgoing: HashMap::new(),
            sockets: HashMap::new(),
            bodies: 0,
            thread: thread.clone(),
        })
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    fn clock(&self) -> &Clock {
        &self.thread.clock
    }

    /// Whether nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.events.is_empty() && self.isolate.is_idle()
    }

    pub(super) fn has_event(&self, event: EventId) -> bool {
        self.events.contains_key(&event)
    }

    /// When something is due.
    pub(super) fn next_deadline(&self) -> Option<Millis> {
        let ending = self.ending.first().map(|(at, _)| *at);
        ending.into_iter().chain(self.isolate.next_deadline()).min()
    }

    /// Begins an event.
    pub(super) fn begin(&mut self, event: NewEvent) -> Result<(), BrokenCause> {
        let NewEvent { code: _, number, mut request, body, socket, span, answer, place } = event;
        let traceparent = request.headers.get("traceparent").and_then(|value| value.to_str().ok());
        let traceparent = traceparent.map(ToOwned::to_owned);
        request.body = self.receive(body, Some(number));
        let mut event = Event::new(answer, span, traceparent, place);
        event.socket = socket;
        self.events.insert(number, event);
        let turn = self.isolate.dispatch(self.clock().now(), number, EventCall::Fetch(request));
        self.apply(turn)
    }

    /// Takes the end of an operation.
    pub(super) fn done(&mut self, op: OpId, outcome: Outcome) -> Result<(), BrokenCause> {
        let Some(running) = self.ops.remove(&op) else { return Ok(()) };
        let answer = match outcome {
            Outcome::Response(mut head, body) => {
                match running.opens.filter(|_| head.status == 101) {
                    Some((socket, uplink)) => {
                        head.is_socket = true;
                        let event = running.event.filter(|_| !running.is_session);
                        self.sockets.insert(socket, Socket::opened(uplink, body, event));
                    }
                    None => head.body = self.receive(body, running.event),
                }
                OpAnswer::Response(*head)
            }
            Outcome::Returned(bytes) => OpAnswer::Returned(bytes),
            Outcome::Object(head, body) => OpAnswer::Object { head, body: self.receive(body, running.event) },
            Outcome::Read(id, chunk, body) => {
                if chunk.is_some() && running.reads.is_some() {
                    self.incoming.insert(id, Upload { body, event: running.event });
                }
                OpAnswer::Chunk(chunk)
            }
            Outcome::Written => OpAnswer::Written,
            Outcome::Failed(error) => OpAnswer::Failed(error),
        };
        let turn = self.isolate.complete(self.clock().now(), op, answer);
        self.apply(turn)
    }

    /// Nobody waits for the event's answer any more.
    pub(super) fn gone(&mut self, event: EventId) -> Result<(), BrokenCause> {
        self.answered(event);
        self.end_event(event, Ending::CallerGone)
    }

    fn end_event(&mut self, event: EventId, ending: Ending) -> Result<(), BrokenCause> {
        let turn = self.isolate.end_event(self.clock().now(), event, ending);
        self.apply(turn)
    }

    /// Does what is due.
    pub(super) fn wake(&mut self) -> Result<(), BrokenCause> {
        let now = self.clock().now();
        if self.isolate.next_deadline().is_some_and(|due| due <= now.monotonic) {
            let turn = self.isolate.wake(now);
            self.apply(turn)?;
        }
        while let Some((_, event)) = self.ending.first().copied().filter(|(at, _)| *at <= now.monotonic) {
            self.ending.pop_first();
            self.end_event(event, Ending::TimeOver)?;
        }
        Ok(())
    }

    /// Fails whatever is under way: the isolate is broken.
    pub(super) fn fail(mut self, cause: &BrokenCause) {
        log::broken(self.code.version(), self.events.len(), cause);
        metrics().worker_broke(match cause {
            BrokenCause::CpuExceeded => "cpu",
            BrokenCause::MemoryExceeded => "memory",
            _ => "other",
        });
        for event in self.events.values_mut() {
            event.answer(Err(WorkerError::Broken(cause.clone())), WorkerOutcome::Broken);
        }
    }

    /// Takes a body in, if there is one.
    fn receive(&mut self, body: Body, event: Option<EventId>) -> IncomingBody {
        if body.is_end_stream() {
            return IncomingBody::None;
        }
        self.bodies += 1;
        let id = IncomingBodyId::new(self.bodies);
        self.incoming.insert(id, Upload { body, event });
        IncomingBody::Stream(id)
    }

    /// Does what a turn asks for.
    fn apply(&mut self, turn: Turn) -> Result<(), BrokenCause> {
        let Turn { effects, end } = turn;
        for effect in effects {
            self.execute(effect);
        }
        match end {
            TurnEnd::Ok => Ok(()),
            TurnEnd::Broken(cause) => Err(cause),
        }
    }

    fn execute(&mut self, effect: Effect) {
        match effect {
            Effect::Respond { event, response } => self.respond(event, response),
            // Only methods return, and nobody calls one of the Worker from outside; only objects have alarms.
            Effect::Return { event: _, value: _ }
            | Effect::AlarmEnded { event: _, has_handler: _ }
            | Effect::ScheduledEnded { end: _ } => {}
            Effect::Fail { event, error, pass_through: _ } => self.threw(event, &error),
            Effect::Done { event } => self.event_over(event),
            Effect::Start { op, op_call } => self.start_op(op, op_call),
            Effect::Cancel { op } => {
                if let Some(Running { task: Some(task), .. }) = self.ops.remove(&op) {
                    task.abort();
                }
            }
            Effect::EndBody { body } => self.end_body(body, Ok(())),
            Effect::AbortBody { body, error } => self.end_body(body, Err(error.to_string())),
            Effect::CancelBody { body } => self.cancel_body(body),
            Effect::Socket { socket, action } => self.act(socket, action),
            Effect::Log { event, level, text } => {
                let event = event.and_then(|event| self.events.get(&event));
                log::line(self.code.version(), event, level, &text);
            }
        }
    }

    fn respond(&mut self, number: EventId, response: OutgoingResponse) {
        let head = outgoing_response(&response);
        let head = match (head, response.socket) {
            (Ok(head), Some(socket)) => return self.respond_socket(number, head, socket),
            (head, _) => head,
        };
        let body = self.send(response.body.clone(), Some(number));
        let is_out = match &response.body {
            OutgoingBody::Stream(id) => !self.outgoing.contains_key(id),
            OutgoingBody::None | OutgoingBody::Whole(_) => true,
        };
        let Some(event) = self.events.get_mut(&number) else { return };
        match head {
            Ok(head) => {
                // Where nobody waits the body is dropped, and its source is told when it writes.
                event.answer(Ok(head.map(|()| body)), WorkerOutcome::Answered);
            }
            Err(error) => {
                log::exception(self.code.version(), event, &error);
                event.answer(Err(WorkerError::Threw), WorkerOutcome::Threw);
            }
        }
        if is_out {
            self.answered(number);
        }
    }

    fn threw(&mut self, number: EventId, error: &JsError) {
        let Some(event) = self.events.get_mut(&number) else { return };
        log::exception(self.code.version(), event, error);
        event.answer(Err(WorkerError::Threw), WorkerOutcome::Threw);
        self.answered(number);
    }

    /// All of the event's answer is out: from here on its time is limited.
    fn answered(&mut self, event: EventId) {
        let over_at = self.clock().now().monotonic.plus(self.thread.context.options.afterwards_ms());
        let Some(state) = self.events.get_mut(&event) else { return };
        if state.over_at.is_none() {
            state.over_at = Some(over_at);
            self.ending.insert((over_at, event));
        }
    }

    fn event_over(&mut self, number: EventId) {
        let Some(mut event) = self.events.remove(&number) else { return };
        if let Some(at) = event.over_at {
            self.ending.remove(&(at, number));
        }
        self.incoming.retain(|_, upload| upload.event != Some(number));
        self.sockets.retain(|_, socket| socket.event != Some(number));
        if !event.is_answered() {
            event.answer(Err(WorkerError::Ended), WorkerOutcome::Cancelled);
        }
        metrics().worker_event(event.outcome);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        metrics().worker_isolates_changed(-1);
        for running in self.ops.values().filter_map(|running| running.task.as_ref()) {
            running.abort();
        }
        for event in self.events.values() {
            metrics().worker_event(event.outcome);
        }
    }
}
