//! Looks up a state of a cell's past in the bucket, and reads it into a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_core::lineage::{Past, PastTarget};
use holdfast_types::Position;

use crate::backoff::Backoff;
use crate::cells::Resident;
use crate::node::Node;
use crate::restore::{RestoreError, RestoreJob, apply_chain, find_past};
use crate::retire::HistoryHold;

/// Tries to read a state whose objects go away meanwhile, or that the store fails to give.
const ATTEMPTS: u32 = 4;
/// Between them: 250 ms doubling to a second.
const PAUSES: Backoff = Backoff::new(250, 2);

/// Which state.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted {
    /// The newest that is not after it.
    AtOrBefore(PastTarget),
    /// This one and no other.
    Exactly(Position),
}

/// Finds a state of the past, and reads it into a file where there is one. The bucket has what is looked for.
///
/// # Errors
/// [`RestoreError`]; that there is no such state, or not any more, is [`RestoreError::Past`].
pub(super) async fn look_up(
    node: &Arc<Node>,
    resident: &Arc<Resident>,
    wanted: Wanted,
    file: Option<&Path>,
) -> Result<Position, RestoreError> {
    let _permit = node.restores.acquire().await.expect("the semaphore is never closed");
    let _hold = HistoryHold::of(resident);
    let job = RestoreJob {
        cell: resident.cell.clone(),
        below: resident.epoch.next(),
        floor: resident.owner.floor,
        database: file.map_or_else(PathBuf::new, Path::to_path_buf),
        local: None,
    };
    for attempt in 1.. {
        match once(node, &job, wanted, file.is_some()).await {
            Err(error) if error.is_transient() && attempt < ATTEMPTS => {
                tracing::debug!(cell = %job.cell, attempt, %error, "a state of the past could not be read; it is tried again");
                PAUSES.pause(attempt - 1).await;
            }
            result => return result,
        }
    }
    unreachable!("the loop ends by itself")
}

async fn once(
    node: &Arc<Node>,
    job: &RestoreJob,
    wanted: Wanted,
    is_read: bool,
) -> Result<Position, RestoreError> {
    let bucket = &node.buckets.bulk;
    let walk = match wanted {
        Wanted::AtOrBefore(target) => Past::start(job.below, job.floor, target),
        Wanted::Exactly(position) => Past::start_exactly(job.below, job.floor, position),
    };
    let planned = find_past(bucket, &job.cell, walk).await?;
    if is_read {
        apply_chain(bucket, job, &planned).await?;
    }
    Ok(planned.end.expect("a state of the past has a position"))
}
