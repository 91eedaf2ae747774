//! One Durable Object: its isolate, made when an event needs it, and dropped when it breaks, when its code is replaced,
//! and when it has been idle. An isolate runs one version of the application from its first event to its last.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use holdfast_js::{
    Application, BrokenCause, Ending, EventCall as JsCall, EventId as JsEvent, Isolate, IsolateKind, JsError,
    Now, Object, OpAnswer as JsAnswer, OpId as JsOp, SocketEvent, SocketId,
};
use holdfast_telemetry::{Outcome, metrics};
use holdfast_types::{AlarmTime, CellName, Millis};

use super::Applications;
use super::alarm::RunningAlarm;
use super::bodies::Bodies;
use super::convert::{failed, incoming_call, op_answer};
use super::sockets::Sockets;
use crate::clock;
use crate::runtime::{
    AlarmBegun, AlarmEnd, Answer, Begun, CellRuntime, Effect, EventCall, EventId, OpAnswer, OpId, ReplyBody,
    RequestBody, SharedEngine, Turn,
};

/// How long the events of a replaced version may go on while others wait for the new one, in milliseconds.
const FINISH_MS: u64 = 30_000;

/// An isolate with what of it is under way.
pub(super) struct Live {
    pub(super) isolate: Isolate,
    pub(super) application: Arc<Application>,
    /// Events that are not done, and whether they are answered.
    pub(super) events: HashMap<EventId, IsAnswered>,
    pub(super) bodies: Bodies,
    /// Operations that the isolate waits for, by the names that the cell has for them, and the reverse.
    pub(super) ops: HashMap<OpId, JsOp>,
    pub(super) names: HashMap<JsOp, OpId>,
    last_turn: Millis,
    /// When to look whether it is idle. Set once and looked at when it comes, so that a busy object does not move its
    /// timer with every turn.
    idle_check: Millis,
}

/// Whether an event was answered.
pub(super) type IsAnswered = bool;

impl Drop for Live {
    fn drop(&mut self) {
        metrics().cell_isolates_changed(-1);
    }
}

/// A Durable Object.
pub(super) struct JsObject {
    pub(super) applications: Applications,
    pub(super) cell: CellName,
    name: Option<String>,
    engine: SharedEngine,
    pub(super) live: Option<Live>,
    pub(super) sockets: Sockets,
    /// Operations named so far: their names outlive isolates.
    pub(super) ops_made: u64,
    /// When events of a replaced version are broken off, once others wait.
    finish_until: Option<Millis>,
    pub(super) alarm: Option<RunningAlarm>,
}

impl JsObject {
    pub(super) fn new(applications: Applications, cell: CellName, engine: SharedEngine) -> Self {
        Self {
            applications,
            cell,
            name: None,
            engine,
            live: None,
            ops_made: 0,
            finish_until: None,
            alarm: None,
            sockets: Sockets::default(),
        }
    }

    /// Has an isolate of the version that runs. False while events of the one before go on, and where a restore comes first.
    pub(super) fn prepare(&mut self, turn: &mut Turn) -> Result<bool, JsError> {
        let now = turn.now;
        let Some(current) = self.applications.current() else {
            return Err(JsError::new("no application is deployed any more"));
        };
        self.clear_of_other_version(turn);
        if let Some(live) = &self.live {
            if Arc::ptr_eq(&live.application, &current) {
                return Ok(true);
            }
            if !live.events.is_empty() {
                self.finish_until.get_or_insert(now.plus(FINISH_MS));
                return Ok(false);
            }
            self.drop_isolate();
            if self.engine.borrow().may_have_restore_wish() {
                // The session is over; the actor looks before the next one.
                return Ok(false);
            }
        }
        self.live = Some(self.start(current, now)?);
        Ok(true)
    }

    fn start(&self, application: Arc<Application>, now: Millis) -> Result<Live, JsError> {
        let object = Object {
            class: self.cell.class().to_owned(),
            id: self.cell.name().to_owned(),
            name: self.name.clone(),
            storage: self.engine.clone(),
            sockets: Rc::clone(&self.sockets.kept),
        };
        let kind = IsolateKind::Object(object);
        let isolate = Isolate::new(&application, kind, self.applications.limits, clocks(now));
        metrics().cell_isolate_start(if isolate.is_ok() { Outcome::Ok } else { Outcome::Failed });
        let isolate = isolate.map_err(|error| {
            tracing::error!(cell = %self.cell, version = application.version(), %error, "an isolate does not start");
            JsError::new(error.to_string())
        })?;
        metrics().cell_isolates_changed(1);
        Ok(Live {
            isolate,
            application,
            events: HashMap::new(),
            bodies: Bodies::default(),
            ops: HashMap::new(),
            names: HashMap::new(),
            last_turn: now,
            idle_check: now.plus(self.applications.idle_ms),
        })
    }

    fn drop_isolate(&mut self) {
        self.live = None;
        self.finish_until = None;
        self.sockets.isolate_gone();
    }

    /// Enters the isolate, and takes what it asks for to the cell.
    pub(super) fn enter(&mut self, turn: &mut Turn, enter: impl FnOnce(&mut Live, Now) -> holdfast_js::Turn) {
        let Some(live) = self.live.as_mut() else { return };
        live.last_turn = turn.now;
        let made = enter(live, clocks(turn.now));
        self.execute(made, turn);
    }

    /// Drops an isolate whose events cannot go on: their callers are told why, and what it waited for is broken off.
    pub(super) fn break_off(&mut self, error: &JsError, turn: &mut Turn) {
        let Some(mut live) = self.live.take() else { return };
        self.finish_until = None;
        self.end_alarm(AlarmEnd::Failed, turn);
        for (event, is_answered) in std::mem::take(&mut live.events) {
            if !is_answered {
                turn.effects.push(Effect::Answer { event, answer: failed(error.clone()) });
            }
            turn.effects.push(Effect::Done { event });
        }
        turn.effects.extend(live.ops.keys().map(|op| Effect::Cancel { op: *op }));
        self.sockets.clear();
    }

    /// Tells why an isolate ended, and drops it.
    pub(super) fn reset(&mut self, cause: &BrokenCause, turn: &mut Turn) {
        metrics().cell_isolate_reset(cause.name());
        let error = match cause {
            BrokenCause::Aborted(error)
            | BrokenCause::ConstructorThrew(error)
            | BrokenCause::BlockConcurrencyFailed(error) => error.clone(),
            cause => JsError::new(format!("Durable Object {cause} and was reset.")),
        };
        tracing::warn!(cell = %self.cell, %cause, "an isolate was reset");
        self.break_off(&error, turn);
    }

    /// Drops an isolate that has had nothing to do for a while.
    fn look_idle(&mut self, now: Millis) {
        let Some(live) = self.live.as_mut().filter(|live| live.idle_check <= now) else { return };
        let idle_ms = self.applications.idle_ms;
        let idle_at = live.last_turn.plus(idle_ms);
        if idle_at <= now && live.isolate.is_idle() {
            self.drop_isolate();
        } else {
            live.idle_check = idle_at.max(now.plus(idle_ms / 10));
        }
    }
}

impl JsObject {
    /// Takes the two ends of a socket out of the answer that opened it.
    fn take_socket(&mut self, op: JsOp, answer: OpAnswer, is_socket: &mut bool) -> OpAnswer {
        let OpAnswer::Response(mut answer) = answer else {
            self.sockets.not_opened(op);
            return answer;
        };
        let is_open = answer.head.status == http::StatusCode::SWITCHING_PROTOCOLS;
        answer.body = match std::mem::replace(&mut answer.body, RequestBody::Whole(Bytes::new())) {
            RequestBody::Stream(body) => match self.sockets.opened(op, is_open, body) {
                Some(body) => RequestBody::Stream(body),
                None => {
                    *is_socket = true;
                    RequestBody::Whole(Bytes::new())
                }
            },
            whole => {
                self.sockets.not_opened(op);
                whole
            }
        };
        OpAnswer::Response(answer)
    }
}

/// The clocks as a turn begins.
fn clocks(monotonic: Millis) -> Now {
    Now { monotonic, wall: clock::wall() }
}

impl CellRuntime for JsObject {
    fn begin(&mut self, event: EventId, call: &mut EventCall, turn: &mut Turn) -> Begun {
        if self.name.is_none() {
            self.name = call.object.name.clone();
        }
        match self.prepare(turn) {
            Ok(true) => {}
            Ok(false) => return Begun::Blocked,
            Err(error) => {
                turn.effects.push(Effect::Answer { event, answer: failed(error) });
                turn.effects.push(Effect::Done { event });
                return Begun::Open;
            }
        }
        if call.object.is_socket {
            let body = std::mem::replace(call.request.body_mut(), RequestBody::Whole(Bytes::new()));
            if let RequestBody::Stream(said) = body {
                self.sockets.asked(event, said, call.object.session.is_some());
            }
        }
        self.enter(turn, |live, now| {
            live.events.insert(event, false);
            let call: JsCall = incoming_call(call, &mut live.bodies);
            live.isolate.dispatch(now, JsEvent::new(event.0), call)
        });
        self.sockets.count(self.live.is_some());
        whole_reply(event, turn).map_or(Begun::Open, Begun::Reply)
    }

    fn alarm(&mut self, event: EventId, alarm: (AlarmTime, u32), turn: &mut Turn) -> AlarmBegun {
        self.begin_alarm(event, alarm, turn)
    }

    fn complete(&mut self, op: OpId, answer: OpAnswer, turn: &mut Turn) {
        // Nobody waits for the end of a body to be taken.
        let Some(js_op) = self.live.as_mut().and_then(|live| live.ops.remove(&op)) else { return };
        let mut is_socket = false;
        let answer = self.take_socket(js_op, answer, &mut is_socket);
        self.enter(turn, |live, now| {
            live.names.remove(&js_op);
            let mut answer = op_answer(answer, &mut live.bodies);
            if let JsAnswer::Response(response) = &mut answer {
                response.is_socket = is_socket;
            }
            live.isolate.complete(now, js_op, answer)
        });
    }

    /// A handler that has not answered is not interrupted: what it began it ends. Of one that has, nothing is left but the
    /// body of its answer, whose source learns that nobody reads it.
    fn cancel(&mut self, event: EventId, turn: &mut Turn) {
        let is_answered = self.live.as_ref().and_then(|live| live.events.get(&event));
        if is_answered == Some(&true) {
            let event = JsEvent::new(event.0);
            self.enter(turn, |live, now| live.isolate.end_event(now, event, Ending::CallerGone));
        }
    }

    fn next_deadline(&self) -> Option<Millis> {
        let live = self.live.as_ref()?;
        let timers = live.isolate.next_deadline();
        let alarm = self.alarm.as_ref().map(|alarm| alarm.until);
        [timers, self.finish_until, alarm, Some(live.idle_check)].into_iter().flatten().min()
    }

    fn wake(&mut self, turn: &mut Turn) {
        let now = turn.now;
        if self.finish_until.is_some_and(|until| until <= now) {
            let error = JsError::new("Durable Object reset because its code was updated.");
            self.end_alarm(AlarmEnd::BrokenOff, turn);
            return self.break_off(&error, turn);
        }
        if self.alarm.as_ref().is_some_and(|alarm| alarm.until <= now) {
            return self.break_off_alarm(turn);
        }
        let timers = self.live.as_ref().and_then(|live| live.isolate.next_deadline());
        if timers.is_some_and(|at| at <= now) {
            self.enter(turn, |live, now| live.isolate.wake(now));
        }
        self.look_idle(now);
        self.sockets.count(self.live.is_some());
    }

    fn socket(&mut self, socket: SocketId, event: SocketEvent, turn: &mut Turn) {
        self.on_socket(socket, event, turn);
        self.sockets.count(self.live.is_some());
    }

    fn sockets(&self) -> usize {
        self.sockets.len() + self.live.as_ref().map_or(0, |live| live.isolate.connections())
    }

    fn deployed(&mut self, turn: &mut Turn) {
        self.clear_of_other_version(turn);
        self.sockets.count(self.live.is_some());
    }

    fn has_session(&self) -> bool {
        self.live.is_some()
    }

    fn stop(&mut self) {
        self.drop_isolate();
        self.sockets.clear();
    }
}

/// The answer of an event that was over in its first turn and asked for nothing else: the common case, which costs no
/// entry in any table.
fn whole_reply(event: EventId, turn: &mut Turn) -> Option<http::Response<bytes::Bytes>> {
    let [
        Effect::Answer { event: answered, answer: Answer::Response(response) },
        Effect::Done { event: done },
    ] = turn.effects.as_mut_slice()
    else {
        return None;
    };
    let ReplyBody::Whole(body) = response.body_mut() else { return None };
    if *answered != event || *done != event {
        return None;
    }
    let body = std::mem::take(body);
    let response = std::mem::replace(response, http::Response::new(ReplyBody::Whole(bytes::Bytes::new())));
    turn.effects.clear();
    Some(response.map(|_| body))
}
