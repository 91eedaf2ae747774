//! A bucket with wake entries, and nodes that say of every cell what its alarm is.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use holdfast_bucket::Bucket;
use holdfast_records::{
    AlarmIdRecord, FleetIdentity, Key, NodeLease, NodeLoad, Record, WakeEntry, WakeRetired,
};
use holdfast_rpc::follower::LogName;
use holdfast_rpc::{
    CallError, CellCall, CellHost, CellPage, CellReply, MoveCall, NodeDescription, PROTOCOL, ProcessIdentity,
    Role, WakeCall, WakeReply, serve,
};
use holdfast_types::{
    AlarmId, AlarmSeq, AlarmTime, CellName, Epoch, Incarnation, Millis, NodeName, SessionId, WriteId,
};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::clock;

pub(super) fn id(seq: u64) -> AlarmId {
    AlarmId { epoch: Epoch::new(1), seq: AlarmSeq::new(seq) }
}

pub(super) fn cell(number: usize) -> CellName {
    CellName::new("Room", &format!("r{number}")).unwrap()
}

/// An entry whose alarm is due so many milliseconds from now.
pub(super) async fn put_entry(bucket: &dyn Bucket, cell: &CellName, seq: u64, from_now_ms: i64) -> String {
    let now = i64::try_from(clock::wall().get()).unwrap();
    let entry = WakeEntry::new(cell.clone(), AlarmTime::new(now + from_now_ms), id(seq));
    let key = entry.key().to_string();
    bucket.put(&key, entry.encode().into()).await.unwrap();
    key
}

/// What an owner writes once an alarm was settled.
pub(super) async fn retire(bucket: &dyn Bucket, cell: &CellName, mark: u64, armed: Option<u64>) {
    let record = WakeRetired {
        version: WakeRetired::VERSION,
        write_id: WriteId::from_bits(u128::from(mark)),
        cell: cell.clone(),
        mark: AlarmIdRecord::from(id(mark)),
        armed: armed.map(|seq| AlarmIdRecord::from(id(seq))),
    };
    bucket.put(&Key::WakeRetired(cell.clone()).to_string(), record.encode().into()).await.unwrap();
}

pub(super) async fn keys(bucket: &dyn Bucket, prefix: &str) -> Vec<String> {
    let listing = bucket.list(prefix, None, 1_000).await.unwrap();
    listing.objects.into_iter().map(|object| object.key).collect()
}

/// Waits for what must come.
pub(super) async fn eventually<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let begun = std::time::Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}: not within 20 s");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Counts hints, and answers that nothing is armed, or refuses.
#[derive(Default)]
pub(super) struct Host {
    hints: Mutex<BTreeMap<CellName, Vec<AlarmId>>>,
    refusal: Mutex<Option<CallError>>,
    recoveries: Mutex<Vec<LogName>>,
    recovers: AtomicBool,
    cells: AtomicU64,
    moves: Mutex<Vec<MoveCall>>,
}

#[async_trait]
impl CellHost for Host {
    async fn call(&self, _call: CellCall) -> Result<CellReply, CallError> {
        unreachable!("a waker calls no cell")
    }

    async fn wake(&self, call: WakeCall) -> Result<WakeReply, CallError> {
        self.hints.lock().unwrap().entry(call.cell).or_default().push(call.id);
        match self.refusal.lock().unwrap().clone() {
            Some(refusal) => Err(refusal),
            None => Ok(WakeReply { epoch: Epoch::new(9), armed: None }),
        }
    }

    async fn describe(&self) -> NodeDescription {
        NodeDescription {
            node: NodeName::parse("n1").unwrap(),
            session: SessionId::from_bits(77),
            protocol: PROTOCOL,
            cells: self.cells.load(Ordering::SeqCst),
            draining: false,
            version: String::new(),
        }
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

    async fn recover_log(&self, log: &LogName) -> Result<(), CallError> {
        self.recoveries.lock().unwrap().push(log.clone());
        match self.recovers.load(Ordering::SeqCst) {
            true => Ok(()),
            false => Err(CallError::Unavailable { reason: "a follower is needed".into() }),
        }
    }

    async fn adopt_cell(&self, _cell: &CellName, _is_asleep: bool) -> Result<Epoch, CallError> {
        unreachable!("a waker gives no cell away")
    }

    async fn move_cells(&self, call: MoveCall) -> Result<u64, CallError> {
        let cells = call.cells;
        self.moves.lock().unwrap().push(call);
        self.cells.fetch_sub(cells, Ordering::SeqCst);
        Ok(cells)
    }

    async fn list_cells(&self, _start_after: Option<&CellName>, _limit: usize) -> CellPage {
        CellPage::default()
    }
}

/// A node that takes every cell.
pub(super) struct Node {
    host: Arc<Host>,
    server: JoinHandle<()>,
}

impl Node {
    /// Serves, and has a lease of a minute.
    pub(super) async fn start(fleet: &FleetIdentity, bucket: &dyn Bucket) -> Self {
        Self::start_as(fleet, bucket, ("n1", 77), 0).await
    }

    /// With another name and session, and cells.
    pub(super) async fn start_as(
        fleet: &FleetIdentity,
        bucket: &dyn Bucket,
        (name, session): (&str, u128),
        cells: u64,
    ) -> Self {
        let session = SessionId::from_bits(session);
        let process = ProcessIdentity::new(fleet.clone(), Role::Cellnode, name, session).unwrap();
        let name = NodeName::parse(name).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let lease = NodeLease {
            version: NodeLease::VERSION,
            write_id: WriteId::from_bits(1),
            node: name.clone(),
            session,
            incarnation: Incarnation::from_bits(1),
            expires_ms: clock::wall().plus(60_000),
            started_ms: Millis::ZERO,
            address: listener.local_addr().unwrap().to_string(),
            host: "host".parse().unwrap(),
            zone: "zone".parse().unwrap(),
            protocol: PROTOCOL,
            load: NodeLoad { weight: 100, cells, requests: 0 },
            draining: false,
            tombstone_ms: None,
        };
        bucket.put(&Key::NodeLease(name).to_string(), lease.encode().into()).await.unwrap();
        let host = Arc::new(Host { cells: AtomicU64::new(cells), ..Host::default() });
        let served: Arc<dyn CellHost> = Arc::clone(&host) as Arc<dyn CellHost>;
        let server = tokio::spawn(async move {
            serve(listener, served, &process, std::future::pending()).await.unwrap();
        });
        Self { host, server }
    }

    /// Takes cells that another gave, or loses some.
    pub(super) fn owns(&self, cells: u64) {
        self.host.cells.store(cells, Ordering::SeqCst);
    }

    /// What it was asked to give away since this was last asked.
    pub(super) fn moves(&self) -> Vec<MoveCall> {
        std::mem::take(&mut *self.host.moves.lock().unwrap())
    }

    pub(super) fn refuses(&self, refusal: Option<CallError>) {
        *self.host.refusal.lock().unwrap() = refusal;
    }

    pub(super) fn recovers(&self, does: bool) {
        self.host.recovers.store(does, Ordering::SeqCst);
    }

    /// The logs that it was asked to recover.
    pub(super) fn recoveries(&self) -> Vec<LogName> {
        self.host.recoveries.lock().unwrap().clone()
    }

    /// The installations that it was asked about, by cell.
    pub(super) fn hints(&self) -> BTreeMap<CellName, Vec<AlarmId>> {
        self.host.hints.lock().unwrap().clone()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.server.abort();
    }
}
