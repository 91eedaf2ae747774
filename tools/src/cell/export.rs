//! `cell export`: a plain SQLite file, restored from the bucket, as the cell is or as it was. A live owner is asked to bring there
//! what followers alone hold, so that everything acknowledged is in the file; it goes on serving.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use holdfast_bucket::{Bucket, BucketArgs, Buckets};
use holdfast_cellnode::{RestoreError, RestoreJob, Restored, apply_chain, find_past, restore};
use holdfast_core::lineage::Past;
use holdfast_core::ownership::{OwnerState, OwnerView};
use holdfast_rpc::Peer;
use holdfast_types::CellName;
use rusqlite::{Connection, OpenFlags};
use serde_json::json;

use super::owner_of;
use crate::args::open_existing;
use crate::output::{Output, bytes, count};
use crate::past::PastPoint;
use crate::peers::{self, LeaseState};
use crate::progress;

/// Restores before giving up on a store that fails.
const ATTEMPTS: u32 = 4;
/// What `PRAGMA integrity_check` says of a sound database.
const SOUND: &str = "ok";

/// Options of `cell export`.
#[derive(Debug, clap::Args)]
pub struct Export {
    /// The cell, for example `db:users`.
    cell: CellName,
    /// The file to write.
    file: PathBuf,
    /// As the cell was then: a time in UTC (2026-12-01T09:30:00Z), by the clock of its owner of that time, or a position
    /// (3/41, epoch/transaction). The newest state at or before it of those that objects of the bucket end with. How far back
    /// one can go is a matter of the nodes' --history-retention.
    #[arg(long, value_name = "TIME|POSITION")]
    at: Option<PastPoint>,
    /// Replace the file when it exists.
    #[arg(long)]
    force: bool,
    /// Where the bucket is.
    #[command(flatten)]
    bucket: BucketArgs,
}

impl Export {
    /// Exports.
    pub async fn run(self, output: Output) -> Result<()> {
        let Self { cell, file, at, force, bucket } = self;
        if !force && file.symlink_metadata().is_ok() {
            bail!("`{}` exists: name another file, or replace it with --force", file.display());
        }
        let buckets = open_existing(&bucket).await?;
        let owner = owner_of(&buckets, &cell).await?;
        if owner.state == OwnerState::Purged {
            bail!("cell `{cell}` was deleted; nothing of it can be exported");
        }
        let aside = aside(&file)?;
        cover(&buckets, &cell, &owner).await?;
        let spinner = progress::spinner(format!("restoring `{cell}`"));
        let restored = restore_to(&buckets, &cell, owner, (aside.path(), at)).await?;
        spinner.set_message(format!("checking `{cell}`"));
        let path = aside.path().to_path_buf();
        let len = tokio::task::spawn_blocking(move || finish(&path)).await.context("the check failed")??;
        spinner.finish_and_clear();
        place(aside, &file, force)?;
        let position = restored.end.map(|end| json!({ "epoch": end.epoch.get(), "txid": end.txid.get() }));
        let exported = json!({
            "cell": cell.to_string(), "file": file, "position": position, "bytes": len, "integrity": SOUND,
            "read": { "files": restored.read.files, "bytes": restored.read.bytes },
        });
        output.print(&exported, || text(&cell, &file, &restored, len))
    }
}

/// Has a live owner bring into the bucket what it acknowledged. A dead one's log may hold writes that the bucket lacks.
async fn cover(buckets: &Buckets, cell: &CellName, owner: &OwnerView) -> Result<()> {
    if owner.state != OwnerState::Owned {
        return Ok(());
    }
    let lease = peers::lease(&*buckets.leases, owner.node.clone()).await?.and_then(|found| found.lease.ok());
    match lease
        .filter(|lease| lease.session == owner.session && LeaseState::of(lease, peers::now()).is_live())
    {
        Some(lease) => {
            let client = peers::client(buckets).await?;
            client
                .cover_cell(&Peer::of(&lease), cell)
                .await
                .with_context(|| format!("node `{}` could not bring `{cell}` into the bucket", owner.node))
        }
        None => {
            tracing::warn!(
                "the owner of `{cell}` is dead; followers may hold writes that are not exported: \
                 `holdfast log recover {} {}` brings them into the bucket",
                owner.node,
                owner.session
            );
            Ok(())
        }
    }
}

/// A temporary file beside the target, on the same file system.
fn aside(file: &Path) -> Result<tempfile::NamedTempFile> {
    let folder = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    tempfile::Builder::new()
        .prefix(".holdfast-export-")
        .tempfile_in(folder)
        .with_context(|| format!("nothing can be written into `{}`", folder.display()))
}

async fn restore_to(
    buckets: &Buckets,
    cell: &CellName,
    owner: OwnerView,
    (path, at): (&Path, Option<PastPoint>),
) -> Result<Restored> {
    let mut job = RestoreJob {
        cell: cell.clone(),
        below: owner.epoch.next(),
        floor: owner.floor,
        database: path.to_path_buf(),
        local: None,
    };
    let mut attempt = 1;
    loop {
        match restore_at(&buckets.bulk, &job, at).await {
            Err(error) if error.is_transient() && attempt < ATTEMPTS => {
                tracing::warn!(%error, attempt, "the restore failed; trying again");
                tokio::time::sleep(std::time::Duration::from_millis(250 << attempt)).await;
                attempt += 1;
            }
            // The cell has another owner meanwhile, who has retired what was looked for.
            Err(error) if error.is_superseded() && attempt < ATTEMPTS => {
                let owner = owner_of(buckets, cell).await?;
                (job.below, job.floor) = (owner.epoch.next(), owner.floor);
                attempt += 1;
            }
            result => return Ok(result?),
        }
    }
}

async fn restore_at(
    bucket: &Arc<dyn Bucket>,
    job: &RestoreJob,
    at: Option<PastPoint>,
) -> Result<Restored, RestoreError> {
    let Some(PastPoint(target)) = at else { return restore(bucket, job).await };
    let planned = find_past(bucket, &job.cell, Past::start(job.below, job.floor, target)).await?;
    apply_chain(bucket, job, &planned).await
}

/// Makes the restored file one that any SQLite opens by itself, checks it, and syncs it. Returns its length.
fn finish(path: &Path) -> Result<u64> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let connection = Connection::open_with_flags(path, flags)?;
    // A cell's database is in WAL mode; a file for elsewhere needs no second one beside it.
    let mode: String = connection.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get(0))?;
    ensure!(mode == "delete", "the exported file stays in journal mode `{mode}`");
    let verdict: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    ensure!(verdict == SOUND, "the restored database is damaged: {verdict}");
    connection.close().map_err(|(_, error)| error)?;
    let file = std::fs::File::open(path)?;
    file.sync_all()?;
    Ok(file.metadata()?.len())
}

fn place(aside: tempfile::NamedTempFile, file: &Path, force: bool) -> Result<()> {
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    aside.as_file().set_permissions(permissions)?;
    let placed = if force { aside.persist(file) } else { aside.persist_noclobber(file) };
    placed
        .map(|_| ())
        .map_err(|error| error.error)
        .with_context(|| format!("`{}` cannot be written", file.display()))
}

fn text(cell: &CellName, file: &Path, restored: &Restored, len: u64) -> String {
    let file = file.display();
    match restored.end {
        Some(end) => format!(
            "`{file}`: {} of `{cell}` at epoch {}, transaction {}, from {}; integrity check ok",
            bytes(len),
            end.epoch,
            end.txid,
            count(restored.read.files, "object"),
        ),
        None => format!("`{file}`: `{cell}` is empty, and so is the file"),
    }
}
