//! Whole wakers, from their start to their end, on a bucket on disk.

use std::time::Duration;

use holdfast_bucket::{Bucket, BucketArgs};
use holdfast_records::{Key, Record, WAKE_ENTRIES_PREFIX, WAKER_LEASES_PREFIX, WakeFormat, WakerLease};
use holdfast_rpc::identity;
use holdfast_types::WakerName;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::support::*;
use crate::{Config, Exit, Service};

struct Running {
    stop: oneshot::Sender<()>,
    service: JoinHandle<anyhow::Result<Exit>>,
}

impl Running {
    async fn start(config: Config) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let (ready, is_ready) = oneshot::channel();
        let service = tokio::spawn(Service::run(config, Some(ready), async {
            let _ = stopped.await;
        }));
        is_ready.await.unwrap();
        Self { stop, service }
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        assert_eq!(self.service.await.unwrap().unwrap(), Exit::Clean);
    }
}

fn config(bucket: &BucketArgs, name: &str) -> Config {
    let name = WakerName::parse(name).unwrap();
    Config { name, tick: Duration::from_millis(200), ..Config::embedded(bucket.clone()) }
}

/// How many shards each waker's leases name, those that stand.
async fn held(bucket: &dyn Bucket, name: &str) -> usize {
    let mut count = 0;
    for key in keys(bucket, WAKER_LEASES_PREFIX).await {
        let lease = WakerLease::decode(&bucket.get(&key).await.unwrap().unwrap().body).unwrap();
        count += usize::from(lease.waker.as_str() == name && lease.expires_ms > crate::clock::wall());
    }
    count
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wakers_share_the_shards_and_give_them_up_when_they_leave() {
    let dir = tempfile::tempdir().unwrap();
    let args = BucketArgs::at(&format!("file://{}", dir.path().display()));
    let bucket = args.open().await.unwrap().records;
    let first = Running::start(config(&args, "w1")).await;
    eventually("one alone has all", || async { held(&*bucket, "w1").await == 8 }).await;
    let second = Running::start(config(&args, "w2")).await;
    eventually("two share", || async { (held(&*bucket, "w1").await, held(&*bucket, "w2").await) == (4, 4) })
        .await;
    first.stop().await;
    assert_eq!(held(&*bucket, "w1").await, 0, "what is given up need not run out");
    eventually("the other takes all", || async { held(&*bucket, "w2").await == 8 }).await;
    second.stop().await;
    let format = bucket.get(&Key::WakeFormat.to_string()).await.unwrap().unwrap();
    assert_eq!(WakeFormat::decode(&format.body).unwrap().shards, 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_due_cell_is_opened_and_its_entry_goes_once_it_is_retired() {
    let dir = tempfile::tempdir().unwrap();
    let args = BucketArgs::at(&format!("file://{}", dir.path().display()));
    let bucket = args.open().await.unwrap().records;
    let fleet = identity::load_or_create(&*bucket).await.unwrap();
    let node = Node::start(&fleet, &*bucket).await;
    let later = put_entry(&*bucket, &cell(1), 1, 3_600_000).await;
    put_entry(&*bucket, &cell(2), 1, -1_000).await;
    let waker = Running::start(config(&args, "w1")).await;
    eventually("the due one is asked", || async { node.hints().contains_key(&cell(2)) }).await;
    retire(&*bucket, &cell(2), 1, None).await;
    eventually("its entry goes", || async { keys(&*bucket, WAKE_ENTRIES_PREFIX).await == [later.clone()] })
        .await;
    assert!(!node.hints().contains_key(&cell(1)));
    waker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_of_a_newer_format_keeps_a_waker_from_starting() {
    let dir = tempfile::tempdir().unwrap();
    let args = BucketArgs::at(&format!("file://{}", dir.path().display()));
    let bucket = args.open().await.unwrap().records;
    bucket.put(&Key::WakeFormat.to_string(), (&br#"{"version":"2.0"}"#[..]).into()).await.unwrap();
    let error = Service::run(config(&args, "w1"), None, std::future::pending()).await.unwrap_err();
    assert!(error.to_string().contains("version 2.x, this program reads up to 1.x: upgrade"), "{error}");
}
