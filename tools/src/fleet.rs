//! A whole fleet in this process, on an embedded bucket in a directory: for `dev` and for `bench`. It starts and stops
//! the programs' own services; it must never do their work.

use std::fs::File;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use holdfast_bucket::BucketArgs;
use holdfast_cellnode as cellnode;
use holdfast_follower as follower;
use holdfast_ingress as ingress;
use holdfast_types::{FollowerName, NodeName};
use holdfast_waker as waker;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::args::file_url;

/// How long requests in flight may take at the end: of the ingress, then of the cells. A person waits, and a page that is
/// left open with a stream never ends by itself.
const FINISH: Duration = Duration::from_secs(2);

/// What to run.
#[derive(Clone, Debug)]
pub struct FleetOptions {
    /// The bucket and the nodes' data directories go below it.
    pub dir: PathBuf,
    /// How many nodes.
    pub nodes: usize,
    /// How many followers. The nodes use them although they are on their own machine.
    pub followers: usize,
    /// Port of the ingress on loopback; 0 takes a free one.
    pub port: u16,
    /// Lifetime of the nodes' leases; their own default when absent.
    pub lease_ttl: Option<Duration>,
}

/// A node that serves.
#[derive(Clone, Debug)]
pub struct RunningNode {
    /// Its name.
    pub name: NodeName,
    /// Where it listens.
    pub addresses: cellnode::Addresses,
}

/// How a node of the fleet ended.
#[derive(Debug)]
pub struct NodeEnded {
    /// Which one.
    pub name: NodeName,
    /// How.
    pub result: Result<cellnode::Exit>,
}

/// How a follower of the fleet ended.
type FollowerEnded = (FollowerName, Result<follower::Exit>);

/// What a fleet stands on: its port was free, its directory is taken.
#[derive(Debug)]
pub struct Ground {
    /// The embedded bucket.
    pub bucket_url: String,
    lock: File,
}

impl Ground {
    /// Looks and takes.
    ///
    /// # Errors
    /// A port in use and a directory in use are named as such.
    pub async fn take(options: &FleetOptions) -> Result<Self> {
        check_port(options.port).await?;
        let lock = lock_directory(&options.dir)?;
        Ok(Self { bucket_url: file_url(&options.dir.join("bucket"))?, lock })
    }
}

/// A fleet that serves.
#[derive(Debug)]
pub struct Fleet {
    options: FleetOptions,
    /// The embedded bucket.
    pub bucket_url: String,
    /// Where the ingress listens.
    pub addresses: ingress::Addresses,
    /// The nodes as they were started.
    pub nodes: Vec<RunningNode>,
    stop_ingress: watch::Sender<bool>,
    stop_nodes: watch::Sender<bool>,
    stop_followers: watch::Sender<bool>,
    followers: JoinSet<FollowerEnded>,
    ingress: JoinHandle<Result<ingress::Exit>>,
    stop_waker: watch::Sender<bool>,
    waker: JoinHandle<Result<waker::Exit>>,
    running: JoinSet<NodeEnded>,
    _lock: File,
}

impl Fleet {
    /// Starts the followers, then the nodes, then the ingress and the waker.
    ///
    /// # Errors
    /// What keeps one of them from starting; a port in use and a directory in use are named as such.
    pub async fn start(options: FleetOptions) -> Result<Self> {
        let ground = Ground::take(&options).await?;
        Self::start_on(ground, options).await
    }

    /// As [`Fleet::start`], with the directory taken before.
    ///
    /// # Errors
    /// As [`Fleet::start`].
    pub async fn start_on(ground: Ground, options: FleetOptions) -> Result<Self> {
        let Ground { bucket_url, lock } = ground;
        let (stop_followers, _) = watch::channel(false);
        let mut followers = JoinSet::new();
        for number in 1..=options.followers {
            let name =
                FollowerName::parse(&format!("follower-{number}")).expect("a name with a number is one");
            let ready = spawn_follower(&options, &bucket_url, name, &stop_followers, &mut followers);
            first(ready, async { follower_ended(followers.join_next().await) }).await?;
        }
        let (stop_nodes, _) = watch::channel(false);
        let mut running = JoinSet::new();
        let mut starting = Vec::new();
        for number in 1..=options.nodes {
            let name = NodeName::parse(&format!("node-{number}")).expect("a name with a number is one");
            starting.push((name.clone(), spawn_node(&options, &bucket_url, name, &stop_nodes, &mut running)));
        }
        let mut nodes = Vec::new();
        for (name, ready) in starting {
            let addresses = first(ready, async { ended_early(running.join_next().await) }).await?;
            nodes.push(RunningNode { name, addresses });
        }
        let (stop_ingress, stopped) = watch::channel(false);
        let (mut ingress, ready) = spawn_ingress(&options, &bucket_url, stopped);
        let addresses = first(ready, async { ingress_ended((&mut ingress).await) }).await?;
        let (stop_waker, stopped) = watch::channel(false);
        let (mut waker, ready) = spawn_waker(&bucket_url, stopped);
        first(ready, async { waker_ended((&mut waker).await) }).await?;
        Ok(Self {
            options,
            bucket_url,
            addresses,
            nodes,
            stop_ingress,
            stop_nodes,
            stop_followers,
            followers,
            ingress,
            stop_waker,
            waker,
            running,
            _lock: lock,
        })
    }

    /// `http://…` of the ingress.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.addresses.public)
    }

    /// How many nodes run.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Resolves when a node has ended, or with an error when another program has.
    ///
    /// # Errors
    /// The ingress, the waker or a follower ended, which none does by itself.
    pub async fn next_ended(&mut self) -> Result<NodeEnded> {
        tokio::select! {
            biased;
            ended = (&mut self.ingress) => Err(ingress_ended(ended)),
            ended = (&mut self.waker) => Err(waker_ended(ended)),
            Some(ended) = self.followers.join_next() => Err(follower_ended(Some(ended))),
            Some(ended) = self.running.join_next() => Ok(ended.expect("a node does not panic")),
            else => std::future::pending().await,
        }
    }

    /// Starts a node that has ended, on its old directory.
    ///
    /// # Errors
    /// What keeps it from starting.
    pub async fn restart(&mut self, name: &NodeName) -> Result<()> {
        let ready =
            spawn_node(&self.options, &self.bucket_url, name.clone(), &self.stop_nodes, &mut self.running);
        match ready.await {
            Ok(addresses) => {
                self.nodes.retain(|node| node.name != *name);
                self.nodes.push(RunningNode { name: name.clone(), addresses });
                Ok(())
            }
            Err(_) => Err(ended_early(self.running.join_next().await)),
        }
    }

    /// Leaves in order: the waker wakes nobody any more, the ingress answers what it has, the nodes give their cells up, then nobody needs the followers.
    ///
    /// # Errors
    /// What a program ended with.
    pub async fn stop(mut self) -> Result<()> {
        self.stop_waker.send_replace(true);
        (&mut self.waker).await.expect("the waker does not panic").context("the waker failed")?;
        self.stop_ingress.send_replace(true);
        (&mut self.ingress).await.expect("the ingress does not panic").context("the ingress failed")?;
        self.stop_nodes.send_replace(true);
        while let Some(ended) = self.running.join_next().await {
            let NodeEnded { name, result } = ended.expect("a node does not panic");
            match result.with_context(|| format!("`{name}` failed"))? {
                cellnode::Exit::Clean => {}
                cellnode::Exit::Fenced(cause) => {
                    bail!("`{name}` fenced itself while it stopped: {}", cause.name())
                }
            }
        }
        self.stop_followers.send_replace(true);
        while let Some(ended) = self.followers.join_next().await {
            let (name, result) = ended.expect("a follower does not panic");
            result.with_context(|| format!("`{name}` failed"))?;
        }
        Ok(())
    }
}

/// One fleet at a time in a directory; the lock goes with the process.
fn lock_directory(dir: &Path) -> Result<File> {
    let failed = || format!("the directory `{}` cannot be used; name another one with --dir", dir.display());
    std::fs::create_dir_all(dir).with_context(failed)?;
    let lock = File::create(dir.join("dev.lock")).with_context(failed)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(std::fs::TryLockError::WouldBlock) => {
            bail!("another `holdfast dev` uses `{}`: stop it, or use another --dir", dir.display())
        }
        Err(std::fs::TryLockError::Error(error)) => Err(error).with_context(failed),
    }
}

/// Names a port in use before anything is started. The ingress binds it again.
async fn check_port(port: u16) -> Result<()> {
    match TcpListener::bind(("127.0.0.1", port)).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            bail!("port {port} is in use: stop what listens there, or choose another port with --port")
        }
        Err(error) => {
            Err(error).with_context(|| format!("port {port} cannot be used; choose another with --port"))
        }
    }
}

fn spawn_node(
    options: &FleetOptions,
    bucket_url: &str,
    name: NodeName,
    stop: &watch::Sender<bool>,
    running: &mut JoinSet<NodeEnded>,
) -> oneshot::Receiver<cellnode::Addresses> {
    let data_dir = options.dir.join(name.as_str());
    let mut config = cellnode::Config::embedded(BucketArgs::at(bucket_url), name.clone(), data_dir);
    // These come from the environment too, where they are meant for one program.
    (config.ready_file, config.advertise) = (None, None);
    config.allow_own_host = true;
    config.finish_timeout = config.finish_timeout.min(FINISH);
    if let Some(ttl) = options.lease_ttl {
        config.lease_ttl = ttl;
    }
    let (ready, told) = oneshot::channel();
    let stopped = stop.subscribe();
    running.spawn(async move {
        let result = cellnode::Service::run(config, Some(ready), wait(stopped)).await;
        NodeEnded { name, result }
    });
    told
}

fn spawn_follower(
    options: &FleetOptions,
    bucket_url: &str,
    name: FollowerName,
    stop: &watch::Sender<bool>,
    followers: &mut JoinSet<FollowerEnded>,
) -> oneshot::Receiver<follower::Addresses> {
    let data_dir = options.dir.join(name.as_str());
    let mut config = follower::Config::embedded(BucketArgs::at(bucket_url), name.clone(), data_dir);
    (config.ready_file, config.advertise) = (None, None);
    if let Some(ttl) = options.lease_ttl {
        config.lease_ttl = ttl;
    }
    let (ready, told) = oneshot::channel();
    let stopped = stop.subscribe();
    followers.spawn(async move { (name, follower::Service::run(config, Some(ready), wait(stopped)).await) });
    told
}

fn spawn_ingress(
    options: &FleetOptions,
    bucket_url: &str,
    stopped: watch::Receiver<bool>,
) -> (JoinHandle<Result<ingress::Exit>>, oneshot::Receiver<ingress::Addresses>) {
    let listen = format!("127.0.0.1:{}", options.port);
    let mut config = ingress::Config::embedded(BucketArgs::at(bucket_url), listen);
    (config.ready_file, config.tls_cert, config.tls_key) = (None, None, None);
    // Nobody balances over one ingress.
    config.drain_delay = Duration::ZERO;
    config.drain_timeout = config.drain_timeout.min(FINISH);
    let (ready, told) = oneshot::channel();
    (tokio::spawn(ingress::Service::run(config, Some(ready), wait(stopped))), told)
}

fn spawn_waker(
    bucket_url: &str,
    stopped: watch::Receiver<bool>,
) -> (JoinHandle<Result<waker::Exit>>, oneshot::Receiver<waker::Addresses>) {
    let mut config = waker::Config::embedded(BucketArgs::at(bucket_url));
    config.ready_file = None;
    let (ready, told) = oneshot::channel();
    (tokio::spawn(waker::Service::run(config, Some(ready), wait(stopped))), told)
}

async fn wait(mut stopped: watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// What a program says when it is ready, or why it ended before.
async fn first<T>(ready: oneshot::Receiver<T>, ended: impl Future<Output = anyhow::Error>) -> Result<T> {
    match ready.await {
        Ok(told) => Ok(told),
        Err(_) => Err(ended.await),
    }
}

fn ended_early(ended: Option<Result<NodeEnded, tokio::task::JoinError>>) -> anyhow::Error {
    match ended {
        Some(Ok(NodeEnded { name, result: Err(error) })) => error.context(format!("`{name}` cannot start")),
        Some(Ok(NodeEnded { name, result: Ok(exit) })) => {
            anyhow!("`{name}` ended before it was ready: {exit:?}")
        }
        Some(Err(error)) => anyhow::Error::new(error).context("a node failed"),
        None => anyhow!("no node runs"),
    }
}

fn follower_ended(ended: Option<Result<FollowerEnded, tokio::task::JoinError>>) -> anyhow::Error {
    match ended {
        Some(Ok((name, Err(error)))) => error.context(format!("`{name}` failed")),
        Some(Ok((name, Ok(exit)))) => anyhow!("`{name}` ended by itself: {exit:?}"),
        Some(Err(error)) => anyhow::Error::new(error).context("a follower failed"),
        None => anyhow!("no follower runs"),
    }
}

fn ingress_ended(ended: Result<Result<ingress::Exit>, tokio::task::JoinError>) -> anyhow::Error {
    match ended {
        Ok(Err(error)) => error.context("the ingress failed"),
        Ok(Ok(ingress::Exit::Clean)) => anyhow!("the ingress ended by itself"),
        Err(error) => anyhow::Error::new(error).context("the ingress failed"),
    }
}

fn waker_ended(ended: Result<Result<waker::Exit>, tokio::task::JoinError>) -> anyhow::Error {
    match ended {
        Ok(Err(error)) => error.context("the waker failed"),
        Ok(Ok(waker::Exit::Clean)) => anyhow!("the waker ended by itself"),
        Err(error) => anyhow::Error::new(error).context("the waker failed"),
    }
}
