//! A node over a bucket in memory, and a runtime whose handlers are written down here, by path.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use holdfast_bucket::faults::{Fault, FaultBucket, Operation as BucketOperation, Rule, RuleHandle};
use holdfast_bucket::{Bucket, BucketArgs, Buckets, ErrorKind, MemoryBucket};
use holdfast_records::Key;
use holdfast_rpc::{
    Access, Body, CallError, CallOrder, CellCall, CellHost, CellReply, ObjectCall, ProcessIdentity, Role,
    ThrownError, WakeCall, WakeReply,
};
use holdfast_types::{CellName, HostId, Millis, NodeName, SessionId};
use http_body_util::{BodyExt as _, Empty};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::cells::{Job, Resident};
use crate::config::Durability;
use crate::data_dir::DataDir;
use crate::host::Host;
use crate::node::Node;
use crate::runtime::{
    Answer, Begun, CellRuntime, Classes, Effect, EventCall, EventId, IncomingBody, OpAnswer, OpId, Operation,
    OutgoingBody, ReplyBody, RequestBody, RuntimeContext, SharedEngine, Turn,
};
use crate::{Config, clock};

/// More than any step here takes on a machine that does other things too.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
const CELL: &str = "Scripted:x";

/// A piece of which two fill a pipe.
pub(super) fn piece() -> Bytes {
    Bytes::from(vec![7; 40 << 10])
}

fn put() -> Rule {
    Rule::new(Fault::None).on(BucketOperation::Put).on(BucketOperation::PutStream).containing(".ltx")
}

pub(super) struct Bench {
    pub(super) node: Arc<Node>,
    cell: CellName,
    host: Arc<Host>,
    bucket: FaultBucket,
    uploads: RuleHandle,
    log: tokio::sync::Mutex<mpsc::UnboundedReceiver<String>>,
    heard: Mutex<Vec<String>>,
    _dir: tempfile::TempDir,
}

impl Bench {
    pub(super) async fn new() -> Self {
        Self::finishing_within(PATIENCE).await
    }

    /// With a bound on what a release waits for.
    pub(super) async fn finishing_within(finish_timeout: Duration) -> Self {
        let (tell, log) = mpsc::unbounded_channel();
        let made = |_: &Buckets, _: &ProcessIdentity| Arc::new(Scripts { tell }) as Arc<dyn Classes>;
        Self::of(CELL, made, log, finish_timeout).await
    }

    /// With other classes.
    pub(super) async fn of(
        cell: &str,
        classes: impl FnOnce(&Buckets, &ProcessIdentity) -> Arc<dyn Classes>,
        log: mpsc::UnboundedReceiver<String>,
        finish_timeout: Duration,
    ) -> Self {
        Self::configured(cell, classes, log, |config| config.finish_timeout = finish_timeout).await
    }

    /// With other settings.
    pub(super) async fn configured(
        cell: &str,
        classes: impl FnOnce(&Buckets, &ProcessIdentity) -> Arc<dyn Classes>,
        log: mpsc::UnboundedReceiver<String>,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bucket = FaultBucket::new(Arc::new(MemoryBucket::new()));
        let uploads = bucket.add(put());
        let shared: Arc<dyn Bucket> = Arc::new(bucket.clone());
        let buckets =
            Buckets { bulk: Arc::clone(&shared), records: Arc::clone(&shared), leases: Arc::clone(&shared) };
        let session = SessionId::from_bits(1);
        let fleet = holdfast_rpc::identity::load_or_create(&*shared).await.unwrap();
        let identity = ProcessIdentity::new(fleet, Role::Cellnode, "n", session).unwrap();
        let name = NodeName::parse("n").unwrap();
        let args = BucketArgs::at("file:///unused");
        let mut config = Config {
            threads: Some(1),
            durability: Durability::Bucket,
            proof_timeout: PATIENCE,
            // What sleeps, sleeps because a test says so.
            idle_after: Duration::ZERO,
            // History is retired when a test says so.
            history_retention: Duration::ZERO,
            ..Config::embedded(args, name, dir.path().join("data"))
        };
        change(&mut config);
        let data_dir = DataDir::open(&config.data_dir).unwrap();
        let host = HostId::parse("h").unwrap();
        let classes = classes(&buckets, &identity);
        let node = Node::new(config, (session, identity, host), buckets, data_dir, classes);
        node.authority.extend(clock::monotonic().plus(3_600_000));
        let host = Arc::new(Host::new(Arc::clone(&node), Arc::new(Notify::new())));
        let log = tokio::sync::Mutex::new(log);
        let cell = CellName::parse(cell).unwrap();
        Self { node, cell, host, bucket, uploads, log, heard: Mutex::default(), _dir: dir }
    }

    /// Calls a method of a named object.
    pub(super) async fn call_method(&self, path: &str, name: &str, method: &str) -> Result<Reply, CallError> {
        self.call_method_with(path, name, method, Client::empty()).await
    }

    /// Calls a method of a named object with arguments.
    pub(super) async fn call_method_with(
        &self,
        path: &str,
        name: &str,
        method: &str,
        args: Body,
    ) -> Result<Reply, CallError> {
        let object = ObjectCall {
            name: Some(name.to_owned()),
            method: Some(method.to_owned()),
            ..ObjectCall::default()
        };
        self.forward_for(path, args, object).await
    }

    /// Asks for a socket; `said` is what its client says.
    pub(super) async fn open(&self, path: &str, said: Body) -> Result<Reply, CallError> {
        let object = ObjectCall { is_socket: true, ..ObjectCall::default() };
        self.forward_for(path, said, object).await
    }

    /// Asks for a session of RPC; `said` is what its caller says after `first`.
    pub(super) async fn open_session(
        &self,
        path: &str,
        said: Body,
        first: Bytes,
    ) -> Result<Reply, CallError> {
        let object = ObjectCall { is_socket: true, session: Some(first), ..ObjectCall::default() };
        self.forward_for(path, said, object).await
    }

    /// Calls a method as one of the calls of a stub.
    pub(super) fn call_in_order(
        &self,
        method: &str,
        args: Bytes,
        order: CallOrder,
    ) -> BoxFuture<'static, Result<Reply, CallError>> {
        let body = http_body_util::Full::new(args).map_err(|never| match never {}).boxed_unsync();
        let object =
            ObjectCall { method: Some(method.to_owned()), order: Some(order), ..ObjectCall::default() };
        self.forward_for("/", body, object)
    }

    fn forward(&self, path: &str, body: Body) -> BoxFuture<'static, Result<Reply, CallError>> {
        self.forward_for(path, body, ObjectCall::default())
    }

    fn forward_for(
        &self,
        path: &str,
        body: Body,
        object: ObjectCall,
    ) -> BoxFuture<'static, Result<Reply, CallError>> {
        let call = CellCall {
            cell: self.cell.clone(),
            access: Access::ReadWrite,
            request: http::Request::post(path).body(body).unwrap(),
            object,
            deadline: tokio::time::Instant::now() + PATIENCE,
        };
        let host = Arc::clone(&self.host);
        Box::pin(async move { host.call(call).await.map(|reply| Reply { reply }) })
    }

    /// Posts a body.
    pub(super) async fn post(&self, path: &str, body: impl Into<Bytes>) -> Result<Reply, CallError> {
        let body = http_body_util::Full::new(body.into()).map_err(|never| match never {}).boxed_unsync();
        self.forward(path, body).await
    }

    pub(super) fn bucket(&self) -> &FaultBucket {
        &self.bucket
    }

    pub(super) async fn call(&self, path: &str) -> Result<Reply, CallError> {
        self.forward(path, Client::empty()).await
    }

    pub(super) fn spawn(&self, path: &str, body: Body) -> JoinHandle<Result<Reply, CallError>> {
        tokio::spawn(self.forward(path, body))
    }

    pub(super) fn host(&self) -> &Host {
        &self.host
    }

    pub(super) fn cell(&self) -> CellName {
        self.cell.clone()
    }

    /// As if the machine had been started anew.
    pub(super) fn forget_local_files(&self) {
        std::fs::remove_dir_all(self.node.data_dir.cell(&self.cell).dir()).unwrap();
    }

    pub(super) fn resident(&self) -> Arc<Resident> {
        self.node.cells.residents().pop().expect("the cell is resident")
    }

    /// Waits until the runtime has said this.
    pub(super) async fn heard(&self, what: &str) {
        if self.heard.lock().unwrap().iter().any(|said| said == what) {
            return;
        }
        let mut log = self.log.lock().await;
        let hear = async {
            loop {
                let said = log.recv().await.unwrap();
                self.heard.lock().unwrap().push(said.clone());
                if said == what {
                    return;
                }
            }
        };
        tokio::time::timeout(PATIENCE, hear).await.unwrap_or_else(|_| panic!("`{what}` was not heard"));
    }

    fn drain_log(&self) {
        let mut log = self.log.try_lock().unwrap();
        while let Ok(said) = log.try_recv() {
            self.heard.lock().unwrap().push(said);
        }
    }

    /// Whether the runtime has not said anything that begins so.
    pub(super) fn never_heard(&self, what: &str) -> bool {
        self.drain_log();
        !self.heard.lock().unwrap().iter().any(|said| said.starts_with(what))
    }

    /// The number of the newest piece that a flood has made.
    pub(super) fn last_flood(&self) -> u32 {
        self.drain_log();
        let heard = self.heard.lock().unwrap();
        heard.iter().filter_map(|said| said.strip_prefix("flood ")?.parse().ok()).max().unwrap_or(0)
    }

    /// Uploads wait from now on.
    pub(super) fn hold_uploads(&self) -> RuleHandle {
        let rule = Rule::new(Fault::Hold).on(BucketOperation::Put).on(BucketOperation::PutStream);
        self.bucket.add(rule.containing(".ltx"))
    }

    /// Listings of level 0 fail from now on.
    pub(super) fn fail_listings(&self) -> RuleHandle {
        self.bucket
            .add(Rule::new(Fault::Fail(ErrorKind::Unavailable)).on(BucketOperation::List).containing("/0/"))
    }

    /// Puts below a prefix wait from now on.
    pub(super) fn hold_puts(&self, prefix: &str) -> RuleHandle {
        self.bucket.add(Rule::new(Fault::Hold).on(BucketOperation::Put).prefix(prefix))
    }

    /// The keys below a prefix.
    pub(super) async fn keys(&self, prefix: &str) -> Vec<String> {
        let page = self.bucket.list(prefix, None, 1_000).await.unwrap();
        page.objects.into_iter().map(|object| object.key).collect()
    }

    /// Has the cell looked at, as a waker that saw this entry does.
    pub(super) async fn wake(&self, entry: &str) -> WakeReply {
        let Ok(Key::WakeEntry { minute, cell, id }) = Key::parse(entry) else { panic!("{entry}") };
        let deadline = tokio::time::Instant::now() + PATIENCE;
        self.host.wake(WakeCall { cell, minute, id, deadline }).await.unwrap()
    }

    /// Waits until a held upload has begun.
    pub(super) async fn upload_is_held(&self, held: &RuleHandle) {
        let begins = async {
            while held.struck() == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, begins).await.expect("an upload begins");
    }

    /// Waits until so many uploads have begun.
    pub(super) async fn uploads_reach(&self, count: u64) {
        let begin = async {
            while self.uploads.struck() < count {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, begin).await.expect("uploads begin");
    }

    pub(super) fn release(&self) -> JoinHandle<Result<(), CallError>> {
        let (node, cell) = (Arc::clone(&self.node), self.cell.clone());
        tokio::spawn(async move { crate::release::release(&node, &cell).await })
    }

    /// Lets the cell sleep as if nobody had used it for a long time.
    pub(super) async fn sleep(&self) {
        // An answer leaves before its event has ended on the cell's thread.
        self.quiet_thread().await;
        crate::release::sleep_idle(&self.node).await;
        assert!(self.node.cells.is_empty(), "it has left memory");
    }

    /// Reads and listings of the cell's objects so far.
    pub(super) fn looks(&self) -> u64 {
        use BucketOperation::{Get, GetRange, GetStream, Head, List};
        [Get, GetRange, GetStream, Head, List]
            .map(|operation| self.bucket.count(operation, "cells/"))
            .iter()
            .sum()
    }

    /// Waits until the cell is on its way out.
    pub(super) async fn leaving(&self) {
        let leaves = async {
            while !self.node.cells.residents().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, leaves).await.expect("the cell leaves");
    }

    /// Waits until the cells' thread has done all that it was given before.
    pub(super) async fn quiet_thread(&self) {
        // A close of a cell that is not there is answered in the order of the queue. Twice: what the first pass took in
        // has had its turn before the second.
        for _ in 0..2 {
            let resident = Resident::new(&self.node, parts(&self.node));
            let (done, closed) = oneshot::channel();
            self.resident_thread(Job::Close { resident, done });
            let _ = closed.await;
        }
    }

    fn resident_thread(&self, job: Job) {
        // One thread runs all cells here.
        self.node.workers.of(&self.cell).send(job);
    }
}

/// A residency that never opened.
fn parts(node: &Arc<Node>) -> crate::cells::ResidentParts {
    use holdfast_core::ownership::{OwnerState, OwnerView};
    let cell = CellName::parse("Scripted:nobody").unwrap();
    crate::cells::ResidentParts {
        files: node.data_dir.cell(&cell),
        cell,
        is_alone: false,
        owner: OwnerView {
            node: node.name.clone(),
            session: node.session,
            epoch: holdfast_types::Epoch::new(1),
            state: OwnerState::Owned,
            floor: holdfast_types::Epoch::ZERO,
            write_id: holdfast_types::WriteId::from_bits(1),
        },
        version: holdfast_bucket::Version::new("none"),
        restored: (None, holdfast_types::Txid::ZERO),
        chain: holdfast_core::compaction::ChainSize::default(),
        paged: None,
        mark: holdfast_core::retire::LastMark::default(),
    }
}

pub(super) struct Reply {
    pub(super) reply: CellReply,
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.reply.fmt(f)
    }
}

impl Reply {
    /// The next piece of the body.
    pub(super) async fn frame(&mut self) -> Result<Bytes, String> {
        match self.reply.response.body_mut().frame().await {
            Some(Ok(frame)) => Ok(frame.into_data().unwrap()),
            Some(Err(error)) => Err(error.to_string()),
            None => Ok(Bytes::new()),
        }
    }

    /// The rest of the body.
    pub(super) async fn text(self) -> String {
        let body = self.reply.response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    }
}

/// A client that sends its body bit by bit.
pub(super) struct Client {
    pieces: mpsc::Sender<Bytes>,
    is_read: Arc<std::sync::atomic::AtomicBool>,
}

impl Client {
    pub(super) fn empty() -> Body {
        Empty::new().map_err(|never| match never {}).boxed_unsync()
    }

    pub(super) fn body() -> (Body, Self) {
        let (pieces, receiver) = mpsc::channel(4);
        let is_read = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let body = Pieces { receiver, is_read: Arc::clone(&is_read) };
        (body.boxed_unsync(), Self { pieces, is_read })
    }

    pub(super) async fn send(&self, piece: impl Into<Bytes>) {
        // Whoever read may have gone.
        let _ = self.pieces.send(piece.into()).await;
    }

    pub(super) fn end(self) {}

    /// Waits until somebody has begun to read.
    pub(super) async fn is_awaited(&self) {
        let read = async {
            while !self.is_read() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, read).await.expect("the body is read");
    }

    pub(super) fn is_read(&self) -> bool {
        self.is_read.load(std::sync::atomic::Ordering::SeqCst)
    }
}

struct Pieces {
    receiver: mpsc::Receiver<Bytes>,
    is_read: Arc<std::sync::atomic::AtomicBool>,
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = holdfast_rpc::BodyError;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        self.is_read.store(true, std::sync::atomic::Ordering::SeqCst);
        self.receiver.poll_recv(cx).map(|piece| piece.map(|piece| Ok(http_body::Frame::data(piece))))
    }
}

#[derive(Debug)]
struct Scripts {
    tell: mpsc::UnboundedSender<String>,
}

impl Classes for Scripts {
    fn check(&self, _: &CellName) -> Result<(), CallError> {
        Ok(())
    }

    fn takes_streams(&self, _: &CellName, _: &ObjectCall) -> bool {
        true
    }

    fn without_cell(&self, _: &CellName, _: &http::Request<Body>) -> Option<http::Response<Bytes>> {
        None
    }

    fn may_create(&self, _: &CellName, _: Access, _: &http::Method) -> bool {
        true
    }

    fn runtime(&self, _: RuntimeContext, engine: &SharedEngine) -> Result<Box<dyn CellRuntime>, String> {
        let engine = Rc::clone(engine);
        engine
            .borrow()
            .connection()
            .execute_batch("CREATE TABLE IF NOT EXISTS t(a)")
            .map_err(|e| e.to_string())?;
        Ok(Box::new(Scripted { engine, tell: self.tell.clone(), made: 0, waits: HashMap::new() }))
    }
}

/// What is done when an operation has its answer.
enum Wait {
    /// The piece is the answer, after an insert or without.
    Answer { event: EventId, inserts: bool },
    /// The piece goes back out.
    Echo { event: EventId, from: IncomingBody, to: OutgoingBody },
    /// The next piece of a flood goes out.
    Flood { event: EventId, to: OutgoingBody, made: u32 },
    /// Nothing.
    Nothing,
    /// It was cancelled.
    Never,
}

struct Scripted {
    engine: SharedEngine,
    tell: mpsc::UnboundedSender<String>,
    made: u64,
    waits: HashMap<OpId, Wait>,
}

impl Scripted {
    fn say(&self, what: String) {
        let _ = self.tell.send(what);
    }

    fn insert(&self) {
        self.engine.borrow().connection().execute_batch("INSERT INTO t VALUES(1)").unwrap();
    }

    fn rows(&self) -> ReplyBody {
        let engine = self.engine.borrow();
        let rows: i64 =
            engine.connection().query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
        ReplyBody::Whole(Bytes::from(format!("{rows} rows")))
    }

    fn start(&mut self, operation: Operation, wait: Wait, turn: &mut Turn) {
        self.made += 1;
        let op = OpId(self.made);
        self.waits.insert(op, wait);
        turn.effects.push(Effect::Start { op, operation });
    }

    fn finish(&self, event: EventId, answer: Answer, turn: &mut Turn) {
        turn.effects.push(Effect::Answer { event, answer });
        turn.effects.push(Effect::Done { event });
    }

    fn flood(&mut self, event: EventId, mut to: OutgoingBody, made: u32, turn: &mut Turn) {
        let piece = to.chunk(piece());
        self.start(Operation::Write(piece), Wait::Flood { event, to, made: made + 1 }, turn);
        self.say(format!("flood {}", made + 1));
    }
}

fn body_of(call: &mut EventCall) -> IncomingBody {
    match std::mem::replace(call.request.body_mut(), RequestBody::Whole(Bytes::new())) {
        RequestBody::Stream(body) => IncomingBody::new(body),
        RequestBody::Whole(_) => panic!("this handler reads its body"),
    }
}

fn response(body: ReplyBody) -> Answer {
    Answer::Response(http::Response::new(body))
}

impl CellRuntime for Scripted {
    fn begin(&mut self, event: EventId, call: &mut EventCall, turn: &mut Turn) -> Begun {
        match call.request.uri().path() {
            "/rows" => self.finish(event, response(self.rows()), turn),
            "/insert" => {
                self.insert();
                self.finish(event, response(self.rows()), turn);
            }
            "/insert-throw" => {
                self.insert();
                let message = "after the write".to_owned();
                let thrown = ThrownError { name: "Error".into(), message, ..ThrownError::default() };
                self.finish(event, Answer::Thrown(Box::new(thrown)), turn);
            }
            "/answer-then-insert" => {
                let answer = response(ReplyBody::Whole(Bytes::from_static(b"soon")));
                turn.effects.push(Effect::Answer { event, answer });
                // In a turn of its own.
                let body = IncomingBody::new(Client::empty());
                self.start(Operation::Read(body), Wait::Answer { event, inserts: true }, turn);
            }
            path @ ("/wait" | "/wait-insert") => {
                let inserts = path == "/wait-insert";
                let body = body_of(call);
                self.start(Operation::Read(body), Wait::Answer { event, inserts }, turn);
            }
            "/echo" => {
                let (to, reader) = OutgoingBody::new();
                let from = body_of(call);
                turn.effects.push(Effect::Answer { event, answer: response(ReplyBody::Stream(reader)) });
                self.start(Operation::Read(from.clone()), Wait::Echo { event, from, to }, turn);
            }
            "/named" => {
                let ObjectCall { name, method, .. } = &call.object;
                let text = format!("{} {}", name.as_deref().unwrap_or("-"), method.as_deref().unwrap_or("-"));
                self.finish(event, response(ReplyBody::Whole(Bytes::from(text))), turn);
            }
            "/change-of-mind" => {
                let body = body_of(call);
                self.start(Operation::Read(body.clone()), Wait::Never, turn);
                let op = OpId(self.made);
                turn.effects.push(Effect::Cancel { op });
                self.start(Operation::Read(body), Wait::Answer { event, inserts: false }, turn);
            }
            "/flood" => {
                let (to, reader) = OutgoingBody::new();
                turn.effects.push(Effect::Answer { event, answer: response(ReplyBody::Stream(reader)) });
                self.flood(event, to, 0, turn);
            }
            "/many-reads" => {
                let body = body_of(call);
                self.start(Operation::Read(body.clone()), Wait::Answer { event, inserts: false }, turn);
                for _ in 0..1_024 {
                    // Whichever gets the piece answers.
                    let wait = Wait::Answer { event, inserts: false };
                    self.start(Operation::Read(body.clone()), wait, turn);
                }
            }
            path => panic!("there is no handler for {path}"),
        }
        self.say(format!("begun {}", event.0));
        Begun::Open
    }

    fn complete(&mut self, op: OpId, answer: OpAnswer, turn: &mut Turn) {
        match (self.waits.remove(&op).expect("an operation that was started"), answer) {
            (Wait::Never, _) => self.say("completed though cancelled".into()),
            (_, OpAnswer::Refused(reason)) => self.say(format!("refused: {reason}")),
            (Wait::Answer { event, inserts }, OpAnswer::Chunk(chunk)) => {
                self.say(format!("completed {}", event.0));
                let body = if inserts {
                    self.insert();
                    self.rows()
                } else {
                    ReplyBody::Whole(chunk.unwrap().unwrap_or_default())
                };
                self.finish(event, response(body), turn);
            }
            (Wait::Echo { event, from, mut to }, OpAnswer::Chunk(chunk)) => match chunk.unwrap() {
                Some(chunk) => {
                    if chunk == "insert" {
                        self.insert();
                    }
                    let name = String::from_utf8_lossy(&chunk).into_owned();
                    self.start(Operation::Write(to.chunk(chunk)), Wait::Nothing, turn);
                    self.start(Operation::Read(from.clone()), Wait::Echo { event, from, to }, turn);
                    self.say(format!("piece {name}"));
                }
                None => {
                    self.start(Operation::Write(to.end()), Wait::Nothing, turn);
                    turn.effects.push(Effect::Done { event });
                }
            },
            (Wait::Flood { event, to, made }, OpAnswer::Written(true)) => self.flood(event, to, made, turn),
            (Wait::Flood { .. }, OpAnswer::Written(false)) => self.say("abandoned".into()),
            (Wait::Nothing, _) => {}
            (_, answer) => panic!("the answer of another operation: {answer:?}"),
        }
    }

    fn cancel(&mut self, event: EventId, turn: &mut Turn) {
        self.say(format!("cancelled {}", event.0));
        turn.effects.push(Effect::Done { event });
    }

    fn next_deadline(&self) -> Option<Millis> {
        None
    }

    fn wake(&mut self, _: &mut Turn) {}

    fn stop(&mut self) {}
}
