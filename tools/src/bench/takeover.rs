//! `bench takeover`: how long a cell is not served when its node drains: from the last answer of the old owner to the
//! first of the new one, as a client sees it that asks without pause. The floor is the same client without a drain.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use holdfast_bucket::{BucketArgs, Buckets};
use holdfast_rpc::Peer;
use serde_json::json;

use super::Place;
use super::load::{Connection, Target};
use crate::output::{Output, Table};
use crate::peers;

/// The longest median that is good, in milliseconds.
const MEDIAN_MS_MAX: f64 = 200.0;
/// How long one cell may be away before the run fails.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the clients ask before the drain, for the floor, and after it.
const CALM: Duration = Duration::from_secs(2);

/// Options of `bench takeover`.
#[derive(Debug, clap::Args)]
pub struct Takeover {
    /// Cells, each with one client.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=512))]
    cells: u32,
    #[command(flatten)]
    place: Place,
}

impl Takeover {
    /// Measures.
    pub async fn run(self, output: Output) -> Result<()> {
        let mut bed = self.place.fleet(2).await?;
        let public = bed.fleet.addresses.public;
        let mut connection = Connection::open(public).await?;
        for number in 0..self.cells {
            let text = "CREATE TABLE t (v TEXT); INSERT INTO t VALUES ('x')";
            connection.send(&Target::query(public, &format!("move-{number}"), text)).await?;
        }
        let buckets = BucketArgs::at(&bed.fleet.bucket_url).open().await?;
        let (calm, moved) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(false)));
        let clients: Vec<_> = (0..self.cells)
            .map(|number| tokio::spawn(watch(public, number, Arc::clone(&calm), Arc::clone(&moved))))
            .collect();
        tokio::time::sleep(CALM).await;
        calm.store(false, Ordering::Release);
        drain(&buckets, "node-1").await?;
        let ended = tokio::time::timeout(PATIENCE, bed.fleet.next_ended())
            .await
            .context("the drain takes too long")??;
        ended.result?;
        tokio::time::sleep(CALM).await;
        moved.store(true, Ordering::Release);
        let (mut calm, mut gaps) = (Vec::new(), Vec::new());
        for client in clients {
            let seen = client.await??;
            calm.push(seen.calm);
            gaps.extend((seen.epochs > 1).then_some(seen.drain));
        }
        bed.stop().await?;
        ensure!(!gaps.is_empty(), "no cell was on the node that drained; use more --cells");
        print(calm, gaps, output)
    }
}

fn print(mut calm: Vec<Duration>, mut gaps: Vec<Duration>, output: Output) -> Result<()> {
    calm.sort_unstable();
    gaps.sort_unstable();
    let figures = [("longest wait without a drain", &calm), ("longest wait of a cell that moved", &gaps)];
    let row = |all: &[Duration]| (ms(all[all.len() / 2]), ms(all[all.len() - 1]));
    let (median, max) = row(&gaps);
    let (floor_median, floor_max) = row(&calm);
    let result = json!({
        "bench": "takeover", "moved": gaps.len(), "median_ms": median, "max_ms": max,
        "floor_median_ms": floor_median, "floor_max_ms": floor_max,
        "wanted_median_ms_max": MEDIAN_MS_MAX, "good": median < MEDIAN_MS_MAX,
    });
    output.print(&result, || {
        let mut table = Table::new(["WHAT", "CELLS", "MEDIAN MS", "MAX MS"]);
        for (what, all) in figures {
            let (median, max) = row(all);
            table.row([what.to_owned(), all.len().to_string(), format!("{median:.1}"), format!("{max:.1}")]);
        }
        format!("{table}\nwanted: a median below {MEDIAN_MS_MAX} ms for a cell that moves")
    })
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

async fn drain(buckets: &Buckets, node: &str) -> Result<()> {
    let node = node.parse()?;
    let found = peers::lease(&*buckets.leases, node).await?.context("the node has no lease")?;
    Ok(peers::client(buckets).await?.drain(&Peer::of(&found.lease?)).await?)
}

/// What one client saw.
struct Seen {
    /// The longest wait from one answer to the next, before the drain.
    calm: Duration,
    /// The same from the drain on.
    drain: Duration,
    /// How many epochs answered.
    epochs: usize,
}

/// Reads one cell again and again, whatever the answer, until the drain is over.
async fn watch(
    public: SocketAddr,
    number: u32,
    calm: Arc<AtomicBool>,
    moved: Arc<AtomicBool>,
) -> Result<Seen> {
    let target = Target::query(public, &format!("move-{number}"), "SELECT v FROM t");
    let mut connection = Connection::open(public).await?;
    let (mut seen, mut epochs) =
        (Seen { calm: Duration::ZERO, drain: Duration::ZERO, epochs: 0 }, Vec::new());
    let mut last = Instant::now();
    while !moved.load(Ordering::Acquire) {
        let was_calm = calm.load(Ordering::Acquire);
        match connection.send(&target).await {
            Ok(answer) => {
                let answer: serde_json::Value = serde_json::from_slice(&answer)?;
                let epoch = answer["position"]["epoch"].as_u64();
                if epochs.last() != Some(&epoch) {
                    epochs.push(epoch);
                }
                let wait = last.elapsed();
                let longest = if was_calm { &mut seen.calm } else { &mut seen.drain };
                *longest = wait.max(*longest);
                last = Instant::now();
            }
            Err(error) => {
                ensure!(last.elapsed() < PATIENCE, "cell {number} is gone: {error:#}");
                tracing::debug!(%error, number, "no answer");
            }
        }
        // A client that never pauses would measure the processor's queue.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    seen.epochs = epochs.len();
    Ok(seen)
}
