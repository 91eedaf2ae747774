//! The end of a turn: its effects, in order, behind one ticket.

use std::sync::Arc;

use holdfast_core::gate::GateEvent;
use holdfast_js::{SocketEvent, SocketId};
use holdfast_rpc::{CallError, SocketReader, ThrownError};
use holdfast_types::{Position, Txid};
use tokio::sync::mpsc;

use super::super::event::ReplySender;
use super::super::worker::Job;
use super::super::{EventReply, Resident};
use super::Actor;
use crate::clock;
use crate::runtime::{
    Answer, Effect, EventId, OpAnswer, OpId, Operation, Piece, ReplyBody, Wanted, read_socket,
};

impl Actor {
    /// Whether the runtime may be told anything (INV-FENCE-1).
    pub(super) fn may_turn(&self) -> bool {
        !self.leaving.is_stopped() && !self.resident.has_failed() && self.node.authority.is_live()
    }

    /// Tells the runtime an operation's answer, unless nobody waits for it.
    pub(super) fn complete(&mut self, op: OpId, answer: OpAnswer) {
        if !self.may_turn() || !self.operations.is_under_way(op) {
            return;
        }
        if self.must_hold_for_checkpoint() {
            return self.held.push_back((op, answer));
        }
        self.operations.ended(op);
        self.turn.now = clock::monotonic();
        self.runtime.complete(op, answer, &mut self.turn);
        self.end_turn();
    }

    /// Tells the runtime that an open event's caller has gone.
    pub(super) fn cancel(&mut self, event: EventId) {
        if !self.may_turn() || !self.open.contains(event) {
            return;
        }
        self.turn.now = clock::monotonic();
        self.runtime.cancel(event, &mut self.turn);
        self.end_turn();
    }

    /// Tells the runtime what came for a socket.
    pub(super) fn socket(&mut self, socket: SocketId, event: SocketEvent) {
        self.turn.now = clock::monotonic();
        self.touch(self.turn.now);
        self.runtime.socket(socket, event, &mut self.turn);
        self.end_turn();
    }

    /// Tells the runtime that something else is deployed.
    pub(super) fn deployed(&mut self) {
        if self.may_turn() {
            self.turn.now = clock::monotonic();
            self.runtime.deployed(&mut self.turn);
            self.end_turn();
        }
    }

    /// What the turn left behind. The ticket that covers everything it may reveal.
    pub(super) fn after_turn(&mut self) -> Txid {
        self.note_wal();
        let ticket = self.look_after_turn();
        self.note_alarm(ticket);
        ticket
    }

    fn look_after_turn(&self) -> Txid {
        let engine = self.engine.borrow();
        if let Some(code) = engine.fault() {
            tracing::error!(cell = %self.resident.cell, code, "the local database failed");
            self.resident.on(GateEvent::DatabaseFailed);
        }
        self.resident.note_transaction(engine.in_transaction());
        engine.ticket()
    }

    /// Takes the effects of a turn to the gate.
    pub(super) fn end_turn(&mut self) {
        let ticket = self.after_turn();
        let mut effects = std::mem::take(&mut self.turn.effects);
        let mut has_output = false;
        for effect in effects.drain(..) {
            has_output |= self.execute(effect, ticket);
        }
        self.turn.effects = effects;
        self.resident.note_sockets(self.runtime.sockets());
        if !has_output && self.engine.borrow().is_dirty() {
            self.prove(ticket);
        }
        self.leave_if_done();
    }

    /// Has what nobody waits for captured and proved all the same, or the WAL would grow.
    pub(super) fn prove(&self, ticket: Txid) {
        self.resident.output(ticket, self.node.proof_deadline(), |_| {});
    }

    /// Tells whether the effect is an output.
    fn execute(&mut self, effect: Effect, ticket: Txid) -> bool {
        match effect {
            Effect::Answer { event, answer } => self.answer(event, answer, ticket),
            Effect::Start { op, operation } => self.start(op, operation, ticket),
            Effect::AlarmEnded { end } => {
                self.alarm_ended(end);
                false
            }
            Effect::Send { piece } => {
                self.send_piece(piece, ticket);
                true
            }
            Effect::Listen { socket, reader, wants } => {
                self.listen(socket, (reader, wants), ticket);
                true
            }
            Effect::Done { event } => {
                self.open.done(event);
                false
            }
            Effect::Cancel { op } => {
                self.operations.cancel(op);
                false
            }
        }
    }

    fn answer(&mut self, event: EventId, answer: Answer, ticket: Txid) -> bool {
        let Some(reply) = self.open.take_reply(event) else { return false };
        let (mut response, thrown) = match answer {
            Answer::Response(response) => (response, None),
            Answer::Thrown(thrown) => {
                let mut response = http::Response::new(ReplyBody::Whole(bytes::Bytes::new()));
                *response.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
                (response, Some(thrown))
            }
        };
        if let ReplyBody::Stream(reader) = response.body_mut() {
            let resident = Arc::clone(&self.resident);
            reader.when_abandoned(move || cancel_at(&resident, event));
        }
        self.send_reply(reply, (response, thrown), ticket);
        true
    }

    /// Sends an event's answer once its ticket is proved.
    pub(super) fn send_reply(
        &self,
        reply: ReplySender,
        (response, thrown): (http::Response<ReplyBody>, Option<Box<ThrownError>>),
        ticket: Txid,
    ) {
        let position = Position { epoch: self.resident.epoch, txid: ticket };
        let len = match response.body() {
            ReplyBody::Whole(body) => body.len(),
            ReplyBody::Stream(_) | ReplyBody::Joined(_) => 0,
        };
        let held = self.node.answers.hold(len);
        // The proof's time begins now: what the event waited for before is not the store's fault.
        self.resident.output(ticket, self.node.proof_deadline(), move |outcome| {
            let answer = match outcome {
                Ok(()) => Ok(EventReply { response, thrown, position }),
                Err(cause) => Err(CallError::OutcomeUnknown { reason: cause.to_string() }),
            };
            // The caller may have gone; what the event wrote stands all the same.
            let _ = reply.send(answer);
            drop(held);
        });
    }

    /// Lets a piece enter its body once its ticket is proved.
    fn send_piece(&self, piece: Piece, ticket: Txid) {
        let held = self.node.answers.hold(piece.len());
        self.resident.output(ticket, self.node.proof_deadline(), move |outcome| {
            match outcome {
                Ok(()) => piece.enter(Box::new(|_| {})),
                Err(cause) => piece.fail(&cause.to_string()),
            }
            drop(held);
        });
    }

    /// Has a socket read once what accepted it is proved.
    fn listen(
        &self,
        socket: SocketId,
        (reader, wants): (SocketReader, mpsc::Receiver<Wanted>),
        ticket: Txid,
    ) {
        let (resident, runtime) = (Arc::clone(&self.resident), self.node.runtime.clone());
        self.resident.output(ticket, self.node.proof_deadline(), move |outcome| {
            if outcome.is_ok() {
                let tell = move |event| resident.send(Job::Socket(Arc::clone(&resident), socket, event));
                drop(runtime.spawn(read_socket(reader, wants, tell)));
            }
        });
    }

    fn start(&mut self, op: OpId, operation: Operation, ticket: Txid) -> bool {
        let cancelled = match self.operations.begin(op) {
            Ok(cancelled) => cancelled,
            Err(reason) => {
                operation.fail(&reason);
                // By the queue, so that a runtime is never told while it is being asked.
                self.resident.send(Job::Completed(Arc::clone(&self.resident), op, OpAnswer::Refused(reason)));
                return false;
            }
        };
        let operation = match operation {
            Operation::AskHistory(ask) => self.take_up(ask),
            other => other,
        };
        let held = self.node.answers.hold(operation.len());
        let (resident, runtime) = (Arc::clone(&self.resident), self.node.runtime.clone());
        self.resident.output(ticket, self.node.proof_deadline(), move |outcome| {
            match outcome {
                Ok(()) => operation.run(&runtime, cancelled, move |answer| {
                    resident.send(Job::Completed(Arc::clone(&resident), op, answer));
                }),
                Err(cause) => operation.fail(&cause.to_string()),
            }
            drop(held);
        });
        true
    }
}

/// Has an open event's handler told that its caller has gone.
pub(crate) fn cancel_at(resident: &Arc<Resident>, event: EventId) {
    resident.send(Job::Cancel(Arc::clone(resident), event));
}
