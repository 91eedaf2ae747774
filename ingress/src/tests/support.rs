//! An ingress and a node of one fleet, and raw HTTP/1.1 to talk to it as a client that need not be polite.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures::SinkExt as _;
use holdfast_bucket::{Bucket, BucketArgs};
use holdfast_records::{FleetIdentity, Key, NodeLease, NodeLoad, Record};
use holdfast_rpc::follower::LogName;
use holdfast_rpc::{
    Access, Body, BodyError, CallError, CellCall, CellHost, CellPage, CellReply, MoveCall, NodeDescription,
    PROTOCOL, ProcessIdentity, Role, WakeCall, WakeReply, identity, serve,
};
use holdfast_types::{CellName, Epoch, Incarnation, Millis, NodeName, Position, SessionId, Txid, WriteId};
use http_body_util::{BodyExt as _, Full, StreamBody};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::{Addresses, Config, Service};

/// Answers by the request's query: what it saw, or a failure of the kind named.
pub(super) struct Host {
    /// Told when a call is dropped before its answer.
    cancelled: mpsc::UnboundedSender<()>,
    /// Told when a call begins.
    begun: mpsc::UnboundedSender<()>,
    /// Calls that ask for `wait` go on after this.
    go: tokio::sync::watch::Receiver<bool>,
}

struct TellWhenDropped(Option<mpsc::UnboundedSender<()>>);

impl Drop for TellWhenDropped {
    fn drop(&mut self) {
        if let Some(sender) = self.0.take() {
            let _ = sender.send(());
        }
    }
}

fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

fn reply(body: Body) -> Result<CellReply, CallError> {
    let response = http::Response::builder()
        .header("content-type", "text/plain")
        .header("keep-alive", "timeout=9")
        .body(body)
        .unwrap();
    let position = Position { epoch: Epoch::new(3), txid: Txid::new(14) };
    Ok(CellReply { response, thrown: None, position })
}

fn describe(call: &CellCall) -> String {
    let request = &call.request;
    let mut text = format!("{} {} {} {:?}\n", call.cell, request.method(), request.uri(), call.access);
    for (name, value) in request.headers() {
        text += &format!("{name}: {}\n", value.to_str().unwrap());
    }
    text
}

#[async_trait]
impl CellHost for Host {
    async fn call(&self, call: CellCall) -> Result<CellReply, CallError> {
        let mut tell = TellWhenDropped(Some(self.cancelled.clone()));
        let _ = self.begun.send(());
        let answer = match call.request.uri().query().unwrap_or_default() {
            "" => reply(whole(describe(&call))),
            "echo" => reply(call.request.into_body()),
            "count" => {
                let collected = call.request.into_body().collect().await;
                let collected = collected.map_err(|e| CallError::Unavailable { reason: e.to_string() })?;
                reply(whole(collected.to_bytes().len().to_string()))
            }
            "unknown" => Err(CallError::OutcomeUnknown { reason: "fenced".into() }),
            "overloaded" => Err(CallError::Overloaded { reason: "full".into(), retry_after_ms: 4_500 }),
            "break" => {
                let (mut sender, receiver) = futures::channel::mpsc::channel(1);
                let mut go = self.go.clone();
                tokio::spawn(async move {
                    let _ = sender.send(Ok(http_body::Frame::data(Bytes::from_static(b"first")))).await;
                    let _ = go.wait_for(|go| *go).await;
                    let _ = sender.send(Err(BodyError::from("broken"))).await;
                });
                reply(StreamBody::new(receiver).boxed_unsync())
            }
            "wait" => {
                self.go.clone().wait_for(|go| *go).await.unwrap();
                reply(whole("waited"))
            }
            other => panic!("no script for `{other}`"),
        };
        tell.0 = None;
        answer
    }

    async fn wake(&self, _call: WakeCall) -> Result<WakeReply, CallError> {
        unreachable!("an ingress wakes no cell")
    }

    async fn describe(&self) -> NodeDescription {
        unreachable!("an ingress asks no node about itself")
    }

    async fn drain(&self) {}

    async fn cover_cell(&self, _cell: &CellName) -> Result<(), CallError> {
        Ok(())
    }

    async fn release_cell(&self, _cell: &CellName) -> Result<(), CallError> {
        Ok(())
    }

    async fn restore_cell(
        &self,
        cell: &CellName,
        _target: holdfast_rpc::PastTarget,
    ) -> Result<holdfast_rpc::RestoredCell, CallError> {
        unreachable!("nobody restores `{cell}` here")
    }

    async fn recover_log(&self, _log: &LogName) -> Result<(), CallError> {
        unreachable!("an ingress recovers nothing")
    }

    async fn adopt_cell(&self, _cell: &CellName, _is_asleep: bool) -> Result<Epoch, CallError> {
        unreachable!("an ingress moves no cell")
    }

    async fn move_cells(&self, _call: MoveCall) -> Result<u64, CallError> {
        unreachable!("an ingress moves no cell")
    }

    async fn list_cells(&self, _start_after: Option<&CellName>, _limit: usize) -> CellPage {
        CellPage::default()
    }
}

pub(super) struct Fleet {
    pub(super) addresses: Addresses,
    pub(super) identity: FleetIdentity,
    pub(super) cancelled: mpsc::UnboundedReceiver<()>,
    pub(super) begun: mpsc::UnboundedReceiver<()>,
    pub(super) go: tokio::sync::watch::Sender<bool>,
    stop: Option<oneshot::Sender<()>>,
    pub(super) ingress: JoinHandle<anyhow::Result<crate::Exit>>,
    pub(super) dir: tempfile::TempDir,
}

async fn node(bucket: &dyn Bucket, fleet: &FleetIdentity, host: Host) {
    let session = SessionId::from_bits(77);
    let name = NodeName::parse("n1").unwrap();
    let process = ProcessIdentity::new(fleet.clone(), Role::Cellnode, "n1", session).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let now_ms = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as u64;
    let lease = NodeLease {
        version: NodeLease::VERSION,
        write_id: WriteId::from_bits(1),
        node: name.clone(),
        session,
        incarnation: Incarnation::from_bits(1),
        expires_ms: Millis::new(now_ms + 600_000),
        started_ms: Millis::new(now_ms),
        address: listener.local_addr().unwrap().to_string(),
        host: "host".parse().unwrap(),
        zone: "zone".parse().unwrap(),
        protocol: PROTOCOL,
        load: NodeLoad { weight: 100, cells: 0, requests: 0 },
        draining: false,
        tombstone_ms: None,
    };
    bucket.put(&Key::NodeLease(name).to_string(), lease.encode().into()).await.unwrap();
    tokio::spawn(async move { serve(listener, Arc::new(host), &process, std::future::pending()).await });
}

/// A fleet with one node that takes every cell.
pub(super) async fn fleet(change: impl FnOnce(&mut Config)) -> Fleet {
    let dir = tempfile::tempdir().unwrap();
    let args = BucketArgs::at(&format!("file://{}", dir.path().join("bucket").display()));
    let bucket = args.open().await.unwrap().records;
    let identity = identity::load_or_create(&*bucket).await.unwrap();
    let (cancelled_tx, cancelled) = mpsc::unbounded_channel();
    let (begun_tx, begun) = mpsc::unbounded_channel();
    let (go, gone) = tokio::sync::watch::channel(false);
    node(&*bucket, &identity, Host { cancelled: cancelled_tx, begun: begun_tx, go: gone }).await;
    let mut config = Config::embedded(args, "127.0.0.1:0".into());
    config.drain_delay = Duration::ZERO;
    config.ready_file = Some(dir.path().join("ready.json"));
    change(&mut config);
    let (ready_tx, ready) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let ingress = tokio::spawn(Service::run(config, Some(ready_tx), async {
        let _ = stopped.await;
    }));
    let addresses = ready.await.expect("the ingress starts");
    Fleet { addresses, identity, cancelled, begun, go, stop: Some(stop), ingress, dir }
}

impl Fleet {
    pub(super) fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    pub(super) async fn connect(&self) -> Client {
        Client::new(self.addresses.public).await
    }

    /// One request on a connection of its own.
    pub(super) async fn ask(&self, request: &str) -> Answer {
        self.connect().await.ask(request).await
    }
}

/// One HTTP/1.1 connection.
pub(super) struct Client {
    pub(super) tcp: TcpStream,
    buffer: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    head: String,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

impl Client {
    pub(super) async fn new(address: SocketAddr) -> Self {
        Self { tcp: TcpStream::connect(address).await.unwrap(), buffer: Vec::new() }
    }

    pub(super) async fn send(&mut self, bytes: &[u8]) {
        self.tcp.write_all(bytes).await.unwrap();
    }

    async fn more(&mut self) -> bool {
        let read = tokio::time::timeout(Duration::from_secs(10), self.tcp.read_buf(&mut self.buffer));
        read.await.expect("an answer in time").is_ok_and(|len| len > 0)
    }

    async fn take_line(&mut self) -> Option<String> {
        loop {
            if let Some(at) = self.buffer.windows(2).position(|pair| pair == b"\r\n") {
                let line: Vec<u8> = self.buffer.drain(..at + 2).collect();
                return Some(String::from_utf8(line[..at].to_vec()).unwrap());
            }
            if !self.more().await {
                return None;
            }
        }
    }

    async fn take(&mut self, len: usize) -> Option<String> {
        while self.buffer.len() < len {
            if !self.more().await {
                return None;
            }
        }
        Some(String::from_utf8_lossy(&self.buffer.drain(..len).collect::<Vec<u8>>()).into_owned())
    }

    /// Reads a head up to its empty line.
    pub(super) async fn head(&mut self) -> Option<Answer> {
        let status = self.take_line().await?;
        let status = status.split(' ').nth(1).unwrap().parse().unwrap();
        let mut head = String::new();
        loop {
            let line = self.take_line().await?;
            if line.is_empty() {
                return Some(Answer { status, head, body: String::new() });
            }
            head += &line;
            head += "\n";
        }
    }

    /// Reads a body; `None` when it breaks off.
    pub(super) async fn body(&mut self, answer: &Answer) -> Option<String> {
        if answer.status == 304 {
            return Some(String::new());
        }
        if let Some(len) = answer.header("content-length") {
            return self.take(len.parse().unwrap()).await;
        }
        let mut body = String::new();
        loop {
            let len = usize::from_str_radix(&self.take_line().await?, 16).unwrap();
            body += &self.take(len).await?;
            assert_eq!(self.take_line().await?, "");
            if len == 0 {
                return Some(body);
            }
        }
    }

    pub(super) async fn ask(&mut self, request: &str) -> Answer {
        self.send(request.as_bytes()).await;
        let mut answer = self.head().await.expect("an answer");
        answer.body = self.body(&answer).await.expect("a whole body");
        answer
    }
}

pub(super) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n")
}

pub(super) fn post(path: &str, headers: &str, body: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

pub(super) const READ_ONLY: Access = Access::ReadOnly;
