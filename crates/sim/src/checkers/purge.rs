//! A purge's old content never reappears: no epoch from a purge on restores or reveals what ran before it.

use std::collections::BTreeMap;

use holdfast_types::Epoch;

use crate::bucket::{Cell, OpId};
use crate::violation::{Violation, require};

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct PurgeChecker {
    ran_in: BTreeMap<OpId, Epoch>,
    floors: BTreeMap<Cell, Epoch>,
    purges: u64,
}

impl PurgeChecker {
    /// A write ran in an epoch.
    pub fn on_ran(&mut self, op: OpId, epoch: Epoch) {
        self.ran_in.insert(op, epoch);
    }

    /// The store applied a purge at `epoch`.
    pub fn on_purged(&mut self, cell: Cell, epoch: Epoch) {
        self.floors.insert(cell, epoch);
        self.purges += 1;
    }

    /// An epoch restored or revealed this.
    ///
    /// # Errors
    /// Something from before the purge is there again.
    pub fn on_seen(&self, cell: Cell, epoch: Epoch, state: &[OpId]) -> Result<(), Violation> {
        let Some(floor) = self.floors.get(&cell).filter(|floor| epoch >= **floor) else { return Ok(()) };
        let old = state.iter().find(|op| self.ran_in.get(op).is_none_or(|ran| ran < floor));
        require(
            old.is_none(),
            "PURGE",
            format_args!("{cell:?}: epoch {epoch} shows {old:?}, purged at {floor}"),
        )
    }

    /// An output of an epoch left and revealed this; with clocks in bounds the purge has ended every earlier owner.
    ///
    /// # Errors
    /// An epoch from before the purge still answers.
    pub fn on_revealed(&self, cell: Cell, epoch: Epoch, in_bounds: bool) -> Result<(), Violation> {
        let floor = self.floors.get(&cell).copied().unwrap_or_default();
        let is_old = in_bounds && epoch < floor;
        require(!is_old, "PURGE", format_args!("{cell:?}: epoch {epoch} answers, purged at {floor}"))
    }

    /// Purges so far.
    #[must_use]
    pub const fn purges(&self) -> u64 {
        self.purges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purged_content_that_reappears_is_noticed() {
        let mut checker = PurgeChecker::default();
        checker.on_ran(OpId(1), Epoch::new(1));
        checker.on_purged(Cell(0), Epoch::new(2));
        checker.on_ran(OpId(2), Epoch::new(3));
        checker.on_seen(Cell(0), Epoch::new(3), &[OpId(2)]).unwrap();
        checker.on_seen(Cell(0), Epoch::new(1), &[OpId(1)]).unwrap();
        assert!(checker.on_seen(Cell(0), Epoch::new(3), &[OpId(1), OpId(2)]).is_err());
        checker.on_revealed(Cell(0), Epoch::new(3), true).unwrap();
        checker.on_revealed(Cell(0), Epoch::new(1), false).unwrap();
        assert!(checker.on_revealed(Cell(0), Epoch::new(1), true).is_err());
    }
}
