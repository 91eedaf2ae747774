//! A purge that has been claimed: everything below its epoch is deleted. What a late uploader brings back afterwards
//! lies below the floor that every later claim carries.

use holdfast_types::Epoch;

use super::{Phase, Purpose, Slot, Step};
use crate::bucket::{Cell, Operation, Reply};
use crate::event::Outcome;
use crate::violation::Violation;
use crate::world::World;

const PATIENCE_MS: u64 = 2_500;
const RETRY_PAUSE_MS: u64 = 200;
const FAILURES_MAX: u32 = 5;

/// A deletion under way.
#[derive(Debug)]
pub(crate) struct Purging {
    epoch: Epoch,
    failures: u32,
}

impl World {
    pub(crate) fn start_purging(
        &mut self,
        index: usize,
        cell: Cell,
        mut slot: Slot,
        epoch: Epoch,
    ) -> Result<(), Violation> {
        self.nodes[index].disk.remove(&cell);
        slot.phase = Phase::Purging(Purging { epoch, failures: 0 });
        self.list_purged(index, cell, slot, 0)
    }

    fn list_purged(&mut self, index: usize, cell: Cell, slot: Slot, pause_ms: u64) -> Result<(), Violation> {
        let Phase::Purging(purging) = &slot.phase else { unreachable!("a purge lists") };
        let purpose = Purpose::Cell(cell, slot.stay, Step::PurgeList);
        let list = Operation::ListBelow(cell, purging.epoch);
        self.call(index, purpose, list, (pause_ms, PATIENCE_MS))?;
        self.put_slot(index, cell, slot);
        Ok(())
    }

    pub(crate) fn on_purge_reply(
        &mut self,
        index: usize,
        cell: Cell,
        mut slot: Slot,
        reply: Reply,
    ) -> Result<(), Violation> {
        let Phase::Purging(purging) = &mut slot.phase else { unreachable!("a purge's reply") };
        match reply {
            Reply::Keys(keys) => {
                let purpose = Purpose::Cell(cell, slot.stay, Step::PurgeDelete);
                self.call(index, purpose, Operation::Delete(keys), (0, PATIENCE_MS))?;
                self.put_slot(index, cell, slot);
                Ok(())
            }
            Reply::Done => self.drop_slot(index, slot, &Outcome::Purged),
            _ => {
                purging.failures += 1;
                if purging.failures >= FAILURES_MAX {
                    return self.drop_slot(index, slot, &Outcome::Unknown);
                }
                self.list_purged(index, cell, slot, RETRY_PAUSE_MS)
            }
        }
    }
}
