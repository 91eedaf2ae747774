//! Finds the chain of files: drives the core's lineage and plans each epoch.

use std::sync::Arc;

use holdfast_bucket::Bucket;
use holdfast_core::compaction::ChainSize;
use holdfast_core::lineage::{Lineage, LineageEffect, LineageEvent, OpenerView, Segment, SegmentStart};
use holdfast_ltx::{PlanError, PlannedFile, plan_epoch};
use holdfast_records::{Key, Level, Opener, Record, epoch_prefix};
use holdfast_types::{CellName, Epoch, Position, Txid};

use super::RestoreError;
use super::listing::{EpochListing, head_level_zero, list_level, list_level_zero, list_short_level};

/// The files to apply, and where they end.
#[derive(Clone, Debug)]
pub struct PlannedChain {
    /// Oldest first.
    pub files: Vec<(Epoch, PlannedFile)>,
    /// Where they end; none for an empty database.
    pub end: Option<Position>,
    /// Whether they are applied on top of the local file.
    pub starts_from_local: bool,
    /// Size of the chain, as a restore without the local file would find it at most.
    pub size: ChainSize,
}

/// Finds the files that restore the newest state below an epoch, and not below a floor.
///
/// # Errors
/// [`RestoreError`].
pub async fn find_chain(
    bucket: &Arc<dyn Bucket>,
    cell: &CellName,
    (below, floor): (Epoch, Epoch),
    local: Option<Position>,
) -> Result<PlannedChain, RestoreError> {
    let (mut lineage, mut effect) = Lineage::start(below, floor, local);
    let mut newest_first: Vec<(Epoch, Vec<PlannedFile>)> = Vec::new();
    let mut starts_from_local = false;
    loop {
        let event = match effect {
            LineageEffect::ReadOpeners(epochs) => {
                let reads = epochs.iter().map(|epoch| read_opener(bucket, cell, *epoch));
                LineageEvent::OpenersRead(futures::future::try_join_all(reads).await?)
            }
            LineageEffect::PlanEpoch(segment) => {
                let plan = plan_segment(bucket, cell, segment).await?;
                starts_from_local = plan.start == SegmentStart::Local;
                newest_first.push((segment.epoch, plan.files));
                LineageEvent::EpochPlanned { start: plan.start, end: plan.end }
            }
            LineageEffect::Finish(chain) => {
                let epochs = u64::try_from(newest_first.len()).unwrap_or(u64::MAX);
                let files: Vec<_> = newest_first
                    .into_iter()
                    .rev()
                    .flat_map(|(epoch, files)| files.into_iter().map(move |file| (epoch, file)))
                    .collect();
                let size = ChainSize {
                    files: epochs + u64::try_from(files.len()).unwrap_or(u64::MAX),
                    bytes: files.iter().map(|(_, file)| file.len).sum(),
                };
                return Ok(PlannedChain { files, end: chain.end, starts_from_local, size });
            }
            LineageEffect::Fail(source) => {
                return Err(RestoreError::Lineage { cell: cell.clone(), source });
            }
        };
        effect = lineage.on(event);
    }
}

async fn read_opener(
    bucket: &Arc<dyn Bucket>,
    cell: &CellName,
    epoch: Epoch,
) -> Result<(Epoch, Option<OpenerView>), RestoreError> {
    let key = Key::Opener(cell.clone(), epoch).to_string();
    let Some(object) = bucket.get(&key).await? else {
        // Openers are stored before anything of their epoch: data without one means that it was lost.
        let listed = bucket.list(&epoch_prefix(cell, epoch), None, 1).await?;
        return match listed.objects.first() {
            None => Ok((epoch, None)),
            Some(object) => Err(RestoreError::OpenerLost { key, object: object.key.clone() }),
        };
    };
    let opener = Opener::decode(&object.body).map_err(|source| RestoreError::Opener { key, source })?;
    Ok((epoch, Some(OpenerView { base: opener.base.map(Position::from) })))
}

struct SegmentPlan {
    files: Vec<PlannedFile>,
    start: SegmentStart,
    end: Txid,
}

async fn plan_segment(
    bucket: &Arc<dyn Bucket>,
    cell: &CellName,
    segment: Segment,
) -> Result<SegmentPlan, RestoreError> {
    let listing = EpochListing { bucket, cell, epoch: segment.epoch };
    if let Some(local) = segment.local {
        // The local file counts only where the chain really has its position.
        let mut files = list_level_zero(listing, local).await?;
        let is_listed = files.iter().any(|file| file.min <= local);
        let on_chain =
            is_listed || local == segment.after || head_level_zero(listing, local, None).await?.is_some();
        if on_chain {
            files.retain(|file| file.max > local);
            let plan = plan_to_end(listing, files, local, segment).await?;
            return Ok(SegmentPlan { files: plan.0, start: SegmentStart::Local, end: plan.1 });
        }
    }
    // In one round trip; most cells have few enough level-0 files that one page holds them all.
    let (snapshots, ones, zeros) = tokio::try_join!(
        list_level(listing, Level::Snapshot, Txid::ZERO),
        list_level(listing, Level::One, segment.after.next()),
        list_short_level(listing, Level::Zero, segment.after.next())
    )?;
    let mut files = match zeros {
        Some(zeros) => zeros,
        None => {
            let within = |file: &&PlannedFile| segment.clip.is_none_or(|clip| file.max <= clip);
            let compacted = snapshots.iter().chain(&ones).filter(within).map(|file| file.max).max();
            let from = compacted.unwrap_or(segment.after).max(segment.after).next();
            list_level_zero(listing, from).await?
        }
    };
    files.extend(snapshots);
    files.extend(ones);
    let (files, end, from_snapshot) = plan_to_end(listing, files, segment.after, segment).await?;
    let start = if from_snapshot { SegmentStart::Snapshot } else { SegmentStart::Base };
    Ok(SegmentPlan { files, start, end })
}

/// Plans, fills in by direct reads what a stale listing left out, and confirms the end.
async fn plan_to_end(
    listing: EpochListing<'_>,
    mut files: Vec<PlannedFile>,
    from: Txid,
    segment: Segment,
) -> Result<(Vec<PlannedFile>, Txid, bool), RestoreError> {
    let mut relisted_from = None;
    loop {
        let missing = match plan_epoch(&files, from, segment.clip) {
            Ok(plan) if !segment.confirm_tail => {
                return Ok((plan.files, plan.end, plan.starts_from_snapshot));
            }
            Ok(plan) => match head_level_zero(listing, plan.end.next(), None).await? {
                None => return Ok((plan.files, plan.end, plan.starts_from_snapshot)),
                Some(next) => {
                    files.push(next);
                    continue;
                }
            },
            Err(source @ PlanError::Range { .. }) => return Err(gap(listing, source, Txid::ZERO)),
            Err(source @ PlanError::Gap { missing, .. }) => (missing, source),
        };
        let (txid, source) = missing;
        if let Some(found) = head_level_zero(listing, txid, segment.clip).await? {
            files.push(found);
            // One look at the level from there, rather than a read for each object that an old listing lacks.
            if relisted_from.is_none() {
                relisted_from = Some(txid);
                files.extend(list_level_zero(listing, txid.next()).await?);
            }
        } else {
            return Err(gap(listing, source, txid));
        }
    }
}

fn gap(listing: EpochListing<'_>, source: PlanError, missing: Txid) -> RestoreError {
    let EpochListing { cell, epoch, .. } = listing;
    let missing = Key::Ltx { cell: cell.clone(), epoch, level: Level::Zero, min: missing, max: missing };
    RestoreError::Gap { cell: cell.clone(), epoch, source: Box::new(source), missing: missing.to_string() }
}
