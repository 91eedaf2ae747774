//! `cell restore`: a state of a cell's past in the place of the present one. The owner does it; where nobody owns the cell, the
//! first node that lives and takes it. What is replaced stays in the history, and the command that undoes it is told.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use holdfast_bucket::{BucketArgs, Buckets};
use holdfast_core::ownership::OwnerState;
use holdfast_records::NodeLease;
use holdfast_rpc::{CallError, NodeCallError, OwnerHint, Peer, RestoredCell};
use holdfast_types::{CellName, Position};
use serde_json::json;

use super::owner_of;
use crate::args::open_existing;
use crate::output::Output;
use crate::past::PastPoint;
use crate::peers::{self, LeaseState};
use crate::progress;

/// Nodes asked before giving up: between two the cell has moved.
const ROUNDS: u32 = 10;
/// Between them.
const PAUSE: Duration = Duration::from_millis(500);

/// Options of `cell restore`.
#[derive(Debug, clap::Args)]
pub struct Restore {
    /// The cell, for example `db:users`.
    cell: CellName,
    /// What to go back to: a time in UTC (2026-12-01T09:30:00Z), by the clock of the owner of that time, or a position (3/41,
    /// epoch/transaction). The newest state at or before it of those that objects of the bucket end with; `cell export` shows it
    /// without changing anything. How far back one can go is a matter of the nodes' --history-retention.
    #[arg(long, value_name = "TIME|POSITION")]
    at: PastPoint,
    /// Yes, everything that was written since is to be gone from the cell.
    #[arg(long)]
    yes: bool,
    /// Where the bucket is.
    #[command(flatten)]
    bucket: BucketArgs,
}

impl Restore {
    /// Restores.
    pub async fn run(self, output: Output) -> Result<()> {
        let Self { cell, at, yes, bucket } = self;
        if !yes {
            bail!("this replaces everything in `{cell}` by what it was; add --yes to do it");
        }
        let buckets = open_existing(&bucket).await?;
        if owner_of(&buckets, &cell).await?.state == OwnerState::Purged {
            bail!("cell `{cell}` was deleted; nothing of it can be restored");
        }
        let spinner = progress::spinner(format!("restoring `{cell}`"));
        let RestoredCell { found, before, now } = restore(&buckets, &cell, at).await?;
        spinner.finish_and_clear();
        let position = |at: Position| json!({ "epoch": at.epoch.get(), "txid": at.txid.get() });
        let restored = json!({
            "cell": cell.to_string(), "found": position(found), "before": position(before), "now": position(now),
        });
        output.print(&restored, || {
            format!(
                "`{cell}` is again what it was at {found}, by transaction {now}.\n\
                 To undo it: holdfast cell restore {cell} --at {before} --yes"
            )
        })
    }
}

/// Asks the owner, and whoever is the owner instead.
async fn restore(buckets: &Buckets, cell: &CellName, PastPoint(target): PastPoint) -> Result<RestoredCell> {
    let client = peers::client(buckets).await?;
    let mut ask: VecDeque<Peer> = candidates(buckets, cell).await?;
    let mut refusal = None;
    for _ in 0..ROUNDS {
        let Some(peer) = ask.pop_front() else {
            tokio::time::sleep(PAUSE).await;
            ask = candidates(buckets, cell).await?;
            continue;
        };
        match client.restore_cell(&peer, cell, target).await {
            Ok(restored) => return Ok(restored),
            Err(NodeCallError::Refused(CallError::NotOwner(Some(OwnerHint { node, session })))) => {
                let found = peers::lease(&*buckets.leases, node).await?.and_then(|found| found.lease.ok());
                ask.extend(found.filter(|lease| lease.session == session).map(|lease| Peer::of(&lease)));
            }
            Err(NodeCallError::Refused(
                error @ (CallError::NotOwner(None) | CallError::Draining | CallError::Overloaded { .. }),
            )) => refusal = Some(error.to_string()),
            Err(NodeCallError::Refused(CallError::OutcomeUnknown { reason })) => {
                bail!("whether `{cell}` was restored is unknown: {reason}")
            }
            Err(NodeCallError::Refused(error)) => bail!("{error}"),
            Err(NodeCallError::Unreachable(reason)) => refusal = Some(reason),
            Err(NodeCallError::Failed(reason)) => {
                bail!("whether `{cell}` was restored is unknown: {reason}")
            }
        }
    }
    let refusal = refusal.unwrap_or_else(|| "no cellnode lives".to_owned());
    bail!("`{cell}` is not restored: {refusal}")
}

/// The owner where one lives, else every node that does.
async fn candidates(buckets: &Buckets, cell: &CellName) -> Result<VecDeque<Peer>> {
    let owner = owner_of(buckets, cell).await?;
    let leases = peers::leases(buckets).await.context("the nodes' leases cannot be read")?;
    let live: Vec<NodeLease> = leases
        .into_iter()
        .filter_map(|found| found.lease.ok())
        .filter(|lease| LeaseState::of(lease, peers::now()).is_live())
        .collect();
    let is_owner = |lease: &&NodeLease| owner.state == OwnerState::Owned && lease.session == owner.session;
    match live.iter().find(is_owner) {
        Some(lease) => Ok(VecDeque::from([Peer::of(lease)])),
        None => Ok(live.iter().map(Peer::of).collect()),
    }
}
