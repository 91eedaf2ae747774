//! A dead session with a long tail that only followers have, recovered by processes of which the first is killed half way: a
//! recovery's memory does not grow with the tail, what a killed one has done stays done, and together both take about as
//! long as copying the frames would. In CI 128 MiB over a slowed bucket; `just long-tail` has 1 GiB and compares the times.

use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::{TryStreamExt as _, stream};
use holdfast_records::NodeLogState;
use holdfast_rpc::follower::LogName;
use holdfast_rpc::{FollowerClient, Role};
use holdfast_tests::cluster::Cluster;
use holdfast_tests::fault_proxy::{Action, Rule, Seen, Stage};
use holdfast_types::{LogOffset, SessionId};
use http::Method;
use serde_json::json;

use crate::support::{acked, client, create, is_in_full};
use crate::tier::{NO_PACE, follower_peer, identity, tier, wait_ensemble, wait_lease_over};

const CELLS: usize = 16;
/// Bytes that do not compress, of one row.
const ROW_BYTES: usize = 1_000_000;
const MEMORY_MAX: u64 = 256 << 20;
/// A recoverer is left alone for 30 s after its last sign of life.
const SILENCE: Duration = Duration::from_secs(90);
const RECOVERY: Duration = Duration::from_secs(240);
const COPY_LANES: usize = 32;

/// The highest resident memory of a process so far, in bytes; none once it has ended.
fn peak_bytes(id: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

/// A recoverer, what it took of memory, and how long it ran.
struct Recoverer {
    name: &'static str,
    child: Child,
    began: Instant,
    peak: u64,
}

impl Recoverer {
    async fn start(cluster: &mut Cluster, name: &'static str, session: SessionId) -> Result<Self> {
        let session = session.to_string();
        let child = cluster.spawn_tool(name, &["log", "recover", "n1", &session]).await?;
        Ok(Self { name, child, began: Instant::now(), peak: 0 })
    }

    /// Looks at it; its exit, once it has ended.
    fn look(&mut self) -> Result<Option<ExitStatus>> {
        self.peak = self.peak.max(peak_bytes(self.child.id()).unwrap_or(0));
        Ok(self.child.try_wait()?)
    }

    async fn end(&mut self) -> Result<(ExitStatus, Duration)> {
        let until = Instant::now() + RECOVERY;
        loop {
            if let Some(status) = self.look()? {
                return Ok((status, self.began.elapsed()));
            }
            ensure!(Instant::now() < until, "`{}` does not end", self.name);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Frames done, as the log record says.
async fn done_below(cluster: &Cluster, session: SessionId) -> Result<LogOffset> {
    let record = cluster.node_log("n1", session).await?.context("no record")?;
    Ok(record.recovery.map_or(LogOffset::ZERO, |recovery| recovery.done_below))
}

/// Files that a program has put.
fn stored(cluster: &Cluster, name: &str) -> Vec<String> {
    let is_stored = |seen: &Seen| {
        seen.method == Method::PUT
            && seen.target.contains(".ltx")
            && matches!(seen.stage, Stage::Answered(200))
    };
    let trace = cluster.faults(name).trace();
    trace.into_iter().filter(is_stored).map(|seen| seen.target).collect()
}

/// The floor: the same frames from a follower to the same store by as many lanes, through a proxy as well.
async fn copy(cluster: &mut Cluster, session: SessionId) -> Result<(Duration, u64)> {
    let store = Arc::new(cluster.store_of("copy").await?);
    let peer = follower_peer(cluster, "f1").await;
    let me = identity(cluster, Role::Tools, "copy", SessionId::from_bits(0xc0)).await;
    let link = FollowerClient::new(me).connect(&peer).await?;
    let log = LogName { node: "n1".parse()?, session };
    let began = Instant::now();
    let frames = link.tail(&log, LogOffset::new(1), None).await?;
    let frames =
        frames.map_err(anyhow::Error::from).map_ok(|frames| stream::iter(frames.into_iter().map(Ok)));
    let put = frames.try_flatten().map_ok(|frame| {
        let store = Arc::clone(&store);
        async move {
            let len = u64::try_from(frame.body.len())?;
            store.put(&format!("copied/{}", frame.offset), frame.body).await?;
            anyhow::Ok(len)
        }
    });
    let bytes = put.try_buffer_unordered(COPY_LANES).try_fold(0, async |sum, len| Ok(sum + len)).await?;
    Ok((began.elapsed(), bytes))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_tail_outlives_a_killed_recoverer_in_little_memory() {
    let rows = if is_in_full() { 1_074 } else { 136 };
    let node_args = [&NO_PACE[..], &["--retained-max", "8589934592"]].concat();
    let mut cluster = tier(1, 2, &node_args).await;
    let (client, ingress) = (client(), cluster.ingress());
    let db = |row: usize| format!("tail-{}", row % CELLS);
    for cell in 0..CELLS {
        create(&client, ingress, &db(cell)).await.unwrap();
    }
    wait_ensemble(&cluster, "n1", &["f1", "f2"]).await;
    for row in 0..rows {
        let sql = "INSERT INTO t (id, n) VALUES (?, randomblob(?))";
        let outcome = client.query(ingress, &db(row), sql, &[json!(row.to_string()), json!(ROW_BYTES)]).await;
        outcome.into_result().unwrap();
    }
    let session = cluster.present_log("n1").await.unwrap().session;
    cluster.kill("n1").unwrap();
    wait_lease_over(&cluster, "n1", Duration::from_millis(500)).await.unwrap();
    // Before anything is recovered, for then followers let go of it.
    let (copying, bytes) = copy(&mut cluster, session).await.unwrap();
    assert!(bytes >= u64::try_from(rows * ROW_BYTES).unwrap(), "only followers have the rows: {bytes}");

    // Long enough for signs of progress, which come every 5 s.
    if !is_in_full() {
        for name in ["r1", "r2"] {
            cluster.bucket_args(name).await.unwrap();
        }
        let slow = Action::Hold { ms: 4_000 };
        cluster.faults("r1").add(Rule::new(slow).method(&Method::PUT).contains(".ltx"));
    }
    let mut first = Recoverer::start(&mut cluster, "r1", session).await.unwrap();
    let until = Instant::now() + RECOVERY;
    let done = loop {
        let ended = first.look().unwrap();
        assert!(ended.is_none(), "it ended first: {}", cluster.printed("r1"));
        let done = done_below(&cluster, session).await.unwrap();
        if done > LogOffset::new(1) {
            break done;
        }
        assert!(Instant::now() < until, "no progress: {}", cluster.printed("r1"));
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    let first_took = first.began.elapsed();
    let brought = stored(&cluster, "r1");
    assert!(!brought.is_empty());

    // Only an attempt that is let at it counts.
    let until = Instant::now() + SILENCE;
    let (second, took) = loop {
        let mut next = Recoverer::start(&mut cluster, "r2", session).await.unwrap();
        let (status, took) = next.end().await.unwrap();
        if status.success() {
            break (next, took);
        }
        let printed = cluster.printed("r2");
        assert!(printed.contains("is being recovered") && Instant::now() < until, "{printed}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    let record = cluster.node_log("n1", session).await.unwrap().unwrap();
    assert!(record.state == NodeLogState::Sealed && !record.loss_declared, "{record:?}");
    let again: Vec<String> = stored(&cluster, "r2").into_iter().filter(|key| brought.contains(key)).collect();
    assert_eq!(again, Vec::<String>::new(), "what the first had brought is brought again");

    let mib = |bytes: u64| bytes >> 20;
    println!(
        "{} MiB: the first recoverer was killed after {first_took:?} with frames below {done} done and {} files; the \
         second took {took:?} and {} files; {:.2} times a copy, which took {copying:?}; memory {} and {} MiB",
        mib(bytes),
        brought.len(),
        stored(&cluster, "r2").len(),
        (first_took + took).as_secs_f64() / copying.as_secs_f64(),
        mib(first.peak),
        mib(second.peak),
    );
    for recoverer in [&first, &second] {
        assert!(recoverer.peak > 0 && recoverer.peak < MEMORY_MAX, "{}: {}", recoverer.name, recoverer.peak);
    }
    if is_in_full() {
        assert!((first_took + took).as_secs_f64() <= 1.5 * copying.as_secs_f64());
    }

    // Every row is there, on a node that never had any.
    cluster.start_node("n2").await.unwrap();
    let mut found = 0;
    for cell in 0..CELLS {
        let sql = "SELECT count(*) FROM t WHERE length(n) = 1000000";
        let counted = acked(&client, ingress, &db(cell), sql, &[]).await.unwrap();
        found += counted[0][0].as_u64().unwrap();
    }
    assert_eq!(found, u64::try_from(rows).unwrap());
}
