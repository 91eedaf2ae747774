//! Wall clocks that are wrong by far more than `--max-clock-skew`, and clocks that jump, by an hour too: that costs availability
//! at most, never an acknowledged write, and the fleet goes on.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, ensure};
use holdfast_tests::checker;
use holdfast_tests::client::SqlClient;
use holdfast_tests::cluster::{CLOCK_SEEN, Cluster, ClusterOptions};
use holdfast_tests::ledger::{self, Ledger};
use holdfast_tests::wait;
use holdfast_tests::workload::{Tally, Workload, WorkloadOptions, db_name};
use http::Method;

use crate::support::{SOON, TTL, acked, client, create};

const DBS: usize = 12;
/// Further than any two clocks may differ, in seconds.
const MINUTES: i64 = 300;
/// Less than what stores bear: they refuse a request whose time is off by more than 15 minutes, and it is signed anew by their
/// clock.
const JUMP: i64 = 600;
const HOUR: i64 = 3_600;
/// A node looks at its wall clock once a minute at least.
const LOOKED_AT: Duration = Duration::from_secs(75);
/// Writes that must be acknowledged with each setting of the clocks.
const WRITES: u64 = 200;

struct Load {
    cluster: Cluster,
    load: Workload,
    ledger: Ledger,
    writer: ledger::LedgerWriter,
}

impl Load {
    async fn start(clocks: Vec<(&'static str, i64)>) -> Self {
        let options = ClusterOptions {
            nodes: 3,
            followers: 2,
            wakers: 1,
            lease_ttl: TTL,
            clocks,
            ..ClusterOptions::default()
        };
        let mut cluster = Cluster::start(options).await.unwrap();
        for text in ["SELF-FENCE", "RequestTimeTooSkewed"] {
            cluster.allow_in_logs(text);
        }
        let (ledger, writer) = Ledger::create(&cluster.dir().join("ledger.jsonl")).unwrap();
        let options = WorkloadOptions { dbs: DBS, workers: 4, seed: 1, timeout: Duration::from_secs(15) };
        let load = Workload::start(&options, &cluster.ingresses(), &ledger);
        Self { cluster, load, ledger, writer }
    }

    fn acked(&self) -> u64 {
        let tally: &Tally = self.load.tally();
        tally.acked.load(Ordering::SeqCst)
    }

    /// Sets clocks, and waits until they are seen and writes go on.
    async fn set(&self, clocks: &[(&str, i64)]) {
        for (name, ahead_secs) in clocks {
            self.cluster.set_clock(name, *ahead_secs).unwrap();
        }
        tokio::time::sleep(CLOCK_SEEN).await;
        let before = self.acked();
        let what = format!("writes with {clocks:?}");
        let goes_on = wait::until(&what, SOON, async || {
            let acked = self.acked();
            ensure!(acked >= before + WRITES, "{acked} after {before}");
            Ok(())
        });
        goes_on.await.unwrap();
        println!("{clocks:?}: {} more writes", self.acked() - before);
    }
}

impl Load {
    /// Waits until a node has renewed its lease by the clock that was set.
    async fn renewed(&self, name: &str) {
        let true_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let renewed = wait::until("a renewal", SOON, async || {
            let lease = self.cluster.lease(name).await?.context("it has a lease")?;
            ensure!(u128::from(lease.expires_ms.get()) < true_ms, "until {}", lease.expires_ms);
            Ok(())
        });
        renewed.await.unwrap();
    }

    /// Sets a node's clock right, and starts it where it has ended.
    async fn revive(&mut self, name: &str) {
        self.cluster.set_clock(name, 0).unwrap();
        if self.cluster.process_mut(name).unwrap().exit_status().unwrap().is_some() {
            self.cluster.start_node(name).await.unwrap();
        }
    }
}

/// Ends the load, has every cell change its owner, by a death or in order, and looks for all that was acknowledged.
async fn check(load: Load, killed: &[&str], drained: &[&str]) {
    let Load { mut cluster, load, ledger, writer } = load;
    let tally = load.tally().clone();
    let longest = load.stop().await.unwrap();
    drop(ledger);
    writer.close().unwrap();
    for name in drained {
        cluster.process(name).unwrap().terminate().unwrap();
        cluster.process_mut(name).unwrap().wait_exit(SOON).await.unwrap();
    }
    for name in killed {
        cluster.kill(name).unwrap();
    }
    cluster.start_node("witness").await.unwrap();
    let client = SqlClient::new(Duration::from_secs(15));
    let mut contents = BTreeMap::new();
    for name in (0..DBS).map(db_name) {
        let read = checker::read_contents(&client, cluster.ingress(), &name).await.unwrap();
        contents.insert(name, read);
    }
    let entries = ledger::read(&cluster.dir().join("ledger.jsonl")).unwrap();
    let mut violations = tally.violations();
    violations.extend(checker::check(&entries, &contents));
    println!("{} acknowledged, longest without: {longest:?}", tally.acked.load(Ordering::SeqCst));
    assert_eq!(violations, [""; 0]);
}

/// Whoever is ahead takes the others for dead, and has their logs sealed: those end, and what was acknowledged stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_whose_clocks_are_minutes_apart_lose_no_acknowledged_write() {
    let clocks =
        vec![("n1", 0), ("n2", MINUTES), ("n3", -MINUTES), ("f1", 0), ("f2", MINUTES), ("w1", MINUTES)];
    let load = Load::start(clocks).await;
    load.set(&[]).await;
    load.set(&[("f1", -MINUTES), ("w1", -MINUTES)]).await;
    load.set(&[("n2", -MINUTES), ("n3", MINUTES)]).await;
    // What n2 published while it was ahead would keep its cells from others for minutes.
    load.renewed("n2").await;
    check(load, &["n1", "n2"], &["n3"]).await;
}

/// Forwards the owner goes on; backwards its lease looks dead, and its cells are taken over while it lives.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owners_whose_clocks_jump_lose_no_acknowledged_write() {
    let names = ["n1", "n2", "n3", "f1", "f2", "w1"];
    let mut load = Load::start(names.map(|name| (name, 0)).to_vec()).await;
    load.set(&[]).await;
    load.set(&[("n1", JUMP)]).await;
    load.set(&[("n2", -JUMP)]).await;
    load.set(&[("n1", HOUR)]).await;
    load.revive("n1").await;
    load.revive("n2").await;
    load.set(&[("n3", -HOUR)]).await;
    load.revive("n3").await;
    load.set(&[("f1", -JUMP), ("f2", JUMP), ("w1", -JUMP)]).await;
    load.set(&[("w1", JUMP)]).await;
    check(load, &["n1", "n3"], &["n2"]).await;
}

/// Alarms are due by the clock of the cell's owner. It writes what that showed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alarm_is_never_early_by_its_owners_clock_when_that_is_set_back() {
    let options = ClusterOptions {
        nodes: 1,
        lease_ttl: TTL,
        clocks: vec![("n1", MINUTES)],
        ..ClusterOptions::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let (client, ingress) = (client(), cluster.ingress());
    create(&client, ingress, "bell").await.unwrap();
    let body = r#"{"in_ms": 4000, "sql": "INSERT INTO t VALUES ('rang', CAST(unixepoch('subsec') * 1000 AS INTEGER))"}"#;
    let set =
        client.send(Method::POST, ingress, "/-/db/bell/alarm", body.into()).await.into_result().unwrap();
    let at = set.json().unwrap()["alarm"]["at"].as_i64().unwrap();
    let rang = async || {
        let rows = acked(&client, ingress, "bell", "SELECT n FROM t", &[]).await.unwrap();
        rows.first().map(|row| row[0].as_i64().unwrap())
    };
    cluster.set_clock("n1", 0).unwrap();
    // Beyond the time that was asked for, as it was counted then.
    tokio::time::sleep(Duration::from_millis(4_000) + 2 * CLOCK_SEEN).await;
    assert_eq!(rang().await, None);
    cluster.set_clock("n1", MINUTES).unwrap();
    let rang = wait::until("the alarm", LOOKED_AT, async || rang().await.context("not yet")).await.unwrap();
    assert!(rang >= at, "rang at {rang}, set for {at}");
}
