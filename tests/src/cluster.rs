//! A fleet of real processes on loopback: a store, a fault proxy before it for each program, cellnodes, followers,
//! ingresses and wakers.
//! Every child dies with the test, whatever ends it; every log is read at the end, and a line that nobody expected
//! fails the test. Clusters take turns: timing means nothing when two run at once.

mod binaries;
mod clocks;
mod followers;
mod logs;
mod look;
mod process;
mod records;
mod wakers;
mod warden;

use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use http::Method;

use crate::client::{Outcome, SqlClient};
use crate::fault_proxy::{FaultProxy, Faults};
use crate::raw_store::RawStore;
use crate::sigv4::Credentials;
use crate::wait;
use crate::workload::Ingresses;

pub use binaries::{Release, binary};
pub use clocks::CLOCK_SEEN;
pub use look::ToolAnswer;
pub use process::{Process, ProcessSpec};
pub use warden::Warden;

/// The bucket's name at the store.
pub const BUCKET: &str = "holdfast";
/// How long a program may take to write its ready file and say that it is ready.
const START_WAIT: Duration = Duration::from_secs(30);

/// What a cluster consists of.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// Cellnodes, named `n1`, `n2`, ….
    pub nodes: usize,
    /// Ingresses, named `i1`, `i2`, ….
    pub ingresses: usize,
    /// Followers, named `f1`, `f2`, ….
    pub followers: usize,
    /// Wakers, named `w1`, `w2`, ….
    pub wakers: usize,
    /// The lease TTL of nodes and followers.
    pub lease_ttl: Duration,
    /// Further flags of every node.
    pub node_args: Vec<String>,
    /// Further flags of every ingress.
    pub ingress_args: Vec<String>,
    /// How far the wall clocks of programs are off, in seconds.
    pub clocks: Vec<(&'static str, i64)>,
    /// Seed of the proxies.
    pub seed: u64,
    /// A file of the certificate authorities that programs trust, in place of the machine's.
    pub authorities: Option<PathBuf>,
    /// Of which release programs are, until [`Cluster::use_release`] says otherwise.
    pub release: Release,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            nodes: 2,
            ingresses: 1,
            followers: 0,
            wakers: 0,
            lease_ttl: Duration::from_secs(3),
            node_args: Vec::new(),
            ingress_args: Vec::new(),
            clocks: Vec::new(),
            seed: 1,
            authorities: None,
            release: Release::This,
        }
    }
}

/// The fleet.
#[derive(Debug)]
pub struct Cluster {
    options: ClusterOptions,
    processes: BTreeMap<String, Process>,
    releases: BTreeMap<String, Release>,
    proxies: BTreeMap<String, FaultProxy>,
    ingresses: Ingresses,
    store_address: SocketAddr,
    allowed: Vec<String>,
    checked: bool,
    // Dropped in this order: the children die before their directory goes.
    warden: Warden,
    dir: Option<tempfile::TempDir>,
    _turn: File,
}

/// The store's credentials: test values, made here and used nowhere else.
#[must_use]
pub fn credentials() -> Credentials {
    Credentials {
        access_key: "holdfast-test".into(),
        secret_key: "holdfast-test-secret".into(),
        region: "us-east-1".into(),
    }
}

impl Cluster {
    /// Starts everything and waits until it is ready.
    ///
    /// # Errors
    /// When a binary is missing, a program does not get ready, or it ends.
    pub async fn start(options: ClusterOptions) -> Result<Self> {
        let mut cluster = Self::start_store(options).await?;
        for number in 1..=cluster.options.followers {
            cluster.start_follower(&format!("f{number}")).await?;
        }
        for number in 1..=cluster.options.nodes {
            cluster.start_node(&format!("n{number}")).await?;
        }
        for number in 1..=cluster.options.ingresses {
            cluster.start_ingress(&format!("i{number}")).await?;
        }
        for number in 1..=cluster.options.wakers {
            cluster.start_waker(&format!("w{number}")).await?;
        }
        Ok(cluster)
    }

    /// Starts the store alone.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub async fn start_store(options: ClusterOptions) -> Result<Self> {
        let turn = tokio::task::spawn_blocking(take_turn).await??;
        let dir = tempfile::Builder::new().prefix("holdfast-test-").tempdir()?;
        std::fs::create_dir_all(dir.path().join("store"))?;
        let warden = Warden::start()?;
        let mut spec = ProcessSpec::new("store", "holdfast", dir.path());
        spec.args = vec!["bucket".into(), "serve".into(), "--dir".into()];
        spec.args.push(dir.path().join("store").display().to_string());
        spec.args.extend(["--listen", "127.0.0.1:0"].map(Into::into));
        let mut store = Process::spawn(spec, &warden)?;
        let store_address = store.ready_address("s3", START_WAIT).await?;
        let clocks = options.clocks.clone();
        let cluster = Self {
            options,
            processes: BTreeMap::from([("store".to_owned(), store)]),
            releases: BTreeMap::new(),
            proxies: BTreeMap::new(),
            ingresses: Arc::default(),
            store_address,
            allowed: Vec::new(),
            checked: false,
            warden,
            dir: Some(dir),
            _turn: turn,
        };
        for (name, ahead_secs) in clocks {
            cluster.set_clock(name, ahead_secs)?;
        }
        Ok(cluster)
    }

    /// The directory of everything.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.as_ref().expect("only a drop takes it").path()
    }

    /// A node's data directory.
    #[must_use]
    pub fn data_dir(&self, node: &str) -> PathBuf {
        self.dir().join(format!("data-{node}"))
    }

    /// The store without any proxy.
    #[must_use]
    pub fn raw_store(&self) -> RawStore {
        RawStore::new(self.store_address, BUCKET, credentials())
    }

    /// The flags that lead a program to the bucket, through a proxy of its own.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn bucket_args(&mut self, name: &str) -> Result<Vec<String>> {
        if !self.proxies.contains_key(name) {
            let seed = self.options.seed.wrapping_add(self.proxies.len() as u64);
            let proxy = FaultProxy::start(self.store_address, credentials(), seed).await?;
            self.proxies.insert(name.to_owned(), proxy);
        }
        let endpoint = self.proxies[name].endpoint();
        let bucket = format!("s3://{BUCKET}");
        Ok(["--bucket", &bucket, "--endpoint", &endpoint, "--region", "us-east-1"].map(Into::into).to_vec())
    }

    /// The store as a program of this name has it, through a proxy of its own.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn store_of(&mut self, name: &str) -> Result<RawStore> {
        self.bucket_args(name).await?;
        Ok(RawStore::new(self.proxies[name].address(), BUCKET, credentials()))
    }

    /// The faults before one program.
    ///
    /// # Panics
    /// When the program was never started.
    #[must_use]
    pub fn faults(&self, name: &str) -> &Faults {
        self.proxies.get(name).unwrap_or_else(|| panic!("`{name}` was never started")).faults()
    }

    /// The faults before every program.
    pub fn all_faults(&self) -> impl Iterator<Item = (&str, &Faults)> {
        self.proxies.iter().map(|(name, proxy)| (name.as_str(), proxy.faults()))
    }

    /// Starts a node, also again after its end, and waits until it is ready.
    ///
    /// # Errors
    /// When it does not get ready.
    pub async fn start_node(&mut self, name: &str) -> Result<()> {
        self.spawn_node(name, &[]).await?;
        self.wait_ready(name).await
    }

    /// Starts a node with further flags and does not wait.
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn spawn_node(&mut self, name: &str, more: &[&str]) -> Result<()> {
        let spec = self.node_spec(name, more).await?;
        self.spawn(spec)
    }

    /// Starts a node whose data directory is a file system of its own, with these mount options, for example
    /// `size=16m`, and does not wait. The directory is seen from outside as [`Cluster::disk_dir`].
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn spawn_node_on_disk(&mut self, name: &str, mount_options: &str) -> Result<()> {
        let mut spec = self.node_spec(name, &[]).await?;
        let dir = self.data_dir(name);
        std::fs::create_dir_all(&dir)?;
        spec.prepare = Some(format!("mount -t tmpfs -o {mount_options} none '{}'", dir.display()));
        self.spawn(spec)
    }

    /// Starts a node that may have so many files open, and waits until it is ready.
    ///
    /// # Errors
    /// When it does not get ready.
    pub async fn start_node_with_files(&mut self, name: &str, files: u32) -> Result<()> {
        let mut spec = self.node_spec(name, &[]).await?;
        spec.prepare = Some(format!("ulimit -n {files}"));
        self.spawn(spec)?;
        self.wait_ready(name).await
    }

    /// The data directory of a running node as the node sees it.
    ///
    /// # Errors
    /// When it was never started.
    pub fn disk_dir(&self, name: &str) -> Result<PathBuf> {
        let root = PathBuf::from(format!("/proc/{}/root", self.process(name)?.id()));
        Ok(root.join(self.data_dir(name).strip_prefix("/")?))
    }

    async fn node_spec(&mut self, name: &str, more: &[&str]) -> Result<ProcessSpec> {
        let mut spec = ProcessSpec::new(name, "cellnode", self.dir());
        spec.args = self.bucket_args(name).await?;
        let data_dir = self.data_dir(name).display().to_string();
        let ttl = format!("{}ms", self.options.lease_ttl.as_millis());
        let host = format!("host-{name}");
        let own = ["--node", name, "--data-dir", &data_dir, "--lease-ttl", &ttl, "--host", &host];
        spec.args.extend(own.map(Into::into));
        spec.args.extend(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"].map(Into::into));
        spec.args.extend(self.options.node_args.iter().cloned());
        spec.args.extend(more.iter().map(|arg| (*arg).to_owned()));
        Ok(spec)
    }

    /// Starts an ingress, also again after its end, and waits until it is ready.
    ///
    /// # Errors
    /// When it does not get ready.
    pub async fn start_ingress(&mut self, name: &str) -> Result<()> {
        let mut spec = ProcessSpec::new(name, "ingress", self.dir());
        spec.args = self.bucket_args(name).await?;
        spec.args.extend(
            ["--auth", "none", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"].map(Into::into),
        );
        spec.args.extend(self.options.ingress_args.iter().cloned());
        self.spawn(spec)?;
        self.wait_ready(name).await?;
        let mut public = Vec::new();
        for process in self.processes.values().filter(|process| process.program() == "ingress") {
            public.push(process.address("public")?);
        }
        *self.ingresses.write().expect("no holder panics") = public;
        Ok(())
    }

    /// The next life of a program is of this release.
    pub fn use_release(&mut self, name: &str, release: Release) {
        self.releases.insert(name.to_owned(), release);
    }

    fn spawn(&mut self, mut spec: ProcessSpec) -> Result<()> {
        let name = spec.name.clone();
        spec.authorities.clone_from(&self.options.authorities);
        spec.release = self.releases.get(&name).copied().unwrap_or(self.options.release);
        if let Some(earlier) = self.processes.get_mut(&name) {
            ensure!(earlier.exit_status()?.is_some(), "`{name}` still runs");
        }
        let life = self.processes.get(&name).map_or(0, |earlier| earlier.life() + 1);
        let process = Process::spawn(spec.life(life), &self.warden)?;
        self.processes.insert(name, process);
        Ok(())
    }

    /// Starts a program again after its end, by what its name begins with, and waits until it is ready.
    ///
    /// # Errors
    /// When it does not get ready.
    pub async fn start_again(&mut self, name: &str) -> Result<()> {
        match name.split_at(1).0 {
            "n" => self.start_node(name).await,
            "f" => self.start_follower(name).await,
            "i" => self.start_ingress(name).await,
            "w" => self.start_waker(name).await,
            _ => bail!("`{name}` is no program of a fleet"),
        }
    }

    /// Waits for a program's ready file and for its `/ready`.
    ///
    /// # Errors
    /// When it does not come, or the program ends.
    pub async fn wait_ready(&mut self, name: &str) -> Result<()> {
        let admin = self.process_mut(name)?.ready_address("admin", START_WAIT).await?;
        let client = SqlClient::new(Duration::from_secs(2));
        let what = format!("`{name}` to be ready");
        let process = self.process_mut(name)?;
        let ready = wait::until(&what, START_WAIT, async || {
            if let Some(status) = process.exit_status()? {
                return Ok(Some(status));
            }
            match client.send(Method::GET, admin, "/ready", Default::default()).await {
                Outcome::Acked(answer, _) if answer.status == 200 => Ok(None),
                Outcome::Acked(answer, _) => bail!("{}: {}", answer.status, answer.text()),
                Outcome::Refused(reason) | Outcome::Unknown(reason) => bail!(reason),
            }
        })
        .await;
        let log = process.log_tail();
        match ready.with_context(|| format!("log of `{name}`:\n{log}"))? {
            None => Ok(()),
            Some(status) => bail!("`{name}` ended with {status} before it was ready; its log:\n{log}"),
        }
    }

    /// A program.
    ///
    /// # Errors
    /// When it was never started.
    pub fn process(&self, name: &str) -> Result<&Process> {
        self.processes.get(name).with_context(|| format!("`{name}` was never started"))
    }

    /// A program.
    ///
    /// # Errors
    /// When it was never started.
    pub fn process_mut(&mut self, name: &str) -> Result<&mut Process> {
        self.processes.get_mut(name).with_context(|| format!("`{name}` was never started"))
    }

    /// Kills a program with SIGKILL and waits for its end.
    ///
    /// # Errors
    /// When it was never started.
    pub fn kill(&mut self, name: &str) -> Result<()> {
        self.process_mut(name)?.kill()
    }

    /// Where the ingresses listen; follows restarts.
    #[must_use]
    pub fn ingresses(&self) -> Ingresses {
        self.ingresses.clone()
    }

    /// The first ingress.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn ingress(&self) -> SocketAddr {
        self.ingresses.read().expect("no holder panics")[0]
    }

    /// Everything that a program has logged, all its lives.
    #[must_use]
    pub fn log(&self, name: &str) -> String {
        logs::read_all(self.dir(), name)
    }

    /// Expects lines at level ERROR that contain this text.
    pub fn allow_in_logs(&mut self, text: &str) {
        self.allowed.push(text.to_owned());
    }

    /// Kills everything and reads the logs.
    ///
    /// # Errors
    /// With the first lines that nobody expected: panics, and errors outside of the allowed ones.
    pub fn finish(mut self) -> Result<()> {
        self.check_logs()
    }

    /// Unexpected lines so far.
    ///
    /// # Errors
    /// With the first of them.
    pub fn check_logs(&mut self) -> Result<()> {
        self.checked = true;
        let unexpected = logs::unexpected(self.dir(), &self.allowed);
        ensure!(unexpected.is_empty(), "unexpected lines in the logs:\n{}", unexpected.join("\n"));
        Ok(())
    }

    /// Keeps the directory, for a person to look at, and says where it is.
    pub fn keep_dir(&mut self) -> PathBuf {
        let path = self.dir().to_owned();
        if let Some(dir) = &mut self.dir {
            dir.disable_cleanup(true);
        }
        path
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for process in self.processes.values_mut() {
            // The warden kills whatever this misses.
            let _ = process.kill();
        }
        if std::thread::panicking() {
            let dir = self.keep_dir();
            eprintln!("the processes' logs are kept in `{}`", dir.display());
        } else if !self.checked
            && let Err(error) = self.check_logs()
        {
            let dir = self.keep_dir();
            panic!("{error:#}\nthe logs are kept in `{}`", dir.display());
        }
    }
}

/// Waits until no other cluster runs on this machine for this user.
fn take_turn() -> Result<File> {
    let path = std::env::temp_dir().join("holdfast-tests.lock");
    let file = File::options().create(true).append(true).open(&path)?;
    file.lock().with_context(|| format!("locking `{}`", path.display()))?;
    Ok(file)
}

#[cfg(test)]
mod tests;
