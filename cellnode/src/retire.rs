//! Retires what no restore reads any more of the history of resident cells (INV-GC-1): which that is, and when it may go, is
//! decided by the core; here it is looked up, marked and deleted, a few cells at a time, behind whatever proves writes.

mod queue;
mod sweep;

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use holdfast_bucket::{Commit, Version};
use holdfast_core::compaction::CompactionEvent;
use holdfast_core::retire::{
    Kept, LastMark, Mark, Retire, RetireEffect, RetireEvent, RetireOutcome, RetireOwner, is_due,
};
use holdfast_core::store::{Answer, Guard};
use holdfast_records::{Key, Record};
use holdfast_telemetry::metrics;
use holdfast_types::Millis;

use self::sweep::sweep;
use crate::cells::Resident;
use crate::node::Node;
use crate::random;
use crate::restore::{RestoreError, find_chain, read_mark, record_of};
use crate::{clock, replication};

pub(crate) use queue::Retirements;

/// Cells whose history is looked after at once.
const LANES: usize = 2;
/// How often the queue is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// After an activation, so that what restores and proves goes first, in milliseconds.
const AFTER_OPEN_MS: u64 = 2_000;
/// Before another look at a cell whose history is held by somebody who reads it, in milliseconds.
const HELD_MS: u64 = 10_000;
/// After a failure: 30 s doubling to 8 minutes.
const RETRY_MS: u64 = 30_000;
/// How often that doubles.
const RETRY_DOUBLINGS_MAX: u32 = 4;
/// How long one conditional write of a mark may take, its retries included, in milliseconds.
const WRITE_DEADLINE_MS: u64 = 5_000;

/// What is remembered of one residency's history.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RetireState {
    last: LastMark,
    failures: u32,
    is_queued: bool,
}

impl RetireState {
    /// As the last mark says.
    pub(crate) fn new(last: LastMark) -> Self {
        Self { last, ..Self::default() }
    }

    /// The last mark.
    pub(crate) const fn last(self) -> LastMark {
        self.last
    }
}

/// A cell has been opened.
pub(crate) fn on_opened(node: &Arc<Node>, resident: &Arc<Resident>) {
    queue_if_due(node, resident, AFTER_OPEN_MS);
}

/// The cell's epoch has a new snapshot.
pub(crate) fn on_snapshot(node: &Arc<Node>, resident: &Arc<Resident>) {
    resident.retire_state().last.has_snapshot = true;
    queue_if_due(node, resident, 0);
    tell_dormant(node, resident);
}

/// Where the cell sleeps already, its next wake knows what became of its chain.
pub(crate) fn tell_dormant(node: &Arc<Node>, resident: &Arc<Resident>) {
    let last = resident.retire_state().last;
    let chain = resident.compaction.lock().unwrap_or_else(PoisonError::into_inner).chain();
    node.dormant.note_chain(&resident.cell, resident.epoch, (chain, last));
}

fn queue_if_due(node: &Arc<Node>, resident: &Arc<Resident>, wait_ms: u64) {
    {
        let mut state = resident.retire_state();
        if state.is_queued || !is_due(resident.epoch, state.last) {
            return;
        }
        state.is_queued = true;
    }
    node.retirements.add(clock::monotonic().plus(wait_ms), resident);
}

fn queue_again(node: &Arc<Node>, resident: &Arc<Resident>, wait_ms: u64) {
    resident.retire_state().is_queued = true;
    node.retirements.add(clock::monotonic().plus(wait_ms), resident);
}

/// Looks after the histories of the node's cells for as long as it runs.
pub(crate) async fn keep_retiring(node: Arc<Node>) {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        retire_due(&node, clock::monotonic()).await;
    }
}

/// Looks after the histories whose time has come.
pub(crate) async fn retire_due(node: &Arc<Node>, now: Millis) {
    let due = node.retirements.take(now);
    futures::stream::iter(due)
        .for_each_concurrent(LANES, |resident| async move { look_after(node, &resident).await })
        .await;
}

/// Whether the residency may still do anything about its history.
fn may_act(node: &Node, resident: &Resident) -> bool {
    !resident.has_failed() && !node.is_draining() && node.authority.is_live()
}

/// Looks after one cell's history.
pub(crate) async fn look_after(node: &Arc<Node>, resident: &Arc<Resident>) {
    resident.retire_state().is_queued = false;
    if !may_act(node, resident) {
        return;
    }
    if resident.is_history_held() {
        return queue_again(node, resident, HELD_MS);
    }
    match one_round(node, resident).await {
        Ok(outcome) => {
            resident.retire_state().failures = 0;
            on_outcome(node, resident, outcome);
        }
        Err(error) => {
            metrics().retirement_failed();
            let failures = resident.retire_state().failures;
            tracing::warn!(cell = %resident.cell, epoch = %resident.epoch, failures, error = format!("{error:#}"), "old history could not be retired; tried again later");
            resident.retire_state().failures = failures + 1;
            queue_again(node, resident, RETRY_MS << failures.min(RETRY_DOUBLINGS_MAX));
        }
    }
}

fn on_outcome(node: &Arc<Node>, resident: &Arc<Resident>, outcome: RetireOutcome) {
    tracing::debug!(cell = %resident.cell, epoch = %resident.epoch, ?outcome, "looked after a cell's history");
    match outcome {
        RetireOutcome::Nothing => {
            resident.retire_state().last = LastMark { by: resident.epoch, ..LastMark::default() };
        }
        RetireOutcome::Marked { wait_ms } => {
            {
                let last = LastMark { by: resident.epoch, is_pending: true, has_snapshot: false };
                resident.retire_state().last = last;
            }
            queue_again(node, resident, wait_ms);
        }
        RetireOutcome::Later { wait_ms } => queue_again(node, resident, wait_ms),
        RetireOutcome::Swept { has_more } => {
            {
                let mut state = resident.retire_state();
                // Which epoch's mark it was does not matter: whether another is due is found out by looking.
                state.last.is_pending = false;
                state.last.has_snapshot |= has_more;
            }
            queue_if_due(node, resident, 0);
        }
        RetireOutcome::Superseded | RetireOutcome::Failed => {}
    }
}

/// One round of the core's machine. A sweep that is owed needs no plan.
async fn one_round(node: &Arc<Node>, resident: &Arc<Resident>) -> anyhow::Result<RetireOutcome> {
    let is_pending = resident.retire_state().last.is_pending;
    let kept = if is_pending { None } else { plan(node, resident).await? };
    let me = RetireOwner {
        node: node.name.clone(),
        session: node.session,
        epoch: resident.epoch,
        floor: resident.owner.floor,
    };
    let retention_ms = clock::millis(node.config.history_retention);
    let write_ids = (random::write_id(), random::write_id());
    let (mut round, mut effect) = Retire::<Version>::start(me, kept, retention_ms, write_ids);
    loop {
        let event = match effect {
            RetireEffect::ReadMark => RetireEvent::MarkRead {
                mark: read_mark(&node.buckets.bulk, &resident.cell).await?,
                wall_now: clock::wall(),
            },
            RetireEffect::ReadOwner => {
                let owner = node.owners.read(&resident.cell).await?.map(|(owner, _)| owner);
                RetireEvent::OwnerRead { owner, wall_now: clock::wall() }
            }
            RetireEffect::WriteMark { mark, guard } => {
                RetireEvent::MarkAnswered(write_mark(node, resident, &mark, guard).await)
            }
            RetireEffect::Sweep(mark) => {
                sweep(node, resident, &mark).await?;
                RetireEvent::Swept
            }
            RetireEffect::Finish(outcome) => return Ok(outcome),
        };
        effect = round.on(event);
    }
}

/// What restores read of the cell now, its own epoch included. As a restore would find it, without the local file.
async fn plan(node: &Arc<Node>, resident: &Arc<Resident>) -> Result<Option<Kept>, RestoreError> {
    let below = resident.epoch.next();
    let planned = find_chain(&node.buckets.bulk, &resident.cell, (below, resident.owner.floor), None).await?;
    // A residency that began with a local file does not know how long the chain before it is.
    replication::on_compaction(resident, CompactionEvent::ChainSeen { chain: planned.size });
    Ok(planned.kept)
}

async fn write_mark(
    node: &Arc<Node>,
    resident: &Arc<Resident>,
    mark: &Mark,
    guard: Guard<Version>,
) -> Answer<Version> {
    if !may_act(node, resident) {
        return Answer::Unknown;
    }
    let key = Key::Retired(resident.cell.clone()).to_string();
    let body = Bytes::from(record_of(mark).encode());
    match node.buckets.records.put_if(&key, body, guard.into(), WRITE_DEADLINE_MS).await {
        Commit::Applied(version) => Answer::Applied(version),
        Commit::Rejected => Answer::Rejected,
        Commit::Unknown(error) => {
            tracing::debug!(cell = %resident.cell, %error, "the outcome of a mark's write is unknown");
            Answer::Unknown
        }
    }
}

/// Keeps the objects of a cell's history from being deleted by its own node, until dropped: for whoever goes on reading what
/// was planned. Another owner, or a mark from before, may still delete what it has retired, so such a reader must be able to
/// plan again.
#[derive(Debug)]
pub(crate) struct HistoryHold(Arc<Resident>);

impl HistoryHold {
    /// Holds a cell's history.
    #[must_use]
    pub(crate) fn of(resident: &Arc<Resident>) -> Self {
        resident.history_holds().fetch_add(1, std::sync::atomic::Ordering::AcqRel);
        Self(Arc::clone(resident))
    }
}

impl Drop for HistoryHold {
    fn drop(&mut self) {
        self.0.history_holds().fetch_sub(1, std::sync::atomic::Ordering::AcqRel);
    }
}

/// The lock of a state that is never left half changed.
pub(crate) fn locked(state: &std::sync::Mutex<RetireState>) -> std::sync::MutexGuard<'_, RetireState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
