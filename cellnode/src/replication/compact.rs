//! Level-1 compactions and snapshots, in the background. Both are additive; a failure costs a longer restore and shows as
//! a metric and a log line.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use anyhow::Context as _;
use futures::{StreamExt, TryStreamExt};
use holdfast_core::compaction::{CompactionEvent, CompactionWork};
use holdfast_ltx::{Decoder, PageSize, SnapshotSpec, compact, encode_snapshot, plan_epoch};
use holdfast_records::{Key, Level};
use holdfast_telemetry::names::span;
use holdfast_telemetry::{CompactionKind, Outcome, metrics};
use holdfast_types::Txid;
use tempfile::NamedTempFile;
use tracing::Instrument as _;

use super::upload::put_file;
use crate::blocking::blocking;
use crate::cells::Resident;
use crate::clock;
use crate::node::Node;
use crate::restore::{EpochListing, Fetched, RestoreJob, fetch, key_of, list_level, restore};
use crate::retire::{self, HistoryHold};

/// Level-0 objects fetched at once.
const FETCHES: usize = 16;

/// Takes an event to the cell's compaction and starts what it asks for.
pub(crate) fn on(resident: &Arc<Resident>, event: CompactionEvent) {
    let work = {
        let mut compaction = resident.compaction.lock().unwrap_or_else(PoisonError::into_inner);
        compaction.on(event, clock::monotonic())
    };
    if let (Some(work), Some(node)) = (work, resident.node()) {
        let runtime = node.runtime.clone();
        let span = tracing::info_span!(span::COMPACTION, cell = %resident.cell, ?work);
        runtime.spawn(run(node, Arc::clone(resident), work).instrument(span));
    }
}

// Boxed, because finished work may start the next piece of work.
fn run(
    node: Arc<Node>,
    resident: Arc<Resident>,
    work: CompactionWork,
) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        let _permit = node.compactions.acquire().await.expect("the semaphore is never closed");
        if resident.has_failed() {
            return;
        }
        let (kind, result) = match work {
            CompactionWork::Compact { min, max } => {
                (CompactionKind::Compaction, compact_level_zero(&node, &resident, min, max).await)
            }
            CompactionWork::Snapshot { at: _ } => {
                (CompactionKind::Snapshot, snapshot(&node, &resident).await)
            }
        };
        let event = match result {
            Ok((len, max)) => {
                metrics().compaction(kind, Outcome::Ok);
                CompactionEvent::Done { len, max }
            }
            Err(error) => {
                metrics().compaction(kind, Outcome::Failed);
                tracing::warn!(cell = %resident.cell, error = format!("{error:#}"), "{work:?} failed; tried again later");
                CompactionEvent::Failed
            }
        };
        let is_snapshot =
            matches!((work, event), (CompactionWork::Snapshot { .. }, CompactionEvent::Done { .. }));
        on(&resident, event);
        if is_snapshot {
            retire::on_snapshot(&node, &resident);
        }
    })
}

async fn compact_level_zero(
    node: &Arc<Node>,
    resident: &Arc<Resident>,
    min: Txid,
    max: Txid,
) -> anyhow::Result<(u64, Txid)> {
    let dir = resident.files.dir().to_path_buf();
    let listing = EpochListing { bucket: &node.buckets.bulk, cell: &resident.cell, epoch: resident.epoch };
    let listed = list_level(listing, Level::Zero, min).await?;
    let before = min.previous().context("transactions start at 1")?;
    // One object after the other, unless the listing is of an epoch that was cut twice.
    let plan = plan_epoch(&listed, before, Some(max)).context("level 0 is not all listed")?;
    let inputs: Vec<Fetched> = futures::stream::iter(plan.files)
        .map(|file| {
            let key = key_of(&resident.cell, resident.epoch, &file);
            let bucket = Arc::clone(&node.buckets.bulk);
            let dir = dir.clone();
            async move { fetch(&bucket, &key, file.len, &dir).await }
        })
        .buffered(FETCHES)
        .try_collect()
        .await?;
    let merged = blocking(move || merge(&inputs, &dir)).await?;
    let key = Key::Ltx { cell: resident.cell.clone(), epoch: resident.epoch, level: Level::One, min, max };
    put_file(&node.buckets.bulk, &key.to_string(), merged.path()).await?;
    Ok((merged.as_file().metadata()?.len(), max))
}

fn merge(inputs: &[Fetched], dir: &Path) -> anyhow::Result<NamedTempFile> {
    let mut decoders: Vec<Decoder<Box<dyn std::io::Read>>> = Vec::with_capacity(inputs.len());
    for input in inputs {
        let reader: Box<dyn std::io::Read> = match input {
            Fetched::Memory(bytes) => Box::new(std::io::Cursor::new(bytes.clone())),
            Fetched::File(file) => Box::new(std::io::BufReader::new(file.reopen()?)),
        };
        decoders.push(Decoder::new(reader)?);
    }
    let output = NamedTempFile::with_prefix_in("compact-", dir)?;
    let (mut writer, _) = compact(decoders, std::io::BufWriter::new(output.reopen()?))?;
    writer.flush()?;
    Ok(output)
}

/// Restores the cell's own chain beside the live database and writes it as one file: so a snapshot also shows that the
/// chain restores.
async fn snapshot(node: &Arc<Node>, resident: &Arc<Resident>) -> anyhow::Result<(u64, Txid)> {
    let _hold = HistoryHold::of(resident);
    let dir = resident.files.dir().to_path_buf();
    let database = NamedTempFile::with_prefix_in("snapshot-", &dir)?;
    let job = RestoreJob {
        cell: resident.cell.clone(),
        below: resident.epoch.next(),
        floor: resident.owner.floor,
        database: database.path().to_path_buf(),
        local: None,
    };
    let restored = restore(&node.buckets.bulk, &job).await?;
    let end = restored.end.context("the chain is empty")?;
    anyhow::ensure!(end.epoch == resident.epoch, "the chain ends in epoch {}", end.epoch);
    let file = blocking(move || encode(&database, end.txid, &dir)).await?;
    let key = Key::Ltx {
        cell: resident.cell.clone(),
        epoch: resident.epoch,
        level: Level::Snapshot,
        min: Txid::new(1),
        max: end.txid,
    };
    put_file(&node.buckets.bulk, &key.to_string(), file.path()).await?;
    Ok((file.as_file().metadata()?.len(), end.txid))
}

fn encode(database: &NamedTempFile, max: Txid, dir: &Path) -> anyhow::Result<NamedTempFile> {
    let file = database.reopen()?;
    let page_size: PageSize = crate::restore::page_size_of(&file)?;
    let pages = file.metadata()?.len() / u64::from(page_size.get());
    let commit = u32::try_from(pages).context("the database has more pages than SQLite allows")?;
    let spec = SnapshotSpec { page_size, commit, max, timestamp: clock::wall() };
    let output = NamedTempFile::with_prefix_in("encoded-", dir)?;
    let (mut writer, _) = encode_snapshot(&file, spec, std::io::BufWriter::new(output.reopen()?))?;
    writer.flush()?;
    Ok(output)
}
