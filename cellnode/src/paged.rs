//! Large cells open before their database is here (design 4.4): over a file with holes, into which a page comes from its
//! object of the chain when it is first used, and the rest in the background. What to read and when the file is whole is
//! decided by `core/paged`; where each page is, is told by the indexes of the chain's files. It must never let a hole be
//! read, nor a file that is not whole be used again. Keeps INV-CHAIN-1.
//!
//! What is verified when: a page that is fetched by itself has come from the one version of its object whose index was
//! read, stands where the index says, and decompresses to one page. The sum of a whole object is verified when the
//! background has read it to its end, which also compares what was fetched by itself; only then is the file whole.

mod bits;
mod database;
mod fetch;
mod fill;
mod prepare;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_types::CellName;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

pub(crate) use database::{PagedDatabase, Source};
pub(crate) use fill::spawn as spawn_fill;
pub(crate) use prepare::{Prepared, prepare};

/// Files that are filled at once: each holds a thread for blocking calls.
const FILLS: usize = 2;
/// Memory for the page maps of one node, in KiB. Beyond it cells are restored whole.
const MAPS_KIB: u32 = 256 << 10;
/// Cells that are remembered to have met damage; beyond it the oldest memory is no loss, and all are forgotten.
const DISTRUSTED_MAX: usize = 1_024;

/// What the large cells of a node share.
#[derive(Debug)]
pub(crate) struct Paging {
    fills: Semaphore,
    maps: Arc<Semaphore>,
    /// Fetches that a statement waits for: the background stands back meanwhile.
    waiting: watch::Sender<usize>,
    /// Cells whose last chain had something missing or damaged: their next restore reads everything, and tells exactly.
    distrusted: Mutex<HashSet<CellName>>,
    /// Bytes a second that the background reads for one cell.
    fill_rate: u64,
}

impl Paging {
    /// `fill_rate` is for the node, in bytes a second.
    pub(crate) fn new(fill_rate: u64) -> Arc<Self> {
        Arc::new(Self {
            fills: Semaphore::new(FILLS),
            maps: Arc::new(Semaphore::new(MAPS_KIB as usize)),
            waiting: watch::Sender::new(0),
            distrusted: Mutex::default(),
            fill_rate: (fill_rate / FILLS as u64).max(1),
        })
    }

    fn distrusted(&self) -> MutexGuard<'_, HashSet<CellName>> {
        self.distrusted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cell's next restore reads everything.
    fn distrust(&self, cell: &CellName) {
        let mut distrusted = self.distrusted();
        if distrusted.len() >= DISTRUSTED_MAX {
            distrusted.clear();
        }
        distrusted.insert(cell.clone());
    }

    /// A restore of everything has succeeded.
    pub(crate) fn trust(&self, cell: &CellName) {
        self.distrusted().remove(cell);
    }

    fn is_distrusted(&self, cell: &CellName) -> bool {
        self.distrusted().contains(cell)
    }

    /// Memory for a map, if there is any left.
    fn reserve(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        let kib = u32::try_from(bytes.div_ceil(1024)).ok()?;
        Arc::clone(&self.maps).try_acquire_many_owned(kib).ok()
    }

    /// A statement waits until this is dropped.
    fn wait(self: &Arc<Self>) -> Waiting {
        self.waiting.send_modify(|waiting| *waiting += 1);
        Waiting(Arc::clone(self))
    }
}

/// A statement waits for a fetch.
struct Waiting(Arc<Paging>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.send_modify(|waiting| *waiting -= 1);
    }
}
