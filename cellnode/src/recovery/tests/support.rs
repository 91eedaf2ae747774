//! A dead session, its cells' transactions, and followers in memory whose faults are scripted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use holdfast_bucket::{Bucket, Commit, Guard, MemoryBucket};
use holdfast_core::log_record::MemberId;
use holdfast_core::recovery::Holdings;
use holdfast_ltx::{Encoder, Header, PageSize, WalSpan};
use holdfast_records::{
    Bundle, BundleRow, EnsembleRecord, Key, LogLoss, MemberRecord, NodeLease, NodeLoad, NodeLogRecord,
    NodeLogState, Opener, OpenerReason, ProtocolRange, Record, RecoveryRecord,
};
use holdfast_rpc::CallError;
use holdfast_rpc::follower::{LogFrame, LogName};
use holdfast_types::{
    CellName, Epoch, FollowerName, HostId, Incarnation, LogEpoch, LogOffset, Millis, NodeName, SessionId,
    Txid, WriteId, Zone,
};
use tokio::sync::watch;

use super::super::witness::{Frames, LogWitness};
use super::super::{Recoveries, RecoveryParts, recover_dead};
use crate::owners::Owners;
use crate::{clock, random};

const PAGE: u32 = 512;
/// Frames in one message of a tail.
const MESSAGE_FRAMES: usize = 8;

pub(super) fn cell(name: &str) -> CellName {
    CellName::parse(&format!("db:{name}")).unwrap()
}

pub(super) fn key_of(name: &str, min: u64, max: u64) -> String {
    let (min, max) = (Txid::new(min), Txid::new(max));
    Key::Ltx { cell: cell(name), epoch: Epoch::new(1), level: super::Level::Zero, min, max }.to_string()
}

pub(super) fn member(name: &str) -> MemberId {
    MemberId { follower: FollowerName::parse(name).unwrap(), incarnation: Incarnation::from_bits(7) }
}

pub(super) type Transaction = (&'static str, u64, Bytes);

/// One LTX file for each: a database of one page, filled with the transaction's number.
pub(super) fn frames_of(transactions: &[(&'static str, u64)]) -> Vec<Transaction> {
    transactions.iter().map(|(name, txid)| (*name, *txid, ltx(*txid, 1))).collect()
}

pub(super) fn database_at(txid: u64) -> Vec<u8> {
    vec![u8::try_from(txid % 256).unwrap(); PAGE as usize]
}

fn ltx(txid: u64, pages: u32) -> Bytes {
    let header = Header {
        page_size: PageSize::new(PAGE).unwrap(),
        commit: pages,
        min: Txid::new(txid),
        max: Txid::new(txid),
        timestamp: Millis::new(txid),
        wal: WalSpan::default(),
        node_id: 0,
    };
    let mut encoder = Encoder::new(Vec::new(), header).unwrap();
    let mut noise = txid | 1;
    for pgno in 1..=pages {
        let mut page = database_at(txid);
        if pages > 1 {
            // Pages that do not compress.
            for bytes in page.chunks_exact_mut(8) {
                noise ^= noise << 13;
                noise ^= noise >> 7;
                noise ^= noise << 17;
                bytes.copy_from_slice(&noise.to_be_bytes());
            }
        }
        encoder.page(pgno, &page).unwrap();
    }
    Bytes::from(encoder.finish().unwrap().0)
}

pub(super) fn opener() -> Opener {
    Opener { version: Opener::VERSION, base: None, reason: OpenerReason::Created }
}

/// A dead session, its record, and what can be done about it.
pub(super) struct Fleet {
    pub(super) bucket: Arc<dyn Bucket>,
    pub(super) followers: Arc<FakeFollowers>,
    pub(super) recoveries: Recoveries,
    pub(super) log: LogName,
}

impl Fleet {
    pub(super) async fn new() -> Self {
        Self::over(Arc::new(MemoryBucket::new())).await
    }

    /// `f1` and `f2` are the active ensemble of log epoch 1.
    pub(super) async fn over(bucket: Arc<dyn Bucket>) -> Self {
        let log = LogName { node: NodeName::parse("n").unwrap(), session: SessionId::from_bits(9) };
        let followers = Arc::new(FakeFollowers::default());
        for name in ["f1", "f2"] {
            followers.lock().insert(name.into(), Follower::new());
        }
        let witness: Arc<dyn LogWitness> = followers.clone();
        let recoveries = Recoveries::new(parts(&bucket, witness, 50));
        let fleet = Self { bucket, followers, recoveries, log };
        fleet.put(&fleet.open_record()).await;
        fleet
    }

    fn open_record(&self) -> NodeLogRecord {
        let members = ["f1", "f2"].map(|name| {
            let MemberId { follower, incarnation } = member(name);
            MemberRecord { follower, incarnation }
        });
        NodeLogRecord {
            version: NodeLogRecord::VERSION,
            write_id: random::write_id(),
            node: self.log.node.clone(),
            session: self.log.session,
            state: NodeLogState::Open,
            ensemble: EnsembleRecord { log_epoch: LogEpoch::new(1), members: members.to_vec() },
            active: true,
            prior: None,
            recovery: None,
            loss_declared: false,
            bundles_from: None,
        }
    }

    async fn put(&self, record: &NodeLogRecord) {
        let key = Key::NodeLog(self.log.node.clone(), self.log.session).to_string();
        self.bucket.put(&key, record.encode().into()).await.unwrap();
    }

    /// The record has recoveries read bundles from this offset on; followers were told to drop what is below `released`.
    pub(super) async fn mark_bundled(&self, from: u64, released: u64) {
        self.put(&NodeLogRecord { bundles_from: Some(LogOffset::new(from)), ..self.open_record() }).await;
        for follower in self.followers.lock().values_mut() {
            follower.start = LogOffset::new(released);
        }
    }

    pub(super) fn bundle_key(&self, first: u64) -> String {
        Key::Bundle(self.log.node.clone(), self.log.session, LogOffset::new(first)).to_string()
    }

    /// Stores a bundle with these rows: offset, cell, transaction.
    pub(super) async fn bundle(&self, first: u64, below: u64, rows: &[(u64, &'static str, u64)]) {
        let row = |(at, name, txid): &(u64, &str, u64)| BundleRow {
            offset: LogOffset::new(*at),
            cell: cell(name),
            epoch: Epoch::new(1),
            txid: Txid::new(*txid),
            body: ltx(*txid, 1),
        };
        let (session, rows) = (self.log.session, rows.iter().map(row).collect());
        let bundle = Bundle { session, first: LogOffset::new(first), below: LogOffset::new(below), rows };
        self.bucket.put(&self.bundle_key(first), bundle.encode().bytes).await.unwrap();
    }

    /// Another session is at it and said so this long ago.
    pub(super) async fn mark_recovering(&self, silent_ms: u64, done_below: u64) {
        let recovery = RecoveryRecord {
            claimant: SessionId::from_bits(77),
            claimant_node: Some(NodeName::parse("o").unwrap()),
            heartbeat_ms: clock::wall().minus(silent_ms),
            done_below: LogOffset::new(done_below),
            blocked: String::new(),
        };
        let state = NodeLogState::Recovering;
        self.put(&NodeLogRecord { state, recovery: Some(recovery), ..self.open_record() }).await;
    }

    pub(super) async fn declare_loss(&self) {
        let LogName { node, session } = self.log.clone();
        let key = Key::LogLoss(node.clone(), session).to_string();
        let loss = LogLoss {
            version: LogLoss::VERSION,
            write_id: WriteId::from_bits(1),
            node,
            session,
            declared_ms: clock::wall(),
            reason: "a test".into(),
        };
        let commit = self.bucket.put_if(&key, loss.encode().into(), Guard::Absent, 1_000).await;
        assert!(matches!(commit, Commit::Applied(_)));
    }

    pub(super) async fn node_lease(&self, session: SessionId, is_live: bool) {
        self.lease_of(self.log.node.clone(), session, is_live).await;
    }

    /// The recoverer of [`Self::mark_recovering`] has a lease.
    pub(super) async fn recoverer_lease(&self, is_live: bool) {
        self.lease_of(NodeName::parse("o").unwrap(), SessionId::from_bits(77), is_live).await;
    }

    async fn lease_of(&self, node: NodeName, session: SessionId, is_live: bool) {
        let expires_ms = if is_live { clock::wall().plus(60_000) } else { Millis::ZERO };
        let lease = NodeLease {
            version: NodeLease::VERSION,
            write_id: random::write_id(),
            node: node.clone(),
            session,
            incarnation: Incarnation::from_bits(1),
            expires_ms,
            started_ms: Millis::ZERO,
            address: "127.0.0.1:1".into(),
            host: HostId::parse("h").unwrap(),
            zone: Zone::parse("z").unwrap(),
            protocol: ProtocolRange { min: 1, max: 1 },
            load: NodeLoad::default(),
            draining: false,
            tombstone_ms: None,
        };
        let key = Key::NodeLease(node).to_string();
        self.bucket.put(&key, lease.encode().into()).await.unwrap();
    }

    /// As a waker asks for it.
    pub(super) async fn recover_dead(&self) -> Result<(), CallError> {
        let owners = Owners::new(Arc::clone(&self.bucket), Arc::clone(&self.bucket));
        recover_dead(&owners, &self.recoveries, &self.log, 500).await
    }

    /// Both followers have fsynced these, from offset 1 on.
    pub(super) fn append(&self, transactions: Vec<Transaction>) {
        let mut offset = LogOffset::ZERO;
        let frames: Vec<LogFrame> = transactions
            .into_iter()
            .map(|(name, txid, body)| {
                offset = offset.next();
                LogFrame::new(self.log.session, offset, cell(name), Epoch::new(1), Txid::new(txid), body)
            })
            .collect();
        for follower in self.followers.lock().values_mut() {
            follower.frames.clone_from(&frames);
        }
    }

    pub(super) async fn record(&self) -> NodeLogRecord {
        let key = Key::NodeLog(self.log.node.clone(), self.log.session).to_string();
        NodeLogRecord::decode(&self.bucket.get(&key).await.unwrap().unwrap().body).unwrap()
    }

    /// Every level-0 object.
    pub(super) async fn level_zero(&self) -> Vec<String> {
        let listed = self.bucket.list("cells/", None, 10_000).await.unwrap();
        listed.objects.into_iter().map(|object| object.key).filter(|key| key.contains("/0/")).collect()
    }
}

fn parts(bucket: &Arc<dyn Bucket>, witness: Arc<dyn LogWitness>, claimant: u128) -> RecoveryParts {
    RecoveryParts {
        claimant: SessionId::from_bits(claimant),
        claimant_node: None,
        clock_skew_max_ms: 500,
        records: Arc::clone(bucket),
        leases: Arc::clone(bucket),
        bulk: Arc::clone(bucket),
        witness,
        retry: Duration::from_millis(10),
    }
}

/// Another process.
pub(super) fn recoveries_of(fleet: &Fleet, claimant: u128) -> Recoveries {
    let witness: Arc<dyn LogWitness> = fleet.followers.clone();
    Recoveries::new(parts(&fleet.bucket, witness, claimant))
}

#[derive(Debug)]
struct Follower {
    frames: Vec<LogFrame>,
    /// Frames to make when they are asked for: how many, of which length.
    generated: Option<(u64, u32)>,
    is_here: bool,
    is_complete: bool,
    start: LogOffset,
    corrupt: Option<u64>,
    break_after: Option<usize>,
    seals_last: bool,
    seals: u32,
    tails: u32,
    is_released: bool,
}

impl Follower {
    fn new() -> Self {
        Self {
            frames: Vec::new(),
            generated: None,
            is_here: true,
            is_complete: true,
            start: LogOffset::new(1),
            corrupt: None,
            break_after: None,
            seals_last: false,
            seals: 0,
            tails: 0,
            is_released: false,
        }
    }

    fn end(&self) -> LogOffset {
        let frames = u64::try_from(self.frames.len()).unwrap();
        LogOffset::new(1 + self.generated.map_or(frames, |(count, _)| count))
    }
}

/// Followers by name.
#[derive(Debug)]
pub(super) struct FakeFollowers {
    followers: Mutex<BTreeMap<String, Follower>>,
    /// Counts tails and releases, so that others can wait for them.
    changes: watch::Sender<u64>,
}

impl Default for FakeFollowers {
    fn default() -> Self {
        Self { followers: Mutex::default(), changes: watch::Sender::new(0) }
    }
}

impl FakeFollowers {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Follower>> {
        self.followers.lock().unwrap()
    }

    fn with<T>(&self, name: &str, change: impl FnOnce(&mut Follower) -> T) -> T {
        change(self.lock().get_mut(name).unwrap())
    }

    pub(super) fn lose(&self, name: &str) {
        self.with(name, |follower| follower.is_here = false);
    }

    pub(super) fn find(&self, name: &str) {
        self.with(name, |follower| follower.is_here = true);
    }

    /// What lies before the offset is gone.
    pub(super) fn damage(&self, name: &str, start: LogOffset) {
        self.with(name, |follower| (follower.is_complete, follower.start) = (false, start));
    }

    pub(super) fn corrupt(&self, name: &str, offset: u64) {
        self.with(name, |follower| follower.corrupt = Some(offset));
    }

    pub(super) fn break_after(&self, name: &str, frames: usize) {
        self.with(name, |follower| follower.break_after = Some(frames));
    }

    /// Answers a seal only once another follower was asked for its tail.
    pub(super) fn seals_last(&self, name: &str) {
        self.with(name, |follower| follower.seals_last = true);
    }

    pub(super) fn generate(&self, count: u64, pages: u32) {
        for follower in self.lock().values_mut() {
            follower.generated = Some((count, pages));
        }
    }

    pub(super) fn seals(&self, name: &str) -> u32 {
        self.with(name, |follower| follower.seals)
    }

    pub(super) fn tails(&self, name: &str) -> u32 {
        self.with(name, |follower| follower.tails)
    }

    fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    pub(super) async fn wait_released(&self, members: &[MemberId]) {
        let mut changes = self.changes.subscribe();
        let all = || members.iter().all(|member| self.with(member.follower.as_str(), |f| f.is_released));
        changes.wait_for(|_| all()).await.unwrap();
    }
}

#[async_trait]
impl LogWitness for FakeFollowers {
    async fn seal(&self, member: &MemberId, _: &LogName) -> Result<Holdings, String> {
        let name = member.follower.as_str();
        if self.with(name, |follower| follower.seals_last) {
            self.changes.subscribe().changed().await.unwrap();
        }
        self.with(name, |follower| {
            if !follower.is_here {
                return Err("connection refused".to_owned());
            }
            follower.seals += 1;
            Ok(Holdings {
                incarnation: Incarnation::from_bits(7),
                log_epoch: LogEpoch::new(1),
                start: follower.start,
                end: follower.end(),
                is_complete: follower.is_complete,
                is_sealed: true,
            })
        })
    }

    async fn tail(
        &self,
        member: &MemberId,
        log: &LogName,
        start: LogOffset,
        last: LogOffset,
    ) -> Result<Frames, String> {
        let session = log.session;
        let (frames, generated, breaks) = self.with(member.follower.as_str(), |follower| {
            follower.tails += 1;
            let mut frames = follower.frames.clone();
            frames.retain(|frame| frame.offset >= start && frame.offset <= last);
            if let Some(frame) = frames.iter_mut().find(|frame| Some(frame.offset.get()) == follower.corrupt)
            {
                frame.crc ^= 1;
            }
            (frames, follower.generated, follower.break_after)
        });
        self.changed();
        if let Some((_, pages)) = generated {
            let made = futures::stream::iter(start.get()..=last.get()).map(move |offset| {
                let (offset, txid) = (LogOffset::new(offset), Txid::new(offset));
                let body = ltx(txid.get(), pages);
                Ok(vec![LogFrame::new(session, offset, cell("a"), Epoch::new(1), txid, body)])
            });
            return Ok(made.boxed());
        }
        let sent = breaks.unwrap_or(frames.len()).min(frames.len());
        let breaks = sent < frames.len();
        let messages: Vec<Vec<LogFrame>> = frames[..sent].chunks(MESSAGE_FRAMES).map(<[_]>::to_vec).collect();
        let end = breaks.then(|| Err("connection reset".to_owned()));
        Ok(futures::stream::iter(messages.into_iter().map(Ok).chain(end)).boxed())
    }

    async fn release(&self, member: &MemberId, _: &LogName) -> Result<(), String> {
        self.with(member.follower.as_str(), |follower| follower.is_released = true);
        self.changed();
        Ok(())
    }
}

/// Brings the generated frames of `f1` into a store, as they come.
pub(super) async fn copy(fleet: &Fleet, store: Arc<dyn Bucket>) {
    let (count, _) = fleet.followers.with("f1", |follower| follower.generated.unwrap());
    let (start, last) = (LogOffset::new(1), LogOffset::new(count));
    let tail = fleet.followers.tail(&member("f1"), &fleet.log, start, last).await.unwrap();
    let puts = tail.map(|frames| async {
        for frame in frames.unwrap() {
            store.put(&key_of("a", frame.txid.get(), frame.txid.get()), frame.body).await.unwrap();
        }
    });
    puts.buffer_unordered(32).collect::<Vec<()>>().await;
}

/// Memory of this process, in bytes.
pub(super) fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

static PEAK: AtomicU64 = AtomicU64::new(0);

pub(super) fn note_peak(bytes: u64) {
    PEAK.store(bytes, Ordering::Relaxed);
}

pub(super) fn noted_peak() -> u64 {
    PEAK.load(Ordering::Relaxed)
}
