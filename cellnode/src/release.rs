//! Gives cells up in order: stop intake, cover everything committed, close, then let the owner record say so (design 4.1,
//! Release). Nothing acknowledged is left behind, and the closed file may be reused.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use holdfast_core::gate::GateEvent;
use holdfast_core::ownership::ReleaseOutcome;
use holdfast_rpc::CallError;
use holdfast_telemetry::metrics;
use holdfast_telemetry::names::span;
use holdfast_types::{AlarmTime, CellName, Millis, Position, Txid};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::activation::left;
use crate::blocking::blocking;
use crate::cells::{Cells, Closed, Departure, Job, Resident};
use crate::clock;
use crate::dormant::Asleep;
use crate::node::Node;
use crate::owners::OwnerReadError;
use crate::retire;

/// Cells that nobody uses, given up at once.
const RELEASES_IDLE: usize = 64;
/// A cell whose alarm is due within this time does not fall asleep.
pub(crate) const ALARM_SOON_MS: i64 = 60_000;
/// A cell whose alarm is due within this time stays where it is, whoever wants room or another node for it: it would run late.
pub(crate) const ALARM_NEAR_MS: i64 = 2_000;
/// Sleeping cells that are woken at once for their alarms, with each look.
const WAKES_PER_LOOK: usize = 32;
/// Longest time for one of them to wake.
const WAKE_PATIENCE: Duration = Duration::from_secs(30);

/// How a cell leaves memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Anybody may own it.
    Released,
    /// This session still owns it.
    Asleep,
}

/// Resolves once the bucket holds everything that a cell has acknowledged.
///
/// # Errors
/// [`CallError::Unavailable`] when the bucket did not take it in time.
pub(crate) async fn cover(node: &Node, resident: &Arc<Resident>) -> Result<(), CallError> {
    in_time(node, resident, resident.covered()).await
}

/// Resolves once the bucket holds everything up to a transaction at which the gate was told to cut.
///
/// # Errors
/// As [`cover`].
pub(crate) async fn in_bucket(node: &Node, resident: &Arc<Resident>, upto: Txid) -> Result<(), CallError> {
    in_time(node, resident, resident.uploaded(upto)).await
}

async fn in_time(
    node: &Node,
    resident: &Resident,
    uploaded: impl Future<Output = bool>,
) -> Result<(), CallError> {
    match tokio::time::timeout(node.config.proof_timeout, uploaded).await {
        Ok(true) => Ok(()),
        Ok(false) | Err(_) => {
            let reason = format!("the bucket did not take the writes of cell `{}` in time", resident.cell);
            Err(CallError::Unavailable { reason })
        }
    }
}

/// Gives one resident cell up.
///
/// # Errors
/// [`CallError::NotOwner`] when it is not resident; [`CallError::Unavailable`] when the release did not succeed: the cell
/// then stays owned by this session, and its next request activates it again.
pub(crate) async fn release(node: &Arc<Node>, cell: &CellName) -> Result<(), CallError> {
    end_stay(node, cell, Ending::Released).await
}

async fn end_stay(node: &Arc<Node>, cell: &CellName, ending: Ending) -> Result<(), CallError> {
    let Some(departure) = node.cells.depart(cell) else { return Err(CallError::NotOwner(None)) };
    let result = end(node, &departure, ending).await;
    node.cells.departed(&departure);
    result
}

/// Ends the stay of a departing cell. Whoever waits for it is told by whoever called this.
///
/// # Errors
/// [`CallError::Unavailable`], as [`release`].
pub(crate) async fn end(node: &Arc<Node>, departure: &Departure, ending: Ending) -> Result<(), CallError> {
    let cell = &departure.resident.cell;
    let span = tracing::info_span!(span::RELEASE, %cell);
    let result = leave(node, &departure.resident, ending).instrument(span).await;
    if let Err(reason) = &result {
        tracing::warn!(%cell, %reason, "a cell could not be given up");
        // Whatever state it is in: the local database goes, the bucket has what was acknowledged.
        departure.resident.on(GateEvent::Abandoned);
        departure.resident.send(Job::Drop(Arc::clone(&departure.resident)));
        // Not before the bucket has what followers alone hold: the next activation restores from it.
        let _ = departure.resident.settled().wait_for(|settled| *settled).await;
    }
    result.map_err(|reason| CallError::Unavailable {
        reason: format!("cell `{cell}` was not released: {reason}"),
    })
}

async fn leave(node: &Arc<Node>, resident: &Arc<Resident>, ending: Ending) -> Result<(), String> {
    let (done, covered) = oneshot::channel();
    resident.send(Job::Quiesce { resident: Arc::clone(resident), done });
    match covered.await {
        Ok(Ok(())) => {}
        Ok(Err(cause)) => return Err(cause.to_string()),
        Err(_) => return Err("its thread has ended".into()),
    }
    let (done, closed) = oneshot::channel();
    resident.send(Job::Close { resident: Arc::clone(resident), done });
    let Closed { txid, is_whole } = closed.await.map_err(|_| "its thread has ended".to_owned())??;
    if ending == Ending::Asleep {
        let slept = Position { epoch: resident.epoch, txid };
        if is_whole {
            note(resident, slept).await;
        }
        let size = resident.compaction.lock().unwrap_or_else(PoisonError::into_inner).chain();
        let record = (resident.owner.clone(), resident.version.clone());
        let mark = resident.retire_state().last();
        left(node, &resident.cell).await;
        let (end, alarm) = (resident.end_at(txid), resident.alarm_due());
        let asleep = Asleep { record, slept, end, size, mark, alarm };
        node.dormant.put(resident.cell.clone(), asleep);
        // A snapshot may have come to its end since.
        retire::tell_dormant(node, resident);
        metrics().cell_fell_asleep();
        return Ok(());
    }
    // A lease that ended meanwhile makes this a no-op: the guard is the version that this session claimed with.
    match node.owners.release(&resident.cell, &resident.owner, resident.version.clone()).await {
        ReleaseOutcome::Released(epoch) => {
            if is_whole {
                note(resident, Position { epoch, txid }).await;
            }
            left(node, &resident.cell).await;
            Ok(())
        }
        ReleaseOutcome::AlreadyLost => {
            resident.files.remove_database(resident.epoch);
            Ok(())
        }
        ReleaseOutcome::Unknown => Err("whether the owner record was written is unknown".into()),
    }
}

/// Gives up a cell that this session owns and that is not resident, for example because it cannot be restored. Nothing
/// of it is here, so there is nothing to cover.
///
/// # Errors
/// [`CallError::NotOwner`] when this session does not own it; [`CallError::Unavailable`] when that stays unknown.
pub(crate) async fn release_unresident(node: &Arc<Node>, cell: &CellName) -> Result<(), CallError> {
    let unavailable = |reason: String| CallError::Unavailable {
        reason: format!("cell `{cell}` was not released: {reason}"),
    };
    let owner = match node.owners.read(cell).await {
        Ok(owner) => owner,
        // Nobody can claim or wake a cell by a record that it cannot read.
        Err(OwnerReadError::Record { .. }) => None,
        Err(error) => return Err(unavailable(error.to_string())),
    };
    let Some((owner, version)) = owner else {
        return Err(if node.cells.has_slot(cell) {
            unavailable("it is on its way in or out".into())
        } else {
            CallError::NotOwner(None)
        });
    };
    if !owner.is_owned_by(&node.name, node.session, owner.epoch) {
        return Err(CallError::NotOwner(None));
    }
    match node.owners.release(cell, &owner, version).await {
        ReleaseOutcome::Released(_) | ReleaseOutcome::AlreadyLost => {
            // It sleeps here no longer: whether there is such a cell is for the bucket to say.
            node.dormant.take(cell);
            Ok(())
        }
        ReleaseOutcome::Unknown => Err(unavailable("whether the owner record was written is unknown".into())),
    }
}

async fn note(resident: &Arc<Resident>, position: Position) {
    if position.txid == Txid::ZERO {
        return;
    }
    let files = resident.files.clone();
    if let Err(error) = blocking(move || files.note_resume(position)).await {
        tracing::debug!(cell = %resident.cell, %error, "a closed database cannot be reused");
    }
}

/// Lets the cells sleep that nobody has used for `--idle-after`.
pub(crate) async fn sleep_idle(node: &Arc<Node>) {
    let now = clock::monotonic();
    let idle_ms = clock::millis(node.config.idle_after);
    let mut idle = node.cells.residents();
    idle.retain(|resident| may_sleep(resident, now, idle_ms));
    futures::stream::iter(idle)
        .for_each_concurrent(RELEASES_IDLE, |resident| async move {
            // It may have waited for its turn, and been used meanwhile.
            if may_sleep(&resident, clock::monotonic(), idle_ms) && !node.is_draining() {
                // A failure is logged where it happens, and the cell is gone from here all the same.
                let _ = fall_asleep(node, &resident).await;
            }
        })
        .await;
}

fn may_sleep(resident: &Resident, now: Millis, idle_ms: u64) -> bool {
    let is_idle = now.since(resident.last_event()) >= idle_ms && !resident.has_open_events();
    is_idle && !resident.alarm_within(ALARM_SOON_MS)
}

/// Lets a cell sleep, or gives it up where too many sleep already.
///
/// # Errors
/// As [`release`].
pub(crate) async fn fall_asleep(node: &Arc<Node>, resident: &Arc<Resident>) -> Result<(), CallError> {
    let ending = if node.dormant.is_full() { Ending::Released } else { Ending::Asleep };
    end_stay(node, &resident.cell, ending).await
}

/// Gives a sleeping cell up, without waiting for it.
pub(crate) fn release_asleep(node: &Arc<Node>, cell: &CellName) {
    let Some(Asleep { record: (owner, version), .. }) = node.dormant.take(cell) else { return };
    let (node, cell) = (Arc::clone(node), cell.clone());
    tokio::spawn(async move {
        if node.owners.release(&cell, &owner, version).await == ReleaseOutcome::Unknown {
            tracing::warn!(%cell, "whether a sleeping cell was given up is unknown; it can be claimed after the lease");
        }
    });
}

/// Wakes sleeping cells whose alarm is due by then. Where that fails, a waker finds the alarm's entry.
pub(crate) fn wake_due(node: &Arc<Node>, by: AlarmTime) {
    for cell in node.dormant.take_due(by, WAKES_PER_LOOK) {
        let node = Arc::clone(node);
        tokio::spawn(async move {
            if let Err(error) = Cells::resident(&node, &cell, Instant::now() + WAKE_PATIENCE).await {
                tracing::warn!(%cell, %error, "a sleeping cell could not be woken for its alarm");
            }
        });
    }
}
