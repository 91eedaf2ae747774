//! Leaves in order: one node of the fleet at a time, the cells that are used most first, each given to the node where placement puts
//! it. Bounded: what is left when time is over is taken over after the lease, by the recovery of the log.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use holdfast_types::CellName;
use tokio_util::task::AbortOnDropHandle;

use crate::cells::Resident;
use crate::handoff::{Given, give};
use crate::node::Node;
use crate::release::release;
use crate::turn::Turns;

/// Cells that nobody uses, given up at once.
const GIFTS_IDLE: usize = 64;
/// Cells in use, given up at once. Few, because each is without service until another node has it: what waits for its turn is
/// still served here.
const GIFTS: usize = 2;
/// A cell with an event in this time is in use.
const IN_USE_MS: u64 = 1_000;
/// This part of the drain's time may be spent waiting for other nodes to have drained.
const TURN_SHARE: u32 = 3;
/// Cells on their way in or out by others are looked at again after this time.
const PAUSE: Duration = Duration::from_millis(20);

/// What a drain has done.
#[derive(Debug, Default)]
pub(crate) struct Drained {
    /// Cells that another node has.
    pub(crate) taken: usize,
    /// Cells that nobody has: the next request for one places it.
    pub(crate) released: usize,
    /// Cells that are still owned.
    pub(crate) left: Vec<CellName>,
}

/// Gives every cell up, for as long as `patience` lasts.
pub(crate) async fn drain(node: &Arc<Node>, patience: Duration) -> Drained {
    let (taken, released) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let _ = tokio::time::timeout(patience, async {
        let turns = Turns::of(node);
        // Alone, or with all others on their way out too, there is nobody to spare.
        let has_turn = !node.cells.is_empty()
            && node.successors.are_there(&node.name).await
            && turns.take(patience / TURN_SHARE).await;
        let keeper = has_turn.then(|| AbortOnDropHandle::new(tokio::spawn(turns.clone().keep())));
        give_all(node, &taken, &released).await;
        drop(keeper);
        if has_turn {
            turns.give_up().await;
        }
    })
    .await;
    Drained { taken: taken.into_inner(), released: released.into_inner(), left: node.cells.held_names() }
}

async fn give_all(node: &Arc<Node>, taken: &AtomicUsize, released: &AtomicUsize) {
    loop {
        let residents = node.cells.residents();
        if residents.is_empty() {
            if node.cells.is_empty() {
                return;
            }
            // Activations and releases that others began are about to end.
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        let (mut in_use, idle): (Vec<_>, Vec<_>) =
            residents.into_iter().partition(|resident| is_in_use(resident));
        // Those that somebody waits for, and most often, first.
        in_use.sort_by_cached_key(|resident| Reverse((resident.is_busy(), resident.last_event())));
        for (cells, lanes) in [(in_use, GIFTS), (idle, GIFTS_IDLE)] {
            futures::stream::iter(cells)
                .for_each_concurrent(lanes, |resident| async move {
                    match give_one(node, &resident.cell).await {
                        Some(Given::Taken(_)) => taken.fetch_add(1, Ordering::Relaxed),
                        Some(Given::Left) => released.fetch_add(1, Ordering::Relaxed),
                        None => 0,
                    };
                })
                .await;
        }
    }
}

/// None: it could not be given up, which is logged where it happens; it is gone from here all the same.
async fn give_one(node: &Arc<Node>, cell: &CellName) -> Option<Given> {
    match node.successors.of(cell, &node.name).await {
        Some(to) => give(node, cell, &to).await.ok(),
        None => release(node, cell).await.ok().map(|()| Given::Left),
    }
}

fn is_in_use(resident: &Resident) -> bool {
    // Sockets that say nothing are no use of a cell: their clients come again.
    resident.is_busy() || resident.idle_ms() < IN_USE_MS
}
