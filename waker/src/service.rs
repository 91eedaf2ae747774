//! One waker's life: open the bucket, prove it fit, know the index's format, take an identity, work, and give its shards up.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use holdfast_bucket::Bucket;
use holdfast_bucket::probe::{ProbeVerdict, probe};
use holdfast_core::waker::Waker;
use holdfast_routing::{Router, RouterOptions, wake_format};
use holdfast_rpc::{CellClient, ProcessIdentity, Role, identity};
use holdfast_telemetry::program::write_ready;
use holdfast_telemetry::{MeteredBucket, Readiness};
use holdfast_types::NodeName;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio_util::task::AbortOnDropHandle;

use crate::balance::Balance;
use crate::config::Config;
use crate::index::Index;
use crate::random;
use crate::rounds::{Hints, Rounds};
use crate::sessions::Sessions;
use crate::shards::Shards;
use crate::sweep::Sweep;

/// Routes remembered: each takes a few hundred bytes, and a cell is asked again within minutes at most.
const ROUTES_MAX: usize = 20_000;
/// Time to give the shards up. Whoever comes next waits for the leases' ends otherwise.
const GIVE_UP_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for the admin listener to end: scrapes are short.
const ADMIN_END: Duration = Duration::from_secs(1);

/// How a waker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// In order.
    Clean,
}

/// Where a waker listens.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// Metrics and health.
    pub admin: SocketAddr,
}

impl Addresses {
    /// What the ready file says.
    fn as_json(self) -> serde_json::Value {
        serde_json::json!({ "admin": self.admin.to_string() })
    }
}

/// A waker that is about to run.
#[derive(Debug)]
pub struct Service;

impl Service {
    /// Runs a waker until `shutdown` resolves. `ready` is told the address once it works.
    ///
    /// # Errors
    /// Whatever keeps it from starting: the text names what was wrong and what to do.
    pub async fn run(
        config: Config,
        ready: Option<oneshot::Sender<Addresses>>,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<Exit> {
        let admin = TcpListener::bind(&config.admin_listen)
            .await
            .with_context(|| format!("cannot listen on `{}`", config.admin_listen))?;
        let addresses = Addresses { admin: admin.local_addr()? };
        let buckets = MeteredBucket::around(config.bucket.open().await?);
        prove_fit(&*buckets.records).await?;
        let format = wake_format(&*buckets.records, config.shards, random::write_id()).await?;
        if format.shards != config.shards {
            tracing::info!(shards = format.shards, "the alarm index has its own number of shards, for ever");
        }
        let fleet = identity::load_or_create(&*buckets.records).await?;
        let session = random::session_id();
        let identity = ProcessIdentity::new(fleet, Role::Waker, config.name.as_str(), session)?;

        let is_draining = Arc::new(AtomicBool::new(false));
        let (stop_admin, admin_stopped) = oneshot::channel::<()>();
        let admin = tokio::spawn({
            let is_draining = Arc::clone(&is_draining);
            holdfast_telemetry::serve_admin(admin, move || readiness(&is_draining), async {
                let _ = admin_stopped.await;
            })
        });
        let (held, shards_held) = watch::channel(BTreeSet::new());
        let (live, sessions_live) = watch::channel(BTreeSet::new());
        let (give_up, given_up) = oneshot::channel();
        let shards = Shards {
            records: Arc::clone(&buckets.records),
            waker: config.name.clone(),
            session,
            shards: format.shards,
            tick: config.tick,
            ttl_ms: config.shard_ttl_ms(),
            held,
        };
        let ends = shards.begin().await;
        let mut shards = AbortOnDropHandle::new(tokio::spawn(shards.run(ends, given_up)));
        let sessions = Sessions {
            leases: Arc::clone(&buckets.leases),
            tick: config.tick,
            clock_skew_max_ms: config.clock_skew_max_ms(),
            live,
        };
        let _sessions = AbortOnDropHandle::new(tokio::spawn(sessions.run()));
        let options = RouterOptions {
            clock_skew_max_ms: config.clock_skew_max_ms(),
            routes_max: ROUTES_MAX,
            ..RouterOptions::default()
        };
        let rotating = identity::follow(Arc::clone(&buckets.records), identity.clone(), |_| {});
        let _rotating = AbortOnDropHandle::new(tokio::spawn(rotating));
        let client = CellClient::new(identity);
        let (end_sweep, sweep_ended) = oneshot::channel();
        let (mine, is_mine) = watch::channel(false);
        let sweep = Sweep {
            name: NodeName::parse(config.name.as_str()).expect("names of all programs are alike"),
            session,
            interval: config.sweep,
            records: Arc::clone(&buckets.records),
            leases: Arc::clone(&buckets.leases),
            client: client.clone(),
            clock_skew_max_ms: config.clock_skew_max_ms(),
            forget_after_ms: config.forget_after_ms(),
            mine,
        };
        let mut sweep = AbortOnDropHandle::new(tokio::spawn(sweep.run(sweep_ended)));
        let balance = Balance {
            interval: config.tick,
            records: Arc::clone(&buckets.records),
            leases: Arc::clone(&buckets.leases),
            client: client.clone(),
            mine: is_mine,
        };
        let _balance = AbortOnDropHandle::new(tokio::spawn(balance.run()));
        let (records, leases) = (Arc::clone(&buckets.records), Arc::clone(&buckets.leases));
        let router = Router::with_lease_bucket(records, leases, client, options);
        let rounds = Rounds {
            name: config.name.clone(),
            machine: Waker::new(format.shards, config.hints_max),
            index: Index::new(Arc::clone(&buckets.records)),
            hints: Hints { router, timeout: config.hint_timeout },
            tick: config.tick,
            held: shards_held,
            live: sessions_live,
        };
        if let Some(path) = &config.ready_file {
            write_ready(path, &addresses.as_json())?;
        }
        if let Some(ready) = ready {
            // Whoever started the waker may not care.
            let _ = ready.send(addresses);
        }
        tracing::info!(waker = %config.name, %session, admin = %addresses.admin, "ready");

        tokio::select! {
            biased;
            () = shutdown => {}
            end = rounds.run() => {
                end?;
                bail!("the waker's loop ended by itself");
            }
        }
        is_draining.store(true, Ordering::Release);
        tracing::info!(waker = %config.name, "draining");
        let _ = (give_up.send(()), end_sweep.send(()));
        let given_up = async { tokio::join!(&mut shards, &mut sweep) };
        if tokio::time::timeout(GIVE_UP_TIMEOUT, given_up).await.is_err() {
            tracing::warn!(waker = %config.name, "not all leases could be given up; they end by themselves");
        }
        drop(stop_admin);
        // A scrape that hangs is no reason to stay.
        let _ = tokio::time::timeout(ADMIN_END, admin).await;
        tracing::info!(waker = %config.name, "stopped");
        Ok(Exit::Clean)
    }
}

fn readiness(is_draining: &AtomicBool) -> Readiness {
    if is_draining.load(Ordering::Acquire) {
        Readiness::NotReady("draining".into())
    } else {
        Readiness::Ready
    }
}

/// Refuses to run on a store that does not do what safety needs (design 3.1).
async fn prove_fit(bucket: &dyn Bucket) -> Result<()> {
    let report = probe(bucket).await;
    match report.verdict {
        ProbeVerdict::Fit => tracing::debug!(bucket = bucket.url(), "the store passed its probe"),
        ProbeVerdict::Unclear { .. } => {
            tracing::warn!("{}; starting anyway, since an outage may pass", report.describe());
        }
        ProbeVerdict::Unfit { .. } => bail!("{}", report.describe()),
    }
    Ok(())
}
