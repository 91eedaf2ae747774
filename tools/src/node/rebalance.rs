//! `holdfast node rebalance`: whether cells are moved to even nodes out, and how even they are.

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use clap::Subcommand;
use holdfast_bucket::{Bucket, BucketArgs, Buckets, Commit, Guard, Version};
use holdfast_core::rebalance::{Load, shares};
use holdfast_records::{Key, NodeLease, RebalanceSwitch, Record};
use holdfast_types::WriteId;
use serde_json::{Value, json};

use crate::args::open_existing;
use crate::output::{Output, Table, span};
use crate::peers::{self, LeaseState};

/// How long one write may take, its retries included, in milliseconds.
const WRITE_DEADLINE_MS: u64 = 10_000;
/// Writes that lost against another operator's before giving up.
const ATTEMPTS_MAX: usize = 5;

/// What can be done about the moving of cells.
#[derive(Debug, Subcommand)]
pub enum Rebalance {
    /// Move no cells between live nodes until it is resumed. Drains go on.
    Pause {
        /// Who says so. Default: the user's name.
        #[arg(long, value_name = "NAME")]
        by: Option<String>,
        /// Where the bucket is.
        #[command(flatten)]
        bucket: BucketArgs,
    },
    /// Move cells again.
    Resume {
        /// Who says so. Default: the user's name.
        #[arg(long, value_name = "NAME")]
        by: Option<String>,
        /// Where the bucket is.
        #[command(flatten)]
        bucket: BucketArgs,
    },
    /// Tell whether it is paused, by whom, and what each node has of its share.
    Status {
        /// Where the bucket is.
        #[command(flatten)]
        bucket: BucketArgs,
    },
}

impl Rebalance {
    /// Does it.
    pub async fn run(self, output: Output) -> Result<()> {
        match self {
            Self::Pause { by, bucket } => switch(&open_existing(&bucket).await?, true, by, output).await,
            Self::Resume { by, bucket } => switch(&open_existing(&bucket).await?, false, by, output).await,
            Self::Status { bucket } => status(&open_existing(&bucket).await?, output).await,
        }
    }
}

async fn read(records: &dyn Bucket) -> Result<Option<(RebalanceSwitch, Version)>> {
    let key = Key::RebalanceSwitch.to_string();
    let Some(object) = records.get(&key).await? else { return Ok(None) };
    let switch = RebalanceSwitch::decode(&object.body).with_context(|| format!("`{key}`"))?;
    Ok(Some((switch, object.version)))
}

fn caller() -> String {
    std::env::var("USER").ok().filter(|user| !user.is_empty()).unwrap_or_else(|| "unknown".into())
}

async fn switch(buckets: &Buckets, paused: bool, by: Option<String>, output: Output) -> Result<()> {
    let by = by.unwrap_or_else(caller);
    let key = Key::RebalanceSwitch.to_string();
    for _ in 0..ATTEMPTS_MAX {
        let guard = match read(&*buckets.records).await? {
            // Who paused it stays known: a second pause is no news.
            Some((switch, _)) if switch.paused == paused => return tell(Some(&switch), output),
            None if !paused => return tell(None, output),
            Some((_, version)) => Guard::Match(version),
            None => Guard::Absent,
        };
        let switch = RebalanceSwitch {
            version: RebalanceSwitch::VERSION,
            write_id: WriteId::from_bits(peers::fresh_session()?.bits()),
            paused,
            by: by.clone(),
            at_ms: peers::now(),
        };
        match buckets.records.put_if(&key, Bytes::from(switch.encode()), guard, WRITE_DEADLINE_MS).await {
            Commit::Applied(_) => return tell(Some(&switch), output),
            Commit::Rejected => {}
            Commit::Unknown(error) => {
                return Err(error).with_context(|| format!("whether `{key}` was written is unknown"));
            }
        }
    }
    bail!("`{key}` was changed by others again and again; look at `holdfast node rebalance status`")
}

fn switch_json(switch: Option<&RebalanceSwitch>) -> Value {
    match switch {
        None => json!({ "paused": false }),
        Some(switch) => json!({ "paused": switch.paused, "by": switch.by, "at_ms": switch.at_ms.get() }),
    }
}

fn switch_text(switch: Option<&RebalanceSwitch>) -> String {
    let Some(switch) = switch else { return "cells are moved to even nodes out".into() };
    let ago = span(peers::now().since(switch.at_ms));
    let by = &switch.by;
    if switch.paused {
        format!("paused by {by} {ago} ago: no cells are moved to even nodes out")
    } else {
        format!("cells are moved to even nodes out; resumed by {by} {ago} ago")
    }
}

fn tell(switch: Option<&RebalanceSwitch>, output: Output) -> Result<()> {
    output.print(&switch_json(switch), || switch_text(switch))
}

async fn status(buckets: &Buckets, output: Output) -> Result<()> {
    let switch = read(&*buckets.records).await?.map(|(switch, _)| switch);
    let leases = peers::leases(buckets).await?;
    let now = peers::now();
    let live: Vec<NodeLease> = leases
        .into_iter()
        .filter_map(|found| found.lease.ok())
        .filter(|lease| LeaseState::of(lease, now) == LeaseState::Live)
        .collect();
    let load = |lease: &NodeLease| Load {
        node: lease.node.clone(),
        weight: lease.load.weight,
        cells: lease.load.cells,
    };
    let loads: Vec<Load> = live.iter().map(load).collect();
    let rows: Vec<(Load, u64)> = loads.iter().cloned().zip(shares(&loads)).collect();
    let mut answer = switch_json(switch.as_ref());
    let row = |(load, share): &(Load, u64)| json!({ "node": load.node.to_string(), "weight": load.weight, "cells": load.cells, "share": share });
    answer["nodes"] = rows.iter().map(row).collect();
    output.print(&answer, || {
        let mut table = Table::new(["NODE", "WEIGHT", "CELLS", "SHARE"]);
        for (load, share) in &rows {
            table.row(vec![
                load.node.to_string(),
                load.weight.to_string(),
                load.cells.to_string(),
                share.to_string(),
            ]);
        }
        format!("{}\n{table}", switch_text(switch.as_ref()))
    })
}
