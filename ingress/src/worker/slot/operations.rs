//! What an isolate sends and waits for: bodies in both directions, and operations on the runtime that does I/O.

use holdfast_js::{EventId, IncomingBodyId, JsError, Op, OpId, OutgoingBody, OutgoingBodyId, OutgoingCall};
use holdfast_outbound::{FetchFrom, ObjectTarget, object_call};
use holdfast_rpc::{Body, late_body, whole_body};
use http_body_util::BodyExt as _;
use tokio::task::AbortHandle;
use tracing::{Instrument as _, Span};

use super::{Running, Slot};
use crate::worker::body::{Outgoing, Sink};
use crate::worker::message::{Message, Outcome};
use crate::worker::ops;

/// What a read is told of a body that is gone.
const CANCELLED: &str = "The body has been cancelled.";

impl Slot {
    fn sink(&mut self, body: OutgoingBodyId) -> &mut Sink {
        self.outgoing.entry(body).or_insert_with(Sink::new)
    }

    /// A body of the isolate's as its reader gets it.
    pub(super) fn send(&mut self, body: OutgoingBody, answers: Option<EventId>) -> Outgoing {
        match body {
            OutgoingBody::None => Outgoing::Whole(bytes::Bytes::new()),
            OutgoingBody::Whole(bytes) => Outgoing::Whole(bytes),
            OutgoingBody::Stream(id) => {
                let sink = self.sink(id);
                sink.answers = answers;
                let download = sink.take_download().expect("the isolate hands a body out once");
                if sink.is_over() {
                    self.outgoing.remove(&id);
                }
                Outgoing::Stream(download)
            }
        }
    }

    fn send_upload(&mut self, body: OutgoingBody) -> Body {
        match self.send(body, None) {
            Outgoing::Whole(bytes) => whole_body(bytes),
            Outgoing::Socket(body) => body,
            Outgoing::Stream(download) => download.boxed_unsync(),
        }
    }

    pub(super) fn end_body(&mut self, body: OutgoingBodyId, end: Result<(), String>) {
        let sink = self.sink(body);
        sink.end(end);
        let answers = sink.answers;
        if sink.is_over() {
            self.outgoing.remove(&body);
        }
        if let Some(event) = answers {
            self.answered(event);
        }
    }

    pub(super) fn cancel_body(&mut self, body: IncomingBodyId) {
        self.incoming.remove(&body);
        let reader = self.ops.iter_mut().find(|(_, running)| running.reads == Some(body));
        let Some((&op, running)) = reader else { return };
        running.reads = None;
        if let Some(task) = running.task.take() {
            task.abort();
            self.post(op, Outcome::Failed(JsError::new(CANCELLED)));
        }
    }

    pub(super) fn start_op(&mut self, op: OpId, op_call: Op) {
        let event = self.isolate.event_of(op);
        let span =
            event.and_then(|event| self.events.get(&event)).map_or_else(Span::none, |e| e.span.clone());
        let reads = match &op_call {
            Op::ReadBody { body } => Some(*body),
            Op::Fetch(_)
            | Op::CallObject { .. }
            | Op::QueryDatabase { .. }
            | Op::AskHistory(_)
            | Op::AskBucket { .. }
            | Op::AskCache { .. }
            | Op::Connect(_)
            | Op::WriteBody { .. } => None,
        };
        let outbound = self.thread.context.outbound.clone();
        let timeout = self.thread.context.options.call_timeout();
        let mut opens = None;
        let mut is_session = false;
        let task = match op_call {
            Op::Fetch(mut request) => {
                let mut body = self.send_upload(std::mem::replace(&mut request.body, OutgoingBody::None));
                if let Some(socket) = request.socket {
                    let (uplink, late) = late_body();
                    body = late;
                    opens = Some((socket, uplink));
                }
                let from = FetchFrom::of(&request, &self.code);
                Some(self.spawn(op, span, ops::fetch(outbound, from, request, body)))
            }
            Op::CallObject { class, id, name, order, call } => {
                let target = (ObjectTarget { class, id, name }, object_call(&call, order));
                Some(match call {
                    OutgoingCall::Fetch(mut request) => {
                        let mut body =
                            self.send_upload(std::mem::replace(&mut request.body, OutgoingBody::None));
                        if let Some(socket) = request.socket {
                            let (uplink, late) = late_body();
                            body = late;
                            opens = Some((socket, uplink));
                        }
                        self.spawn(op, span, ops::fetch_object(outbound, target, request, body, timeout))
                    }
                    OutgoingCall::Rpc { method: _, args } => {
                        self.spawn(op, span, ops::call_object(outbound, target, args, timeout))
                    }
                    OutgoingCall::Session { socket, first: _ } => {
                        let (uplink, said) = late_body();
                        opens = Some((socket, uplink));
                        is_session = true;
                        self.spawn(op, span, ops::open_session(outbound, target, said, timeout))
                    }
                })
            }
            Op::QueryDatabase { database, request } => {
                Some(self.spawn(op, span, ops::query_database(outbound, database, request, timeout)))
            }
            // Only objects have a storage.
            Op::AskHistory(_) => self.post(op, Outcome::Failed(JsError::new("a Worker has no storage"))),
            Op::AskBucket { bucket, request, body } => {
                let body = self.send_upload(body);
                Some(self.spawn(op, span, ops::ask_bucket(outbound, bucket, request, body)))
            }
            Op::AskCache { request, body } => {
                let body = self.send_upload(body);
                Some(self.spawn(op, span, ops::ask_cache(outbound, request, body)))
            }
            Op::Connect(mut connection) => {
                let said = self.send_upload(std::mem::replace(&mut connection.body, OutgoingBody::None));
                Some(self.spawn(op, span, ops::connect(outbound, connection, said)))
            }
            Op::ReadBody { body: id } => {
                match self.incoming.remove(&id).map(|upload| ops::read_now(id, upload.body)) {
                    None => self.post(op, Outcome::Failed(JsError::new(CANCELLED))),
                    Some(Ok(outcome)) => self.post(op, outcome),
                    Some(Err(body)) => Some(self.spawn(op, span, ops::read(id, body))),
                }
            }
            Op::WriteBody { body, chunk } => {
                let sender = self.outgoing.get(&body).and_then(Sink::sender).cloned();
                match sender.map(|sender| ops::write_now(&sender, chunk).map_err(|chunk| (sender, chunk))) {
                    None => self.post(op, ops::reader_gone()),
                    Some(Ok(outcome)) => self.post(op, outcome),
                    Some(Err((sender, chunk))) => Some(self.spawn(op, span, ops::write(sender, chunk))),
                }
            }
        };
        self.ops.insert(op, Running { task, event, reads, opens, is_session });
    }

    /// Ends an operation at once, behind what the thread was told before: others have their turn first.
    fn post(&self, op: OpId, outcome: Outcome) -> Option<AbortHandle> {
        self.thread.post.send(Message::Done { slot: self.number, op, outcome });
        None
    }

    fn spawn(
        &self,
        op: OpId,
        span: Span,
        work: impl Future<Output = Outcome> + Send + 'static,
    ) -> AbortHandle {
        let (post, slot) = (self.thread.post.clone(), self.number);
        let work = async move {
            let outcome = work.await;
            post.send(Message::Done { slot, op, outcome });
        };
        self.thread.context.runtime.spawn(work.instrument(span)).abort_handle()
    }
}
