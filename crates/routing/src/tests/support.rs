//! Nodes that serve scripted handlers on loopback, and the records that say so.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use holdfast_bucket::faults::FaultBucket;
use holdfast_bucket::{Bucket as _, MemoryBucket};
use holdfast_records::{
    FleetIdentity, Key, NodeLease, NodeLoad, OwnerRecord, OwnerState, ProtocolRange, Record,
};
use holdfast_rpc::follower::LogName;
use holdfast_rpc::{
    Access, Body, CallError, CellCall, CellClient, CellHost, CellPage, CellReply, MoveCall, NodeDescription,
    PROTOCOL, ProcessIdentity, Role, WakeCall, WakeReply, identity, serve,
};
use holdfast_types::{
    AlarmId, AlarmSeq, CellName, Epoch, Incarnation, Millis, NodeName, Position, SessionId, Txid, WakeMinute,
    WriteId,
};
use http_body_util::{BodyExt as _, Full};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::{RouteError, Router, RouterOptions, Successors, Woken};

pub(super) const SKEW_MS: u64 = 300;

type Answer = Pin<Box<dyn Future<Output = Result<CellReply, CallError>> + Send>>;
pub(super) type Handler = Box<dyn Fn(&str) -> Answer + Send + Sync>;

fn text(text: &str) -> Body {
    Full::new(text.to_owned().into()).map_err(|never| match never {}).boxed_unsync()
}

fn reply(body: &str) -> CellReply {
    let position = Position { epoch: Epoch::new(1), txid: Txid::new(1) };
    CellReply { response: http::Response::new(text(body)), thrown: None, position }
}

/// Answers with the node's name.
pub(super) fn echo() -> Handler {
    Box::new(|node| Box::pin(std::future::ready(Ok(reply(node)))))
}

pub(super) fn named(name: &'static str) -> Handler {
    Box::new(move |_| Box::pin(std::future::ready(Ok(reply(name)))))
}

pub(super) fn refuses(error: CallError) -> Handler {
    Box::new(move |_| Box::pin(std::future::ready(Err(error.clone()))))
}

pub(super) fn silent() -> Handler {
    Box::new(|_| Box::pin(std::future::pending()))
}

pub(super) fn waits_for(go: oneshot::Receiver<()>) -> Handler {
    let go = std::sync::Mutex::new(Some(go));
    Box::new(move |_| {
        let go = go.lock().unwrap().take().unwrap();
        Box::pin(async move {
            go.await.unwrap();
            Ok(reply("waited"))
        })
    })
}

struct Host {
    name: NodeName,
    handler: Handler,
    calls: watch::Sender<u64>,
}

#[async_trait]
impl CellHost for Host {
    async fn call(&self, _call: CellCall) -> Result<CellReply, CallError> {
        self.calls.send_modify(|calls| *calls += 1);
        (self.handler)(self.name.as_str()).await
    }

    async fn wake(&self, _call: WakeCall) -> Result<WakeReply, CallError> {
        self.calls.send_modify(|calls| *calls += 1);
        let reply = (self.handler)(self.name.as_str()).await?;
        Ok(WakeReply { epoch: reply.position.epoch, armed: None })
    }

    async fn describe(&self) -> NodeDescription {
        unreachable!("the router asks no node about itself")
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
        unreachable!("a router recovers nothing")
    }

    async fn adopt_cell(&self, _cell: &CellName, _is_asleep: bool) -> Result<Epoch, CallError> {
        self.calls.send_modify(|calls| *calls += 1);
        Ok((self.handler)(self.name.as_str()).await?.position.epoch)
    }

    async fn move_cells(&self, _call: MoveCall) -> Result<u64, CallError> {
        unreachable!("a router moves no cell")
    }

    async fn list_cells(&self, _start_after: Option<&CellName>, _limit: usize) -> CellPage {
        CellPage::default()
    }
}

pub(super) struct Node {
    pub(super) name: NodeName,
    pub(super) session: SessionId,
    address: String,
    calls: watch::Receiver<u64>,
    expires_ms: AtomicU64,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
}

impl Node {
    pub(super) fn calls(&self) -> u64 {
        *self.calls.borrow()
    }

    pub(super) async fn called(&self, times: u64) {
        self.calls.clone().wait_for(|calls| *calls >= times).await.unwrap();
    }

    /// The end of the lease that was published last.
    pub(super) fn expires_ms(&self) -> Millis {
        Millis::new(self.expires_ms.load(Ordering::SeqCst))
    }

    pub(super) async fn stop(self) {
        self.stop.send(()).unwrap();
        self.server.await.unwrap();
    }
}

pub(super) struct Fleet {
    pub(super) bucket: Arc<FaultBucket>,
    identity: FleetIdentity,
    router: Router,
    sessions: AtomicU64,
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as u64
}

fn cell() -> CellName {
    CellName::parse("db:users").unwrap()
}

impl Fleet {
    pub(super) fn new() -> Self {
        let bucket = Arc::new(FaultBucket::new(Arc::new(MemoryBucket::new())));
        let identity = identity::create().unwrap();
        let ingress =
            ProcessIdentity::new(identity.clone(), Role::Ingress, "i", SessionId::from_bits(1)).unwrap();
        let options = RouterOptions { clock_skew_max_ms: SKEW_MS, ..RouterOptions::default() };
        let router = Router::new(bucket.clone(), CellClient::new(ingress), options);
        Self { bucket, identity, router, sessions: AtomicU64::new(100) }
    }

    pub(super) async fn node(&self, name: &str, handler: Handler) -> Node {
        let session = SessionId::from_bits(self.sessions.fetch_add(1, Ordering::SeqCst).into());
        let process = ProcessIdentity::new(self.identity.clone(), Role::Cellnode, name, session).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let name = NodeName::parse(name).unwrap();
        let (calls, seen) = watch::channel(0);
        let host = Arc::new(Host { name: name.clone(), handler, calls });
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(async move {
            let shutdown = async {
                let _ = stopped.await;
            };
            serve(listener, host, &process, shutdown).await.unwrap();
        });
        Node { name, session, address, calls: seen, expires_ms: AtomicU64::new(0), stop, server }
    }

    /// As a node of the fleet that gives its cells up.
    pub(super) fn successors(&self) -> Successors {
        let giver =
            ProcessIdentity::new(self.identity.clone(), Role::Cellnode, "me", SessionId::from_bits(2));
        Successors::new(self.bucket.clone(), CellClient::new(giver.unwrap()), PROTOCOL)
    }

    pub(super) async fn lease(&self, node: &Node, ttl_ms: u64) {
        self.publish(node, ttl_ms, false, PROTOCOL).await;
    }

    pub(super) async fn lease_draining(&self, node: &Node, ttl_ms: u64) {
        self.publish(node, ttl_ms, true, PROTOCOL).await;
    }

    pub(super) async fn lease_of_protocol(&self, node: &Node, ttl_ms: u64, version: u32) {
        self.publish(node, ttl_ms, false, ProtocolRange { min: version, max: version }).await;
    }

    /// A lease of `ttl_ms` from now; 0 is one that was given up.
    async fn publish(&self, node: &Node, ttl_ms: u64, draining: bool, protocol: ProtocolRange) {
        let expires_ms = if ttl_ms == 0 { Millis::ZERO } else { Millis::new(now_ms() + ttl_ms) };
        node.expires_ms.store(expires_ms.get(), Ordering::SeqCst);
        let lease = NodeLease {
            version: NodeLease::VERSION,
            write_id: WriteId::from_bits(1),
            node: node.name.clone(),
            session: node.session,
            incarnation: Incarnation::from_bits(1),
            expires_ms,
            started_ms: Millis::ZERO,
            address: node.address.clone(),
            host: "host".parse().unwrap(),
            zone: "zone".parse().unwrap(),
            protocol,
            load: NodeLoad { weight: 100, cells: 0, requests: 0 },
            draining,
            tombstone_ms: None,
        };
        let key = Key::NodeLease(node.name.clone()).to_string();
        self.bucket.put(&key, lease.encode().into()).await.unwrap();
    }

    pub(super) async fn own(&self, node: &Node, state: OwnerState) {
        let record = OwnerRecord {
            version: OwnerRecord::VERSION,
            write_id: WriteId::from_bits(1),
            node: node.name.clone(),
            session: node.session,
            epoch: Epoch::new(1),
            state,
            floor: Epoch::ZERO,
        };
        self.bucket.put(&Key::Owner(cell()).to_string(), record.encode().into()).await.unwrap();
    }

    pub(super) async fn ask(&self) -> Result<String, RouteError> {
        self.ask_for(Duration::from_secs(20)).await
    }

    pub(super) async fn ask_for(&self, wait: Duration) -> Result<String, RouteError> {
        let call = CellCall {
            cell: cell(),
            access: Access::ReadWrite,
            request: http::Request::post("/query").body(text("select 1")).unwrap(),
            object: holdfast_rpc::ObjectCall::default(),
            deadline: tokio::time::Instant::now() + wait,
        };
        let reply = self.router.forward(call).await?;
        let body = reply.response.into_body().collect().await.unwrap().to_bytes();
        Ok(String::from_utf8(body.to_vec()).unwrap())
    }

    /// Which node looked at the cell's alarm.
    pub(super) async fn wake_for(&self, wait: Duration) -> Result<Woken, RouteError> {
        let call = WakeCall {
            cell: cell(),
            minute: WakeMinute::new(7),
            id: AlarmId { epoch: Epoch::new(1), seq: AlarmSeq::new(1) },
            deadline: tokio::time::Instant::now() + wait,
        };
        self.router.wake(call).await
    }

    /// Lets the wall clock, which leases are judged by, reach a time.
    pub(super) async fn wait_until_wall(&self, time: Millis) {
        while now_ms() < time.get() {
            tokio::time::sleep(Duration::from_millis(time.get() - now_ms().min(time.get()))).await;
        }
    }
}
