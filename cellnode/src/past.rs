//! A state of a cell's past in the place of the present one. For an operator (`holdfast cell restore`) it is read while the cell
//! goes on; then the cell falls asleep, which covers everything, and is woken with the past before anything else may happen to
//! it. There it is one transaction: what was before stays in the history, at the position that the new epoch continues. What
//! an object wishes for by itself takes place before its next session: `cells/actor/wish.rs`, with what is in `wish` here.

mod bookmark;
mod lookup;
mod wish;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_core::lineage::PastTarget;
use holdfast_rpc::{CallError, RestoredCell};
use holdfast_types::{CellName, Epoch, Position};
use tempfile::TempPath;
use tokio::sync::oneshot;
use tokio::time::Instant;

use self::lookup::{Wanted, look_up};
use crate::cells::{Cells, Resident};
use crate::node::Node;
use crate::release::{cover, fall_asleep};
use crate::restore::RestoreError;

pub(crate) use self::bookmark::{answer_bookmark, answer_find, answer_time};
pub(crate) use self::wish::fetch_wished;

/// Longest time for a cell to be opened.
const OPEN_PATIENCE: Duration = Duration::from_secs(60);

/// A database that is to take the place of a cell's.
#[derive(Debug)]
pub(crate) struct Replacement {
    /// The file; deleted when dropped.
    pub(crate) file: TempPath,
    /// The cell's floor when it was read: a cell that was deleted since has no past.
    pub(crate) floor: Epoch,
    /// Told once it is in the bucket: the position before, and that of the transaction.
    pub(crate) done: oneshot::Sender<Result<(Position, Position), CallError>>,
}

/// What waits for cells to be opened the next time.
#[derive(Debug, Default)]
pub(crate) struct Replacements {
    waiting: Mutex<HashMap<CellName, Option<Replacement>>>,
}

impl Replacements {
    fn lock(&self) -> MutexGuard<'_, HashMap<CellName, Option<Replacement>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A restore of the cell begins; none where one is under way.
    fn begin(self: &Arc<Self>, cell: &CellName) -> Option<Restoring> {
        let mut waiting = self.lock();
        if waiting.contains_key(cell) {
            return None;
        }
        waiting.insert(cell.clone(), None);
        Some(Restoring { all: Arc::clone(self), cell: cell.clone() })
    }

    /// What the cell is to be opened with.
    pub(crate) fn take(&self, cell: &CellName, floor: Epoch) -> Option<Replacement> {
        self.lock().get_mut(cell)?.take_if(|replacement| replacement.floor == floor)
    }

    /// Whether something waits for the cell to be opened.
    pub(crate) fn waits(&self, cell: &CellName) -> bool {
        self.lock().get(cell).is_some_and(Option::is_some)
    }
}

/// The place of one restore.
struct Restoring {
    all: Arc<Replacements>,
    cell: CellName,
}

impl Restoring {
    fn put(&self, replacement: Replacement) {
        self.all.lock().insert(self.cell.clone(), Some(replacement));
    }

    /// Takes back what nobody has opened the cell with. True: nothing will happen any more.
    fn withdraw(&self) -> bool {
        self.all.lock().get_mut(&self.cell).and_then(Option::take).is_some()
    }
}

impl Drop for Restoring {
    fn drop(&mut self) {
        self.all.lock().remove(&self.cell);
    }
}

/// Puts a state of the past in the place of the present one.
///
/// # Errors
/// [`CallError`], as [`holdfast_rpc::CellHost::restore_cell`].
pub(crate) async fn restore_cell(
    node: &Arc<Node>,
    cell: &CellName,
    target: PastTarget,
) -> Result<RestoredCell, CallError> {
    let Some(restoring) = node.replacements.begin(cell) else {
        return Err(refused(
            http::StatusCode::CONFLICT,
            format!("another restore of cell `{cell}` is under way"),
        ));
    };
    let resident = Cells::resident(node, cell, Instant::now() + OPEN_PATIENCE).await?;
    let (file, found) = read(node, &resident, target).await?;
    must_have_room(node, cell, &file)?;
    let (done, outcome) = oneshot::channel();
    restoring.put(Replacement { file, floor: resident.owner.floor, done });
    let woken = wake(node, resident).await;
    if restoring.withdraw() {
        woken?;
        return Err(refused(
            http::StatusCode::CONFLICT,
            format!("cell `{cell}` was deleted meanwhile: nothing of it can be restored"),
        ));
    }
    // Whoever opened it, the past is taking its place: what becomes of that is the answer, however long it takes.
    match outcome.await {
        Ok(outcome) => outcome.map(|(before, now)| RestoredCell { found, before, now }),
        // It was opened with it and gone before that was in the bucket, or elsewhere.
        Err(_) => Err(CallError::OutcomeUnknown {
            reason: format!("cell `{cell}` left this node meanwhile: look whether it shows its past"),
        }),
    }
}

/// Has the cell fall asleep and wakes it.
async fn wake(node: &Arc<Node>, resident: Arc<Resident>) -> Result<(), CallError> {
    let cell = resident.cell.clone();
    fall_asleep(node, &resident).await?;
    drop(resident);
    Cells::resident(node, &cell, Instant::now() + OPEN_PATIENCE).await?;
    Ok(())
}

/// Refuses what the disk, which all cells share, has no room for: the database's WAL, and what is captured of it.
fn must_have_room(node: &Node, cell: &CellName, file: &Path) -> Result<(), CallError> {
    let looked = file.metadata().and_then(|past| Ok((past.len(), node.data_dir.free_bytes()?)));
    let (len, free) = looked.map_err(|error| CallError::Unavailable {
        reason: format!("the room for the past of cell `{cell}` cannot be told: {error}"),
    })?;
    let needed = len.saturating_mul(2);
    if free >= needed {
        return Ok(());
    }
    let reason = format!(
        "the past of cell `{cell}` has {len} bytes, and needs {needed} more while it takes its place; the disk has {free} left"
    );
    Err(refused(http::StatusCode::INSUFFICIENT_STORAGE, reason))
}

fn refused(status: http::StatusCode, reason: String) -> CallError {
    CallError::Rejected { status, reason }
}

/// Reads a state of the past into a file, from a bucket that has everything which is acknowledged.
async fn read(
    node: &Arc<Node>,
    resident: &Arc<Resident>,
    target: PastTarget,
) -> Result<(TempPath, Position), CallError> {
    let cell = &resident.cell;
    cover(node, resident).await?;
    let file = new_file(node).map_err(|error| CallError::Unavailable {
        reason: format!("a file for the past of cell `{cell}` cannot be made: {error}"),
    })?;
    match look_up(node, resident, Wanted::AtOrBefore(target), Some(&file)).await {
        Ok(found) => Ok((file, found)),
        Err(error @ RestoreError::Past { .. }) => Err(refused(http::StatusCode::CONFLICT, error.to_string())),
        Err(error) => Err(CallError::Unavailable { reason: error.to_string() }),
    }
}

/// A file for a database that is to take the place of another.
fn new_file(node: &Node) -> std::io::Result<TempPath> {
    let file = tempfile::Builder::new().prefix("past-").tempfile_in(node.data_dir.spool())?;
    Ok(file.into_temp_path())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replacement(floor: u64) -> Replacement {
        let file = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        Replacement { file, floor: Epoch::new(floor), done: oneshot::channel().0 }
    }

    #[test]
    fn a_cell_that_was_deleted_meanwhile_is_not_opened_with_its_past() {
        let (all, cell) = (Arc::<Replacements>::default(), CellName::parse("db:a").unwrap());
        let restoring = all.begin(&cell).unwrap();
        assert!(all.begin(&cell).is_none() && !all.waits(&cell));
        restoring.put(replacement(3));
        assert!(all.waits(&cell));
        assert!(all.take(&cell, Epoch::new(7)).is_none());
        assert!(restoring.withdraw() && all.take(&cell, Epoch::new(3)).is_none());

        restoring.put(replacement(3));
        assert!(all.take(&cell, Epoch::new(3)).is_some());
        assert!(!restoring.withdraw(), "it is on its way");
        drop(restoring);
        assert!(all.begin(&cell).is_some());
    }
}
