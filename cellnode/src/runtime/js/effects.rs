//! What an isolate asks for, as the cell's actor takes it to the gate.

use holdfast_js::{
    Effect as JsEffect, JsError, LogLevel, Op, OpId as JsOp, OutgoingBody, OutgoingCall, TurnEnd,
};
use holdfast_outbound::{FetchFrom, ObjectTarget, object_call, outgoing_request};
use holdfast_telemetry::metrics;

use super::convert::{event_of, failed, response_answer, returned};
use super::object::JsObject;
use crate::runtime::{
    AlarmEnd, BucketRequest, CacheRequest, ConnectRequest, DatabaseRequest, Effect, ObjectRequest, OpId,
    Operation, Piece, ServerRequest, Turn,
};

impl JsObject {
    /// Takes the effects of a turn over, in order. A broken turn has none but its log.
    pub(super) fn execute(&mut self, made: holdfast_js::Turn, turn: &mut Turn) {
        for effect in made.effects {
            self.execute_one(effect, turn);
        }
        match made.end {
            TurnEnd::Ok => self.tell_of_lost(turn),
            TurnEnd::Broken(cause) => self.reset(&cause, turn),
        }
    }

    fn execute_one(&mut self, effect: JsEffect, turn: &mut Turn) {
        let Some(live) = self.live.as_mut() else { return };
        match effect {
            JsEffect::Respond { event, response } => {
                let event = event_of(event);
                live.events.insert(event, true);
                if let Some(end) = response.socket {
                    self.answer_socket(event, &response, end, turn);
                    return self.sockets.count(true);
                }
                let answer = response_answer(response, &mut live.bodies);
                turn.effects.push(Effect::Answer { event, answer });
            }
            JsEffect::Return { event, value } => {
                let event = event_of(event);
                live.events.insert(event, true);
                turn.effects.push(Effect::Answer { event, answer: returned(value) });
            }
            JsEffect::Fail { event, error, pass_through: _ } => {
                let event = event_of(event);
                live.events.insert(event, true);
                tracing::error!(target: "console", cell = %self.cell, "Uncaught {error}");
                if self.is_alarm(event) {
                    return self.end_alarm(AlarmEnd::Failed, turn);
                }
                turn.effects.push(Effect::Answer { event, answer: failed(error) });
            }
            JsEffect::AlarmEnded { event, has_handler } => {
                live.events.insert(event_of(event), true);
                let end = if has_handler { AlarmEnd::Succeeded } else { AlarmEnd::NoHandler };
                self.end_alarm(end, turn);
            }
            JsEffect::ScheduledEnded { end } => metrics().scheduled_run(end.as_str()),
            JsEffect::Done { event } => {
                let event = event_of(event);
                live.events.remove(&event);
                self.sockets.done(event);
                self.let_next_socket_go_on();
                turn.effects.push(Effect::Done { event });
            }
            JsEffect::Start { op, op_call } => self.start_op(op, op_call, turn),
            JsEffect::Cancel { op } => {
                self.sockets.not_opened(op);
                if let Some(name) = live.names.remove(&op) {
                    live.ops.remove(&name);
                    turn.effects.push(Effect::Cancel { op: name });
                }
            }
            JsEffect::EndBody { body } => {
                let piece = live.bodies.end(body);
                self.send(piece, turn);
            }
            JsEffect::AbortBody { body, error } => {
                let piece = live.bodies.abort(body, error.to_string());
                self.send(piece, turn);
            }
            JsEffect::CancelBody { body } => live.bodies.cancel(body),
            JsEffect::Socket { socket, action } => {
                self.act(socket, action, turn);
                self.sockets.count(true);
            }
            JsEffect::Log { event: _, level, text } => self.log(level, &text),
        }
    }

    /// Names an operation, which the isolate waits for where `op` says so.
    fn name_op(&mut self, op: Option<JsOp>) -> OpId {
        self.ops_made += 1;
        let name = OpId(self.ops_made);
        if let (Some(op), Some(live)) = (op, self.live.as_mut()) {
            live.ops.insert(name, op);
            live.names.insert(op, name);
        }
        name
    }

    /// The end of a body: an output that nobody waits for.
    fn send(&mut self, piece: Option<Piece>, turn: &mut Turn) {
        let Some(piece) = piece else { return };
        let op = self.name_op(None);
        turn.effects.push(Effect::Start { op, operation: Operation::Write(piece) });
    }

    fn start_op(&mut self, op: JsOp, call: Op, turn: &mut Turn) {
        let name = self.name_op(Some(op));
        match self.operation(op, call) {
            Ok(operation) => turn.effects.push(Effect::Start { op: name, operation }),
            Err(error) => {
                // It is never sent, so its answer is there at once; told after this turn, like any other.
                let operation = Operation::Failed(Box::new(error));
                turn.effects.push(Effect::Start { op: name, operation });
            }
        }
    }

    fn operation(&mut self, op: JsOp, call: Op) -> Result<Operation, JsError> {
        let live = self.live.as_mut().expect("an isolate that asks is there");
        let outbound = self.applications.outbound.clone();
        match call {
            Op::ReadBody { body } => match live.bodies.incoming(body) {
                Some(body) => Ok(Operation::Read(body)),
                None => Err(JsError::type_error("the body was cancelled")),
            },
            Op::WriteBody { body, chunk } => match live.bodies.chunk(body, chunk) {
                Some(piece) => Ok(Operation::Write(piece)),
                None => Err(JsError::type_error("the body has ended")),
            },
            Op::Fetch(request) => {
                let head = outgoing_request(&request)?;
                let from = FetchFrom::of(&request, &live.application)?;
                let redirect = request.redirect;
                let is_socket = request.socket.is_some();
                let body = match request.socket {
                    Some(socket) => self.sockets.opening(op, socket),
                    None => live.bodies.request(request.body),
                };
                let request = head.map(|()| body);
                let request = ServerRequest { outbound, from, request, redirect, is_socket };
                Ok(Operation::Fetch(Box::new(request)))
            }
            Op::QueryDatabase { database, request } => {
                Ok(Operation::QueryDatabase(Box::new(DatabaseRequest { outbound, database, request })))
            }
            Op::AskBucket { bucket, request, body } => {
                let body = live.bodies.request(body);
                Ok(Operation::AskBucket(Box::new(BucketRequest { outbound, bucket, request, body })))
            }
            Op::AskCache { request, body } => {
                let body = live.bodies.request(body);
                Ok(Operation::AskCache(Box::new(CacheRequest { outbound, request, body })))
            }
            Op::AskHistory(ask) => Ok(Operation::AskHistory(ask)),
            Op::Connect(mut connection) => {
                let body = std::mem::replace(&mut connection.body, OutgoingBody::None);
                let said = live.bodies.request(body);
                Ok(Operation::Connect(Box::new(ConnectRequest { outbound, connection, said })))
            }
            Op::CallObject { class, id, name, order, call } => {
                let target = ObjectTarget { class, id, name };
                let object = object_call(&call, order);
                let request = match call {
                    OutgoingCall::Fetch(request) => {
                        let head = outgoing_request(&request)?;
                        let mut body = live.bodies.request(request.body);
                        if let Some(socket) = request.socket {
                            body = self.sockets.opening(op, socket);
                        }
                        head.map(|()| body)
                    }
                    OutgoingCall::Rpc { method: _, args } => {
                        http::Request::new(live.bodies.request(OutgoingBody::Whole(args)))
                    }
                    OutgoingCall::Session { socket, first: _ } => {
                        http::Request::new(self.sockets.opening(op, socket))
                    }
                };
                let call = ObjectRequest { outbound, target, request, object };
                Ok(Operation::CallObject(Box::new(call)))
            }
        }
    }

    fn log(&self, level: LogLevel, text: &str) {
        let cell = &self.cell;
        match level {
            LogLevel::Debug => tracing::debug!(target: "console", %cell, "{text}"),
            LogLevel::Log | LogLevel::Info => tracing::info!(target: "console", %cell, "{text}"),
            LogLevel::Warn => tracing::warn!(target: "console", %cell, "{text}"),
            LogLevel::Error => tracing::error!(target: "console", %cell, "{text}"),
        }
    }
}
