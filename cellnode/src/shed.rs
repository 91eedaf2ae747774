//! Makes room: cells that were used least recently leave memory and stay owned, as `holdfast_core::shedding` says, by the number of
//! cells and by the memory of the process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use holdfast_core::shedding::Shedding;
use tokio::time::MissedTickBehavior;

use crate::cells::Resident;
use crate::node::Node;
use crate::release::{ALARM_NEAR_MS, fall_asleep, sleep_idle};

/// How often cells are looked for that nobody uses: ten times in `--idle-after`, within these bounds.
const IDLE_LOOKS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// Cells that leave at once.
const LANES: usize = 64;
/// A cell without an event for this time may leave...
const IDLE_MS: u64 = 500;
/// ...and one whose sockets are open: its clients have to come again.
const SOCKETS_IDLE_MS: u64 = 10_000;
/// Between two tries when nothing can leave, or nothing that left made room.
const PAUSE: Duration = Duration::from_secs(1);

/// Has cells leave memory for as long as the node runs: when there is no room, and those that nobody uses. Looks every so
/// often; what it has begun when it is dropped comes to its end.
pub(crate) async fn keep_room(node: Arc<Node>, every: Duration) {
    let idle_every = (node.config.idle_after / 10).clamp(IDLE_LOOKS.0, IDLE_LOOKS.1);
    let mut shedding = Shedding::default();
    let (mut idle_looked, mut no_room_until) = (Instant::now(), Instant::now());
    let mut looks = tokio::time::interval(every);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        if node.is_draining() {
            continue;
        }
        // Looked at as it would go on, and left as it is: whoever sheds measures by itself.
        let is_room_wanted = { shedding }.surplus(node.usage(), node.caps()) > 0;
        let node = Arc::clone(&node);
        if is_room_wanted && Instant::now() >= no_room_until {
            let shed = tokio::spawn(async move {
                let has_room = shed(&node, &mut shedding).await;
                (shedding, has_room)
            });
            // One that ended by a bug has left the rest as it was.
            let Ok((after, has_room)) = shed.await else { continue };
            shedding = after;
            if !has_room {
                no_room_until = Instant::now() + PAUSE;
            }
        } else if !node.config.idle_after.is_zero() && idle_looked.elapsed() >= idle_every {
            idle_looked = Instant::now();
            // As above, a bug is told by the runtime.
            let _ = tokio::spawn(async move { sleep_idle(&node).await }).await;
        }
    }
}

/// Sheds until there is room, or nothing can leave. Tells whether there is room.
async fn shed(node: &Arc<Node>, shedding: &mut Shedding) -> bool {
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
    resident.idle_ms() >= idle_ms && !resident.is_busy() && !resident.alarm_within(ALARM_NEAR_MS)
}
