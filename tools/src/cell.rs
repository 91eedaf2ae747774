//! `holdfast cell`: cells as the bucket knows them, and queries through an ingress.

mod chain;
mod delete;
mod export;
mod list;
mod restore;
mod show;
mod sql;

use anyhow::{Result, bail};
use clap::Subcommand;
use holdfast_bucket::Buckets;
use holdfast_cellnode::Owners;
use holdfast_core::ownership::{OwnerState, OwnerView};
use holdfast_types::CellName;
use serde_json::{Value, json};
use std::sync::Arc;

use crate::output::Output;

/// What can be done with cells.
#[derive(Debug, Subcommand)]
pub enum Cell {
    /// List cells and who owns them.
    List(list::List),
    /// Show what the bucket holds of a cell: its owner record, its epochs, its files.
    Show(show::Show),
    /// Run SQL in a cell, through an ingress.
    Sql(sql::Sql),
    /// Write a cell's database to a plain SQLite file, from the bucket, without touching its owner.
    Export(export::Export),
    /// Put a state of a cell's past in the place of the present one.
    Restore(restore::Restore),
    /// Delete a cell and its history for ever.
    Delete(delete::Delete),
}

impl Cell {
    /// Does it.
    pub async fn run(self, output: Output) -> Result<()> {
        match self {
            Self::List(list) => list.run(output).await,
            Self::Show(show) => show.run(output).await,
            Self::Sql(sql) => sql.run(output).await,
            Self::Export(export) => export.run(output).await,
            Self::Restore(restore) => restore.run(output).await,
            Self::Delete(delete) => delete.run(output).await,
        }
    }
}

fn owners(buckets: &Buckets) -> Owners {
    Owners::new(Arc::clone(&buckets.records), Arc::clone(&buckets.leases))
}

/// The owner record of a cell that must be there.
async fn owner_of(buckets: &Buckets, cell: &CellName) -> Result<OwnerView> {
    match owners(buckets).read(cell).await? {
        Some((owner, _)) => Ok(owner),
        None => bail!(
            "there is no cell `{cell}` in `{}`; `holdfast cell list` shows those there are",
            buckets.records.url()
        ),
    }
}

fn state_name(state: OwnerState) -> &'static str {
    match state {
        OwnerState::Owned => "owned",
        OwnerState::Released => "released",
        OwnerState::Purged => "purged",
    }
}

fn owner_json(owner: &OwnerView) -> Value {
    let OwnerView { node, session, epoch, state, floor, write_id: _ } = owner;
    json!({
        "state": state_name(*state), "node": node.to_string(), "session": session.to_string(),
        "epoch": epoch.get(), "floor": floor.get(),
    })
}
