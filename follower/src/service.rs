//! One follower's life: take the log directory, read the journal back, serve what recoveries ask for, and only then look
//! for a lease and for sessions; leave when the sessions have moved, or at once when the disk or the name is lost.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use holdfast_bucket::probe::{ProbeVerdict, probe};
use holdfast_bucket::{Bucket, Buckets};
use holdfast_core::lease::FenceCause;
use holdfast_core::log_record::MemberId;
use holdfast_rpc::{ProcessIdentity, Role, identity};
use holdfast_telemetry::program::write_ready;
use holdfast_telemetry::{MeteredBucket, Readiness, metrics};
use tokio::net::TcpListener;
use tokio::sync::{Notify, oneshot, watch};
use tokio_util::task::AbortOnDropHandle;

use crate::config::Config;
use crate::host::Host;
use crate::journal::{BatchStats, Ends, FolderDisk, JournalOptions, Opened};
use crate::lease::{LeaseEnd, LeaseLoop};
use crate::log_dir::LogDir;
use crate::{announce, random};

/// How often a drain looks whether sessions have left.
const DRAIN_LOOK: Duration = Duration::from_millis(50);
/// A drain lasts at least this long: so long an owner may take to see the lease that says so.
const DRAIN_MIN: Duration = Duration::from_millis(500);

/// How a follower ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// In order.
    Clean,
    /// Another process has its name. Exit code 3.
    Fenced(FenceCause),
    /// The disk failed a write or an fsync. Exit code 4; a restart reads it anew.
    Poisoned,
}

impl Exit {
    /// The process's exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Fenced(_) => 3,
            Self::Poisoned => 4,
        }
    }
}

/// Where a ready follower listens.
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

/// A follower that is about to run.
#[derive(Debug)]
pub struct Service;

impl Service {
    /// Runs a follower until `shutdown` resolves and its sessions have moved, or until it must stop. `ready` is told the
    /// addresses once its lease is held; seals and tails are served before.
    ///
    /// # Errors
    /// Whatever keeps it from starting: the text names what was wrong and what to do.
    pub async fn run(
        config: Config,
        ready: Option<oneshot::Sender<Addresses>>,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<Exit> {
        let dir = Arc::new(LogDir::open(&config.data_dir)?);
        let opened = read_journal(&config, &dir).await?;
        let buckets = MeteredBucket::around(config.bucket.open().await?);
        let session = random::session_id();
        let identity = identity::load_or_create(&*buckets.records).await?;
        let identity = ProcessIdentity::new(identity, Role::Follower, config.follower.as_str(), session)?;
        let internal = bind(&config.listen).await?;
        let admin = bind(&config.admin_listen).await?;
        let addresses = Addresses { internal: internal.local_addr()?, admin: admin.local_addr()? };
        let me = MemberId { follower: config.follower.clone(), incarnation: dir.incarnation() };
        let host = Host::start((me, session), Arc::clone(&buckets.records), config.session_bytes_max, opened);
        tracing::info!(
            follower = %config.follower, %session, incarnation = %dir.incarnation(),
            internal = %addresses.internal, admin = %addresses.admin, "serving seals and tails"
        );

        let (stop, stopped) = watch::channel(false);
        let mut server = spawn({
            let (host, identity, stopped) = (Arc::new(host.clone()), identity.clone(), wait(stopped.clone()));
            async move { holdfast_rpc::serve_follower(internal, host, &identity, stopped).await }
        });
        let lease =
            announce::lease(&config, (session, dir.incarnation()), addresses.internal, &host, &buckets)?;
        let held = lease.held();
        let admin = spawn({
            let (host, held) = (host.clone(), held.clone());
            holdfast_telemetry::serve_admin(admin, move || readiness(&host, &held), wait(stopped.clone()))
        });
        let _rotating = spawn(identity::follow(Arc::clone(&buckets.records), identity.clone(), |_| {}));
        let _garbage = spawn({
            let host = host.clone();
            async move { host.collect_garbage().await }
        });
        let life = live(&config, &host, &buckets, (lease, held), (ready, addresses), shutdown);
        let mut ends = host.journal().ends();
        let end = tokio::select! {
            biased;
            ended = ends.wait_for(|ends| *ends != Ends::Running) => {
                if let Ends::Poisoned(error) = &*ended.context("the journal is gone")? {
                    poisoned(&config, error);
                }
                Exit::Poisoned
            }
            end = &mut server => bail!("the internal listener ended by itself: {end:?}"),
            end = life => end?,
        };
        stop.send_replace(true);
        if end == Exit::Clean {
            let _ = tokio::time::timeout(Duration::from_secs(5), server).await;
            host.journal().close();
            if let Ends::Poisoned(error) = &*ends.wait_for(|ends| *ends != Ends::Running).await? {
                poisoned(&config, error);
                return Ok(Exit::Poisoned);
            }
            let _ = tokio::time::timeout(Duration::from_secs(1), admin).await;
            tracing::info!(follower = %config.follower, "stopped");
        }
        Ok(end)
    }
}

/// Ends with the service, however that ends.
fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> AbortOnDropHandle<T> {
    AbortOnDropHandle::new(tokio::spawn(task))
}

fn poisoned(config: &Config, error: &str) {
    metrics().follower_poisoned();
    tracing::error!(
        "POISONED: the disk failed: {error}; follower={} acknowledges nothing any more and stops. What the disk holds is \
         read anew at the restart",
        config.follower
    );
}

/// Holds the lease until it is lost, or until a shutdown has let the sessions go.
async fn live(
    config: &Config,
    host: &Host,
    buckets: &Buckets,
    (lease, mut held): (LeaseLoop, watch::Receiver<bool>),
    (ready, addresses): (Option<oneshot::Sender<Addresses>>, Addresses),
    shutdown: impl Future<Output = ()> + Send,
) -> Result<Exit> {
    prove_fit(buckets).await?;
    let nudge = lease.nudge();
    let (give_up, given_up) = oneshot::channel::<()>();
    let lease = lease.run(async {
        let _ = given_up.await;
    });
    let (mut lease, mut shutdown) = (std::pin::pin!(lease), std::pin::pin!(shutdown));
    tokio::select! {
        biased;
        () = &mut shutdown => return Ok(Exit::Clean),
        end = &mut lease => return Ok(end_of(config, end)),
        held = held.wait_for(|held| *held) => {
            held.context("the lease ended before it was held")?;
        }
    }
    if let Some(path) = &config.ready_file {
        write_ready(path, &addresses.as_json())?;
    }
    if let Some(ready) = ready {
        // Whoever started the follower may not care.
        let _ = ready.send(addresses);
    }
    tracing::info!(follower = %config.follower, "ready");
    tokio::select! {
        biased;
        end = &mut lease => return Ok(end_of(config, end)),
        () = &mut shutdown => {}
    }
    tokio::select! {
        biased;
        end = &mut lease => return Ok(end_of(config, end)),
        () = drain(config, host, &nudge) => {}
    }
    let _ = give_up.send(());
    Ok(end_of(config, lease.await))
}

/// Says that it drains, and waits until nobody appends.
async fn drain(config: &Config, host: &Host, nudge: &Notify) {
    host.drain();
    nudge.notify_one();
    tracing::info!(follower = %config.follower, sessions = host.streams(), "draining");
    let moved = async {
        tokio::time::sleep(DRAIN_MIN.min(config.drain_timeout)).await;
        while host.streams() > 0 {
            tokio::time::sleep(DRAIN_LOOK).await;
        }
    };
    if tokio::time::timeout(config.drain_timeout, moved).await.is_err() {
        tracing::warn!(
            follower = %config.follower, sessions = host.streams(),
            "the drain timed out; these sessions go on with the bucket until they have another follower"
        );
    }
}

fn end_of(config: &Config, end: LeaseEnd) -> Exit {
    match end {
        LeaseEnd::GivenUp => Exit::Clean,
        LeaseEnd::Lost(cause) => {
            tracing::error!("SELF-FENCE: {} follower={}", cause.name(), config.follower);
            Exit::Fenced(cause)
        }
    }
}

async fn wait(mut stopped: watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

async fn bind(address: &str) -> Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on `{address}`"))
}

async fn read_journal(config: &Config, dir: &Arc<LogDir>) -> Result<Opened> {
    let (path, incarnation) = (dir.journal(), dir.incarnation());
    let dir = Arc::clone(dir);
    let options = JournalOptions {
        segment_len: config.segment_bytes,
        queue_len: usize::try_from(config.queue_bytes_max).context("the queue is larger than memory")?,
        on_batch: Box::new(move |BatchStats { entries, bytes, fsync }| {
            // The directory stays locked for as long as the journal may write.
            let _ = &dir;
            metrics().follower_batch(entries, bytes, fsync);
        }),
    };
    let read = move || -> Result<Opened> {
        let disk = FolderDisk::open(&path).with_context(|| format!("cannot use `{}`", path.display()))?;
        Ok(Opened::read(Arc::new(disk), incarnation, options)?)
    };
    let opened = tokio::task::spawn_blocking(read).await??;
    if opened.is_damaged {
        tracing::error!(
            "part of the journal is gone: logs that may have lost frames are no complete witness any more, for ever"
        );
    }
    tracing::info!(logs = opened.logs.len(), "the journal is read");
    Ok(opened)
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

fn readiness(host: &Host, held: &watch::Receiver<bool>) -> Readiness {
    if host.is_draining() {
        Readiness::NotReady("draining".into())
    } else if !*held.borrow() {
        Readiness::NotReady("no lease yet; seals and tails are served".into())
    } else if !host.journal().has_room() {
        Readiness::NotReady("the disk is full".into())
    } else {
        Readiness::Ready
    }
}
