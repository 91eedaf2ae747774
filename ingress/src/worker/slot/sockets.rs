//! Sockets of an isolate: those that clients opened and it holds, those that it opened at objects, and the joining of both,
//! after which the isolate is out of it.

use std::sync::Arc;

use bytes::Bytes;
use holdfast_js::{BrokenCause, EventId, SocketAction, SocketEnd, SocketEvent, SocketId, SocketMessage};
use holdfast_rpc::{Body, LateBody, NO_CODE, SocketFrame, SocketReader, SocketWriter, socket_pipe};
use holdfast_telemetry::WorkerOutcome;
use http::Response;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tracing::Span;

use super::Slot;
use crate::worker::body::Outgoing;
use crate::worker::message::Message;

/// Bytes that may wait for a client that takes nothing; beyond it the socket is given up.
const BACKLOG_MAX: usize = 16 << 20;

/// A socket of the isolate's. Dropped, it breaks both ways.
pub(super) struct Socket {
    state: State,
    /// With it the socket goes.
    pub(super) event: Option<EventId>,
}

enum State {
    /// Opened at an object; nobody listens yet.
    Opened { uplink: LateBody, downlink: Body },
    /// The isolate sends, and may not listen yet.
    Held { writer: SocketWriter, reader: Option<SocketReader>, listener: Option<Listener> },
}

/// What reads a socket for the isolate.
struct Listener {
    task: AbortHandle,
    /// Told when the handler has begun with what came last.
    taken: Arc<Notify>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Socket {
    /// One that was opened at an object.
    pub(super) fn opened(uplink: LateBody, downlink: Body, event: Option<EventId>) -> Self {
        Self { state: State::Opened { uplink, downlink }, event }
    }
}

impl Slot {
    /// Answers with the other end of a socket.
    pub(super) fn respond_socket(&mut self, number: EventId, head: Response<()>, end: SocketEnd) {
        let Some(client) = self.events.get_mut(&number).and_then(|event| event.socket.take()) else { return };
        let body = match end {
            SocketEnd::Own(socket) => {
                let (writer, body) = socket_pipe();
                let reader = Some(SocketReader::new(client));
                let state = State::Held { writer, reader, listener: None };
                self.sockets.insert(socket, Socket { state, event: Some(number) });
                body
            }
            SocketEnd::Opened(socket) => match self.sockets.remove(&socket).map(|socket| socket.state) {
                Some(State::Opened { uplink, downlink }) => {
                    uplink.give(client);
                    downlink
                }
                // It broke meanwhile; its client is told so by a body that breaks.
                Some(State::Held { .. }) | None => socket_pipe().1,
            },
        };
        let Some(event) = self.events.get_mut(&number) else { return };
        // No span lives as long as a socket.
        event.span = Span::none();
        event.answer(Ok(head.map(|()| Outgoing::Socket(body))), WorkerOutcome::Answered);
        match end {
            SocketEnd::Opened(_) => self.answered(number),
            SocketEnd::Own(_) => event.place.rest(),
        }
    }

    /// A socket is over. An event that held it has nothing more to answer with: from here on its time is limited.
    fn socket_over(&mut self, event: Option<EventId>) {
        if let Some(event) = event
            && !self.sockets.values().any(|socket| socket.event == Some(event))
        {
            self.answered(event);
        }
    }

    /// Does what the isolate does with a socket.
    pub(super) fn act(&mut self, id: SocketId, action: SocketAction) {
        let frame = match action {
            SocketAction::Accept { is_hibernatable: _ } => return self.listen(id),
            SocketAction::Taken => {
                if let Some(State::Held { listener: Some(listener), .. }) = self.state(id) {
                    listener.taken.notify_one();
                }
                return;
            }
            SocketAction::Over => {
                let Some(Socket { state, event }) = self.sockets.remove(&id) else { return };
                if let State::Held { writer, .. } = state {
                    writer.end();
                }
                return self.socket_over(event);
            }
            SocketAction::Send(SocketMessage::Text(text)) => SocketFrame::Text(text.into()),
            SocketAction::Send(SocketMessage::Binary(bytes)) => SocketFrame::Binary(bytes),
            SocketAction::Close { code, reason } => {
                SocketFrame::Close { code: code.unwrap_or(NO_CODE), reason }
            }
        };
        let Some(State::Held { writer, .. }) = self.state(id) else { return };
        if writer.push(&frame).is_some_and(|queued| queued > BACKLOG_MAX) {
            let text = format!("the other end of the WebSocket did not take {BACKLOG_MAX} bytes in time");
            let event = self.sockets.remove(&id).and_then(|socket| socket.event);
            self.tell(id, SocketEvent::Error(text));
            self.tell(id, lost());
            self.socket_over(event);
        }
    }

    fn state(&mut self, id: SocketId) -> Option<&mut State> {
        self.sockets.get_mut(&id).map(|socket| &mut socket.state)
    }

    fn tell(&self, socket: SocketId, event: SocketEvent) {
        self.thread.post.send(Message::Socket { slot: self.number, socket, event });
    }

    /// Reads the socket from here on, one message after the other was taken.
    fn listen(&mut self, id: SocketId) {
        let Some(Socket { state, event }) = self.sockets.remove(&id) else { return };
        let (writer, reader) = match state {
            State::Opened { uplink, downlink } => {
                let (writer, body) = socket_pipe();
                uplink.give(body);
                (writer, SocketReader::new(downlink))
            }
            State::Held { writer, reader: Some(reader), .. } => (writer, reader),
            State::Held { reader: None, .. } => return,
        };
        let taken = Arc::new(Notify::new());
        let (post, slot, next) = (self.thread.post.clone(), self.number, Arc::clone(&taken));
        let task = self.thread.context.runtime.spawn(async move {
            let mut reader = reader;
            loop {
                let event = next_event(&mut reader).await;
                let is_last = matches!(event, SocketEvent::Close { .. });
                post.send(Message::Socket { slot, socket: id, event });
                if is_last {
                    return;
                }
                next.notified().await;
            }
        });
        let listener = Some(Listener { task: task.abort_handle(), taken });
        self.sockets.insert(id, Socket { state: State::Held { writer, reader: None, listener }, event });
    }

    /// Takes what came for a socket.
    pub(in crate::worker) fn socket_event(
        &mut self,
        socket: SocketId,
        event: SocketEvent,
    ) -> Result<(), BrokenCause> {
        let turn = self.isolate.socket_event(self.clock().now(), socket, event);
        self.apply(turn)
    }
}

fn lost() -> SocketEvent {
    let reason = "WebSocket disconnected without sending Close frame.".to_owned();
    SocketEvent::Close { code: 1006, reason, was_clean: false }
}

async fn next_event(reader: &mut SocketReader) -> SocketEvent {
    match reader.next().await {
        Ok(Some(SocketFrame::Text(text))) => SocketEvent::Message(SocketMessage::Text(utf8(text))),
        Ok(Some(SocketFrame::Binary(bytes))) => SocketEvent::Message(SocketMessage::Binary(bytes)),
        Ok(Some(SocketFrame::Close { code, reason })) => SocketEvent::Close { code, reason, was_clean: true },
        Ok(None) | Err(_) => lost(),
    }
}

fn utf8(text: Bytes) -> String {
    String::from_utf8(text.into()).expect("the reader has looked at it")
}
