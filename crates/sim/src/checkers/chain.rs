//! INV-CHAIN-1 a restored database equals the writer's at that position; INV-CHAIN-2 a superseded epoch's late write
//! changes no later restore. Also that a current claimant finds a chain at all.

use std::collections::BTreeMap;

use holdfast_types::{Epoch, Position, Txid};

use crate::bucket::{Cell, OpId};
use crate::violation::{Violation, require};

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct ChainChecker {
    written: BTreeMap<(Cell, Epoch, Txid), Vec<OpId>>,
}

impl ChainChecker {
    /// The writer of an epoch captured a transaction; its database is now this.
    ///
    /// # Errors
    /// INV-OWN-1: two writers of one epoch made the same transaction differently.
    pub fn on_captured(&mut self, cell: Cell, at: Position, state: &[OpId]) -> Result<(), Violation> {
        let first = self.written.entry((cell, at.epoch, at.txid)).or_insert_with(|| state.to_vec());
        require(
            first == state,
            "INV-OWN-1",
            format_args!("{cell:?}: {at} was written twice: {first:?}, {state:?}"),
        )
    }

    /// A restore ended at this position (none: empty) with this database.
    ///
    /// # Errors
    /// INV-CHAIN-1.
    pub fn on_restored(&self, cell: Cell, at: Option<Position>, state: &[OpId]) -> Result<(), Violation> {
        let written = match at {
            None => Some(&[][..]),
            Some(at) => self.written.get(&(cell, at.epoch, at.txid)).map(Vec::as_slice),
        };
        let text = format_args!("{cell:?}: restored {at:?} as {state:?}, the writer had {written:?}");
        require(written == Some(state), "INV-CHAIN-1", text)
    }

    /// The writer's database before a transaction of its epoch; none where that is what it restored.
    #[must_use]
    pub fn before(&self, cell: Cell, epoch: Epoch, txid: Txid) -> Option<&[OpId]> {
        self.written.get(&(cell, epoch, txid.previous()?)).map(Vec::as_slice)
    }

    /// What the writer of an epoch wrote from a transaction on, beyond the first `kept` operations of its database.
    pub fn written_from(
        &self,
        (cell, epoch, txid): (Cell, Epoch, Txid),
        kept: usize,
    ) -> impl Iterator<Item = OpId> {
        let later = self.written.range((cell, epoch, txid)..=(cell, epoch, Txid::new(u64::MAX)));
        later.flat_map(move |(_, state)| state.iter().skip(kept).copied())
    }

    /// A restore found no chain although its claim is still the cell's newest.
    ///
    /// # Errors
    /// Always: INV-CHAIN-1.
    pub fn on_broken(&self, cell: Cell, epoch: Epoch, why: &str) -> Result<(), Violation> {
        Err(Violation::new("INV-CHAIN-1", format_args!("{cell:?}: epoch {epoch} cannot be restored: {why}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restore_that_differs_from_the_writer_is_noticed() {
        let mut checker = ChainChecker::default();
        let at = Position { epoch: Epoch::new(1), txid: Txid::new(1) };
        checker.on_captured(Cell(0), at, &[OpId(1)]).unwrap();
        checker.on_restored(Cell(0), Some(at), &[OpId(1)]).unwrap();
        assert!(checker.on_restored(Cell(0), Some(at), &[OpId(2)]).is_err());
        assert!(checker.on_restored(Cell(0), None, &[OpId(1)]).is_err());
        assert!(checker.on_restored(Cell(1), Some(at), &[]).is_err(), "never written");
        assert!(checker.on_captured(Cell(0), at, &[OpId(2)]).is_err(), "two writers");
        assert!(checker.on_broken(Cell(0), Epoch::new(2), "gap").is_err());
    }
}
