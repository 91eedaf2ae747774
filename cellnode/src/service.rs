//! One node's life: open the stores, prove them fit, take the data directory and the lease, serve, and leave in order or
//! at once.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use holdfast_bucket::probe::{ProbeVerdict, probe};
use holdfast_bucket::{Bucket, Buckets};
use holdfast_core::gate::GateEvent;
use holdfast_core::lease::{FenceCause, LeaseTiming};
use holdfast_deploy::{Deployments, WatchOptions};
use holdfast_js::Limits;
use holdfast_outbound::{Outbound, OutboundOptions};
use holdfast_r2::R2;
use holdfast_records::{NodeLease, NodeLoad, Record};
use holdfast_routing::{Router, RouterOptions, WAKE_SHARDS, wake_format};
use holdfast_rpc::{CellClient, PROTOCOL, ProcessIdentity, Role, identity};
use holdfast_telemetry::program::write_ready;
use holdfast_telemetry::{MeteredBucket, Readiness, metrics};
use holdfast_types::{CellName, HostId, Millis, WriteId};
use tokio::net::TcpListener;
use tokio::sync::{Notify, oneshot, watch};

use crate::config::{Config, Durability};
use crate::data_dir::DataDir;
use crate::drain::{Drained, drain};
use crate::host::Host;
use crate::lease::{Describe, LeaseEnd, LeaseLoop};
use crate::node::Node;
use crate::recovery::keep_reviewing;
use crate::release::wake_due;
use crate::retire::keep_retiring;
use crate::runtime::{Applications, SocketRoom};
use crate::shed::keep_room;
use crate::{clock, random};

/// How often gates look at their deadlines: the precision of a proof's time-out, and well within the 100 ms in which a
/// lost lease ends every wait.
const TICK: Duration = Duration::from_millis(50);
/// A sleeping cell is woken so long before its alarm is due.
const WAKE_LEAD_MS: i64 = 1_000;
/// Longest wait for the last write of the log record.
const LOG_CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// So many of the cells that a drain leaves are named.
const LEFT_NAMED: usize = 20;

/// How a node ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// In order.
    Clean,
    /// It fenced itself. Exit code 3; a supervisor restarts it after a lease lifetime.
    Fenced(FenceCause),
}

impl Exit {
    /// The process's exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Fenced(_) => 3,
        }
    }
}

/// Where a ready node listens.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// Internal gRPC.
    pub internal: SocketAddr,
    /// Metrics and health.
    pub admin: SocketAddr,
}

impl Addresses {
    /// What the ready file says.
    fn as_json(self) -> serde_json::Value {
        serde_json::json!({ "internal": self.internal.to_string(), "admin": self.admin.to_string() })
    }
}

/// A node that is about to run.
#[derive(Debug)]
pub struct Service;

impl Service {
    /// Runs a node until `shutdown` resolves, somebody asks it to drain, or it must fence itself. `ready` is told the
    /// addresses once the node serves.
    ///
    /// # Errors
    /// Whatever keeps the node from starting: the text names what was wrong and what to do.
    pub async fn run(
        config: Config,
        ready: Option<oneshot::Sender<Addresses>>,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<Exit> {
        let buckets = MeteredBucket::around(config.bucket.open().await?);
        prove_fit(&buckets).await?;
        wake_format(&*buckets.records, WAKE_SHARDS, random::write_id()).await?;
        let data_dir = DataDir::open(&config.data_dir)?;
        let session = random::session_id();
        let identity = identity::load_or_create(&*buckets.records).await?;
        let identity = ProcessIdentity::new(identity, Role::Cellnode, config.node.as_str(), session)?;
        let internal = bind(&config.listen).await?;
        let admin = bind(&config.admin_listen).await?;
        let addresses = Addresses { internal: internal.local_addr()?, admin: admin.local_addr()? };
        let host = match &config.host {
            Some(host) => host.clone(),
            None => this_host()?,
        };
        let deployments = Deployments::new(Arc::clone(&buckets.records), Arc::clone(&buckets.bulk));
        let (running, following) = deployments.follow(WatchOptions::default()).await;
        let outbound = outbound(&config, &buckets, &identity)?;
        let mut deployed = running.clone();
        let (cron_outbound, cron_running) = (outbound.clone(), running.clone());
        let idle_ms = clock::millis(config.object_idle);
        let limits = Limits::default();
        let sockets = SocketRoom::new(config.sockets_memory);
        let classes = Arc::new(Applications { running, outbound, limits, sockets, idle_ms });
        let node = Node::new(config, (session, identity.clone(), host.clone()), buckets, data_dir, classes);
        tracing::info!(node = %node.name, %session, internal = %addresses.internal, admin = %addresses.admin, "starting");

        let lease = lease_loop(&node, addresses.internal, host);
        let (mut held, nudge) = (lease.held(), lease.nudge());
        let (give_up, given_up) = oneshot::channel::<()>();
        let mut lease = tokio::spawn(lease.run(async {
            let _ = given_up.await;
        }));
        tokio::pin!(shutdown);
        tokio::select! {
            biased;
            () = &mut shutdown => return Ok(Exit::Clean),
            end = &mut lease => return end_of(&node, end?),
            result = held.wait_for(|held| *held) => {
                result.context("the lease ended before it was held")?;
            }
        }

        let drain_asked = Arc::new(Notify::new());
        let host = Arc::new(Host::new(Arc::clone(&node), Arc::clone(&drain_asked)));
        let (stop, stopped) = watch::channel(false);
        let mut server = tokio::spawn({
            let (identity, stopped) = (identity.clone(), wait(stopped.clone()));
            async move { holdfast_rpc::serve(internal, host, &identity, stopped).await }
        });
        let admin = tokio::spawn({
            let node = Arc::clone(&node);
            holdfast_telemetry::serve_admin(admin, move || readiness(&node), wait(stopped.clone()))
        });
        let mut ticker = tokio::spawn(tick(Arc::clone(&node)));
        let mut log = tokio::spawn(keep_log(Arc::clone(&node)));
        let reviews = tokio::spawn(keep_reviewing(node.recoveries.clone()));
        let retiring = tokio::spawn(keep_retiring(Arc::clone(&node)));
        let room = tokio::spawn(keep_room(Arc::clone(&node), TICK));
        let following = tokio::spawn(following);
        let rotating =
            tokio::spawn(identity::follow(Arc::clone(&node.buckets.records), identity.clone(), |_| {}));
        let cron = tokio::spawn(crate::cron::tell(cron_outbound, cron_running));
        let telling = tokio::spawn({
            let node = Arc::clone(&node);
            async move {
                while deployed.changed().await.is_ok() {
                    node.cells.residents().iter().for_each(crate::cells::Resident::tell_deployed);
                }
            }
        });
        if let Some(path) = &node.config.ready_file {
            write_ready(path, &addresses.as_json())?;
        }
        if let Some(ready) = ready {
            // Whoever started the node may not care.
            let _ = ready.send(addresses);
        }
        tracing::info!(node = %node.name, "ready");

        let end = tokio::select! {
            biased;
            end = &mut lease => end_of(&node, end?)?,
            // A node that holds its lease and serves nothing would be worse than none.
            end = &mut server => bail!("the internal listener ended by itself: {end:?}"),
            end = &mut ticker => bail!("the clock of the gates ended by itself: {end:?}"),
            _ = &mut log => log_taken(&node),
            () = async {
                tokio::select! {
                    () = &mut shutdown => {}
                    () = drain_asked.notified() => {}
                }
            } => leave(&node, &nudge, (&mut lease, &mut log), give_up).await?,
        };
        ticker.abort();
        log.abort();
        node.log.hang_up();
        reviews.abort();
        retiring.abort();
        room.abort();
        following.abort();
        telling.abort();
        cron.abort();
        rotating.abort();
        stop.send_replace(true);
        if end == Exit::Clean {
            let _ = tokio::time::timeout(Duration::from_secs(5), server).await;
            let _ = tokio::time::timeout(Duration::from_secs(1), admin).await;
        }
        Ok(end)
    }
}

async fn wait(mut stopped: watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

async fn bind(address: &str) -> Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on `{address}`"))
}

/// Refuses to run on a store that does not do what safety needs (design 3.1).
async fn prove_fit(buckets: &Buckets) -> Result<()> {
    let mut stores: Vec<&dyn Bucket> = vec![&*buckets.records];
    if buckets.leases.url() != buckets.records.url() {
        stores.push(&*buckets.leases);
    }
    for store in stores {
        let report = probe(store).await;
        match report.verdict {
            ProbeVerdict::Fit => tracing::debug!(bucket = store.url(), "the store passed its probe"),
            ProbeVerdict::Unclear { .. } => tracing::warn!(
                "{}; starting anyway, because an outage that passes is no reason not to",
                report.describe()
            ),
            ProbeVerdict::Unfit { .. } => bail!("{}", report.describe()),
        }
    }
    Ok(())
}

/// How the node's objects reach servers and other objects.
fn outbound(config: &Config, buckets: &Buckets, identity: &ProcessIdentity) -> Result<Outbound> {
    let options =
        RouterOptions { clock_skew_max_ms: clock::millis(config.max_clock_skew), ..RouterOptions::default() };
    let (records, leases) = (Arc::clone(&buckets.records), Arc::clone(&buckets.leases));
    let router = Router::with_lease_bucket(records, leases, CellClient::new(identity.clone()), options);
    let r2 = Some(R2::new(Arc::clone(&buckets.bulk)));
    let options = OutboundOptions { allow: config.allow_outbound.clone(), r2, ..OutboundOptions::default() };
    Ok(Outbound::new(router, options)?)
}

fn lease_loop(node: &Arc<Node>, internal: SocketAddr, host: HostId) -> LeaseLoop {
    let config = &node.config;
    let timing = LeaseTiming::with_ttl(clock::millis(config.lease_ttl), clock::millis(config.max_clock_skew));
    let address = config.advertise.clone().unwrap_or_else(|| internal.to_string());
    let started_ms = clock::wall();
    let describe: Describe = {
        let (name, session, incarnation) = (node.name.clone(), node.session, node.data_dir.incarnation());
        let (zone, weight) = (config.zone.clone(), config.weight);
        let node = Arc::downgrade(node);
        Box::new(move |write_id: WriteId, expires_ms: Millis| {
            let node = node.upgrade();
            let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
            NodeLease {
                version: NodeLease::VERSION,
                write_id,
                node: name.clone(),
                session,
                incarnation,
                expires_ms,
                started_ms,
                address: address.clone(),
                host: host.clone(),
                zone: zone.clone(),
                protocol: PROTOCOL,
                load: NodeLoad {
                    weight,
                    cells: node.as_ref().map_or(0, |node| node.owned()),
                    requests: node.as_ref().map_or(0, |node| count(node.requests())),
                },
                draining: node.as_ref().is_none_or(|node| node.is_draining()),
                tombstone_ms: None,
            }
        })
    };
    let bucket = Arc::clone(&node.buckets.leases);
    let incarnation = node.data_dir.incarnation();
    LeaseLoop::new(
        bucket,
        node.name.clone(),
        (timing, node.session, incarnation),
        Arc::clone(&node.authority),
        describe,
    )
}

/// The machine's identity, or its host name where it has none.
fn this_host() -> Result<HostId> {
    let read = |path| std::fs::read_to_string(path).ok().map(|text: String| text.trim().to_owned());
    let candidates = [read("/etc/machine-id"), read("/proc/sys/kernel/hostname")];
    candidates
        .into_iter()
        .flatten()
        .find_map(|text| HostId::parse(&text).ok())
        .context("this machine has neither a machine id nor a usable host name; name it with --host")
}

fn readiness(node: &Node) -> Readiness {
    if node.is_draining() {
        Readiness::NotReady("draining".into())
    } else if node.authority.is_live() {
        Readiness::Ready
    } else {
        Readiness::NotReady("the lease is not held".into())
    }
}

async fn tick(node: Arc<Node>) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if node.waiting.load(Ordering::Relaxed) > 0 {
            for resident in node.cells.gated() {
                resident.tick();
            }
        }
        for resident in node.due_uploads.take(clock::monotonic()) {
            resident.on(GateEvent::Tick);
        }
        node.cells.forget_old_failures();
        node.workers.tell_stalled(clock::monotonic());
        node.memory.measure();
        if !node.is_draining() {
            wake_due(&node, clock::wall_time_in(WAKE_LEAD_MS));
        }
    }
}

/// Leaves in order: no new ownership, every cell given up, then the lease.
async fn leave(
    node: &Arc<Node>,
    nudge: &Notify,
    (lease, log): (&mut tokio::task::JoinHandle<LeaseEnd>, &mut tokio::task::JoinHandle<()>),
    give_up: oneshot::Sender<()>,
) -> Result<Exit> {
    node.begin_draining();
    nudge.notify_one();
    tracing::info!(node = %node.name, cells = node.cells.held(), "draining");
    let began = Instant::now();
    let Drained { taken, released, left } = tokio::select! {
        biased;
        end = &mut *lease => return end_of(node, end?),
        _ = log => return Ok(log_taken(node)),
        drained = drain_and_close(node) => drained,
    };
    tracing::info!(node = %node.name, taken, released, left = left.len(), elapsed = ?began.elapsed(), "drained");
    if !left.is_empty() {
        let names: Vec<&str> = left.iter().take(LEFT_NAMED).map(CellName::as_str).collect();
        tracing::warn!(
            node = %node.name, left = left.len(), cells = names.join(" "),
            "the drain timed out: these cells are still owned; whoever takes them over recovers the log first"
        );
    }
    let _ = give_up.send(());
    let end = lease.await?;
    tracing::info!(node = %node.name, "stopped");
    end_of(node, end)
}

/// Gives every cell up, then closes the log.
async fn drain_and_close(node: &Arc<Node>) -> Drained {
    let drained = drain(node, node.config.drain_timeout).await;
    // With cells left the log stays open: whoever takes them over recovers it.
    if drained.left.is_empty() && tokio::time::timeout(LOG_CLOSE_TIMEOUT, node.log.close()).await.is_err() {
        tracing::warn!(node = %node.name, "the node log could not be closed in order; it will be recovered");
    }
    drained
}

/// Keeps the node log, until somebody recovers this session, which therefore counts as dead.
async fn keep_log(node: Arc<Node>) {
    match node.config.durability {
        Durability::Bucket => std::future::pending().await,
        Durability::Ensemble => Arc::clone(&node.log).run(Arc::downgrade(&node)).await,
    }
}

fn log_taken(node: &Arc<Node>) -> Exit {
    fence(node, FenceCause::LogTaken);
    Exit::Fenced(FenceCause::LogTaken)
}

fn end_of(node: &Arc<Node>, end: LeaseEnd) -> Result<Exit> {
    match end {
        LeaseEnd::GivenUp => Ok(Exit::Clean),
        LeaseEnd::Fenced(cause) => {
            fence(node, cause);
            Ok(Exit::Fenced(cause))
        }
    }
}

/// Stops at once: every incomplete request is answered "outcome unknown", nothing more is written.
fn fence(node: &Arc<Node>, cause: FenceCause) {
    node.authority.end();
    for resident in node.cells.gated() {
        resident.on(GateEvent::Fenced);
    }
    metrics().self_fence(cause.name());
    tracing::error!("SELF-FENCE: {} node={} session={}", cause.name(), node.name, node.session);
}
