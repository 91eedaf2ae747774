//! Followers as processes. Each has a disk and a machine of its own name, so that owners may use any of them; each start
//! listens on another port.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};

use super::{Cluster, ProcessSpec};

impl Cluster {
    /// A follower's disk.
    #[must_use]
    pub fn log_dir(&self, follower: &str) -> PathBuf {
        self.dir().join(format!("log-{follower}"))
    }

    /// Starts a follower, also again after its end, and waits until it is ready.
    ///
    /// # Errors
    /// When it does not get ready.
    pub async fn start_follower(&mut self, name: &str) -> Result<()> {
        self.spawn_follower(name).await?;
        self.wait_ready(name).await
    }

    /// Starts a follower and does not wait.
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn spawn_follower(&mut self, name: &str) -> Result<()> {
        let mut spec = ProcessSpec::new(name, "follower", self.dir());
        spec.args = self.bucket_args(name).await?;
        let disk = self.log_dir(name).display().to_string();
        let ttl = format!("{}ms", self.options.lease_ttl.as_millis());
        let host = format!("host-{name}");
        let own = ["--follower", name, "--data-dir", &disk, "--lease-ttl", &ttl, "--host", &host];
        spec.args.extend(own.map(Into::into));
        spec.args.extend(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"].map(Into::into));
        self.spawn(spec)
    }

    /// Takes the disk of a follower that does not run.
    ///
    /// # Errors
    /// When it runs, or the directory cannot be removed.
    pub fn wipe_follower(&mut self, name: &str) -> Result<()> {
        self.wipe(name, self.log_dir(name))
    }

    /// Takes the data directory of a node that does not run.
    ///
    /// # Errors
    /// When it runs, or the directory cannot be removed.
    pub fn wipe_node(&mut self, name: &str) -> Result<()> {
        self.wipe(name, self.data_dir(name))
    }

    fn wipe(&mut self, name: &str, dir: PathBuf) -> Result<()> {
        ensure!(self.process_mut(name)?.exit_status()?.is_some(), "`{name}` still runs");
        if dir.exists() {
            std::fs::remove_dir_all(&dir).with_context(|| format!("removing `{}`", dir.display()))?;
        }
        Ok(())
    }
}
