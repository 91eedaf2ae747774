//! An isolate with an application, its events, and what it asks for, for the tests of events.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use holdfast_sql::{Engine, EngineOptions};
use holdfast_types::Txid;
use http::{HeaderMap, Method};
use rquickjs::{CatchResultExt, Ctx, Function, Object as JsObject, TypedArray};
use tempfile::TempDir;

use super::{at, limits};
use crate::effect::{
    BrokenCause, Effect, Ending, EventCall, EventId, IncomingBody, IncomingRequest, JsError, Op, OpAnswer,
    OpId, OutgoingBody, OutgoingResponse, SocketEvent, SocketId, Turn, TurnEnd,
};
use crate::isolate::{Isolate, IsolateKind, Limits, Object, id_from_name};
use crate::web::sockets::KeptSockets;
use crate::{Application, buffers, prelude};

/// An isolate and what it has asked for.
pub(crate) struct World {
    pub(crate) isolate: Isolate,
    /// All effects so far, in order.
    pub(crate) effects: Vec<Effect>,
    pub(crate) broken: Option<BrokenCause>,
    now_ms: u64,
    events: u64,
    _folder: Option<TempDir>,
}

impl World {
    /// The Worker of an application.
    pub(crate) fn worker(code: Application) -> Self {
        Self::new(code, IsolateKind::Worker, None)
    }

    /// The object `name` of a class of an application.
    pub(crate) fn object(code: Application, class: &str, name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = EngineOptions::new(folder.path());
        let engine = Engine::open(&folder.path().join("db"), Txid::ZERO, &options).unwrap();
        let object = Object {
            class: class.to_owned(),
            id: id_from_name(class, name),
            name: Some(name.to_owned()),
            storage: Rc::new(RefCell::new(engine)),
            sockets: Rc::default(),
        };
        Self::new(code, IsolateKind::Object(object), Some(folder))
    }

    /// The object `a` of a class of an application, over a database of the caller's.
    pub(crate) fn object_over(
        code: Application,
        class: &str,
        storage: &Rc<RefCell<Engine>>,
        limits: Limits,
    ) -> Self {
        let object = Object {
            class: class.to_owned(),
            id: id_from_name(class, "a"),
            name: Some("a".to_owned()),
            storage: Rc::clone(storage),
            sockets: Rc::default(),
        };
        let isolate = Isolate::new(&Arc::new(code), IsolateKind::Object(object), limits, at(0)).unwrap();
        Self { isolate, effects: Vec::new(), broken: None, now_ms: 0, events: 0, _folder: None }
    }

    fn new(code: Application, kind: IsolateKind, folder: Option<TempDir>) -> Self {
        let isolate = Isolate::new(&Arc::new(code), kind, limits(), at(0)).unwrap();
        Self { isolate, effects: Vec::new(), broken: None, now_ms: 0, events: 0, _folder: folder }
    }

    fn take(&mut self, turn: Turn) {
        self.effects.extend(turn.effects);
        if let TurnEnd::Broken(cause) = turn.end {
            self.broken = Some(cause);
        }
    }

    /// Begins an event.
    pub(crate) fn dispatch(&mut self, call: EventCall) -> EventId {
        self.events += 1;
        let event = EventId::new(self.events);
        let turn = self.isolate.dispatch(at(self.now_ms), event, call);
        self.take(turn);
        event
    }

    /// Begins a GET.
    pub(crate) fn get(&mut self, url: &str) -> EventId {
        self.request(Method::GET, url, IncomingBody::None)
    }

    /// Begins a request.
    pub(crate) fn request(&mut self, method: Method, url: &str, body: IncomingBody) -> EventId {
        let request =
            IncomingRequest { method, url: url.to_owned(), headers: HeaderMap::new(), body, cf: None };
        self.dispatch(EventCall::Fetch(request))
    }

    /// Begins a method call; `args` is a JavaScript array.
    pub(crate) fn call(&mut self, method: &str, args: &str) -> EventId {
        let args = self.serialize(args);
        self.dispatch(EventCall::Rpc { method: method.to_owned(), args, takes_references: true })
    }

    /// Answers an operation.
    pub(crate) fn complete(&mut self, op: OpId, answer: OpAnswer) {
        let turn = self.isolate.complete(at(self.now_ms), op, answer);
        self.take(turn);
    }

    /// Tells what came for a socket of `accept()`.
    pub(crate) fn socket(&mut self, socket: SocketId, event: SocketEvent) {
        let turn = self.isolate.socket_event(at(self.now_ms), socket, event);
        self.take(turn);
    }

    /// Another isolate of the object, over what outlives the one before.
    pub(crate) fn hibernate(self, code: Application) -> Self {
        let kind = self.isolate.kind().clone();
        let Self { isolate, now_ms, events, _folder, .. } = self;
        drop(isolate);
        let isolate = Isolate::new(&Arc::new(code), kind, limits(), at(now_ms)).unwrap();
        Self { isolate, effects: Vec::new(), broken: None, now_ms, events, _folder }
    }

    /// The object's hibernatable sockets.
    pub(crate) fn kept(&self) -> Rc<RefCell<KeptSockets>> {
        match self.isolate.kind() {
            IsolateKind::Object(object) => Rc::clone(&object.sockets),
            IsolateKind::Worker => panic!("a Worker keeps no sockets"),
        }
    }

    /// Ends an event before it is done.
    pub(crate) fn end(&mut self, event: EventId, ending: Ending) {
        let turn = self.isolate.end_event(at(self.now_ms), event, ending);
        self.take(turn);
    }

    /// Lets time pass, without a timer.
    pub(crate) fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
    }

    /// Lets time pass to the next timer.
    pub(crate) fn wait(&mut self) {
        let deadline = self.isolate.next_deadline().expect("there is a timer");
        self.now_ms = deadline.get();
        let turn = self.isolate.wake(at(self.now_ms));
        self.take(turn);
    }

    /// The operations that have begun, in order.
    pub(crate) fn ops(&self) -> Vec<(OpId, Op)> {
        let started = |effect: &Effect| match effect {
            Effect::Start { op, op_call } => Some((*op, op_call.clone())),
            _ => None,
        };
        self.effects.iter().filter_map(started).collect()
    }

    pub(crate) fn is_done(&self, event: EventId) -> bool {
        self.effects.contains(&Effect::Done { event })
    }

    pub(crate) fn response(&self, event: EventId) -> Option<&OutgoingResponse> {
        self.effects.iter().find_map(|effect| match effect {
            Effect::Respond { event: of, response } if *of == event => Some(response),
            _ => None,
        })
    }

    /// The whole body of the answer.
    pub(crate) fn text(&self, event: EventId) -> String {
        match self.response(event).map(|response| &response.body) {
            Some(OutgoingBody::Whole(bytes)) => String::from_utf8(bytes.to_vec()).unwrap(),
            other => panic!("{other:?} of {:?}", self.effects),
        }
    }

    /// The result of a method, as JSON.
    pub(crate) fn returned(&self, event: EventId) -> String {
        let value = self.effects.iter().find_map(|effect| match effect {
            Effect::Return { event: of, value } if *of == event => Some(value.clone()),
            _ => None,
        });
        let value = value.unwrap_or_else(|| panic!("{:?}", self.effects));
        self.inside(|ctx, internals| {
            let deserialize: Function<'_> = internals.get("deserialize")?;
            let bytes = TypedArray::<u8>::new_copy(ctx.clone(), &value)?;
            let value: rquickjs::Value<'_> = deserialize.call((bytes,))?;
            Ok(ctx.json_stringify(value)?.map_or("undefined".to_owned(), |text| text.to_string().unwrap()))
        })
    }

    /// The error of an event, as `TypeError: …`.
    pub(crate) fn failed(&self, event: EventId) -> String {
        let JsError { name, message, .. } = self.failure(event);
        format!("{name}: {message}")
    }

    pub(crate) fn failure(&self, event: EventId) -> JsError {
        let failed = self.effects.iter().find_map(|effect| match effect {
            Effect::Fail { event: of, error, .. } if *of == event => Some(error.clone()),
            _ => None,
        });
        failed.unwrap_or_else(|| panic!("{:?} {:?}", self.effects, self.broken))
    }

    /// The lines of the log.
    pub(crate) fn log(&self) -> Vec<&str> {
        fn text(effect: &Effect) -> Option<&str> {
            match effect {
                Effect::Log { text, .. } => Some(text),
                _ => None,
            }
        }
        self.effects.iter().filter_map(text).collect()
    }

    /// A JavaScript expression in the clone format.
    pub(crate) fn serialize(&self, expression: &str) -> Bytes {
        self.inside(|ctx, internals| {
            let serialize: Function<'_> = internals.get("serialize")?;
            let bytes: TypedArray<'_, u8> =
                serialize.call((ctx.eval::<rquickjs::Value<'_>, _>(expression)?,))?;
            Ok(buffers::read(&bytes).into())
        })
    }

    fn inside<T>(&self, body: impl for<'js> FnOnce(&Ctx<'js>, JsObject<'js>) -> rquickjs::Result<T>) -> T {
        self.isolate.context.with(|ctx| {
            prelude::load(&ctx, "clone").catch(&ctx).unwrap();
            body(&ctx, prelude::internals(&ctx)).catch(&ctx).unwrap()
        })
    }
}
