//! INV-OWN-1 an epoch of a cell has at most one claimant; INV-OWN-2 epochs never decrease. Judged by the records that the
//! store applied and by the claims that sessions believe they won.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_core::ownership::{OwnerState, OwnerView};
use holdfast_types::{Epoch, WriteId};

use crate::bucket::Cell;
use crate::violation::{Violation, require};

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct OwnershipChecker {
    applied: BTreeSet<WriteId>,
    claimants: BTreeMap<(Cell, Epoch), WriteId>,
}

impl OwnershipChecker {
    /// The store replaced an owner record.
    ///
    /// # Errors
    /// INV-OWN-1, INV-OWN-2.
    pub fn on_written(
        &mut self,
        cell: Cell,
        before: Option<&OwnerView>,
        after: &OwnerView,
    ) -> Result<(), Violation> {
        self.applied.insert(after.write_id);
        let (epoch, floor) = before.map_or((Epoch::ZERO, Epoch::ZERO), |owner| (owner.epoch, owner.floor));
        let forward = after.epoch >= epoch && after.floor >= floor;
        require(forward, "INV-OWN-2", format_args!("{cell:?}: {before:?} was replaced by {after:?}"))?;
        if let Some(before) = before.filter(|before| before.epoch == after.epoch) {
            let released =
                OwnerView { state: OwnerState::Released, write_id: after.write_id, ..before.clone() };
            let in_order = before.state == OwnerState::Owned && after == &released;
            require(in_order, "INV-OWN-1", format_args!("{cell:?}: {before:?} became {after:?}"))?;
        }
        Ok(())
    }

    /// A session takes itself for the claimant.
    ///
    /// # Errors
    /// INV-OWN-1.
    pub fn on_claimed(&mut self, cell: Cell, owner: &OwnerView) -> Result<(), Violation> {
        let was_applied = self.applied.contains(&owner.write_id);
        require(was_applied, "INV-OWN-1", format_args!("{cell:?}: claim {owner:?} was never applied"))?;
        let first = *self.claimants.entry((cell, owner.epoch)).or_insert(owner.write_id);
        require(
            first == owner.write_id,
            "INV-OWN-1",
            format_args!("{cell:?}: {owner:?} is a second claimant"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::{NodeName, SessionId};

    fn owner(epoch: u64, session: u128, write_id: u128) -> OwnerView {
        OwnerView {
            node: NodeName::parse("n").unwrap(),
            session: SessionId::from_bits(session),
            epoch: Epoch::new(epoch),
            state: OwnerState::Owned,
            floor: Epoch::ZERO,
            write_id: WriteId::from_bits(write_id),
        }
    }

    #[test]
    fn a_second_claimant_of_an_epoch_is_noticed() {
        let mut checker = OwnershipChecker::default();
        checker.on_written(Cell(0), None, &owner(1, 1, 1)).unwrap();
        checker.on_claimed(Cell(0), &owner(1, 1, 1)).unwrap();
        let twice = checker.on_written(Cell(0), Some(&owner(1, 1, 1)), &owner(1, 2, 2));
        assert_eq!(twice.unwrap_err().invariant, "INV-OWN-1");
        assert_eq!(checker.on_claimed(Cell(0), &owner(1, 2, 2)).unwrap_err().invariant, "INV-OWN-1");
    }

    #[test]
    fn a_claim_that_was_never_applied_is_noticed() {
        let mut checker = OwnershipChecker::default();
        assert!(checker.on_claimed(Cell(0), &owner(1, 1, 1)).is_err());
    }

    #[test]
    fn an_epoch_that_goes_down_is_noticed() {
        let mut checker = OwnershipChecker::default();
        let down = checker.on_written(Cell(0), Some(&owner(2, 1, 1)), &owner(1, 1, 2));
        assert_eq!(down.unwrap_err().invariant, "INV-OWN-2");
    }
}
