//! Gives cells to other nodes: a release like any other, and a hint to the next owner, so that it has the cell before the next
//! request comes. Requests that meet the move wait for its end. A hint that is lost, late or wrong costs a placement.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use holdfast_core::ownership::ReleaseOutcome;
use holdfast_core::rebalance::{Activity, Movable, choose, gives};
use holdfast_rpc::{CallError, MoveCall, OwnerHint, Peer};
use holdfast_telemetry::{HandoffOutcome, metrics};
use holdfast_types::{CellName, Epoch};
use tokio::time::Instant;

use crate::cells::{Cells, Resident};
use crate::dormant::Asleep;
use crate::host::ANSWER_MARGIN;
use crate::node::Node;
use crate::release::{ALARM_NEAR_MS, ALARM_SOON_MS, Ending, end, fall_asleep};

/// Longest wait for a new owner to have its cell. Requests that meet the move wait as long.
const TELL_PATIENCE: Duration = Duration::from_secs(5);
/// Longest wait of a new owner for its cell; whoever gave it up has gone on by then.
const ADOPT_PATIENCE: Duration = Duration::from_secs(8);
/// Cells that are not in use, given away at once.
const MOVES_IDLE: usize = 16;
/// Cells in use, given away at once: each is without service meanwhile.
const MOVES: usize = 2;
/// A cell without an event for this time counts as idle.
const IDLE_MS: u64 = 5_000;
/// Time for one request to give cells away: what is left comes with the next.
const MOVES_PATIENCE: Duration = Duration::from_secs(20);
/// After so many cells that were not taken nothing more is given: the taker has a reason.
const REFUSALS_MAX: u64 = 3;

/// What became of a cell that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    /// The other node has it.
    Taken(Epoch),
    /// Nobody has it, as far as is known: the next request for it places it.
    Left,
}

/// Gives a resident cell to another node.
///
/// # Errors
/// As [`crate::release::release`]: the cell was not given up.
pub(crate) async fn give(node: &Arc<Node>, cell: &CellName, to: &Peer) -> Result<Given, CallError> {
    let Some(departure) = node.cells.depart(cell) else { return Err(CallError::NotOwner(None)) };
    if let Err(error) = end(node, &departure, Ending::Released).await {
        metrics().handoff(HandoffOutcome::Kept);
        node.cells.departed(&departure);
        return Err(error);
    }
    let given = tell(node, cell, to, false).await;
    match given {
        Given::Taken(_) => {
            let owner = OwnerHint { node: to.node.clone(), session: to.session };
            node.cells.departed_to(&departure, owner);
        }
        Given::Left => node.cells.departed(&departure),
    }
    Ok(given)
}

/// Gives a sleeping cell to another node: all of it is in the bucket.
async fn give_asleep(node: &Arc<Node>, cell: &CellName, to: &Peer) -> Option<Given> {
    let Asleep { record: (owner, version), .. } = node.dormant.take(cell)?;
    match node.owners.release(cell, &owner, version).await {
        ReleaseOutcome::Released(_) => Some(tell(node, cell, to, true).await),
        // Somebody woke it meanwhile.
        ReleaseOutcome::AlreadyLost => None,
        ReleaseOutcome::Unknown => {
            metrics().handoff(HandoffOutcome::Kept);
            tracing::warn!(%cell, "whether a sleeping cell was given up is unknown; the next request finds out");
            None
        }
    }
}

async fn tell(node: &Arc<Node>, cell: &CellName, to: &Peer, is_asleep: bool) -> Given {
    let told = tokio::time::timeout(TELL_PATIENCE, node.successors.tell(to, cell, is_asleep)).await;
    match told {
        Ok(Ok(epoch)) => {
            metrics().handoff(HandoffOutcome::Taken);
            tracing::debug!(%cell, to = %to.node, %epoch, "a cell has moved");
            return Given::Taken(epoch);
        }
        Ok(Err(error)) => tracing::debug!(%cell, to = %to.node, %error, "a cell was given up, and not taken"),
        Err(_) => tracing::debug!(%cell, to = %to.node, "a cell was given up, and is not taken yet"),
    }
    metrics().handoff(HandoffOutcome::Left);
    Given::Left
}

/// Claims a cell that another node has just given up, and opens it. It need not stay in memory where it was asleep, unless
/// somebody uses it by now.
///
/// # Errors
/// [`CallError`], as of any activation.
pub(crate) async fn adopt(node: &Arc<Node>, cell: &CellName, is_asleep: bool) -> Result<Epoch, CallError> {
    let patience = Instant::now() + ADOPT_PATIENCE - ANSWER_MARGIN;
    let resident = Cells::resident(node, cell, patience).await?;
    if is_asleep
        && !resident.was_used()
        && !resident.has_open_events()
        && !resident.alarm_within(ALARM_SOON_MS)
    {
        // It stays resident where that fails.
        let _ = fall_asleep(node, &resident).await;
    }
    Ok(resident.epoch)
}

/// Gives cells to another node until it has as many as were asked for, this node has only its share left, nothing can be moved now,
/// or time is over. How many the other has now.
pub(crate) async fn move_cells(node: &Arc<Node>, call: &MoveCall) -> u64 {
    let MoveCall { to, weight, cells, keep } = call;
    let count = gives(node.owned(), *cells, *keep);
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let (me, taker) = ((&node.name, node.config.weight), (&to.node, *weight));
    let chosen = choose(movable(node), me, taker, count);
    let (in_use, idle): (Vec<_>, Vec<_>) =
        chosen.into_iter().partition(|movable| movable.activity >= Activity::Between);
    let (moved, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    let until = Instant::now() + MOVES_PATIENCE;
    for (movables, lanes) in [(idle, MOVES_IDLE), (in_use, MOVES)] {
        futures::stream::iter(movables)
            .for_each_concurrent(lanes, |movable| async {
                let is_over = refused.load(Ordering::Relaxed) >= REFUSALS_MAX || Instant::now() >= until;
                if is_over || node.is_draining() {
                    return;
                }
                match move_one(node, movable, to).await {
                    Some(Given::Taken(_)) => moved.fetch_add(1, Ordering::Relaxed),
                    Some(Given::Left) => refused.fetch_add(1, Ordering::Relaxed),
                    None => 0,
                };
            })
            .await;
    }
    let moved = moved.into_inner();
    if moved > 0 {
        tracing::info!(node = %node.name, to = %to.node, cells = moved, "gave cells to another node");
    }
    moved
}

/// None: it was not given up, because it is not here any more, is in use now, or its release did not succeed.
async fn move_one(node: &Arc<Node>, movable: Movable, to: &Peer) -> Option<Given> {
    let Movable { cell, activity } = movable;
    if activity == Activity::Asleep {
        return give_asleep(node, &cell, to).await;
    }
    // It may have waited for its turn, and been used meanwhile.
    let resident = node.cells.resident_now(&cell)?;
    if self::activity(&resident)? > activity.max(Activity::Between) {
        return None;
    }
    // A failure is logged where it happens.
    give(node, &cell, to).await.ok()
}

/// Cells that may be given away now: none with an event under way.
fn movable(node: &Arc<Node>) -> Vec<Movable> {
    let asleep = node.dormant.names().into_iter().map(|cell| Movable { cell, activity: Activity::Asleep });
    let residents = node.cells.residents().into_iter().filter_map(|resident| {
        let activity = activity(&resident)?;
        Some(Movable { cell: resident.cell.clone(), activity })
    });
    asleep.chain(residents).collect()
}

fn activity(resident: &Resident) -> Option<Activity> {
    if resident.is_busy() || resident.alarm_within(ALARM_NEAR_MS) {
        None
    } else if resident.has_sockets() {
        Some(Activity::Sockets)
    } else if resident.idle_ms() >= IDLE_MS {
        Some(Activity::Idle)
    } else {
        Some(Activity::Between)
    }
}
