//! A whole follower on a bucket of its own, called as cellnodes and recoveries call it.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use holdfast_bucket::{BucketArgs, Buckets, Commit, Guard};
use holdfast_core::lease::FenceCause;
use holdfast_follower::{Config, Exit, Service};
use holdfast_records::{
    EnsembleRecord, FollowerLease, Key, MemberRecord, NodeLogRecord, NodeLogState, Record as _,
};
use holdfast_rpc::follower::{AppendAnswer, AppendMessage, AppendRefusal, HeldLog, LogFrame, LogName};
use holdfast_rpc::{
    AppendReceiver, AppendSender, AppendStream, FollowerClient, FollowerLink, FollowerPeer, ProcessIdentity,
    Role, identity,
};
use holdfast_types::{
    CellName, Epoch, FollowerName, Incarnation, LogEpoch, LogOffset, NodeName, SessionId, Txid, WriteId,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const OWNER: SessionId = SessionId::from_bits(7);

fn name() -> FollowerName {
    FollowerName::parse("f1").unwrap()
}

fn log() -> LogName {
    LogName { node: NodeName::parse("n1").unwrap(), session: OWNER }
}

fn frames(offsets: std::ops::RangeInclusive<u64>) -> Vec<LogFrame> {
    let cell = CellName::parse("db:a").unwrap();
    let frame = |offset| {
        let body = Bytes::from(vec![u8::try_from(offset % 251).unwrap(); 3_000]);
        LogFrame::new(OWNER, LogOffset::new(offset), cell.clone(), Epoch::new(1), Txid::new(offset), body)
    };
    offsets.map(frame).collect()
}

struct Place {
    folder: tempfile::TempDir,
    buckets: Buckets,
    args: BucketArgs,
}

struct Running {
    service: JoinHandle<anyhow::Result<Exit>>,
    shutdown: oneshot::Sender<()>,
    peer: FollowerPeer,
    lease: FollowerLease,
}

impl Place {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let args = BucketArgs::at(&format!("file://{}/bucket", folder.path().display()));
        let buckets = args.open().await.unwrap();
        Self { folder, buckets, args }
    }

    async fn start(&self, dir: &str) -> Running {
        let config = Config {
            lease_ttl: Duration::from_secs(2),
            segment_bytes: 1 << 20,
            ..Config::embedded(self.args.clone(), name(), self.dir(dir))
        };
        let (shutdown, told) = oneshot::channel();
        let (ready, is_ready) = oneshot::channel();
        let service = tokio::spawn(Service::run(config, Some(ready), async {
            let _ = told.await;
        }));
        is_ready.await.unwrap();
        let lease = self.lease().await;
        let peer = FollowerPeer { follower: name(), session: lease.session, address: lease.address.clone() };
        Running { service, shutdown, peer, lease }
    }

    fn dir(&self, dir: &str) -> PathBuf {
        self.folder.path().join(dir)
    }

    async fn lease(&self) -> FollowerLease {
        let key = Key::FollowerLease(name()).to_string();
        FollowerLease::decode(&self.buckets.leases.get(&key).await.unwrap().unwrap().body).unwrap()
    }

    async fn write_record(&self, state: NodeLogState, log_epoch: u64, incarnation: Incarnation) {
        let members = vec![MemberRecord { follower: name(), incarnation }];
        let record = NodeLogRecord {
            version: NodeLogRecord::VERSION,
            write_id: WriteId::from_bits(u128::from(log_epoch)),
            node: log().node,
            session: OWNER,
            state,
            ensemble: EnsembleRecord { log_epoch: LogEpoch::new(log_epoch), members },
            active: false,
            prior: None,
            recovery: None,
            loss_declared: false,
            bundles_from: None,
        };
        let key = Key::NodeLog(log().node, OWNER).to_string();
        let guard = match self.buckets.records.get(&key).await.unwrap() {
            Some(object) => Guard::Match(object.version),
            None => Guard::Absent,
        };
        let commit = self.buckets.records.put_if(&key, record.encode().into(), guard, 5_000).await;
        assert!(matches!(commit, Commit::Applied(_)), "{commit:?}");
    }

    async fn link(&self, running: &Running, session: SessionId) -> Link {
        let fleet = identity::load_or_create(&*self.buckets.records).await.unwrap();
        let me = ProcessIdentity::new(fleet, Role::Cellnode, "n1", session).unwrap();
        let (client, peer) = (FollowerClient::new(me), running.peer.clone());
        Link { calls: client.connect(&peer).await.unwrap(), client, peer }
    }
}

/// What a session has of a follower.
struct Link {
    calls: FollowerLink,
    client: FollowerClient,
    peer: FollowerPeer,
}

impl std::ops::Deref for Link {
    type Target = FollowerLink;

    fn deref(&self) -> &FollowerLink {
        &self.calls
    }
}

impl Running {
    async fn stop(self) -> Exit {
        self.shutdown.send(()).unwrap();
        self.service.await.unwrap().unwrap()
    }

    /// Gone without a word, as far as one process can.
    async fn kill(self, dir: &Path) {
        self.service.abort();
        assert!(self.service.await.unwrap_err().is_cancelled());
        let lock = std::fs::File::open(dir.join("lock")).unwrap();
        // The journal's thread ends by itself.
        while lock.try_lock().is_err() {
            tokio::task::yield_now().await;
        }
    }
}

async fn adopt(link: &Link, log_epoch: u64) -> (AppendSender, AppendReceiver, AppendAnswer) {
    let stream = link.client.append_stream(&link.peer).await.unwrap();
    let AppendStream { mut sender, mut receiver, connection } = stream;
    tokio::spawn(connection);
    let (log_epoch, start) = (LogEpoch::new(log_epoch), LogOffset::new(1));
    sender.send(AppendMessage::Adopt { log: log(), log_epoch, start }).await.unwrap();
    let answer = receiver.next().await.unwrap().unwrap();
    (sender, receiver, answer)
}

async fn append(
    (sender, receiver): (&mut AppendSender, &mut AppendReceiver),
    log_epoch: u64,
    offsets: std::ops::RangeInclusive<u64>,
) {
    let (last, log_epoch) = (LogOffset::new(*offsets.end()), LogEpoch::new(log_epoch));
    sender.send(AppendMessage::Frames { log_epoch, frames: frames(offsets) }).await.unwrap();
    loop {
        match receiver.next().await.unwrap().unwrap() {
            AppendAnswer::Durable { offset, .. } if offset < last => {}
            AppendAnswer::Durable { offset, .. } => return assert_eq!(offset, last),
            other => panic!("{other:?}"),
        }
    }
}

fn adopted(log_epoch: u64, next: u64) -> AppendAnswer {
    AppendAnswer::Adopted { log_epoch: LogEpoch::new(log_epoch), next: LogOffset::new(next) }
}

async fn tail(link: &FollowerLink, start: u64) -> Vec<LogFrame> {
    let pieces = link.tail(&log(), LogOffset::new(start), None).await.unwrap();
    pieces.map(Result::unwrap).concat().await
}

fn refusal(answer: AppendAnswer) -> AppendRefusal {
    let AppendAnswer::Refused { reason, .. } = answer else { panic!("{answer:?}") };
    reason
}

#[tokio::test]
async fn a_log_survives_a_kill_and_a_restart() {
    let place = Place::new().await;
    let running = place.start("logs").await;
    place.write_record(NodeLogState::Open, 1, running.lease.incarnation).await;
    let link = place.link(&running, OWNER).await;
    let (mut sender, mut receiver, answer) = adopt(&link, 1).await;
    assert_eq!(answer, adopted(1, 1));
    append((&mut sender, &mut receiver), 1, 1..=500).await;
    append((&mut sender, &mut receiver), 1, 501..=1000).await;
    assert_eq!(tail(&link, 1).await, frames(1..=1000));
    drop(link);
    running.kill(&place.dir("logs")).await;

    let running = place.start("logs").await;
    let link = place.link(&running, OWNER).await;
    assert_eq!(tail(&link, 400).await, frames(400..=1000), "resumed in the middle");
    let (mut sender, mut receiver, answer) = adopt(&link, 1).await;
    assert_eq!(answer, adopted(1, 1001), "where it stopped");
    append((&mut sender, &mut receiver), 1, 900..=1100).await;
    drop(sender);
    assert_eq!(receiver.next().await.unwrap(), None);
    assert_eq!(running.stop().await, Exit::Clean);
}

#[tokio::test]
async fn a_seal_outlives_the_process_that_answered_it() {
    let place = Place::new().await;
    let running = place.start("logs").await;
    let incarnation = running.lease.incarnation;
    place.write_record(NodeLogState::Open, 1, incarnation).await;
    let link = place.link(&running, OWNER).await;
    let (mut sender, mut receiver, _) = adopt(&link, 1).await;
    append((&mut sender, &mut receiver), 1, 1..=3).await;
    let held = link.seal(&log()).await.unwrap();
    drop(link);
    running.kill(&place.dir("logs")).await;
    let expected = HeldLog {
        incarnation,
        log_epoch: LogEpoch::new(1),
        start: LogOffset::new(1),
        end: LogOffset::new(4),
        complete: true,
        sealed: true,
        bytes: held.bytes,
    };
    assert_eq!(held, expected);
    let running = place.start("logs").await;
    let link = place.link(&running, OWNER).await;
    let (.., answer) = adopt(&link, 1).await;
    assert_eq!(refusal(answer), AppendRefusal::Sealed, "although the record is still open");
    assert_eq!(link.seal(&log()).await.unwrap(), expected);
    assert_eq!(running.stop().await, Exit::Clean);
}

#[tokio::test]
async fn another_disk_under_the_same_name_is_another_member() {
    let place = Place::new().await;
    let running = place.start("logs").await;
    place.write_record(NodeLogState::Open, 1, running.lease.incarnation).await;
    assert_eq!(running.stop().await, Exit::Clean);
    let running = place.start("other").await;
    let link = place.link(&running, OWNER).await;
    let (.., answer) = adopt(&link, 1).await;
    assert_eq!(refusal(answer), AppendRefusal::NotAMember);
    assert_eq!(running.stop().await, Exit::Clean);
}

#[tokio::test]
async fn a_log_is_forgotten_when_its_record_says_so() {
    let place = Place::new().await;
    let running = place.start("logs").await;
    let incarnation = running.lease.incarnation;
    place.write_record(NodeLogState::Open, 1, incarnation).await;
    let link = place.link(&running, OWNER).await;
    let (mut sender, mut receiver, _) = adopt(&link, 1).await;
    append((&mut sender, &mut receiver), 1, 1..=3).await;
    drop(sender);
    assert_eq!(receiver.next().await.unwrap(), None);
    assert!(link.release(&log()).await.is_err(), "the record is open");
    place.write_record(NodeLogState::Sealed, 1, incarnation).await;
    link.release(&log()).await.unwrap();
    while !link.describe().await.unwrap().logs.is_empty() {
        tokio::task::yield_now().await;
    }
    let (.., answer) = adopt(&link, 1).await;
    assert_eq!(refusal(answer), AppendRefusal::NotAMember, "the record is what bars it now");
    drop(link);
    assert_eq!(running.stop().await, Exit::Clean);
}

#[tokio::test]
async fn a_drain_waits_for_the_sessions() {
    let place = Place::new().await;
    let running = place.start("logs").await;
    place.write_record(NodeLogState::Open, 1, running.lease.incarnation).await;
    let link = place.link(&running, OWNER).await;
    let (mut sender, mut receiver, _) = adopt(&link, 1).await;
    let Running { service, shutdown, .. } = running;
    shutdown.send(()).unwrap();
    while !place.lease().await.draining {
        tokio::task::yield_now().await;
    }
    append((&mut sender, &mut receiver), 1, 1..=3).await;
    assert!(!service.is_finished());
    place.write_record(NodeLogState::Open, 2, place.lease().await.incarnation).await;
    let (.., answer) = adopt(&link, 2).await;
    assert_eq!(refusal(answer), AppendRefusal::Draining);
    drop((sender, receiver));
    assert_eq!(service.await.unwrap().unwrap(), Exit::Clean);
    assert_eq!(place.lease().await.expires_ms.get(), 0, "given up in order");
}

#[tokio::test]
async fn a_process_that_lost_its_name_stops() {
    let place = Place::new().await;
    let running = place.start("logs").await;
    let key = Key::FollowerLease(name()).to_string();
    let object = place.buckets.leases.get(&key).await.unwrap().unwrap();
    let mut lease = FollowerLease::decode(&object.body).unwrap();
    lease.session = SessionId::from_bits(1);
    lease.incarnation = Incarnation::from_bits(1);
    lease.write_id = WriteId::from_bits(1);
    let mut guard = Guard::Match(object.version);
    // A renewal may come in between.
    while !matches!(
        place.buckets.leases.put_if(&key, lease.encode().into(), guard, 5_000).await,
        Commit::Applied(_)
    ) {
        guard = Guard::Match(place.buckets.leases.get(&key).await.unwrap().unwrap().version);
    }
    let end = running.service.await.unwrap().unwrap();
    assert_eq!((end, end.code()), (Exit::Fenced(FenceCause::RecordMismatch), 3));
}

#[tokio::test]
async fn a_session_reads_only_what_it_may() {
    let place = Place::new().await;
    let running = place.start("logs").await;
    place.write_record(NodeLogState::Open, 1, running.lease.incarnation).await;
    let stranger = place.link(&running, SessionId::from_bits(8)).await;
    let (.., answer) = adopt(&stranger, 1).await;
    let AppendAnswer::Refused { detail, .. } = answer else { panic!("{answer:?}") };
    assert!(detail.contains("asks for the log"), "{detail}");
    drop(stranger);
    assert_eq!(running.stop().await, Exit::Clean);
}
