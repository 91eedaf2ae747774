//! Makes room: cells that were used least recently leave memory and stay owned, as `holdfast_core::shedding` says, by the number of
//! cells and by the memory of the process.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use holdfast_core::shedding::Shedding;

use crate::cells::Resident;
use crate::clock;
use crate::node::Node;
use crate::release::fall_asleep;

/// Cells that leave at once.
const LANES: usize = 64;
/// A cell without an event for this time may leave...
const IDLE_MS: u64 = 500;
/// ...and one whose sockets are open: its clients have to come again.
const SOCKETS_IDLE_MS: u64 = 10_000;
/// A cell whose alarm is due within this time stays.
const ALARM_NEAR_MS: i64 = 2_000;
/// Between two tries when nothing can leave, or nothing that left made room.
pub(crate) const PAUSE: Duration = Duration::from_secs(1);

/// Sheds until there is room, or nothing can leave. Tells whether there is room.
pub(crate) async fn shed(node: &Arc<Node>, shedding: &mut Shedding) -> bool {
    // Before a cell leaves for memory that is free already.
    give_back(node).await;
    loop {
        let surplus = shedding.surplus(node.usage(), node.caps());
        if surplus == 0 {
            return true;
        }
        let leaving = least_used(node, usize::try_from(surplus).unwrap_or(usize::MAX));
        if leaving.is_empty() || node.is_draining() {
            return false;
        }
        tracing::debug!(
            node = %node.name, cells = leaving.len(), usage = ?node.usage(), "letting cells sleep to make room"
        );
        futures::stream::iter(leaving)
            .for_each_concurrent(LANES, |resident| async move {
                // It may have waited for its turn, and been used meanwhile.
                if may_leave(&resident) {
                    // A failure is logged where it happens, and the cell is gone from here all the same.
                    let _ = fall_asleep(node, &resident).await;
                }
            })
            .await;
        give_back(node).await;
    }
}

async fn give_back(node: &Arc<Node>) {
    let node = Arc::clone(node);
    crate::blocking::blocking(move || node.memory.give_back()).await;
}

/// Cells that may leave, those first that were used least recently, and those whose clients hold sockets last.
fn least_used(node: &Node, count: usize) -> Vec<Arc<Resident>> {
    let mut cells = node.cells.residents();
    cells.retain(|resident| may_leave(resident));
    cells.sort_by_cached_key(|resident| (resident.has_sockets(), resident.last_event()));
    cells.truncate(count);
    cells
}

fn may_leave(resident: &Resident) -> bool {
    let idle_ms = if resident.has_sockets() { SOCKETS_IDLE_MS } else { IDLE_MS };
    let is_idle = clock::monotonic().since(resident.last_event()) >= idle_ms;
    is_idle && !resident.is_busy() && !resident.alarm_within(ALARM_NEAR_MS)
}
