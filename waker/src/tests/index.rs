//! What a look at the index costs, whatever its size.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use holdfast_bucket::MemoryBucket;
use holdfast_bucket::faults::{FaultBucket, Operation};
use holdfast_core::waker::Waker;
use holdfast_records::WAKE_ENTRIES_PREFIX;
use holdfast_routing::{Router, RouterOptions};
use holdfast_rpc::{CellClient, ProcessIdentity, Role, identity};
use holdfast_types::SessionId;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::support::*;
use crate::index::Index;
use crate::rounds::{Hints, Rounds};

const HOUR_MS: i64 = 3_600_000;
const TICK: Duration = Duration::from_millis(100);

/// The loop by itself, with all shards, on a bucket that counts.
struct Loop {
    bucket: Arc<FaultBucket>,
    node: Node,
    running: JoinHandle<anyhow::Result<()>>,
    _watches: (watch::Sender<BTreeSet<u16>>, watch::Sender<BTreeSet<SessionId>>),
}

impl Loop {
    async fn start(bucket: Arc<FaultBucket>, tick: Duration) -> Self {
        let fleet = identity::create().unwrap();
        let node = Node::start(&fleet, &*bucket).await;
        let me = ProcessIdentity::new(fleet, Role::Waker, "w", SessionId::from_bits(1)).unwrap();
        let router = Router::new(bucket.clone(), CellClient::new(me), RouterOptions::default());
        let (held, shards_held) = watch::channel(BTreeSet::new());
        let (live, sessions_live) = watch::channel(BTreeSet::new());
        let rounds = Rounds {
            name: "w".parse().unwrap(),
            machine: Waker::new(8, 16),
            index: Index::new(bucket.clone()),
            hints: Hints { router, timeout: Duration::from_secs(3) },
            tick,
            held: shards_held,
            live: sessions_live,
        };
        held.send_replace((0..8).collect());
        live.send_replace(BTreeSet::from([SessionId::from_bits(77)]));
        let running = tokio::spawn(rounds.run());
        Self { bucket, node, running, _watches: (held, live) }
    }

    fn lists(&self) -> u64 {
        self.bucket.count(Operation::List, WAKE_ENTRIES_PREFIX)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        self.running.abort();
    }
}

async fn with_future_entries(count: usize) -> Arc<FaultBucket> {
    let bucket = Arc::new(FaultBucket::new(Arc::new(MemoryBucket::new())));
    for number in 0..count {
        let ahead = HOUR_MS + i64::try_from(number).unwrap() * 1_000;
        put_entry(&**bucket.inner(), &cell(number), 1, ahead).await;
    }
    bucket
}

/// A tick over an index of so many future entries lists one page; due ones cost a page for each thousand.
async fn a_look_lists_only_what_is_due(future: usize) {
    let bucket = with_future_entries(future).await;
    let waker = Loop::start(Arc::clone(&bucket), TICK).await;
    let begun = std::time::Instant::now();
    tokio::time::sleep(TICK * 20).await;
    let ticks = u64::try_from(begun.elapsed().as_millis() / TICK.as_millis()).unwrap() + 1;
    let lists = waker.lists();
    assert!((2..=ticks).contains(&lists), "{lists} listings in {ticks} ticks");
    assert!(waker.node.hints().is_empty(), "nothing is due");
    drop(waker);

    // One pass over what is due: pages of 64, 1,000, 1,000 and what is left, with the first that is not due.
    for number in 0..2_500 {
        put_entry(&**bucket.inner(), &cell(number), 2, -90_000).await;
    }
    bucket.reset_counts();
    let waker = Loop::start(Arc::clone(&bucket), Duration::from_secs(3_600)).await;
    eventually("every cell is asked", || async { waker.node.hints().len() == 2_500 }).await;
    assert_eq!(waker.lists(), 4);
    assert!(waker.node.hints().values().all(|ids| ids[0] == id(2)), "only of what is due");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_at_an_index_of_many_future_entries_lists_only_what_is_due() {
    a_look_lists_only_what_is_due(20_000).await;
}

/// A million of them cost as much as one: no page but the first is read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a million objects in memory: run by name"]
async fn a_look_at_a_million_future_entries_lists_only_what_is_due() {
    a_look_lists_only_what_is_due(1_000_000).await;
}

#[tokio::test]
async fn obsolete_entries_go_and_an_armed_one_stays() {
    let bucket = with_future_entries(0).await;
    let (busy, idle) = (cell(1), cell(2));
    let mut written = Vec::new();
    for seq in 1..=300 {
        written.push(put_entry(&**bucket.inner(), &busy, seq, -1_000).await);
    }
    let armed = written.swap_remove(298);
    retire(&**bucket.inner(), &busy, 300, Some(299)).await;
    put_entry(&**bucket.inner(), &idle, 1, -1_000).await;
    retire(&**bucket.inner(), &idle, 1, None).await;
    let waker = Loop::start(Arc::clone(&bucket), TICK).await;
    eventually("all but the armed one are gone", || async {
        keys(&**bucket.inner(), WAKE_ENTRIES_PREFIX).await == [armed.clone()]
    })
    .await;
    eventually("its cell is asked", || async { waker.node.hints().contains_key(&busy) }).await;
    assert_eq!(waker.node.hints().get(&idle), None, "nobody is woken for nothing");
}

#[tokio::test]
async fn a_bucket_that_fails_for_a_while_strands_nothing() {
    use holdfast_bucket::ErrorKind;
    use holdfast_bucket::faults::{Fault, Rule};
    let bucket = with_future_entries(0).await;
    for number in 0..200 {
        put_entry(&**bucket.inner(), &cell(number), 1, -1_000).await;
    }
    let waker = Loop::start(Arc::clone(&bucket), TICK).await;
    waker.node.refuses(Some(holdfast_rpc::CallError::Unavailable { reason: "restoring".into() }));
    eventually("the first are asked", || async { !waker.node.hints().is_empty() }).await;
    bucket.add(Rule::new(Fault::Fail(ErrorKind::Unavailable)));
    tokio::time::sleep(Duration::from_secs(2)).await;
    bucket.clear();
    waker.node.refuses(None);
    for number in 0..200 {
        retire(&**bucket.inner(), &cell(number), 1, None).await;
    }
    eventually("every entry is dealt with", || async {
        keys(&**bucket.inner(), WAKE_ENTRIES_PREFIX).await.is_empty()
    })
    .await;
}
