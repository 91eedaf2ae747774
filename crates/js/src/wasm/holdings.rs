//! What a group's store holds of the isolate's memory: the engine asks before a memory or a table grows.

use std::rc::Rc;

use wasmi::errors::{MemoryError, TableError};
use wasmi_core::{LimiterError, ResourceLimiter};

use super::account::Account;
use super::region::Region;

/// Bytes that an element of a table is charged with: more than it takes, because JavaScript may hold what is in it.
const ELEMENT_BYTES: usize = 16;
/// Memories, tables, instances of one group.
const MEMBERS_MAX: usize = 10_000;

/// What the store's limits are kept with.
#[derive(Debug)]
pub(super) struct Holdings {
    account: Rc<Account>,
    /// Bytes reserved for what goes with the store.
    charged: usize,
    /// Where the group's memories are.
    regions: Vec<Rc<Region>>,
    /// A memory may have grown since JavaScript ran.
    pub(super) has_grown: bool,
    /// Reserved last, until it is known that the growth worked.
    last_memory: usize,
    last_table: usize,
}

impl Holdings {
    pub(super) fn new(account: &Rc<Account>) -> Self {
        Self {
            account: Rc::clone(account),
            charged: 0,
            regions: Vec::new(),
            has_grown: false,
            last_memory: 0,
            last_table: 0,
        }
    }

    /// A memory will be there.
    pub(super) fn add_region(&mut self, region: &Rc<Region>) {
        self.regions.push(Rc::clone(region));
    }

    /// The memory that would be in the region added last is not there after all.
    pub(super) fn remove_region(&mut self) {
        self.regions.pop();
    }

    /// Opens the region of a memory that grows. Which that is the engine does not say: all that it may be are opened, and
    /// what is open beyond a memory's size costs nothing before it is touched.
    fn open(&self, current: usize, desired: usize) -> bool {
        let mut regions = self.regions.iter().filter(|region| region.opened() >= current);
        regions.all(|region| region.open(desired))
    }

    /// Takes bytes of the isolate's memory for what goes with the store.
    pub(super) fn charge(&mut self, bytes: usize) -> bool {
        let has_room = self.account.reserve(bytes);
        if has_room {
            self.charged += bytes;
        }
        has_room
    }
}

impl Drop for Holdings {
    fn drop(&mut self) {
        self.account.release(self.charged);
    }
}

impl ResourceLimiter for Holdings {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> std::result::Result<bool, LimiterError> {
        let bytes = desired.saturating_sub(current);
        self.last_memory = bytes;
        self.has_grown = true;
        if desired > self.account.limit() || !self.account.reserve(bytes) {
            return Ok(false);
        }
        let is_open = self.open(current, desired);
        if !is_open {
            self.account.release(bytes);
        }
        Ok(is_open)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> std::result::Result<bool, LimiterError> {
        let bytes = desired.saturating_sub(current).saturating_mul(ELEMENT_BYTES);
        self.last_table = bytes;
        Ok(maximum.is_none_or(|maximum| desired <= maximum) && self.charge(bytes))
    }

    fn memory_grow_failed(&mut self, _error: &MemoryError) -> std::result::Result<(), LimiterError> {
        self.account.release(std::mem::take(&mut self.last_memory));
        Ok(())
    }

    fn table_grow_failed(&mut self, error: &TableError) -> std::result::Result<(), LimiterError> {
        let bytes = std::mem::take(&mut self.last_table);
        self.charged -= bytes;
        self.account.release(bytes);
        match error {
            // The engine cannot go on from there once it has fuel again: the instruction traps. It needs fuel for 512 elements
            // or more, and how much is left cannot be asked here. `docs/compatibility.md` says how rare that is.
            TableError::OutOfFuel { .. } => Err(LimiterError::ResourceLimiterDeniedAllocation),
            _ => Ok(()),
        }
    }

    fn instances(&self) -> usize {
        MEMBERS_MAX
    }

    fn tables(&self) -> usize {
        MEMBERS_MAX
    }

    fn memories(&self) -> usize {
        MEMBERS_MAX
    }
}
