//! Finds the chain of files: drives the core's lineage and plans each epoch.

use std::sync::Arc;

use holdfast_bucket::Bucket;
use holdfast_core::compaction::ChainSize;
use holdfast_core::lineage::{
    Chain, Lineage, LineageEffect, LineageEvent, OpenerView, Segment, SegmentStart,
};
use holdfast_core::retire::{Kept, LastMark, SnapshotAt};
use holdfast_ltx::{PlanError, PlannedFile, plan_epoch};
use holdfast_records::{Key, Level, Opener, Record, epoch_prefix};
use holdfast_types::{CellName, Epoch, Position, Txid};

use super::RestoreError;
use super::listing::{EpochListing, head_level_zero, list_level, list_level_zero, list_short_level};
use super::mark::read_mark;

/// The files to apply, and where they end.
#[derive(Clone, Debug)]
pub struct PlannedChain {
    /// Oldest first.
    pub files: Vec<(Epoch, PlannedFile)>,
    /// Where they end; none for an empty database.
    pub end: Option<Position>,
    /// Whether they are applied on top of the local file.
    pub starts_from_local: bool,
    /// What restores read of the cell's history; none where a local file made it needless to look.
    pub kept: Option<Kept>,
    /// The last mark.
    pub mark: LastMark,
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
    // What is missing may have been retired while it was looked for: the core says whether it counts.
    let mut broken = None;
    let mut or_broken = |error: RestoreError| match error {
        error @ RestoreError::Bucket(_) => Err(error),
        error => {
            broken = Some(error);
            Ok(LineageEvent::Broken)
        }
    };
    loop {
        let event = match effect {
            LineageEffect::ReadMark => {
                let mark = read_mark(bucket, cell).await?;
                LineageEvent::MarkRead(mark.map(|(mark, _)| mark))
            }
            LineageEffect::Forget => {
                newest_first.clear();
                LineageEvent::Forgotten
            }
            LineageEffect::ReadOpeners(epochs) => match read_openers(bucket, cell, &epochs).await {
                Ok(openers) => LineageEvent::OpenersRead(openers),
                Err(error) => or_broken(error)?,
            },
            LineageEffect::PlanEpoch(segment) => match plan_segment(bucket, cell, segment).await {
                Ok(plan) => {
                    starts_from_local = plan.start == SegmentStart::Local;
                    newest_first.push((segment.epoch, plan.files));
                    LineageEvent::EpochPlanned { start: plan.start, end: plan.end }
                }
                Err(error) => or_broken(error)?,
            },
            LineageEffect::GiveUp => return Err(broken.expect("the core gives up what is broken")),
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
                let mark = chain.mark.as_ref().map(LastMark::from).unwrap_or_default();
                let Chain { segments: _, end, kept, mark: _ } = chain;
                return Ok(PlannedChain { files, end, starts_from_local, kept, mark, size });
            }
            LineageEffect::Fail(source) => {
                return Err(RestoreError::Lineage { cell: cell.clone(), source });
            }
        };
        effect = lineage.on(event);
    }
}

/// Reads openers, newest first, up to the first that is there: what is wrong with those before it is nobody's concern.
pub(super) async fn read_openers(
    bucket: &Arc<dyn Bucket>,
    cell: &CellName,
    epochs: &[Epoch],
) -> Result<Vec<(Epoch, Option<OpenerView>)>, RestoreError> {
    let reads = epochs.iter().map(|epoch| read_opener(bucket, cell, *epoch));
    let mut openers = Vec::with_capacity(epochs.len());
    for read in futures::future::join_all(reads).await {
        let (epoch, opener) = read?;
        openers.push((epoch, opener));
        if opener.is_some() {
            break;
        }
    }
    Ok(openers)
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

pub(super) struct SegmentPlan {
    pub(super) files: Vec<PlannedFile>,
    pub(super) start: SegmentStart,
    end: Txid,
}

pub(super) async fn plan_segment(
    bucket: &Arc<dyn Bucket>,
    cell: &CellName,
    segment: Segment,
) -> Result<SegmentPlan, RestoreError> {
    let listing = EpochListing { bucket, cell, epoch: segment.epoch };
    // Behind the snapshot that restores begin with a local file leads nowhere: what follows it may be gone.
    let local = segment.local.filter(|local| segment.snapshot.is_none_or(|at| at.txid <= *local));
    if let Some(local) = local {
        // The local file counts only where the chain really has its position.
        let mut files = list_level_zero(listing, local).await?;
        let is_listed = files.iter().any(|file| file.min <= local);
        // A file that ends there may be retired for a snapshot that stands at the same place.
        let is_snapshot = segment.snapshot.is_some_and(|at| at.txid == local);
        let on_chain = is_listed
            || is_snapshot
            || local == segment.after
            || head_level_zero(listing, local, None).await?.is_some();
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
    if let Some(start) = segment.snapshot {
        with_start(&mut files, start);
    }
    let (files, end, from_snapshot) = plan_to_end(listing, files, segment.after, segment).await?;
    let start = match files.first() {
        Some(first) if from_snapshot => {
            let is_snapshot = first.level == Level::Snapshot.number();
            SegmentStart::Snapshot(is_snapshot.then_some((first.max, first.len)))
        }
        _ => SegmentStart::Base,
    };
    Ok(SegmentPlan { files, start, end })
}

/// What is left of an epoch's files where restores begin with this snapshot: it is there whatever the listing says, and what
/// ends before it may be listed and gone.
fn with_start(files: &mut Vec<PlannedFile>, start: SnapshotAt) {
    let is_start = |file: &PlannedFile| file.level == Level::Snapshot.number() && file.max == start.txid;
    files.retain(|file| file.max > start.txid || is_start(file));
    if !files.iter().any(is_start) {
        files.push(PlannedFile {
            level: Level::Snapshot.number(),
            min: Txid::new(1),
            max: start.txid,
            len: start.len,
        });
    }
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
