//! `cell show`: everything that the bucket holds of one cell, and how it hangs together.

use anyhow::Result;
use holdfast_bucket::{BucketArgs, Buckets};
use holdfast_cellnode::find_chain;
use holdfast_core::ownership::{OwnerState, OwnerView};
use holdfast_types::{CellName, NodeName, SessionId};
use serde_json::{Value, json};

use super::chain::{self, CellFiles, EpochFiles, LevelFiles};
use super::{owner_json, owner_of, state_name};
use crate::args::open_existing;
use crate::node::lease_end;
use crate::output::{Output, Table, bytes, count};
use crate::peers::{self, LeaseState};

/// Options of `cell show`.
#[derive(Debug, clap::Args)]
pub struct Show {
    /// The cell, for example `db:users`.
    cell: CellName,
    /// Where the bucket is.
    #[command(flatten)]
    bucket: BucketArgs,
}

impl Show {
    /// Shows.
    pub async fn run(self, output: Output) -> Result<()> {
        let Self { cell, bucket } = self;
        let buckets = open_existing(&bucket).await?;
        let owner = owner_of(&buckets, &cell).await?;
        let session = match owner.state {
            OwnerState::Owned => owner_session(&buckets, &owner.node, owner.session).await,
            OwnerState::Released | OwnerState::Purged => String::new(),
        };
        let files = chain::read(&buckets, &cell).await?;
        let restore = restorable(&buckets, &cell, &owner).await;
        let shown = Shown { cell, owner, session, files, restore };
        output.print(&shown.to_json(), || shown.to_text())
    }
}

/// Whether the session that owns the cell lives.
async fn owner_session(buckets: &Buckets, node: &NodeName, session: SessionId) -> String {
    match peers::lease(&*buckets.leases, node.clone()).await {
        Ok(Some(found)) => match found.lease {
            Ok(lease) if lease.session != session => {
                "a session that is over; the node runs as another one".into()
            }
            Ok(lease) => {
                format!(
                    "a session that is {}, lease {}",
                    LeaseState::of(&lease, peers::now()).name(),
                    lease_end(&lease)
                )
            }
            Err(error) => format!("a session whose lease cannot be read: {error}"),
        },
        Ok(None) => "a session without a lease".into(),
        Err(error) => format!("a session whose lease cannot be read: {error:#}"),
    }
}

/// What a restore would give now.
async fn restorable(buckets: &Buckets, cell: &CellName, owner: &OwnerView) -> Result<Value, String> {
    let chain = find_chain(&buckets.bulk, cell, (owner.epoch.next(), owner.floor), None).await;
    let chain = chain.map_err(|error| error.to_string())?;
    let read: u64 = chain.files.iter().map(|(_, file)| file.len).sum();
    Ok(json!({
        "epoch": chain.end.map(|end| end.epoch.get()),
        "txid": chain.end.map_or(0, |end| end.txid.get()),
        "files": chain.files.len(),
        "bytes": read,
    }))
}

struct Shown {
    cell: CellName,
    owner: OwnerView,
    session: String,
    files: CellFiles,
    restore: Result<Value, String>,
}

impl Shown {
    fn to_json(&self) -> Value {
        let Self { cell, owner, session: _, files, restore } = self;
        let epochs: Vec<Value> = files
            .epochs
            .iter()
            .map(|(epoch, files)| {
                let mut shown = opener_json(files);
                shown["epoch"] = epoch.get().into();
                shown["levels"] =
                    files.levels.iter().map(|(number, files)| level_json(*number, files)).collect();
                shown
            })
            .collect();
        json!({
            "cell": cell.to_string(),
            "owner": owner_json(owner),
            "position": restore.as_ref().ok(),
            "error": restore.as_ref().err(),
            "epochs": epochs,
            "unknown_objects": files.unknown,
        })
    }

    fn to_text(&self) -> String {
        let Self { cell, owner, session, files, restore } = self;
        let mut text = format!("cell      {cell}\nstate     {}\n", state_name(owner.state));
        let session = if session.is_empty() { String::new() } else { format!(", {session}") };
        text += &format!(
            "node      {}{session}\nsession   {}\nepoch     {}\n",
            owner.node, owner.session, owner.epoch
        );
        if owner.floor.get() > 0 {
            text += &format!("floor     {}: nothing of an earlier epoch is ever read again\n", owner.floor);
        }
        text += &match restore {
            Ok(restore) => format!(
                "position  epoch {}, transaction {}, in the bucket; a restore reads {} ({})\n",
                restore["epoch"].as_u64().map_or("-".into(), |epoch| epoch.to_string()),
                restore["txid"],
                count(restore["files"].as_u64().unwrap_or(0), "file"),
                bytes(restore["bytes"].as_u64().unwrap_or(0)),
            ),
            Err(error) => format!("position  NOT RESTORABLE: {error}\n"),
        };
        if files.epochs.is_empty() {
            return text + "\nno files";
        }
        let mut table = Table::new(["EPOCH", "OPENED", "LEVEL", "FILES", "SIZE", "TRANSACTIONS"]);
        for (epoch, files) in &files.epochs {
            let opened = opener_text(files);
            if files.levels.is_empty() {
                table.row([&epoch.to_string(), &opened]);
            }
            for (index, (number, level)) in files.levels.iter().enumerate() {
                let (epoch, opened) =
                    if index == 0 { (epoch.to_string(), opened.as_str()) } else { (String::new(), "") };
                table.row(level_row(epoch, opened, *number, level));
            }
        }
        text + &format!("\n{table}")
    }
}

fn level_row(epoch: String, opened: &str, number: u8, files: &LevelFiles) -> [String; 6] {
    let LevelFiles { files, bytes: len, min, max } = files;
    let name = chain::level_name(number).to_owned();
    [epoch, opened.to_owned(), name, files.to_string(), bytes(*len), format!("{min} to {max}")]
}

fn level_json(number: u8, files: &LevelFiles) -> Value {
    let LevelFiles { files, bytes, min, max } = files;
    json!({ "level": number, "files": files, "bytes": bytes, "min_txid": min.get(), "max_txid": max.get() })
}

fn opener_json(files: &EpochFiles) -> Value {
    match &files.opener {
        Some(Ok(opener)) => json!({
            "reason": chain::reason(opener.reason),
            "base": opener.base.map(|base| json!({ "epoch": base.epoch.get(), "txid": base.txid.get() })),
        }),
        Some(Err(error)) => json!({ "error": error }),
        None => json!({ "reason": Value::Null }),
    }
}

fn opener_text(files: &EpochFiles) -> String {
    match &files.opener {
        Some(Ok(opener)) => {
            let base = opener.base.map(|base| format!(", from epoch {} at {}", base.epoch, base.txid));
            chain::reason(opener.reason).to_owned() + &base.unwrap_or_default()
        }
        Some(Err(error)) => format!("opener unreadable: {error}"),
        None => "no opener: nothing of it counts".into(),
    }
}
