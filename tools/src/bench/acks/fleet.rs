//! A fleet for `bench acks`: followers, a node and an ingress as processes of their own on loopback, on an embedded
//! bucket. It also tells which proof acknowledges the node's writes: a figure must not take one for the other.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use holdfast_bucket::{Bucket, BucketArgs};
use holdfast_records::{Key, NodeLogRecord, NodeLogState, Record as _, log_prefix};
use holdfast_types::{LogEpoch, NodeName};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::children::Children;
use crate::args::file_url;

/// Most followers that an ensemble takes.
const MEMBERS_MAX: usize = 2;
/// How long the node may take to find its ensemble.
const ENSEMBLE_WAIT: Duration = Duration::from_secs(30);
/// Between two looks at its record.
const LOOK: Duration = Duration::from_millis(50);
/// The node.
const NODE: &str = "node-1";

/// The fleet.
pub(super) struct ProcessFleet {
    children: Children,
    records: Arc<dyn Bucket>,
    followers: usize,
    dir: tempfile::TempDir,
    /// Where the ingress listens.
    pub(super) public: SocketAddr,
}

impl ProcessFleet {
    /// Starts everything below a new directory in `dir`, and waits until the node's log is acknowledged by its ensemble.
    pub(super) async fn start(dir: &Path, followers: usize) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix(".holdfast-bench-").tempdir_in(dir).with_context(|| {
            format!("nothing can be written into `{}`; name another --dir", dir.display())
        })?;
        let bucket_url = file_url(&dir.path().join("bucket"))?;
        let mut children = Children::new(dir.path())?;
        let path = |name: &str| dir.path().join(name).display().to_string();
        for number in 1..=followers {
            let name = format!("follower-{number}");
            let own = ["--follower", &name, "--data-dir", &path(&name), "--host", &name];
            children.start(&name, &program("follower")?, &arguments(&bucket_url, &own)).await?;
        }
        let durability = if followers == 0 { "bucket" } else { "ensemble" };
        let own = ["--node", NODE, "--data-dir", &path(NODE), "--host", NODE, "--durability", durability];
        children.start(NODE, &program("cellnode")?, &arguments(&bucket_url, &own)).await?;
        let own = ["--auth", "none"];
        let ready = children.start("ingress", &program("ingress")?, &arguments(&bucket_url, &own)).await?;
        let public = address(&ready, "public")?;
        let records = BucketArgs::at(&bucket_url).open().await?.records;
        let mut fleet = Self { children, records, followers, dir, public };
        fleet.await_ensemble().await?;
        Ok(fleet)
    }

    /// The log epoch whose ensemble acknowledges the node's writes; none where the bucket does.
    pub(super) async fn log_epoch(&mut self) -> Result<Option<LogEpoch>> {
        self.children.check_all()?;
        let wanted = self.followers.min(MEMBERS_MAX);
        let node = NodeName::parse(NODE).expect("a name of letters is one");
        let page = self.records.list(&log_prefix(&node), None, 2).await?;
        let mut epoch = None;
        for key in page.objects.iter().map(|object| object.key.as_str()) {
            if !matches!(Key::parse(key), Ok(Key::NodeLog(..))) {
                continue;
            }
            let object = self.records.get(key).await?.with_context(|| format!("`{key}` has vanished"))?;
            let record = NodeLogRecord::decode(&object.body)?;
            let is_whole = record.active && record.ensemble.members.len() == wanted;
            if is_whole && wanted > 0 && record.state == NodeLogState::Open {
                epoch = Some(record.ensemble.log_epoch);
            }
        }
        Ok(epoch)
    }

    async fn await_ensemble(&mut self) -> Result<()> {
        let deadline = Instant::now() + ENSEMBLE_WAIT;
        while self.followers > 0 && self.log_epoch().await?.is_none() {
            ensure!(
                Instant::now() < deadline,
                "the node has no ensemble of its followers after {ENSEMBLE_WAIT:?}; measure bucket proofs with \
                 `--followers 0`"
            );
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// The CPU time that each program has taken so far, by name.
    pub(super) fn cpu(&self) -> Result<BTreeMap<String, Duration>> {
        self.children.cpu()
    }

    /// Where the fleet keeps its files.
    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Leaves in order: the ingress, the node, the followers.
    pub(super) async fn stop(mut self) -> Result<()> {
        self.children.stop("ingress").await?;
        self.children.stop(NODE).await?;
        for number in 1..=self.followers {
            self.children.stop(&format!("follower-{number}")).await?;
        }
        self.dir.close().context("the benchmark's directory cannot be removed")
    }
}

fn arguments(bucket_url: &str, own: &[&str]) -> Vec<String> {
    let all = ["--bucket", bucket_url, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
    all.iter().chain(own).map(|argument| (*argument).to_owned()).collect()
}

fn address(ready: &Value, field: &str) -> Result<SocketAddr> {
    let text = ready[field].as_str().with_context(|| format!("no `{field}` in {ready}"))?;
    text.parse().with_context(|| format!("`{text}` is no address"))
}

/// A program of the fleet: in HOLDFAST_BIN_DIR, or beside this one.
fn program(name: &str) -> Result<PathBuf> {
    let dir = match std::env::var_os("HOLDFAST_BIN_DIR") {
        Some(dir) => PathBuf::from(dir),
        None => std::env::current_exe()?.parent().context("a program is in a directory")?.to_path_buf(),
    };
    let path = dir.join(name);
    if !path.is_file() {
        bail!(
            "there is no `{}`: build it with `cargo build --release -p holdfast-{name}`, or set HOLDFAST_BIN_DIR",
            path.display()
        );
    }
    Ok(path)
}
