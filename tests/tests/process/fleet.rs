//! A fleet that grows, and one whose programs are restarted one after the other: clients go on as if nothing was. What is smaller
//! here than it is promised for is run in full by `just fleet`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use futures::StreamExt as _;
use holdfast_tests::client::{Outcome, Rows, SqlClient};
use holdfast_tests::cluster::{Cluster, ClusterOptions};
use holdfast_tests::wait;
use holdfast_tests::workload::Ingresses;
use serde_json::{Value, json};

use crate::sockets::{self, Socket};
use crate::support::{SOON, TTL, client, create, ids, is_in_full};

/// Cells made at once.
const LANES: usize = 16;
/// Longest wait of a client between an answer 503 and its only other try.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// An ordinary client: it goes to another ingress where one cannot be reached, and sends once more what was answered 503.
#[derive(Clone)]
struct Ordinary {
    client: SqlClient,
    ingresses: Ingresses,
    turn: Arc<AtomicU64>,
    /// Answers 503 that were followed by another try.
    retried: Arc<AtomicU64>,
}

impl Ordinary {
    fn new(cluster: &Cluster) -> Self {
        let (turn, retried) = (Arc::default(), Arc::default());
        Self { client: client(), ingresses: cluster.ingresses(), turn, retried }
    }

    fn next_ingress(&self) -> SocketAddr {
        let ingresses = self.ingresses.read().unwrap();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        ingresses[usize::try_from(turn).unwrap() % ingresses.len()]
    }

    async fn query(&self, db: &str, sql: &str, args: &[Value]) -> Outcome<Rows> {
        match self.reach(db, sql, args).await {
            Outcome::Refused(reason) if reason.starts_with("503") => {
                self.retried.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(RETRY_AFTER).await;
                self.reach(db, sql, args).await
            }
            outcome => outcome,
        }
    }

    /// Of several addresses, one that can be connected to.
    async fn reach(&self, db: &str, sql: &str, args: &[Value]) -> Outcome<Rows> {
        let began = Instant::now();
        loop {
            match self.client.query(self.next_ingress(), db, sql, args).await {
                Outcome::Refused(reason) if reason.contains("never connected") && began.elapsed() < SOON => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                outcome => return outcome,
            }
        }
    }
}

/// Cells of each live node and its share, as an operator sees them.
async fn loads(cluster: &Cluster) -> Result<BTreeMap<String, (u64, u64)>> {
    let status = cluster.tool(&["node", "rebalance", "status", "--json"]).await?.json()?;
    let nodes = status["nodes"].as_array().into_iter().flatten();
    let row = |row: &Value| {
        let name = row["node"].as_str().unwrap_or_default().to_owned();
        (name, (row["cells"].as_u64().unwrap_or_default(), row["share"].as_u64().unwrap_or_default()))
    };
    Ok(nodes.map(row).collect())
}

fn must_have(loads: &BTreeMap<String, (u64, u64)>, nodes: usize, cells: u64) -> Result<()> {
    ensure!(loads.len() == nodes, "{loads:?}");
    ensure!(loads.values().map(|(cells, _)| cells).sum::<u64>() >= cells, "{loads:?}");
    Ok(())
}

fn must_be_even(loads: &BTreeMap<String, (u64, u64)>, nodes: usize, cells: u64) -> Result<()> {
    must_have(loads, nodes, cells)?;
    for (node, (cells, share)) in loads {
        ensure!(cells.abs_diff(*share) * 20 <= *share, "`{node}` is off by more than 5 %: {loads:?}");
    }
    Ok(())
}

async fn make_cells(cluster: &Cluster, cells: usize) -> Vec<String> {
    let (client, ingress) = (client(), cluster.ingress());
    let dbs: Vec<String> = (0..cells).map(|number| format!("cell-{number}")).collect();
    futures::stream::iter(&dbs)
        .for_each_concurrent(LANES, |db| {
            let client = client.clone();
            async move { create(&client, ingress, db).await.unwrap() }
        })
        .await;
    dbs
}

/// What clients saw that went through all cells again and again.
#[derive(Debug, Default)]
struct Seen {
    answered: u64,
    failed: Vec<String>,
}

fn visit(ordinary: &Ordinary, dbs: &[String], stop: &Arc<AtomicBool>) -> Vec<tokio::task::JoinHandle<Seen>> {
    let visitors = (0..4).map(|first| {
        let (ordinary, dbs, stop) = (ordinary.clone(), dbs.to_vec(), Arc::clone(stop));
        tokio::spawn(async move {
            let mut seen = Seen::default();
            for db in dbs.iter().cycle().skip(first * dbs.len() / 4) {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                match ordinary.query(db, "INSERT INTO t (id, n) VALUES (?, 1)", &[json!("x")]).await {
                    Outcome::Acked(..) => seen.answered += 1,
                    Outcome::Refused(reason) | Outcome::Unknown(reason) => {
                        seen.failed.push(format!("{db}: {reason}"));
                    }
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            seen
        })
    });
    visitors.collect()
}

/// A fourth node joins three that hold so many cells. How long it takes until all are even, and what clients saw.
async fn grow(cells: usize, within: Duration) -> (Duration, Seen) {
    // Leases of the usual length: what is judged is what nodes own, as they tell it.
    let options = ClusterOptions { nodes: 3, wakers: 1, lease_ttl: TTL, ..ClusterOptions::default() };
    let mut cluster = Cluster::start(options).await.unwrap();
    let dbs = make_cells(&cluster, cells).await;
    let count = u64::try_from(cells).unwrap();
    wait::until("leases that tell of all cells", SOON, async || must_have(&loads(&cluster).await?, 3, count))
        .await
        .unwrap();

    // Nothing moves while it is paused, whoever joins.
    let paused = cluster.tool(&["node", "rebalance", "pause", "--by", "ada", "--json"]).await.unwrap();
    assert_eq!(paused.json().unwrap()["by"], "ada");
    cluster.start_node("n4").await.unwrap();
    let looks = |cluster: &Cluster| {
        let trace = cluster.faults("w1").trace().into_iter();
        trace.filter(|seen| seen.target.contains("fleet/rebalance.json")).count()
    };
    let before =
        (looks(&cluster), cluster.metric("w1", "holdfast_waker_moves_count_total", "").await.unwrap());
    wait::until("looks at the switch", SOON, async || {
        ensure!(looks(&cluster) >= before.0 + 3, "not yet");
        Ok(())
    })
    .await
    .unwrap();
    let moves = cluster.metric("w1", "holdfast_waker_moves_count_total", "").await.unwrap();
    assert_eq!(moves, before.1, "cells moved while it was paused");
    let status = cluster.tool(&["node", "rebalance", "status"]).await.unwrap();
    assert!(status.stdout.contains("paused by ada"), "{status:?}");

    let stop = Arc::new(AtomicBool::new(false));
    let ordinary = Ordinary::new(&cluster);
    let visitors = visit(&ordinary, &dbs, &stop);
    cluster.tool(&["node", "rebalance", "resume", "--json"]).await.unwrap();
    let resumed = Instant::now();
    wait::until("four even nodes", within, async || must_be_even(&loads(&cluster).await?, 4, count))
        .await
        .unwrap();
    let took = resumed.elapsed();
    stop.store(true, Ordering::SeqCst);
    let mut seen = Seen::default();
    for visitor in visitors {
        let Seen { answered, failed } = visitor.await.unwrap();
        seen.answered += answered;
        seen.failed.extend(failed);
    }
    // It has come to rest: looks go by, and nothing moves.
    let rest = async |cluster: &Cluster| cluster.metric("w1", "holdfast_waker_moves_count_total", "").await;
    let mut last = rest(&cluster).await.unwrap();
    wait::until("rest", SOON, async || {
        let (before, looked) = (last, looks(&cluster));
        wait::until("looks at the switch", SOON, async || {
            ensure!(looks(&cluster) >= looked + 3, "not yet");
            Ok(())
        })
        .await?;
        last = rest(&cluster).await?;
        ensure!(last == before, "cells move: {before} and {last}");
        Ok(())
    })
    .await
    .unwrap();
    println!(
        "{cells} cells: even after {took:?}, {last} moves; {} answers, {} tried again after 503, {} failed",
        seen.answered,
        ordinary.retried.load(Ordering::Relaxed),
        seen.failed.len()
    );
    cluster.finish().unwrap();
    (took, seen)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_joins_gets_its_share_and_no_request_fails() {
    let (took, seen) = grow(if is_in_full() { 3_000 } else { 600 }, Duration::from_secs(300)).await;
    assert!(seen.failed.is_empty() && seen.answered > 0, "{seen:?}");
    // What a machine that does other things takes is no fault.
    assert!(!is_in_full() || took < Duration::from_secs(120), "{took:?}");
}

/// What one writer saw of its database.
struct Written {
    db: String,
    acked: Vec<String>,
    failed: Vec<String>,
    /// From a request to its acknowledgement, another try included.
    longest_wait: Duration,
}

async fn write_on(ordinary: Ordinary, db: String, pause: Duration, stop: Arc<AtomicBool>) -> Written {
    let mut written = Written { db, acked: Vec::new(), failed: Vec::new(), longest_wait: Duration::ZERO };
    for number in 0_u64.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let id = number.to_string();
        let args = [json!(id)];
        let began = Instant::now();
        match ordinary.query(&written.db, "INSERT INTO t (id, n) VALUES (?, 1)", &args).await {
            Outcome::Acked(..) => {
                written.acked.push(id);
                written.longest_wait = written.longest_wait.max(began.elapsed());
            }
            Outcome::Refused(reason) | Outcome::Unknown(reason) => written.failed.push(reason),
        }
        tokio::time::sleep(pause).await;
    }
    written
}

/// One socket after the other to one object, each used until it is closed. How many messages were answered, and with what the
/// sockets were closed.
async fn talk_on(ingresses: Ingresses, name: String, stop: Arc<AtomicBool>) -> Result<(u64, Vec<u16>)> {
    let (mut answered, mut closes) = (0, Vec::new());
    while !stop.load(Ordering::SeqCst) {
        let address = {
            let ingresses = ingresses.read().unwrap();
            ingresses[closes.len() % ingresses.len()]
        };
        let Ok(mut socket) = Socket::open(address, &format!("/hibernating/{name}")).await else {
            closes.push(0);
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        while !stop.load(Ordering::SeqCst) {
            match socket.ask("x").await {
                Ok(answer) => {
                    ensure!(answer.starts_with("x "), "`{answer}`");
                    answered += 1;
                }
                Err(Some(code)) => {
                    closes.push(code);
                    break;
                }
                Err(None) => bail!("a socket ended without a close"),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    Ok((answered, closes))
}

/// How much goes on during a rolling restart.
struct Load {
    cells: usize,
    sockets: usize,
    pause: Duration,
}

/// Restarts every program of a fleet, one after the other, in order.
async fn roll(load: Load) {
    let options = ClusterOptions {
        nodes: 3,
        followers: 2,
        ingresses: 2,
        wakers: 1,
        lease_ttl: TTL,
        ..ClusterOptions::default()
    };
    let mut cluster = Cluster::start(options).await.unwrap();
    let project = tempfile::tempdir().unwrap();
    sockets::deploy(&cluster, project.path(), "").await;
    let dbs = make_cells(&cluster, load.cells).await;
    drop(Socket::open_soon(cluster.ingress(), "/hibernating/first").await);
    let stop = Arc::new(AtomicBool::new(false));
    let ordinary = Ordinary::new(&cluster);
    let writers: Vec<_> = dbs
        .iter()
        .map(|db| tokio::spawn(write_on(ordinary.clone(), db.clone(), load.pause, Arc::clone(&stop))))
        .collect();
    let talkers: Vec<_> = (0..load.sockets)
        .map(|number| tokio::spawn(talk_on(cluster.ingresses(), format!("room-{number}"), Arc::clone(&stop))))
        .collect();
    let began = Instant::now();
    for program in ["n1", "n2", "n3", "f1", "f2", "i1", "i2", "w1"] {
        let restarted = Instant::now();
        cluster.process(program).unwrap().terminate().unwrap();
        let status = cluster.process_mut(program).unwrap().wait_exit(Duration::from_secs(60)).await.unwrap();
        assert!(status.success(), "`{program}`: {status}; {}", cluster.process(program).unwrap().log_tail());
        let stopped = restarted.elapsed();
        match program.split_at(1).0 {
            "n" => cluster.start_node(program).await.unwrap(),
            "f" => cluster.start_follower(program).await.unwrap(),
            "i" => cluster.start_ingress(program).await.unwrap(),
            _ => cluster.start_waker(program).await.unwrap(),
        }
        println!("`{program}` stopped in {stopped:?}, was back after {:?}", restarted.elapsed());
    }
    let took = began.elapsed();
    stop.store(true, Ordering::SeqCst);
    let (mut waits, mut acked, mut failed) = (Vec::new(), 0, Vec::new());
    for writer in writers {
        let written = writer.await.unwrap();
        let found = ids(&client(), cluster.ingress(), &written.db).await.unwrap();
        assert_eq!(found, written.acked, "`{}`, failed: {:?}", written.db, written.failed);
        acked += written.acked.len();
        waits.push(written.longest_wait);
        failed.extend(written.failed.into_iter().map(|reason| format!("{}: {reason}", written.db)));
    }
    let mut closes = BTreeMap::<u16, usize>::new();
    let mut answered = 0;
    for talker in talkers {
        let (heard, codes) = talker.await.unwrap().unwrap();
        assert!(heard > 0, "an object never answered");
        answered += heard;
        codes.into_iter().for_each(|code| *closes.entry(code).or_default() += 1);
    }
    waits.sort();
    let of = |percent: usize| waits[(waits.len() * percent / 100).min(waits.len() - 1)];
    println!(
        "{} cells, restarted in {took:?}: {acked} writes acknowledged, {} tried again after 503, {} failed; longest wait for a cell: \
         median {:?}, p99 {:?}, longest {:?}; {answered} answers on sockets, closed with {closes:?}",
        load.cells,
        ordinary.retried.load(Ordering::Relaxed),
        failed.len(),
        of(50),
        of(99),
        of(100),
    );
    assert!(failed.is_empty(), "{} of {acked} failed: {failed:#?}", failed.len());
    for code in closes.keys() {
        assert!([0, 1001, 1012].contains(code), "a socket was closed with {code}: {closes:?}");
    }
    cluster.finish().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_of_every_program_fails_no_request_and_loses_no_write() {
    roll(match is_in_full() {
        true => Load { cells: 500, sockets: 20, pause: Duration::from_millis(2_500) },
        false => Load { cells: 24, sockets: 4, pause: Duration::from_millis(150) },
    })
    .await;
}
