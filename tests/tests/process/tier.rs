//! What scenarios with followers share: fleets, the wait for an ensemble, a client that never stops writing, and the
//! test as a process of the fleet.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use holdfast_records::{NodeLogRecord, NodeLogState};
use holdfast_rpc::{FollowerPeer, ProcessIdentity, Role};
use holdfast_tests::client::{Outcome, SqlClient};
use holdfast_tests::cluster::{Cluster, ClusterOptions};
use holdfast_tests::fault_proxy::{Seen, Stage};
use holdfast_tests::wait;
use holdfast_types::SessionId;
use http::Method;

use crate::support::{SOON, TTL, insert};

/// Whether writes are proved by followers: 0 or 1.
pub(crate) const BY_ENSEMBLE: &str = "holdfast_cellnode_log_by_ensemble_count";
/// What only followers hold.
pub(crate) const RETAINED: &str = "holdfast_cellnode_log_retained_bytes";
/// Uploads do not come before the scenario is over.
pub(crate) const NO_PACE: [&str; 2] = ["--upload-pace", "10min"];

/// One ingress, nodes and followers.
pub(crate) async fn tier(nodes: usize, followers: usize, node_args: &[&str]) -> Cluster {
    let node_args = node_args.iter().map(|arg| (*arg).to_owned()).collect();
    let options = ClusterOptions { nodes, followers, node_args, lease_ttl: TTL, ..ClusterOptions::default() };
    Cluster::start(options).await.unwrap()
}

/// The names in the newest ensemble.
pub(crate) fn names(log: &NodeLogRecord) -> Vec<String> {
    let mut names: Vec<String> = log.ensemble.members.iter().map(|m| m.follower.to_string()).collect();
    names.sort();
    names
}

/// Waits until a node's writes are proved by exactly these followers.
pub(crate) async fn wait_ensemble(cluster: &Cluster, node: &str, members: &[&str]) -> NodeLogRecord {
    let what = format!("`{node}` to have the ensemble {members:?}");
    let waited = wait::until(&what, SOON, async || {
        let log = cluster.present_log(node).await?;
        let is_there = log.active && log.state == NodeLogState::Open && names(&log) == members;
        ensure!(is_there, "the record is {log:?}");
        ensure!(cluster.metric(node, BY_ENSEMBLE, "").await? == 1.0, "writes are proved by the bucket");
        Ok(log)
    });
    let log = waited.await;
    log.unwrap_or_else(|error| panic!("{error:#}\n{}", cluster.process(node).unwrap().log_tail()))
}

/// Waits until a node's writes are proved by the bucket.
pub(crate) async fn wait_bucket_proofs(cluster: &Cluster, node: &str) {
    wait::until("proofs by the bucket", SOON, async || {
        ensure!(cluster.metric(node, BY_ENSEMBLE, "").await? == 0.0, "writes are proved by followers");
        Ok(())
    })
    .await
    .unwrap();
}

/// Waits until nothing of a node is on followers alone.
pub(crate) async fn wait_covered(cluster: &Cluster, node: &str) {
    wait::until("everything to be in the bucket", SOON, async || {
        let retained = cluster.metric(node, RETAINED, "").await?;
        ensure!(retained == 0.0, "{retained} bytes are retained");
        Ok(())
    })
    .await
    .unwrap();
}

/// Waits until a lease is over for everybody.
pub(crate) async fn wait_lease_over(cluster: &Cluster, node: &str, skew: Duration) -> Result<()> {
    wait::until("the end of a lease", SOON, async || {
        let lease = cluster.lease(node).await?.context("no lease")?;
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        ensure!(Duration::from_millis(lease.expires_ms.get()) + skew < now, "it is live");
        Ok(())
    })
    .await
}

/// Uploads of level 0 by a program that the store has answered since an instant.
pub(crate) fn uploads_since(cluster: &Cluster, name: &str, since: Instant) -> usize {
    let is_upload = |seen: &Seen| {
        seen.method == Method::PUT
            && seen.target.contains(".ltx")
            && seen.at >= since
            && matches!(seen.stage, Stage::Answered(200))
    };
    cluster.faults(name).trace().iter().filter(|seen| is_upload(seen)).count()
}

/// The test as a process of the fleet.
pub(crate) async fn identity(
    cluster: &Cluster,
    role: Role,
    name: &str,
    session: SessionId,
) -> ProcessIdentity {
    ProcessIdentity::new(cluster.fleet_identity().await.unwrap(), role, name, session).unwrap()
}

/// Where a follower listens now.
pub(crate) async fn follower_peer(cluster: &Cluster, follower: &str) -> FollowerPeer {
    let lease = cluster.follower_lease(follower).await.unwrap().expect("a follower has a lease");
    FollowerPeer { follower: lease.follower, session: lease.session, address: lease.address }
}

/// What a steady client saw.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) acked: Vec<String>,
    /// Rows that certainly were not written, and why.
    pub(crate) refused: Vec<(String, String)>,
    /// Rows of which nobody knows, and why.
    pub(crate) unknown: Vec<(String, String)>,
    acks: Vec<Instant>,
}

impl Written {
    /// The longest time without an acknowledgement that overlaps a span.
    pub(crate) fn longest_gap(&self, from: Instant, to: Instant) -> Duration {
        let pairs = self.acks.windows(2).filter(|pair| pair[1] > from && pair[0] < to);
        pairs.map(|pair| pair[1] - pair[0]).max().unwrap_or_default()
    }

    /// Panics where a row failed.
    pub(crate) fn must_be_without_failure(&self) {
        let Self { refused, unknown, .. } = self;
        assert!(refused.is_empty() && unknown.is_empty(), "refused: {refused:?}, unknown: {unknown:?}");
    }

    /// Panics where what a database holds is not what was acknowledged, but for rows that nobody knows of.
    pub(crate) fn must_be_in(&self, found: &[String]) {
        let is_unknown = |id: &&String| self.unknown.iter().any(|(unknown, _)| unknown == *id);
        let known: Vec<&String> = found.iter().filter(|id| !is_unknown(id)).collect();
        let lost: Vec<&String> = self.acked.iter().filter(|id| !known.contains(id)).collect();
        assert!(lost.is_empty(), "lost: {lost:?}");
        assert_eq!(
            known,
            self.acked.iter().collect::<Vec<_>>(),
            "in order, once, and nothing that was refused"
        );
    }
}

/// A client that writes one row after the other to one database.
pub(crate) struct Steady {
    stop: Arc<AtomicBool>,
    acks: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<Written>,
}

impl Steady {
    pub(crate) fn start(client: &SqlClient, ingress: SocketAddr, db: &str) -> Self {
        Self::paced(client, ingress, db, Duration::ZERO)
    }

    /// With a pause after each row.
    pub(crate) fn paced(client: &SqlClient, ingress: SocketAddr, db: &str, pause: Duration) -> Self {
        let (stop, acks) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let switches = (stop.clone(), acks.clone());
        let task = tokio::spawn(write(client.clone(), ingress, db.to_owned(), pause, switches));
        Self { stop, acks, task }
    }

    /// Waits for so many further acknowledgements.
    pub(crate) async fn more(&self, count: usize) {
        let target = self.acks.load(Ordering::SeqCst) + count;
        wait::until("further acknowledgements", SOON, async || {
            let acks = self.acks.load(Ordering::SeqCst);
            ensure!(acks >= target, "{acks} of {target}");
            Ok(())
        })
        .await
        .unwrap();
    }

    pub(crate) async fn stop(self) -> Written {
        self.stop.store(true, Ordering::SeqCst);
        self.task.await.unwrap()
    }
}

async fn write(
    client: SqlClient,
    ingress: SocketAddr,
    db: String,
    pause: Duration,
    (stop, acks): (Arc<AtomicBool>, Arc<AtomicUsize>),
) -> Written {
    let mut written = Written::default();
    let mut number = 0_u64;
    while !stop.load(Ordering::SeqCst) {
        let id = number.to_string();
        number += 1;
        match insert(&client, ingress, &db, &id).await {
            Outcome::Acked(..) => {
                written.acked.push(id);
                written.acks.push(Instant::now());
                acks.fetch_add(1, Ordering::SeqCst);
            }
            Outcome::Refused(reason) => written.refused.push((id, reason)),
            Outcome::Unknown(reason) => written.unknown.push((id, reason)),
        }
        tokio::time::sleep(pause).await;
    }
    written
}
