//! One ingress's life: open the bucket, prove it fit, take an identity, serve, and leave in order.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use holdfast_bucket::probe::{ProbeVerdict, probe};
use holdfast_bucket::{Bucket, Buckets};
use holdfast_deploy::{Deployments, WatchOptions};
use holdfast_js::Limits;
use holdfast_outbound::{Outbound, OutboundOptions};
use holdfast_r2::R2;
use holdfast_routing::{Router, RouterOptions};
use holdfast_rpc::tokens::TokenVerifier;
use holdfast_rpc::{CellClient, ProcessIdentity, Role, identity};
use holdfast_telemetry::Readiness;
use holdfast_telemetry::program::write_ready;
use holdfast_types::SessionId;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinHandle;

use crate::auth::{Auth, AuthMode, check_listener};
use crate::edge::Edge;
use crate::listen::Listener;
use crate::socket::Sockets;
use crate::worker::{Worker, WorkerOptions};
use crate::{Config, tls};

/// How long clients have to answer the close of their WebSockets at the end.
const SOCKETS_END: Duration = Duration::from_secs(5);
/// Time for the admin listener to end: scrapes are short.
const ADMIN_END: Duration = Duration::from_secs(1);

/// What `waitUntil` may take once an answer is out, as on Cloudflare.
const AFTERWARDS: Duration = Duration::from_secs(30);
/// Events under way on one thread of the Worker; beyond it 503.
const EVENTS_MAX: usize = 1_024;

/// How an ingress ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// In order.
    Clean,
}

/// Where a ready ingress listens.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// HTTP for everyone.
    pub public: SocketAddr,
    /// Metrics and health.
    pub admin: SocketAddr,
}

impl Addresses {
    /// What the ready file says.
    fn as_json(self) -> serde_json::Value {
        serde_json::json!({ "public": self.public.to_string(), "admin": self.admin.to_string() })
    }
}

/// An ingress that is about to run.
#[derive(Debug)]
pub struct Service;

impl Service {
    /// Runs an ingress until `shutdown` resolves and what is in flight is answered. `ready` is told the addresses once
    /// it listens.
    ///
    /// # Errors
    /// Whatever keeps it from starting: the text names what was wrong and what to do.
    pub async fn run(
        config: Config,
        ready: Option<oneshot::Sender<Addresses>>,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<Exit> {
        let tcp = bind(&config.listen).await?;
        let admin = bind(&config.admin_listen).await?;
        let addresses = Addresses { public: tcp.local_addr()?, admin: admin.local_addr()? };
        check_listener(config.auth, addresses.public)?;
        let tls = match (&config.tls_cert, &config.tls_key) {
            (Some(cert), Some(key)) => Some(tls::acceptor(cert, key)?),
            _ => None,
        };
        let buckets = config.bucket.open().await?;
        prove_fit(&*buckets.records).await?;
        let is_draining = Arc::new(AtomicBool::new(false));
        let (edge, rotating) = edge(&config, &buckets, &is_draining).await?;
        let (edge, rotating) = (Arc::new(edge), tokio::spawn(rotating));
        let worker = edge.worker.clone();
        let following = follow(&buckets, &worker).await;

        let (stop_admin, admin_stopped) = oneshot::channel::<()>();
        let admin = tokio::spawn({
            let is_draining = Arc::clone(&is_draining);
            holdfast_telemetry::serve_admin(admin, move || readiness(&is_draining), async {
                let _ = admin_stopped.await;
            })
        });
        if let Some(path) = &config.ready_file {
            write_ready(path, &addresses.as_json())?;
        }
        if let Some(ready) = ready {
            // Whoever started the ingress may not care.
            let _ = ready.send(addresses);
        }
        tracing::info!(name = %config.name, public = %addresses.public, admin = %addresses.admin, "ready");

        let drain_began = OnceLock::new();
        let ending = Arc::clone(&edge);
        let shutdown = async {
            shutdown.await;
            let _ = drain_began.set(Instant::now());
            is_draining.store(true, Ordering::Release);
            ending.sockets.begin_close();
            tracing::info!(name = %config.name, "draining");
        };
        let Config { header_max, connections_max, drain_delay, drain_timeout, .. } = config;
        Listener { tcp, tls, header_max, connections_max, drain_delay, drain_timeout }
            .run(Arc::clone(&edge), shutdown)
            .await;
        edge.sockets.closed(SOCKETS_END).await;
        // What answered events still wait for gets what is left of the drain's time.
        let spent = drain_began.get().map_or(Duration::ZERO, Instant::elapsed);
        if tokio::time::timeout(drain_timeout.saturating_sub(spent), worker.idle()).await.is_err() {
            tracing::warn!("what the application gave to `waitUntil` did not end in time and is cut off");
        }
        following.abort();
        rotating.abort();
        drop(stop_admin);
        // A scrape that hangs is no reason to stay.
        let _ = tokio::time::timeout(ADMIN_END, admin).await;
        tracing::info!(name = %config.name, "stopped");
        Ok(Exit::Clean)
    }
}

async fn bind(address: &str) -> Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on `{address}`"))
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

/// Runs what is deployed, from here on. What runs already does so when this returns, unless the bucket is slow.
async fn follow(buckets: &Buckets, worker: &Worker) -> JoinHandle<()> {
    let deployments = Deployments::new(Arc::clone(&buckets.records), Arc::clone(&buckets.bulk));
    let (mut running, work) = deployments.follow(WatchOptions::default()).await;
    worker.adopt_latest(&mut running).await;
    let adopting = worker.clone().follow(running);
    tokio::spawn(async move {
        tokio::join!(work, adopting);
    })
}

/// What requests meet, and what keeps it at the fleet's identity as that is rotated.
async fn edge(
    config: &Config,
    buckets: &Buckets,
    is_draining: &Arc<AtomicBool>,
) -> Result<(Edge, impl Future<Output = ()> + Send + 'static + use<>)> {
    let mut session = [0; 16];
    getrandom::fill(&mut session).context("the machine has no randomness")?;
    let session = SessionId::from_bits(u128::from_be_bytes(session));
    let fleet = identity::load_or_create(&*buckets.records).await?;
    let (verifier, verifiers) = watch::channel(TokenVerifier::new(&fleet)?);
    let auth = match config.auth {
        AuthMode::None => Auth::Open,
        AuthMode::Token => Auth::Tokens(verifiers),
    };
    let identity = ProcessIdentity::new(fleet, Role::Ingress, config.name.as_str(), session)?;
    let rotating =
        identity::follow(
            Arc::clone(&buckets.records),
            identity.clone(),
            move |fleet| match TokenVerifier::new(fleet) {
                Ok(fresh) => drop(verifier.send(fresh)),
                Err(error) => {
                    tracing::error!(%error, "the rotated keys of tokens cannot be used; the old ones stay")
                }
            },
        );
    let options = RouterOptions {
        clock_skew_max_ms: u64::try_from(config.max_clock_skew.as_millis()).unwrap_or(u64::MAX),
        routes_max: config.routes_max,
        ..RouterOptions::default()
    };
    let (records, leases) = (Arc::clone(&buckets.records), Arc::clone(&buckets.leases));
    let router = Router::with_lease_bucket(records, leases, CellClient::new(identity), options);
    let r2 = Some(R2::new(Arc::clone(&buckets.bulk)));
    let allowed = OutboundOptions { allow: config.allow_outbound.clone(), r2, ..OutboundOptions::default() };
    let options = WorkerOptions {
        threads: config.worker_threads(),
        limits: Limits::default(),
        request_timeout: config.request_timeout,
        afterwards: AFTERWARDS,
        events_max: EVENTS_MAX,
    };
    let outbound = Outbound::new(router.clone(), allowed)?;
    let worker = Worker::start(options, &outbound).context("cannot start the threads of the Worker")?;
    let edge = Edge {
        router,
        worker,
        direct_cells: config.direct_cells,
        auth,
        places: Arc::new(Semaphore::new(config.requests_max)),
        is_draining: Arc::clone(is_draining),
        body_max: config.body_max,
        request_timeout: config.request_timeout,
        trust_forwarded: config.trust_forwarded,
        sockets: Sockets::new(config.sockets_max, config.socket_ping),
    };
    Ok((edge, rotating))
}

fn readiness(is_draining: &AtomicBool) -> Readiness {
    if is_draining.load(Ordering::Acquire) {
        Readiness::NotReady("draining".into())
    } else {
        Readiness::Ready
    }
}
