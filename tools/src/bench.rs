//! `holdfast bench`: figures of this machine, each beside its floor from the same run: what the same work costs without
//! Holdfast. A figure without its floor would say more of the machine than of the program.

mod acks;
mod cells;
mod echo;
mod floor;
mod hop;
mod load;
mod reads;
mod takeover;
mod writes;

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Subcommand;
use serde::Serialize;

use crate::fleet::{Fleet, FleetOptions};
use crate::output::{Output, Table};
use crate::process::raise_file_limit;

/// What can be measured.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Reads of a resident cell through the ingress, against a bare echo server.
    Reads(reads::Reads),
    /// Writes proven by the bucket, against the store's own conditional writes.
    Writes(writes::Writes),
    /// Acknowledged single-row updates through an ingress, its owner and two followers, against disk and loopback.
    Acks(acks::Acks),
    /// Memory and open files of resident idle cells.
    Cells(cells::Cells),
    /// Time without service when a cell moves from a node that drains.
    Takeover(takeover::Takeover),
    /// What a write cannot be cheaper than here: a sync of the disk, a round trip over loopback.
    Floor(floor::Floor),
}

impl Bench {
    /// Measures.
    pub async fn run(self, output: Output) -> Result<()> {
        if cfg!(debug_assertions) {
            eprintln!(
                "holdfast: this is a debug build, whose figures mean little: use `cargo run --release -p holdfast`"
            );
        }
        raise_file_limit();
        match self {
            Self::Reads(reads) => reads.run(output).await,
            Self::Writes(writes) => writes.run(output).await,
            Self::Acks(acks) => acks.run(output).await,
            Self::Cells(cells) => cells.run(output).await,
            Self::Takeover(takeover) => takeover.run(output).await,
            Self::Floor(floor) => floor.run(output).await,
        }
    }
}

/// Where a benchmark keeps its fleet.
#[derive(Debug, clap::Args)]
pub struct Place {
    /// A directory on the disk to measure; everything made in it is removed. Default: the current one.
    #[arg(long, default_value = ".", value_name = "DIR")]
    dir: PathBuf,
}

/// A fleet of its own for one benchmark, removed at the end.
struct Bed {
    fleet: Fleet,
    dir: tempfile::TempDir,
}

impl Place {
    async fn fleet(&self, nodes: usize) -> Result<Bed> {
        let dir =
            tempfile::Builder::new().prefix(".holdfast-bench-").tempdir_in(&self.dir).with_context(|| {
                format!("nothing can be written into `{}`; name another --dir", self.dir.display())
            })?;
        let dir_path = dir.path().to_path_buf();
        let options = FleetOptions { dir: dir_path, nodes, followers: 0, port: 0, lease_ttl: None };
        Ok(Bed { fleet: Fleet::start(options).await?, dir })
    }
}

impl Bed {
    async fn stop(self) -> Result<()> {
        self.fleet.stop().await?;
        self.dir.close().context("the benchmark's directory cannot be removed")
    }
}

/// One line of a result: a figure, its floor, and how they compare.
#[derive(Clone, Debug, Serialize)]
struct Line {
    what: String,
    requests_per_s: f64,
    p50_us: u64,
    p99_us: u64,
    /// CPU of this whole process for one of them, the load generator's and the store's included.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio_to_floor: Option<f64>,
}

fn table(lines: &[Line]) -> String {
    let mut table = Table::new(["WHAT", "PER SECOND", "P50 US", "P99 US", "CPU US", "OF FLOOR"]);
    for Line { what, requests_per_s, p50_us, p99_us, cpu_us, ratio_to_floor } in lines {
        let cpu = cpu_us.map(|cpu| format!("{cpu:.0}")).unwrap_or_default();
        let ratio = ratio_to_floor.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
        table.row([
            what.clone(),
            format!("{requests_per_s:.0}"),
            p50_us.to_string(),
            p99_us.to_string(),
            cpu,
            ratio,
        ]);
    }
    table.to_string()
}
