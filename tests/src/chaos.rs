//! The long test: a load of counters and ledgers while processes are killed, frozen, restarted and robbed of their
//! disks and the store misbehaves; then every acknowledgement is looked for through a node that has never seen the
//! cells. One seed gives one schedule of faults (what the fleet makes of it depends on the machine).

mod nemesis;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Result;
use futures::{StreamExt, TryStreamExt};
use serde::Serialize;

use crate::checker::{self, Contents};
use crate::client::SqlClient;
use crate::cluster::{Cluster, ClusterOptions};
use crate::ledger::{self, Entry, Ledger};
use crate::workload::{Workload, WorkloadOptions};

/// How long a client of the load waits: longer than a takeover, so that a hung request shows.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(15);
/// Databases read at once by the check.
const CHECK_LANES: usize = 8;
/// The node that reads everything at the end.
const WITNESS: &str = "witness";

/// Lines at level ERROR that these faults may cause.
const ALLOWED_ERRORS: &[&str] = &[
    "SELF-FENCE",
    "RECOVERY BLOCKED",
    // Whoever ended before it was ready is counted, and started again; the store may have been away.
    "cannot start: ",
];
/// How long superseded history stays: so short that deletions meet takeovers and restores in every run.
const HISTORY_RETENTION: &str = "1s";
const RETIRED_METRIC: &str = "holdfast_cellnode_retired_objects_count_total";
/// What a node logs when followers begin to prove its writes.
const ENSEMBLE_LINE: &str = "an ensemble is active";

/// What to run.
#[derive(Clone, Debug)]
pub struct ChaosOptions {
    /// For how long faults and load run.
    pub duration: Duration,
    /// The seed.
    pub seed: u64,
    /// Databases.
    pub cells: usize,
    /// Workers.
    pub workers: usize,
    /// Cellnodes.
    pub nodes: usize,
    /// Ingresses.
    pub ingresses: usize,
    /// Followers.
    pub followers: usize,
    /// Lease TTL.
    pub lease_ttl: Duration,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct ChaosReport {
    /// No promise was broken, something was acknowledged, and followers, where there are any, took part.
    pub ok: bool,
    /// The seed.
    pub seed: u64,
    /// Seconds of load.
    pub seconds: u64,
    /// Databases.
    pub cells: usize,
    /// Databases with at least one acknowledged write.
    pub cells_written: usize,
    /// Acknowledged writes.
    pub acked: u64,
    /// Writes that certainly did not run.
    pub refused: u64,
    /// Writes of which nobody knows.
    pub unknown: u64,
    /// Unknown writes that turned out to be there.
    pub unknown_present: u64,
    /// Answered reads.
    pub reads: u64,
    /// The longest time in which a database that was asked gave no acknowledgement, in milliseconds.
    pub longest_gap_ms: u64,
    /// The highest epoch that a client saw.
    pub epoch_max: u64,
    /// Faults done, by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// Nodes that ended by a self-fence.
    pub self_fences: u64,
    /// How often an ensemble of followers began to prove a node's writes.
    pub ensembles: usize,
    /// Objects of superseded history that the nodes which lived at the end had deleted.
    pub retired_objects: u64,
    /// Reasons of refused and unknown outcomes, cut short, with counts.
    pub reasons: BTreeMap<String, u64>,
    /// How many promises were broken.
    pub violation_count: u64,
    /// The first broken promises.
    pub violations: Vec<String>,
    /// Where ledger and logs are kept, when something is wrong.
    pub kept: Option<String>,
}

/// Runs it.
///
/// # Errors
/// When the fleet does not start or the check cannot read; broken promises are in the report instead.
pub async fn run(options: &ChaosOptions) -> Result<ChaosReport> {
    let mut cluster = Cluster::start(ClusterOptions {
        nodes: options.nodes,
        ingresses: options.ingresses,
        followers: options.followers,
        // It has the logs of dead sessions recovered whose cells nobody asks for.
        wakers: 1,
        lease_ttl: options.lease_ttl,
        seed: options.seed,
        node_args: ["--history-retention", HISTORY_RETENTION].map(Into::into).to_vec(),
        ..ClusterOptions::default()
    })
    .await?;
    for text in ALLOWED_ERRORS {
        cluster.allow_in_logs(text);
    }
    let outcome = run_in(&mut cluster, options).await;
    let mut report = match outcome {
        Ok(report) => report,
        Err(error) => {
            let kept = cluster.keep_dir();
            // The logs may hold the reason, which the drop would hide behind a panic.
            let logs = cluster.check_logs().err().map_or(String::new(), |logs| format!("\n{logs:#}"));
            return Err(error.context(format!("ledger and logs are kept in `{}`{logs}", kept.display())));
        }
    };
    if let Err(error) = cluster.check_logs() {
        report.violation_count += 1;
        report.violations.push(format!("{error:#}"));
    }
    let are_followers_used = options.followers == 0 || report.ensembles > 0;
    report.ok = report.violation_count == 0 && report.cells_written == report.cells && are_followers_used;
    if !report.ok {
        report.kept = Some(cluster.keep_dir().display().to_string());
    }
    Ok(report)
}

async fn run_in(cluster: &mut Cluster, options: &ChaosOptions) -> Result<ChaosReport> {
    let path = cluster.dir().join("ledger.jsonl");
    let (ledger, writer) = Ledger::create(&path)?;
    let load_options = WorkloadOptions {
        dbs: options.cells,
        workers: options.workers,
        seed: options.seed,
        timeout: CLIENT_TIMEOUT,
    };
    let load = Workload::start(&load_options, &cluster.ingresses(), &ledger);
    let tally = load.tally().clone();
    let started = Instant::now();
    let mut nemesis = nemesis::Nemesis::new(options, tally.clone());
    nemesis.run(cluster).await?;
    let seconds = started.elapsed().as_secs();
    let longest_gap = load.stop().await?;
    drop(ledger);
    writer.close()?;
    let retired_objects = retired(cluster, options).await;

    let contents = read_by_witness(cluster, options).await?;
    let entries = ledger::read(&path)?;
    let found = checker::check(&entries, &contents);
    for violation in found {
        tally.violation(violation);
    }
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::SeqCst);
    Ok(ChaosReport {
        ok: false,
        seed: options.seed,
        seconds,
        cells: options.cells,
        cells_written: contents.values().filter(|contents| !contents.ops.is_empty()).count(),
        acked: count(&tally.acked),
        refused: count(&tally.refused),
        unknown: count(&tally.unknown),
        unknown_present: unknown_present(&entries, &contents),
        reads: count(&tally.reads),
        longest_gap_ms: u64::try_from(longest_gap.as_millis()).unwrap_or(u64::MAX),
        epoch_max: entries.iter().filter_map(|entry| Some(entry.position?.0)).max().unwrap_or(0),
        faults: nemesis.faults_done(),
        self_fences: nemesis.self_fences(),
        ensembles: (1..=options.nodes)
            .map(|number| cluster.log(&format!("n{number}")).matches(ENSEMBLE_LINE).count())
            .sum(),
        retired_objects,
        reasons: reasons(&entries),
        violation_count: count(&tally.violation_count),
        violations: tally.violations(),
        kept: None,
    })
}

/// A node that is just dead or cut off has deleted nothing that can be told.
async fn retired(cluster: &Cluster, options: &ChaosOptions) -> u64 {
    let mut objects = 0;
    for number in 1..=options.nodes {
        let told = cluster.metric(&format!("n{number}"), RETIRED_METRIC, "").await;
        objects += told.unwrap_or_default() as u64;
    }
    objects
}

/// Kills every node and takes their disks away, kills every follower and starts it again on its disk, and reads all
/// databases through a node that was never there.
async fn read_by_witness(
    cluster: &mut Cluster,
    options: &ChaosOptions,
) -> Result<BTreeMap<String, Contents>> {
    for number in 1..=options.nodes {
        let name = format!("n{number}");
        cluster.kill(&name)?;
        cluster.wipe_node(&name)?;
    }
    for number in 1..=options.followers {
        let name = format!("f{number}");
        cluster.kill(&name)?;
        cluster.start_follower(&name).await?;
    }
    cluster.start_node(WITNESS).await?;
    let client = SqlClient::new(CLIENT_TIMEOUT);
    let ingress = cluster.ingress();
    let names = (0..options.cells).map(crate::workload::db_name);
    futures::stream::iter(names)
        .map(|name| {
            let client = client.clone();
            async move {
                let contents = checker::read_contents(&client, ingress, &name).await?;
                anyhow::Ok((name, contents))
            }
        })
        .buffer_unordered(CHECK_LANES)
        .try_collect()
        .await
}

fn unknown_present(entries: &[Entry], contents: &BTreeMap<String, Contents>) -> u64 {
    let unknown = entries.iter().filter(|entry| entry.ending == ledger::Ending::Unknown);
    let present = unknown
        .filter(|entry| contents.get(&entry.db).is_some_and(|contents| contents.ops.contains(&entry.op)));
    present.count() as u64
}

/// Reasons by their first words; numbers are blanked, so that like reasons fall together.
fn reasons(entries: &[Entry]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.ending != ledger::Ending::Acked) {
        let text: String =
            entry.note.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).take(100).collect();
        *counts.entry(format!("{:?}: {text}", entry.ending).to_lowercase()).or_default() += 1;
    }
    counts
}
