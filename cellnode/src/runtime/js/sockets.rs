//! The sockets of one object. They outlive its isolate: what an isolate leaves behind are the two directions of each, its
//! tags and its attachment, and a message makes the next isolate. They do not outlive the version that accepted them, nor
//! whatever else ends the object's isolate: then their clients are told to connect again, by bodies that break.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use holdfast_js::{
    Application, EventCall as JsCall, EventId as JsEvent, KeptSockets, OpId as JsOp, OutgoingResponse,
    SocketAction, SocketEnd, SocketEvent, SocketId, SocketMessage,
};
use holdfast_outbound::outgoing_response;
use holdfast_rpc::{Body, LateBody, NO_CODE, SocketFrame, SocketReader};
use holdfast_telemetry::{SocketDirection, metrics};
use http_body_util::BodyExt as _;
use tokio::sync::{Semaphore, mpsc};

use super::convert::failed;
use super::object::JsObject;
use crate::clock;
use crate::runtime::socket::lost;
use crate::runtime::{
    Answer, Backlog, Effect, EventId, OutgoingBody, OutgoingReader, Piece, ReplyBody, Turn, Wanted,
};

/// Bytes that may wait for a client that takes nothing, those that wait for their proof among them; beyond it the socket is
/// given up.
const BACKLOG_MAX: u64 = 16 << 20;
/// Bytes that may wait for a client whatever waits for others.
const BACKLOG_FAIR: u64 = 64 << 10;
/// Memory of long messages that come in and whose handler has not begun, of all sockets of a node, in KiB.
const MESSAGES_KIB: usize = 256 << 10;
/// Handlers of messages that may be under way in one object. Beyond it the next message waits until one is done.
const UNDER_WAY_MAX: usize = 1_024;
/// Events of sockets are numbered from here: the cell numbers those of callers, and never reaches it.
const EVENTS_FROM: u64 = 1 << 52;
/// What a reader may be told before it looks.
const WANTS_MAX: usize = 2;

/// What the sockets of a node share.
#[derive(Clone, Debug)]
pub(crate) struct SocketRoom {
    /// What waits for clients.
    backlog: Arc<Backlog>,
    /// Beyond it a socket for which more than its fair part waits is given up.
    backlogs_max: u64,
    /// Room for long messages, in KiB.
    messages: Arc<Semaphore>,
}

impl SocketRoom {
    /// Room in which `backlogs_max` bytes may wait for clients.
    pub(crate) fn new(backlogs_max: u64) -> Self {
        Self { backlog: Arc::default(), backlogs_max, messages: Arc::new(Semaphore::new(MESSAGES_KIB)) }
    }

    /// Whether another `len` bytes may wait for a client for whom `waiting` do.
    fn has_room(&self, waiting: u64, len: u64) -> bool {
        let is_fair = waiting + len <= BACKLOG_FAIR || self.backlog.bytes() + len <= self.backlogs_max;
        waiting + len <= BACKLOG_MAX && is_fair
    }

    fn hold(&self, body: Body) -> (Held, OutgoingReader) {
        let (out, reader) = OutgoingBody::counted(&self.backlog);
        (Held::new(out, SocketReader::within(body, Arc::clone(&self.messages))), reader)
    }
}

/// The sockets of an object.
#[derive(Default)]
pub(super) struct Sockets {
    pub(super) kept: Rc<RefCell<KeptSockets>>,
    held: HashMap<SocketId, Held>,
    /// What the callers of events say on the sockets that they asked for, until they are given one.
    callers: HashMap<EventId, Caller>,
    /// Sockets that operations of the isolate are to open.
    opening: HashMap<JsOp, (SocketId, LateBody)>,
    /// Those that were opened, until the isolate listens or gives them away.
    opened: HashMap<SocketId, (LateBody, Body)>,
    /// Those that the isolate listens to, and that are gone already: it hears so when its turn is over.
    lost: Vec<SocketId>,
    /// The version of the application that accepted them.
    version: Option<Arc<Application>>,
    events: u64,
    /// Sockets whose next message waits for another handler to be done.
    waiting: VecDeque<SocketId>,
    /// As counted in the metrics.
    counted: (i64, i64),
}

struct Caller {
    said: Body,
    is_session: bool,
}

struct Held {
    /// None once the other end is given up.
    out: Option<OutgoingBody>,
    /// Until somebody listens.
    reader: Option<SocketReader>,
    wants: Option<mpsc::Sender<Wanted>>,
    is_hibernatable: bool,
    /// It carries RPC: what comes is an event of this isolate.
    is_session: bool,
}

impl Held {
    fn new(out: OutgoingBody, reader: SocketReader) -> Self {
        Self { out: Some(out), reader: Some(reader), wants: None, is_hibernatable: false, is_session: false }
    }

    fn want(&self, wanted: Wanted) {
        if let Some(wants) = &self.wants {
            // A reader that has ended wants nothing; one that has not looks before it could be told so often.
            let _ = wants.try_send(wanted);
        }
    }

    fn piece(&mut self, frame: &SocketFrame, room: &SocketRoom) -> Option<Piece> {
        let mut out = self.out.take()?;
        let chunk = frame.encode();
        if !room.has_room(out.backlog(), chunk.len() as u64) {
            self.want(Wanted::End);
            return Some(out.abort("the client takes nothing".to_owned()));
        }
        let piece = out.chunk(chunk);
        self.out = Some(out);
        Some(piece)
    }
}

impl Sockets {
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Keeps what an event's caller says on the socket or session that it asks for.
    pub(super) fn asked(&mut self, event: EventId, said: Body, is_session: bool) {
        self.callers.insert(event, Caller { said, is_session });
    }

    /// An event is over.
    pub(super) fn done(&mut self, event: EventId) {
        self.callers.remove(&event);
    }

    /// The body of a request that asks for a socket, which the socket's other end fills later.
    pub(super) fn opening(&mut self, op: JsOp, socket: SocketId) -> Body {
        let (uplink, body) = holdfast_rpc::late_body();
        self.opening.insert(op, (socket, uplink));
        body
    }

    /// Takes the answer to a request that asked for a socket. Gives the body back where it opened none.
    pub(super) fn opened(&mut self, op: JsOp, is_open: bool, body: Body) -> Option<Body> {
        match self.opening.remove(&op) {
            Some((socket, uplink)) if is_open => {
                self.opened.insert(socket, (uplink, body));
                None
            }
            _ => Some(body),
        }
    }

    /// Nobody waits for an operation any more, or it failed.
    pub(super) fn not_opened(&mut self, op: JsOp) {
        self.opening.remove(&op);
    }

    /// The isolate is gone in order: what it had no hold on goes with it.
    pub(super) fn isolate_gone(&mut self) {
        self.callers.clear();
        self.opening.clear();
        self.opened.clear();
        self.lost.clear();
        // Nothing is under way any more that they could wait for.
        for socket in self.waiting.drain(..) {
            if let Some(held) = self.held.get(&socket) {
                held.want(Wanted::Next);
            }
        }
        self.held.retain(|_, held| held.is_hibernatable);
        self.kept.borrow_mut().forget_unconnected();
    }

    /// Breaks all sockets.
    pub(super) fn clear(&mut self) {
        self.isolate_gone();
        self.held.clear();
        self.kept.borrow_mut().clear();
        self.version = None;
        self.count(true);
    }

    /// Breaks all sockets if another version than the current one accepted them. Gives those that an isolate waits on.
    fn clear_of_other_version(&mut self, current: Option<&Arc<Application>>) -> Vec<SocketId> {
        let is_current = match (&self.version, current) {
            (Some(version), Some(current)) => Arc::ptr_eq(version, current),
            (Some(_), None) => false,
            (None, _) => true,
        };
        if is_current {
            return Vec::new();
        }
        let waited_on = self.held.iter().filter(|(_, held)| !held.is_hibernatable);
        let waited_on = waited_on.map(|(socket, _)| *socket).collect();
        self.clear();
        waited_on
    }

    /// Brings the metrics up to date.
    pub(super) fn count(&mut self, has_isolate: bool) {
        let open = i64::try_from(self.held.len()).unwrap_or(i64::MAX);
        let hibernated = if has_isolate { 0 } else { open };
        let before = std::mem::replace(&mut self.counted, (open, hibernated));
        if open != before.0 {
            metrics().cell_sockets_changed(open - before.0);
        }
        if hibernated != before.1 {
            metrics().cell_sockets_hibernated_changed(hibernated - before.1);
        }
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        self.held.clear();
        self.count(true);
    }
}

impl JsObject {
    /// Breaks what another version than the current one accepted. An isolate that goes on for a while is told: its calls
    /// of RPC fail, and what waits for them ends.
    pub(super) fn clear_of_other_version(&mut self, turn: &mut Turn) {
        let current = self.applications.current();
        for socket in self.sockets.clear_of_other_version(current.as_ref()) {
            self.enter(turn, |live, now| live.isolate.socket_event(now, socket, lost()));
        }
    }

    /// Tells the isolate of sockets that were gone before it listened: what waits for them ends.
    pub(super) fn tell_of_lost(&mut self, turn: &mut Turn) {
        while let Some(socket) = self.sockets.lost.pop() {
            self.enter(turn, |live, now| live.isolate.socket_event(now, socket, lost()));
        }
    }

    /// Answers with the other end of a socket.
    pub(super) fn answer_socket(
        &mut self,
        event: EventId,
        response: &OutgoingResponse,
        end: SocketEnd,
        turn: &mut Turn,
    ) {
        let (Some(live), Some(caller)) = (&self.live, self.sockets.callers.remove(&event)) else { return };
        let Caller { said, is_session } = caller;
        let head = match outgoing_response(response) {
            Ok(head) => head,
            Err(error) => return turn.effects.push(Effect::Answer { event, answer: failed(error) }),
        };
        let body = match end {
            SocketEnd::Own(socket) => {
                if !self.is_current(&live.application) {
                    // Nobody of its version is there for what its client says; with the new one it connects again.
                    let body = ReplyBody::Joined(holdfast_rpc::socket_pipe().1);
                    let answer = Answer::Response(head.map(|()| body));
                    return turn.effects.push(Effect::Answer { event, answer });
                }
                let (held, reader) = self.applications.sockets.hold(said);
                self.sockets.held.insert(socket, Held { is_session, ..held });
                self.sockets.kept.borrow_mut().connected(socket);
                self.sockets.version.get_or_insert_with(|| Arc::clone(&live.application));
                ReplyBody::Stream(reader)
            }
            SocketEnd::Opened(socket) => match self.sockets.opened.remove(&socket) {
                Some((uplink, body)) => {
                    uplink.give(said);
                    ReplyBody::Joined(body)
                }
                // It broke meanwhile; its client is told so by a body that breaks.
                None => ReplyBody::Joined(holdfast_rpc::socket_pipe().1),
            },
        };
        turn.effects.push(Effect::Answer { event, answer: Answer::Response(head.map(|()| body)) });
    }

    /// Does what the isolate does with a socket.
    pub(super) fn act(&mut self, socket: SocketId, action: SocketAction, turn: &mut Turn) {
        let frame = match action {
            SocketAction::Accept { is_hibernatable } => return self.listen(socket, is_hibernatable, turn),
            SocketAction::Taken => return self.taken(socket),
            SocketAction::Over => {
                self.sockets.opened.remove(&socket);
                let out = self.sockets.held.remove(&socket).and_then(|held| held.out);
                if let Some(out) = out {
                    turn.effects.push(Effect::Send { piece: out.end() });
                }
                return;
            }
            SocketAction::Send(SocketMessage::Text(text)) => SocketFrame::Text(text.into()),
            SocketAction::Send(SocketMessage::Binary(bytes)) => SocketFrame::Binary(bytes),
            SocketAction::Close { code, reason } => {
                SocketFrame::Close { code: code.unwrap_or(NO_CODE), reason }
            }
        };
        self.say(socket, &frame, SocketDirection::Out, turn);
    }

    /// Whether this version of the application is the one that runs.
    fn is_current(&self, application: &Arc<Application>) -> bool {
        self.applications.current().is_some_and(|current| Arc::ptr_eq(&current, application))
    }

    fn say(&mut self, socket: SocketId, frame: &SocketFrame, direction: SocketDirection, turn: &mut Turn) {
        let Some(held) = self.sockets.held.get_mut(&socket) else { return };
        if let Some(piece) = held.piece(frame, &self.applications.sockets) {
            metrics().cell_socket_message(direction);
            turn.effects.push(Effect::Send { piece });
        }
    }

    fn listen(&mut self, socket: SocketId, is_hibernatable: bool, turn: &mut Turn) {
        if let Some((uplink, body)) = self.sockets.opened.remove(&socket) {
            let (held, reader) = self.applications.sockets.hold(body);
            uplink.give(reader.boxed_unsync());
            self.sockets.held.insert(socket, held);
        }
        let Some(held) = self.sockets.held.get_mut(&socket) else {
            if !is_hibernatable {
                self.sockets.lost.push(socket);
            }
            return;
        };
        let Some(reader) = held.reader.take() else { return };
        let (sender, wants) = mpsc::channel(WANTS_MAX);
        held.wants = Some(sender);
        held.is_hibernatable = is_hibernatable;
        turn.effects.push(Effect::Listen { socket, reader, wants });
    }

    fn taken(&mut self, socket: SocketId) {
        let under_way = self.live.as_ref().map_or(0, |live| live.events.len());
        let Some(held) = self.sockets.held.get(&socket) else { return };
        // What comes for others may be what those events wait for.
        if under_way >= UNDER_WAY_MAX && held.is_hibernatable {
            self.sockets.waiting.push_back(socket);
        } else {
            held.want(Wanted::Next);
        }
    }

    /// A handler is done: another socket may go on.
    pub(super) fn let_next_socket_go_on(&mut self) {
        // One that has gone meanwhile passes its place on.
        while let Some(next) = self.sockets.waiting.pop_front() {
            if let Some(held) = self.sockets.held.get(&next) {
                return held.want(Wanted::Next);
            }
        }
    }

    /// Takes what came for a socket.
    pub(super) fn on_socket(&mut self, socket: SocketId, event: SocketEvent, turn: &mut Turn) {
        let Some(held) = self.sockets.held.get(&socket) else { return };
        if held.is_session {
            if self.live.is_some() {
                self.dispatch_socket(socket, event, turn);
            }
            return;
        }
        if !held.is_hibernatable {
            metrics().cell_socket_message(SocketDirection::In);
            return self.enter(turn, |live, now| live.isolate.socket_event(now, socket, event));
        }
        if self.answer_automatically(socket, &event, turn) {
            return;
        }
        metrics().cell_socket_message(SocketDirection::In);
        match self.prepare(turn) {
            Ok(true) => {}
            // Its version is being replaced: the socket has gone with it.
            Ok(false) => return,
            Err(error) => {
                tracing::warn!(cell = %self.cell, %error, "the WebSockets of an object without an isolate are closed");
                return self.sockets.clear();
            }
        }
        self.dispatch_socket(socket, event, turn);
    }

    /// Begins an event with what came for a socket.
    fn dispatch_socket(&mut self, socket: SocketId, event: SocketEvent, turn: &mut Turn) {
        self.sockets.events += 1;
        let number = EVENTS_FROM + self.sockets.events;
        self.enter(turn, |live, now| {
            // Nobody waits for an answer.
            live.events.insert(EventId(number), true);
            live.isolate.dispatch(now, JsEvent::new(number), JsCall::Socket { socket, event })
        });
    }

    /// Answers a message with what the object has left for it, without an isolate.
    fn answer_automatically(&mut self, socket: SocketId, event: &SocketEvent, turn: &mut Turn) -> bool {
        let SocketEvent::Message(SocketMessage::Text(text)) = event else { return false };
        let answer = self.sockets.kept.borrow_mut().respond(socket, text, clock::wall());
        let Some(answer) = answer else { return false };
        self.say(socket, &SocketFrame::Text(answer.into()), SocketDirection::Automatic, turn);
        if let Some(held) = self.sockets.held.get(&socket) {
            held.want(Wanted::Next);
        }
        true
    }
}
