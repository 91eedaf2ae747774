//! The cells of a node: which are resident, which are on their way in or out. One activation and one release of a cell
//! at a time; requests that meet one wait for it.

mod actor;
mod event;
mod order;
mod resident;
mod watchdog;
mod worker;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use holdfast_core::shedding::{Usage, may_open};
use holdfast_rpc::{CallError, OwnerHint};
use holdfast_types::CellName;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::activation::activate;
use crate::node::Node;
use crate::release::release_asleep;

pub(crate) use actor::{AlarmInput, Closed, cancel_at};
pub(crate) use event::{Event, EventHandle, EventReply};
pub(crate) use order::CallOrders;
pub(crate) use resident::{Resident, ResidentParts};
pub(crate) use worker::{Job, Workers};

/// How long the answer of a failed activation stands for the requests that come after it, so that a storm of requests
/// is one attempt a second and not one each.
const FAILURE_STANDS: Duration = Duration::from_secs(1);
/// Longest time for which it stands: it doubles with each failure in a row, because each try of a cell that cannot be
/// restored costs an epoch and a download.
const FAILURE_STANDS_MAX: Duration = Duration::from_secs(60);

/// So long after a move requests are told where the cell went, though somebody might send them here to claim it again: they read
/// its record anew.
const MOVED_STANDS: Duration = Duration::from_secs(1);

type Activated = Result<Arc<Resident>, CallError>;

#[derive(Clone)]
enum Slot {
    Activating(watch::Receiver<Option<Activated>>),
    Resident(Arc<Resident>),
    Leaving(Arc<Resident>, watch::Receiver<bool>),
    Failed { until: Instant, stands: Duration, error: CallError },
}

impl Slot {
    /// A discarded cell, until it has settled.
    fn settling(resident: &Arc<Resident>) -> Self {
        Self::Leaving(Arc::clone(resident), resident.settled())
    }
}

/// Which cells are here.
#[derive(Default)]
pub(crate) struct Cells {
    slots: Mutex<HashMap<CellName, Slot>>,
}

impl std::fmt::Debug for Cells {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cells").field("len", &self.len()).finish()
    }
}

/// What a release must know.
pub(crate) struct Departure {
    pub(crate) resident: Arc<Resident>,
    /// Dropped when the cell is gone.
    pub(crate) done: watch::Sender<bool>,
}

impl Cells {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<CellName, Slot>> {
        // A panic while the lock was held is a bug that ends one request; the map itself is always whole.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cells that are resident or on their way.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Cells that are resident, or on their way in or out: not those that could not be activated.
    pub(crate) fn held(&self) -> usize {
        self.lock().values().filter(|slot| !matches!(slot, Slot::Failed { .. })).count()
    }

    /// Whether no cell is here.
    pub(crate) fn is_empty(&self) -> bool {
        self.held() == 0
    }

    /// Their names.
    pub(crate) fn held_names(&self) -> Vec<CellName> {
        let slots = self.lock();
        let held = slots.iter().filter(|(_, slot)| !matches!(slot, Slot::Failed { .. }));
        held.map(|(cell, _)| cell.clone()).collect()
    }

    /// A resident cell that is not on its way out.
    pub(crate) fn resident_now(&self, cell: &CellName) -> Option<Arc<Resident>> {
        match self.lock().get(cell) {
            Some(Slot::Resident(resident)) => Some(Arc::clone(resident)),
            _ => None,
        }
    }

    /// Whether a cell is resident, on its way, or could not be activated a moment ago.
    pub(crate) fn is_here(&self, cell: &CellName) -> bool {
        self.lock().contains_key(cell)
    }

    /// Every resident cell that is not on its way out.
    pub(crate) fn residents(&self) -> Vec<Arc<Resident>> {
        let slots = self.lock();
        let resident = |slot: &Slot| match slot {
            Slot::Resident(resident) => Some(Arc::clone(resident)),
            Slot::Activating(_) | Slot::Leaving(..) | Slot::Failed { .. } => None,
        };
        slots.values().filter_map(resident).collect()
    }

    /// Every cell with a gate, those on their way out included: their outputs have deadlines too.
    pub(crate) fn gated(&self) -> Vec<Arc<Resident>> {
        let slots = self.lock();
        let gated = |slot: &Slot| match slot {
            Slot::Resident(resident) | Slot::Leaving(resident, _) => Some(Arc::clone(resident)),
            Slot::Activating(_) | Slot::Failed { .. } => None,
        };
        slots.values().filter_map(gated).collect()
    }

    /// Whether the cell is here, or on its way in or out.
    pub(crate) fn has_slot(&self, cell: &CellName) -> bool {
        self.lock().get(cell).is_some_and(|slot| !matches!(slot, Slot::Failed { .. }))
    }

    /// The resident cell, activated first where it is not here. The activation goes on when the caller goes away.
    ///
    /// # Errors
    /// [`CallError`]; the handler did not run.
    pub(crate) async fn resident(node: &Arc<Node>, cell: &CellName, deadline: Instant) -> Activated {
        loop {
            let slot = match Self::lookup(node, cell)? {
                Slot::Resident(resident) => return Ok(resident),
                slot => slot,
            };
            let wait = async {
                match slot {
                    Slot::Activating(mut activated) => {
                        let answer = activated.wait_for(Option::is_some).await;
                        answer.ok().and_then(|answer| answer.clone())
                    }
                    Slot::Leaving(resident, mut left) => {
                        // An error: whoever released it has gone without a word, by a panic. The slot must not stay.
                        let _ = left.wait_for(|left| *left).await;
                        node.cells.forget_left(&resident);
                        None
                    }
                    Slot::Resident(_) | Slot::Failed { .. } => None,
                }
            };
            match tokio::time::timeout_at(deadline, wait).await {
                Ok(Some(activated)) => return activated,
                Ok(None) => {}
                Err(_) => {
                    let reason = match node.owners.hold_up(cell) {
                        Some(hold_up) => format!("cell `{cell}` cannot be activated yet: {hold_up}"),
                        None => format!("cell `{cell}` is being activated; come again"),
                    };
                    return Err(CallError::Unavailable { reason });
                }
            }
        }
    }

    /// What is there now; begins an activation where nothing is.
    fn lookup(node: &Arc<Node>, cell: &CellName) -> Result<Slot, CallError> {
        let mut slots = node.cells.lock();
        match slots.get(cell) {
            Some(Slot::Failed { until, error, .. }) if *until > Instant::now() => return Err(error.clone()),
            Some(Slot::Failed { .. }) | None => {}
            Some(slot) => return Ok(slot.clone()),
        }
        if node.is_draining() {
            // All of a sleeping cell is in the bucket: it is given up as soon as somebody asks for it.
            release_asleep(node, cell);
            return Err(CallError::Draining);
        }
        let cells = u64::try_from(slots.len()).unwrap_or(u64::MAX);
        if !may_open(Usage { cells, memory: node.memory.used() }, node.caps()) {
            let Usage { cells: cells_max, memory: memory_max } = node.caps();
            let reason = format!(
                "node `{}` has no room for another cell: {cells} of {cells_max} cells are in memory, which take {} of {memory_max} bytes",
                node.name,
                node.memory.used()
            );
            return Err(CallError::Overloaded { reason, retry_after_ms: 1_000 });
        }
        let (answer, activated) = watch::channel(None);
        let slot = Slot::Activating(activated);
        let stands = match slots.insert(cell.clone(), slot.clone()) {
            Some(Slot::Failed { stands, .. }) => (stands * 2).clamp(FAILURE_STANDS, FAILURE_STANDS_MAX),
            _ => FAILURE_STANDS,
        };
        drop(slots);
        tokio::spawn(Self::activate_into(Arc::clone(node), cell.clone(), (answer, stands)));
        Ok(slot)
    }

    async fn activate_into(
        node: Arc<Node>,
        cell: CellName,
        (answer, stands): (watch::Sender<Option<Activated>>, Duration),
    ) {
        let task = tokio::spawn(activate(Arc::clone(&node), cell.clone()));
        let activated = task.await.unwrap_or_else(|panic| {
            tracing::error!(%cell, %panic, "an activation ended by a bug");
            Err(CallError::Unavailable {
                reason: format!("activating cell `{cell}` failed: a bug, see the log"),
            })
        });
        {
            let mut slots = node.cells.lock();
            match &activated {
                // A gate that failed meanwhile has discarded the cell already.
                Ok(resident) if *resident.settled().borrow() => {
                    slots.remove(&cell);
                }
                Ok(resident) if resident.has_failed() => {
                    slots.insert(cell, Slot::settling(resident));
                }
                Ok(resident) => {
                    slots.insert(cell, Slot::Resident(Arc::clone(resident)));
                }
                Err(error @ (CallError::Unavailable { .. } | CallError::Rejected { .. })) => {
                    let until = Instant::now() + stands;
                    slots.insert(cell, Slot::Failed { until, stands, error: error.clone() });
                }
                Err(_) => {
                    slots.remove(&cell);
                }
            }
        }
        if let Ok(resident) = &activated {
            // Once the cell is among those that are told of changes.
            resident.pace();
        }
        answer.send_replace(Some(activated));
    }

    /// A cell was discarded: nobody activates it before the bucket has all that the node log took of it.
    pub(crate) fn discard(&self, resident: &Arc<Resident>) {
        let mut slots = self.lock();
        if let Some(Slot::Resident(current)) = slots.get(&resident.cell)
            && Arc::ptr_eq(current, resident)
        {
            // Another thread may have brought it to its end already.
            if *resident.settled().borrow() {
                slots.remove(&resident.cell);
            } else {
                slots.insert(resident.cell.clone(), Slot::settling(resident));
            }
        }
    }

    /// Forgets a cell that has left or has settled, if it is still this residency of it.
    pub(crate) fn forget_left(&self, resident: &Arc<Resident>) {
        let mut slots = self.lock();
        if let Some(Slot::Leaving(current, _)) = slots.get(&resident.cell)
            && Arc::ptr_eq(current, resident)
        {
            slots.remove(&resident.cell);
        }
    }

    /// Marks a resident cell as leaving; none when it is not resident.
    pub(crate) fn depart(&self, cell: &CellName) -> Option<Departure> {
        let mut slots = self.lock();
        let Some(Slot::Resident(resident)) = slots.get(cell) else { return None };
        let resident = Arc::clone(resident);
        let (done, left) = watch::channel(false);
        slots.insert(cell.clone(), Slot::Leaving(Arc::clone(&resident), left));
        Some(Departure { resident, done })
    }

    /// The cell has left.
    pub(crate) fn departed(&self, departure: &Departure) {
        self.forget_left(&departure.resident);
        departure.done.send_replace(true);
    }

    /// The cell has left, and another node has it.
    pub(crate) fn departed_to(&self, departure: &Departure, owner: OwnerHint) {
        {
            let mut slots = self.lock();
            if let Some(Slot::Leaving(current, _)) = slots.get(&departure.resident.cell)
                && Arc::ptr_eq(current, &departure.resident)
            {
                let until = Instant::now() + MOVED_STANDS;
                let error = CallError::NotOwner(Some(owner));
                let moved = Slot::Failed { until, stands: Duration::ZERO, error };
                slots.insert(departure.resident.cell.clone(), moved);
            }
        }
        departure.done.send_replace(true);
    }

    /// Failed activations whose answer no longer stands are forgotten.
    pub(crate) fn forget_old_failures(&self) {
        // Kept a while longer, so that the next failure knows that it is not the first.
        let now = Instant::now();
        self.lock()
            .retain(|_, slot| !matches!(slot, Slot::Failed { until, stands, .. } if *until + *stands <= now));
    }
}
