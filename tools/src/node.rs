//! `holdfast node`: who is in the fleet, and how one leaves it.

mod rebalance;

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;
use holdfast_bucket::{BucketArgs, Buckets};
use holdfast_records::NodeLease;
use holdfast_rpc::Peer;
use holdfast_types::{Millis, NodeName, SessionId};
use humantime::parse_duration;
use serde_json::{Value, json};

use crate::args::open_existing;
use crate::output::{Output, Table, count, span};
use crate::peers::{self, FoundLease, LeaseState};
use crate::progress;

/// How often a drain's end is looked for.
const WATCH: Duration = Duration::from_millis(500);

/// What can be done with nodes.
#[derive(Debug, Subcommand)]
pub enum Node {
    /// List the nodes, by their leases.
    List {
        /// Where the bucket is.
        #[command(flatten)]
        bucket: BucketArgs,
    },
    /// Tell a node to give its cells up and stop.
    Drain {
        /// The node.
        node: NodeName,
        /// Wait until it has stopped.
        #[arg(long)]
        wait: bool,
        /// How long to wait.
        #[arg(long, default_value = "5min", value_parser = parse_duration, value_name = "TIME")]
        timeout: Duration,
        /// Where the bucket is.
        #[command(flatten)]
        bucket: BucketArgs,
    },
    /// Pause and resume the moving of cells that evens nodes out, and tell how even they are.
    #[command(subcommand)]
    Rebalance(rebalance::Rebalance),
}

impl Node {
    /// Does it.
    pub async fn run(self, output: Output) -> Result<()> {
        match self {
            Self::Rebalance(rebalance) => rebalance.run(output).await,
            Self::List { bucket } => list(&open_existing(&bucket).await?, output).await,
            Self::Drain { node, wait, timeout, bucket } => {
                let buckets = open_existing(&bucket).await?;
                drain(&buckets, node, wait.then_some(timeout), output).await
            }
        }
    }
}

async fn list(buckets: &Buckets, output: Output) -> Result<()> {
    let leases = peers::leases(buckets).await?;
    let nodes: Vec<Value> = leases.iter().map(row_json).collect();
    output.print(&json!({ "nodes": nodes }), || {
        if leases.is_empty() {
            return "no node has ever run on this bucket".into();
        }
        let mut table = Table::new([
            "NODE", "STATE", "LEASE", "CELLS", "REQUESTS", "WEIGHT", "ADDRESS", "ZONE", "PROTOCOL", "SESSION",
        ]);
        for found in &leases {
            table.row(row_text(found));
        }
        table.to_string()
    })
}

/// A lease as JSON.
#[must_use]
pub fn lease_json(lease: &NodeLease) -> Value {
    let now = peers::now();
    json!({
        "node": lease.node.to_string(),
        "state": LeaseState::of(lease, now).name(),
        "session": lease.session.to_string(),
        "expires_in_ms": i64::try_from(lease.expires_ms.get()).unwrap_or(i64::MAX)
            - i64::try_from(now.get()).unwrap_or(i64::MAX),
        "started_ms": lease.started_ms.get(),
        "address": lease.address,
        "host": lease.host.to_string(),
        "zone": lease.zone.to_string(),
        "protocol": { "min": lease.protocol.min, "max": lease.protocol.max },
        "load": { "weight": lease.load.weight, "cells": lease.load.cells, "requests": lease.load.requests },
        "draining": lease.draining,
    })
}

fn row_json(found: &FoundLease) -> Value {
    match &found.lease {
        Ok(lease) => lease_json(lease),
        Err(error) => {
            json!({ "node": found.node.to_string(), "state": "unreadable", "error": error.to_string() })
        }
    }
}

/// When a lease ends, in words.
#[must_use]
pub fn lease_end(lease: &NodeLease) -> String {
    let now = peers::now();
    match LeaseState::of(lease, now) {
        LeaseState::Stopped => "given up".into(),
        _ if lease.expires_ms > now => format!("{} left", span(lease.expires_ms.since(now))),
        _ => format!("ended {} ago", span(now.since(lease.expires_ms))),
    }
}

fn row_text(found: &FoundLease) -> Vec<String> {
    let lease = match &found.lease {
        Ok(lease) => lease,
        Err(error) => return vec![found.node.to_string(), "unreadable".into(), error.to_string()],
    };
    vec![
        found.node.to_string(),
        LeaseState::of(lease, peers::now()).name().into(),
        lease_end(lease),
        lease.load.cells.to_string(),
        lease.load.requests.to_string(),
        lease.load.weight.to_string(),
        lease.address.clone(),
        lease.zone.to_string(),
        format!("{}-{}", lease.protocol.min, lease.protocol.max),
        lease.session.to_string(),
    ]
}

async fn read(buckets: &Buckets, node: &NodeName) -> Result<NodeLease> {
    let Some(found) = peers::lease(&*buckets.leases, node.clone()).await? else {
        bail!("there is no node `{node}`; `holdfast node list` shows those that have run")
    };
    found.lease.with_context(|| format!("the lease of `{node}`"))
}

async fn drain(buckets: &Buckets, node: NodeName, wait: Option<Duration>, output: Output) -> Result<()> {
    let lease = read(buckets, &node).await?;
    if !LeaseState::of(&lease, peers::now()).is_live() {
        bail!("node `{node}` does not run: its lease was {}", lease_end(&lease));
    }
    let client = peers::client(buckets).await?;
    client
        .drain(&Peer::of(&lease))
        .await
        .with_context(|| format!("node `{node}` cannot be told to drain"))?;
    let Some(timeout) = wait else {
        let text = || format!("`{node}` is draining: {} to give up", count(lease.load.cells, "cell"));
        return output.print(&json!({ "node": node.to_string(), "state": "draining" }), text);
    };
    let last =
        tokio::time::timeout(timeout, stopped(buckets, &node, lease.session)).await.map_err(|_| {
            anyhow::anyhow!(
                "`{node}` still drains after {timeout:?}; its cells are served, and it goes on draining"
            )
        })??;
    let left = left_by(&last, lease.session);
    output.print(&json!({ "node": node.to_string(), "state": "stopped", "left": left }), || match left {
        Some(0) => format!("`{node}` has stopped; every cell was given up"),
        Some(left) => format!("`{node}` has stopped; {} could not be given up in time", count(left, "cell")),
        None => format!("`{node}` has stopped; it did not say which cells it gave up"),
    })?;
    match left {
        Some(left) if left > 0 => bail!(
            "`{node}` could not give up {} in time: whoever takes them over recovers its log first; its own log names them",
            count(left, "cell")
        ),
        _ => Ok(()),
    }
}

/// How many cells a session still owned when it gave its lease up; none when it did not, or another has the lease by now.
fn left_by(last: &NodeLease, session: SessionId) -> Option<u64> {
    (last.session == session && last.expires_ms == Millis::ZERO).then_some(last.load.cells)
}

/// Waits until a session holds its node's lease no more, and tells the lease as it is then.
async fn stopped(buckets: &Buckets, node: &NodeName, session: SessionId) -> Result<NodeLease> {
    let spinner = progress::spinner(format!("`{node}` drains"));
    loop {
        let lease = read(buckets, node).await?;
        if lease.session != session || !LeaseState::of(&lease, peers::now()).is_live() {
            spinner.finish_and_clear();
            return Ok(lease);
        }
        spinner.set_message(format!("`{node}` drains, {} left", count(lease.load.cells, "cell")));
        tokio::time::sleep(WATCH).await;
    }
}
