//! Ordinary clients of a whole fleet: writers of databases and talkers on sockets, which go on while programs come and go. What they
//! saw at the end is what the fleet is judged by.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use futures::StreamExt as _;
use holdfast_tests::client::{Outcome, Rows, SqlClient};
use holdfast_tests::cluster::Cluster;
use holdfast_tests::workload::Ingresses;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::sockets::{self, Socket};
use crate::support::{SOON, client, create, ids};

/// Cells made, and read back, at once.
const LANES: usize = 16;
/// Longest wait of a client between an answer 503 and its only other try.
const RETRY_AFTER: Duration = Duration::from_millis(500);
/// A wait for an acknowledgement that is shorter is no gap in service worth telling.
const GAP_MIN: Duration = Duration::from_millis(100);

/// An ordinary client: it goes to another ingress where one cannot be reached, and sends once more what was answered 503.
#[derive(Clone)]
pub(crate) struct Ordinary {
    client: SqlClient,
    ingresses: Ingresses,
    turn: Arc<AtomicU64>,
    /// Answers 503 that were followed by another try.
    retried: Arc<AtomicU64>,
}

impl Ordinary {
    pub(crate) fn new(cluster: &Cluster) -> Self {
        let (turn, retried) = (Arc::default(), Arc::default());
        Self { client: client(), ingresses: cluster.ingresses(), turn, retried }
    }

    pub(crate) fn retried(&self) -> u64 {
        self.retried.load(Ordering::Relaxed)
    }

    fn next_ingress(&self) -> SocketAddr {
        let ingresses = self.ingresses.read().unwrap();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        ingresses[usize::try_from(turn).unwrap() % ingresses.len()]
    }

    pub(crate) async fn query(&self, db: &str, sql: &str, args: &[Value]) -> Outcome<Rows> {
        match self.reach(db, sql, args).await {
            Outcome::Refused(reason) if reason.starts_with("503") => {
                self.retried.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(RETRY_AFTER).await;
                self.reach(db, sql, args).await
            }
            outcome => outcome,
        }
    }

    /// Of several addresses, one that can be connected to. A connection that was kept may end in the moment in which it is used again,
    /// with HTTP/1.1 nobody can help that; then it is sent once more, as ordinary clients do. Had it run, the second would be refused:
    /// what is sent here adds a row under a name of its own.
    async fn reach(&self, db: &str, sql: &str, args: &[Value]) -> Outcome<Rows> {
        let began = Instant::now();
        let mut is_again = false;
        loop {
            match self.client.query(self.next_ingress(), db, sql, args).await {
                Outcome::Unknown(reason) if reason.contains("(SendRequest)") && !is_again => is_again = true,
                Outcome::Refused(reason) if reason.contains("never connected") && began.elapsed() < SOON => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                outcome => return outcome,
            }
        }
    }
}

pub(crate) async fn make_cells(cluster: &Cluster, cells: usize) -> Vec<String> {
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

/// What one writer saw of its database.
struct Written {
    db: String,
    acked: Vec<String>,
    failed: Vec<String>,
    /// From a request to its acknowledgement, another try included: when each long one began.
    gaps: Vec<(Instant, Duration)>,
}

async fn write_on(ordinary: Ordinary, db: String, pause: Duration, stop: Arc<AtomicBool>) -> Written {
    let mut written = Written { db, acked: Vec::new(), failed: Vec::new(), gaps: Vec::new() };
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
                let wait = began.elapsed();
                if wait >= GAP_MIN {
                    written.gaps.push((began, wait));
                }
            }
            Outcome::Refused(reason) | Outcome::Unknown(reason) => written.failed.push(reason),
        }
        tokio::time::sleep(pause).await;
    }
    written
}

/// How many messages of a talker were answered, and with what its sockets were closed.
type Heard = (u64, Vec<u16>);

/// One socket after the other to one object, each used until it is closed.
async fn talk_on(ingresses: Ingresses, name: String, stop: Arc<AtomicBool>) -> Result<Heard> {
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

/// How much goes on.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    /// Databases, each with a writer of its own.
    pub(crate) cells: usize,
    /// Objects, each with a socket of its own.
    pub(crate) sockets: usize,
    /// Of a writer, after each answer.
    pub(crate) pause: Duration,
}

/// Clients at work.
pub(crate) struct Traffic {
    load: Load,
    ordinary: Ordinary,
    stop: Arc<AtomicBool>,
    writers: Vec<JoinHandle<Written>>,
    talkers: Vec<JoinHandle<Result<Heard>>>,
    /// What was done to the fleet, and when that began.
    steps: Vec<(String, Instant)>,
}

impl Traffic {
    /// Deploys what the sockets talk to, makes the databases, and begins.
    pub(crate) async fn begin(cluster: &Cluster, load: Load) -> Self {
        let project = tempfile::tempdir().unwrap();
        sockets::deploy(cluster, project.path(), "").await;
        let dbs = make_cells(cluster, load.cells).await;
        drop(Socket::open_soon(cluster.ingress(), "/hibernating/first").await);
        let stop = Arc::new(AtomicBool::new(false));
        let ordinary = Ordinary::new(cluster);
        let write = |db| tokio::spawn(write_on(ordinary.clone(), db, load.pause, Arc::clone(&stop)));
        let writers = dbs.into_iter().map(write).collect();
        let talk =
            |number| tokio::spawn(talk_on(cluster.ingresses(), format!("room-{number}"), Arc::clone(&stop)));
        let talkers = (0..load.sockets).map(talk).collect();
        Self { load, ordinary, stop, writers, talkers, steps: Vec::new() }
    }

    /// Names what is done to the fleet from now on, for the report.
    pub(crate) fn step(&mut self, what: &str) {
        self.steps.push((what.to_owned(), Instant::now()));
    }

    /// Ends it, and holds it against what a fleet promises: nothing acknowledged is lost, no client that sends once more what was
    /// answered 503 sees a failure, and sockets are closed with what lets clients come back. Prints the figures, and returns
    /// each cell's longest gap in service, shortest first.
    pub(crate) async fn end(self, cluster: &Cluster) -> Vec<Duration> {
        let took = self.steps.first().map_or(Duration::ZERO, |(_, began)| began.elapsed());
        self.stop.store(true, Ordering::SeqCst);
        let (mut gaps, mut acked, mut failed) = (Vec::new(), 0, Vec::new());
        for writer in self.writers {
            let written = writer.await.unwrap();
            let found = ids(&client(), cluster.ingress(), &written.db).await.unwrap();
            assert_eq!(found, written.acked, "`{}`, failed: {:?}", written.db, written.failed);
            acked += written.acked.len();
            gaps.push(written.gaps);
            failed.extend(written.failed.into_iter().map(|reason| format!("{}: {reason}", written.db)));
        }
        let (mut answered, mut closes) = (0, BTreeMap::<u16, usize>::new());
        for talker in self.talkers {
            let (heard, codes) = talker.await.unwrap().unwrap();
            assert!(heard > 0, "an object never answered");
            answered += heard;
            codes.into_iter().for_each(|code| *closes.entry(code).or_default() += 1);
        }
        for (index, (what, from)) in self.steps.iter().enumerate() {
            let until = self.steps.get(index + 1).map(|(_, until)| *until);
            let is_of = |began: Instant| began >= *from && until.is_none_or(|until| began < until);
            println!("{what}: {}", describe(&longest(&gaps, is_of)));
        }
        let longest = longest(&gaps, |_| true);
        println!(
            "{} cells, {took:?}: {acked} writes acknowledged, {} tried again after 503, {} failed; {}; {answered} answers on \
             sockets, closed with {closes:?}",
            self.load.cells,
            self.ordinary.retried(),
            failed.len(),
            describe(&longest),
        );
        assert!(failed.is_empty(), "{} of {acked} failed: {failed:#?}", failed.len());
        for code in closes.keys() {
            assert!([0, 1001, 1012].contains(code), "a socket was closed with {code}: {closes:?}");
        }
        longest
    }
}

/// Each cell's longest gap of those that began then, shortest first. A cell without any has less than [`GAP_MIN`].
fn longest(gaps: &[Vec<(Instant, Duration)>], is_of: impl Fn(Instant) -> bool) -> Vec<Duration> {
    let of_cell = |gaps: &Vec<(Instant, Duration)>| {
        gaps.iter().filter(|(began, _)| is_of(*began)).map(|(_, gap)| *gap).max().unwrap_or_default()
    };
    let mut longest: Vec<Duration> = gaps.iter().map(of_cell).collect();
    longest.sort();
    longest
}

/// Of sorted figures, the one that this share of them does not exceed.
pub(crate) fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted
        .get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or_default()
}

fn describe(longest: &[Duration]) -> String {
    let long = longest.iter().filter(|gap| **gap >= GAP_MIN).count();
    format!(
        "{long} cells with a gap of {GAP_MIN:?} or more, longest per cell: median {:?}, p99 {:?}, longest {:?}",
        percentile(longest, 50),
        percentile(longest, 99),
        percentile(longest, 100),
    )
}
