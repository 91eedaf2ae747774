//! Brings a cell from nowhere to resident: claim, restore, opener, open (design 4.1). Runs outside of the request that
//! asked and goes on when that has gone.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use holdfast_bucket::Version;
use holdfast_core::compaction::ChainSize;
use holdfast_core::ownership::{ClaimFailure, ClaimOutcome, Intent, OwnerView, Previous};
use holdfast_records::{Key, Opener, OpenerReason, Record};
use holdfast_rpc::{CallError, OwnerHint, PROTOCOL};
use holdfast_telemetry::names::span;
use holdfast_telemetry::{ActivationOutcome, Outcome, RestoreSource, Stage, metrics};
use holdfast_types::{CellName, Position, Txid};
use tokio::sync::oneshot;
use tracing::Instrument as _;

use crate::backoff::Backoff;
use crate::blocking::blocking;
use crate::cells::{Job, Resident, ResidentParts};
use crate::data_dir::CellFiles;
use crate::dormant::Asleep;
use crate::node::Node;
use crate::paged::{self, PagedDatabase, Prepared};
use crate::restore::{self, PlannedChain, RestoreError, RestoreJob, Restored};
use crate::retire;

/// Tries to rebuild a database under one claim before giving up: a store that fails for a while must not burn an epoch
/// a second.
const RESTORE_ATTEMPTS: u32 = 8;
/// Between them, and between those to write the opener: 100 ms doubling to 3.2 s.
const PAUSES: Backoff = Backoff::new(100, 5);

/// Activates a cell.
///
/// # Errors
/// [`CallError`]: who owns it, or what blocks it.
pub(crate) async fn activate(node: Arc<Node>, cell: CellName) -> Result<Arc<Resident>, CallError> {
    let started = Instant::now();
    let span = tracing::info_span!(span::ACTIVATION, %cell);
    let result = run(&node, &cell).instrument(span).await;
    let outcome = match &result {
        Ok(_) => ActivationOutcome::Resident,
        Err(CallError::NotOwner(_) | CallError::Draining) => ActivationOutcome::NotOwner,
        Err(CallError::Unavailable { .. } | CallError::Overloaded { .. }) => ActivationOutcome::Unavailable,
        Err(CallError::Rejected { .. } | CallError::OutcomeUnknown { .. }) => ActivationOutcome::Failed,
    };
    if result.is_err() {
        // What is left of it counts, whatever it is.
        left(&node, &cell).await;
    }
    metrics().activation(outcome, started.elapsed());
    result
}

/// A cell is not in memory: its files count.
pub(crate) async fn left(node: &Arc<Node>, cell: &CellName) {
    let (node, cell) = (Arc::clone(node), cell.clone());
    blocking(move || node.local_files.left(&cell, node.data_dir.cell(&cell).dir())).await;
}

async fn run(node: &Arc<Node>, cell: &CellName) -> Result<Arc<Resident>, CallError> {
    node.classes.check(cell)?;
    if !node.authority.is_live() {
        return Err(unavailable(cell, "the node does not hold its lease"));
    }
    let stage = Instant::now();
    let asleep = node.dormant.take(cell);
    node.local_files.taken(cell);
    let (owner, version, previous) =
        claim(node, cell, asleep.as_ref()).instrument(tracing::info_span!(span::CLAIM)).await?;
    metrics().activation_stage(Stage::Claim, stage.elapsed());

    let files = node.data_dir.cell(cell);
    let stage = Instant::now();
    let span = tracing::info_span!(span::RESTORE);
    let rebuilt = rebuild(node, &owner, (previous, asleep), &files).instrument(span).await?;
    metrics().activation_stage(Stage::Restore, stage.elapsed());

    let stage = Instant::now();
    let Rebuilt { restored, paged } = rebuilt;
    let opening = open(node, (owner, version), &restored, (files, paged));
    let resident = opening.instrument(tracing::info_span!(span::OPEN)).await?;
    metrics().activation_stage(Stage::Open, stage.elapsed());
    tracing::debug!(
        %cell, epoch = %resident.epoch, ?previous, end = ?restored.end, files = restored.read.files,
        bytes = restored.read.bytes, from_local = restored.from_local, is_paged = resident.paged.is_some(), "a cell is resident"
    );
    Ok(resident)
}

fn unavailable(cell: &CellName, reason: &str) -> CallError {
    CallError::Unavailable { reason: format!("cell `{cell}` cannot be activated: {reason}") }
}

async fn claim(
    node: &Arc<Node>,
    cell: &CellName,
    asleep: Option<&Asleep>,
) -> Result<(OwnerView, Version, Previous), CallError> {
    let outcome = match asleep {
        Some(asleep) => node.owners.wake(cell, node.claimant(), asleep.record.clone()).await,
        None => node.owners.claim(cell, node.claimant(), Intent::Own).await,
    };
    match outcome {
        ClaimOutcome::Claimed { owner, version, previous } => {
            node.orphans.claimed(cell, previous);
            Ok((owner, version, previous))
        }
        ClaimOutcome::NotOwner { node: other, session } => {
            node.orphans.forget(cell);
            Err(CallError::NotOwner(Some(OwnerHint { node: other, session })))
        }
        ClaimOutcome::Incompatible { node: other, theirs } => {
            let reason = format!(
                "its live owner `{other}` speaks protocol {}-{}, this node {}-{}",
                theirs.min, theirs.max, PROTOCOL.min, PROTOCOL.max
            );
            Err(unavailable(cell, &reason))
        }
        ClaimOutcome::NothingToPurge => unreachable!("only a purge finds nothing to purge"),
        ClaimOutcome::Failed(failure) => {
            let hold_up = node.owners.hold_up(cell).filter(|_| failure == ClaimFailure::RecoveryBlocked);
            Err(unavailable(cell, &hold_up.unwrap_or_else(|| failure.to_string())))
        }
    }
}

/// Rebuilds the database and writes the epoch's opener. The position that the epoch continues is settled by the first
/// plan, and never changes afterwards: an opener that was sent may land at any time.
async fn rebuild(
    node: &Arc<Node>,
    owner: &OwnerView,
    (previous, asleep): (Previous, Option<Asleep>),
    files: &CellFiles,
) -> Result<Rebuilt, CallError> {
    let cell = files.cell();
    let _permit = node.restores.acquire().await.expect("the semaphore is never closed");
    let job = restore_job(owner, files).await.map_err(|error| restore_failed(cell, owner, &error))?;
    let local = job.local.as_ref().map(|(_, position)| *position);
    let planned = match asleep.filter(|asleep| previous.is_whole(asleep.slept, local)) {
        Some(asleep) => asleep.chain(),
        None => {
            let planned = plan_with_retries(node, &job).await;
            planned.map_err(|error| restore_failed(cell, owner, &error))?
        }
    };
    let (opened, restored) = tokio::join!(
        put_opener(node, cell, owner, planned.end, previous),
        build(node, &job, &planned, files.paged_database(owner.epoch))
    );
    let rebuilt = match (restored, opened) {
        (Ok(rebuilt), Ok(())) => rebuilt,
        (restored, opened) => {
            // Of no use to anybody, and the next try makes its own.
            files.remove_database(owner.epoch);
            restored.map_err(|error| restore_failed(cell, owner, &error))?;
            return Err(opened.expect_err("one of the two failed"));
        }
    };
    let restored = &rebuilt.restored;
    let source = match (restored.from_local, restored.end) {
        _ if rebuilt.paged.is_some() => RestoreSource::Paged,
        (true, _) => RestoreSource::Local,
        (false, Some(_)) => RestoreSource::Bucket,
        (false, None) => RestoreSource::Empty,
    };
    let ChainSize { files: count, bytes } = restored.read;
    metrics().restore(source, Outcome::Ok, bytes, count);
    let (files, keep) = (files.clone(), owner.epoch);
    blocking(move || files.remove_others(keep)).await;
    Ok(rebuilt)
}

/// A database that can be opened.
struct Rebuilt {
    restored: Restored,
    /// Set where most of it is still in the bucket.
    paged: Option<Arc<PagedDatabase>>,
}

/// Prepares a large cell to be opened as it is, or rebuilds the database.
async fn build(
    node: &Arc<Node>,
    job: &RestoreJob,
    planned: &PlannedChain,
    paged_path: PathBuf,
) -> Result<Rebuilt, RestoreError> {
    // What all of is about to be replaced is not read page by page by the thread that does it.
    let is_whole = node.replacements.waits(&job.cell);
    let prepared = if is_whole { None } else { paged::prepare(node, job, planned, paged_path).await };
    if let Some(Prepared { database, read }) = prepared {
        let restored =
            Restored { end: planned.end, chain: planned.size, read, from_local: false, mark: planned.mark };
        return Ok(Rebuilt { restored, paged: Some(database) });
    }
    let restored = apply_with_retries(node, job, planned).await?;
    node.paging.trust(&job.cell);
    Ok(Rebuilt { restored, paged: None })
}

fn restore_failed(cell: &CellName, owner: &OwnerView, error: &RestoreError) -> CallError {
    metrics().restore(RestoreSource::Bucket, Outcome::Failed, 0, 0);
    if error.is_transient() || error.is_superseded() {
        tracing::warn!(%cell, epoch = %owner.epoch, %error, "a cell could not be restored");
    } else {
        tracing::error!(%cell, epoch = %owner.epoch, %error, "a cell cannot be restored");
    }
    unavailable(cell, &error.to_string())
}

async fn restore_job(owner: &OwnerView, files: &CellFiles) -> Result<RestoreJob, RestoreError> {
    let taken = {
        let files = files.clone();
        blocking(move || files.take_resume()).await
    };
    let local = taken.map_err(|source| RestoreError::Local { path: files.dir().to_path_buf(), source })?;
    Ok(RestoreJob {
        cell: files.cell().clone(),
        below: owner.epoch,
        floor: owner.floor,
        database: files.database(owner.epoch),
        local: local.map(|position| (files.database(position.epoch), position)),
    })
}

async fn plan_with_retries(node: &Arc<Node>, job: &RestoreJob) -> Result<PlannedChain, RestoreError> {
    let mut job = job.clone();
    for attempt in 1.. {
        match restore::plan(&node.buckets.bulk, &job).await {
            Ok(planned) => return Ok(planned),
            Err(error) => pause_or_fail(node, &mut job, error, attempt).await?,
        }
    }
    unreachable!("the loop ends by itself")
}

async fn apply_with_retries(
    node: &Arc<Node>,
    job: &RestoreJob,
    planned: &PlannedChain,
) -> Result<Restored, RestoreError> {
    let bucket = &node.buckets.bulk;
    let mut job = job.clone();
    let mut error = match restore::apply_chain(bucket, &job, planned).await {
        Ok(restored) => return Ok(restored),
        Err(error) => error,
    };
    for attempt in 1.. {
        pause_or_fail(node, &mut job, error, attempt).await?;
        let again = match restore::plan(bucket, &job).await {
            // Something landed late: this epoch's base is settled, so the next one must look again.
            Ok(again) if again.end != planned.end => {
                return Err(RestoreError::Moved { cell: job.cell.clone() });
            }
            Ok(again) => restore::apply_chain(bucket, &job, &again).await,
            Err(error) => Err(error),
        };
        error = match again {
            Ok(restored) => return Ok(restored),
            Err(error) => error,
        };
    }
    unreachable!("the loop ends by itself")
}

/// Pauses before the next try, which does without the local file: it may be half changed, or be the cause.
async fn pause_or_fail(
    node: &Arc<Node>,
    job: &mut RestoreJob,
    error: RestoreError,
    attempt: u32,
) -> Result<(), RestoreError> {
    let may_help = error.is_transient() || job.local.is_some();
    if !may_help || attempt >= RESTORE_ATTEMPTS || !node.authority.is_live() {
        return Err(error);
    }
    tracing::debug!(cell = %job.cell, attempt, %error, "a restore failed; it is tried again");
    job.local = None;
    PAUSES.pause(attempt - 1).await;
    Ok(())
}

/// Writes where the epoch begins, before anything of it is served.
async fn put_opener(
    node: &Arc<Node>,
    cell: &CellName,
    owner: &OwnerView,
    base: Option<Position>,
    previous: Previous,
) -> Result<(), CallError> {
    let reason = match previous {
        Previous::Absent => OpenerReason::Created,
        Previous::Asleep | Previous::LocalWake => OpenerReason::LocalWake,
        Previous::Released => OpenerReason::AfterRelease,
        Previous::Purged => OpenerReason::AfterPurge,
        Previous::Dead => OpenerReason::Takeover,
    };
    let opener = Opener { version: Opener::VERSION, base: base.map(Into::into), reason };
    let key = Key::Opener(cell.clone(), owner.epoch).to_string();
    let body = Bytes::from(opener.encode());
    for attempt in 0_u32.. {
        match node.buckets.bulk.put(&key, body.clone()).await {
            Ok(_) => return Ok(()),
            Err(error) if attempt < RESTORE_ATTEMPTS && error.kind.is_transient() => {
                PAUSES.pause(attempt).await;
            }
            Err(error) => return Err(unavailable(cell, &error.to_string())),
        }
    }
    unreachable!("the loop ends by itself")
}

async fn open(
    node: &Arc<Node>,
    (owner, version): (OwnerView, Version),
    restored: &Restored,
    (files, paged): (CellFiles, Option<Arc<PagedDatabase>>),
) -> Result<Arc<Resident>, CallError> {
    let cell = files.cell().clone();
    let position = restored.end.map_or(Txid::ZERO, |end| end.txid);
    let database = match &paged {
        Some(_) => files.paged_database(owner.epoch),
        None => files.database(owner.epoch),
    };
    let replacement = node.replacements.take(&cell, owner.floor);
    let parts = ResidentParts {
        cell: cell.clone(),
        is_alone: replacement.is_some(),
        owner,
        version,
        restored: (restored.end, position),
        chain: restored.chain,
        mark: restored.mark,
        files,
        paged: paged.clone(),
    };
    let resident = Resident::new(node, parts);
    let (done, opened) = oneshot::channel();
    resident.send(Job::Open { resident: Arc::clone(&resident), database, position, replacement, done });
    match opened.await {
        Ok(Ok(())) => {
            if let Some(paged) = paged {
                paged::spawn_fill(node, &resident, paged);
            }
            retire::on_opened(node, &resident);
            Ok(resident)
        }
        Ok(Err(reason)) => {
            tracing::error!(%cell, %reason, "a restored database could not be opened");
            resident.files.remove_database(resident.epoch);
            Err(unavailable(&cell, &reason))
        }
        Err(_) => Err(unavailable(&cell, "its thread has ended")),
    }
}
