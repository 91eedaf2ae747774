//! INV-ACK-1 every acknowledged position is in the restored state of every later epoch; INV-ACK-2 a read never reveals a
//! position that a later epoch lacks; INV-OWN-3 a session acknowledges only what was stored before any later claim.
//!
//! A cell's state is the list of the operations applied to it, so what an output reveals is a prefix of its epoch's list,
//! and a later epoch must restore at least that prefix.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_types::{Epoch, Txid};

use crate::bucket::{Cell, OpId};
use crate::violation::{Violation, require};

#[derive(Clone, Debug, Default)]
struct EpochLog {
    /// The longest list that an output of the epoch revealed.
    revealed: Vec<OpId>,
    /// The transactions of the epoch that outputs revealed.
    revealed_txids: BTreeSet<Txid>,
    restored: Option<Vec<OpId>>,
    /// Number of the store's change by which a later claim superseded the epoch.
    superseded: Option<u64>,
    /// Number of the store's change that first stored each transaction.
    landed: BTreeMap<Txid, u64>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct DurabilityChecker {
    epochs: BTreeMap<(Cell, Epoch), EpochLog>,
    floors: BTreeMap<Cell, Epoch>,
}

impl DurabilityChecker {
    /// The store applied a claim at `epoch`; no restore reads below `floor`.
    pub fn on_claim_applied(&mut self, cell: Cell, epoch: Epoch, floor: Epoch, serial: u64) {
        self.floors.insert(cell, floor);
        for (_, earlier) in self.epochs.range_mut((cell, Epoch::ZERO)..(cell, epoch)) {
            earlier.superseded.get_or_insert(serial);
        }
        self.epochs.entry((cell, epoch)).or_default();
    }

    /// The store holds a transaction's object.
    pub fn on_landed(&mut self, cell: Cell, epoch: Epoch, txid: Txid, serial: u64) {
        self.epochs.entry((cell, epoch)).or_default().landed.entry(txid).or_insert(serial);
    }

    /// An activation restored `state` for `epoch`.
    ///
    /// # Errors
    /// INV-ACK-1 or INV-ACK-2: something revealed earlier is not there.
    pub fn on_restored(&mut self, cell: Cell, epoch: Epoch, state: &[OpId]) -> Result<(), Violation> {
        let floor = self.floors.get(&cell).copied().unwrap_or_default();
        // One that a purge has overtaken, and that does not know it yet, may find anything: it answers nobody.
        for ((_, earlier), log) in self.epochs.range((cell, floor.min(epoch))..(cell, epoch)) {
            require_prefix(cell, (*earlier, &log.revealed), (epoch, state))?;
        }
        self.epochs.entry((cell, epoch)).or_default().restored = Some(state.to_vec());
        Ok(())
    }

    /// Whether level 0 of a cell's epoch holds a transaction: what a restore finds, however old its listing is.
    #[must_use]
    pub fn has_landed(&self, cell: Cell, epoch: Epoch, txid: Txid) -> bool {
        self.epochs.get(&(cell, epoch)).is_some_and(|log| log.landed.contains_key(&txid))
    }

    /// A person declared lost what the bucket lacks of an epoch, which begins with `first`: what outputs revealed of it is
    /// owed no longer. `before` is the writer's database before that; none: what it restored. Returns how many operations
    /// of it are owed still.
    pub fn on_lost(&mut self, cell: Cell, epoch: Epoch, first: Txid, before: Option<&[OpId]>) -> usize {
        let log = self.epochs.entry((cell, epoch)).or_default();
        let kept = before.or(log.restored.as_deref()).map_or(0, <[OpId]>::len);
        log.revealed.truncate(kept);
        log.revealed_txids.retain(|txid| *txid < first);
        kept
    }

    /// The store applied a release of `epoch`, after which nobody recovers it.
    ///
    /// # Errors
    /// INV-ACK-1: the bucket lacks something that it revealed.
    pub fn on_released(&self, cell: Cell, epoch: Epoch) -> Result<(), Violation> {
        let Some(log) = self.epochs.get(&(cell, epoch)) else { return Ok(()) };
        let lacking = log.revealed_txids.iter().find(|txid| !log.landed.contains_key(txid));
        let text = format_args!("{cell:?}: epoch {epoch} was released, the bucket lacks {lacking:?}");
        require(lacking.is_none(), "INV-ACK-1/2", text)
    }

    /// An output of `epoch` left and revealed `state`, all of which transactions up to `upto` hold; `first` is the first
    /// transaction of the epoch itself. `is_proved` tells of a transaction whether the ensemble proved it.
    ///
    /// # Errors
    /// INV-ACK-1 or INV-ACK-2 where a later epoch lacks it already, INV-OWN-3 where its proof came too late.
    pub fn on_revealed(
        &mut self,
        cell: Cell,
        epoch: Epoch,
        state: &[OpId],
        (first, upto): (Txid, Txid),
        is_proved: impl Fn(Txid) -> bool,
    ) -> Result<(), Violation> {
        let floor = self.floors.get(&cell).copied().unwrap_or_default();
        let log = self.epochs.entry((cell, epoch)).or_default();
        let mut txid = first;
        while txid <= upto {
            let landed = log.landed.get(&txid).copied();
            let in_time = match log.superseded {
                None => landed.is_some() || is_proved(txid),
                Some(by) => landed.is_some_and(|landed| landed < by),
            };
            let text = format_args!(
                "{cell:?}: epoch {epoch} revealed {txid}, stored {landed:?}, superseded {:?}",
                log.superseded
            );
            require(in_time, "INV-OWN-3", text)?;
            log.revealed_txids.insert(txid);
            txid = txid.next();
        }
        if state.len() > log.revealed.len() {
            log.revealed = state.to_vec();
        }
        if epoch < floor {
            return Ok(());
        }
        for ((_, later), log) in self.epochs.range((cell, epoch.next())..=(cell, Epoch::new(u64::MAX))) {
            if let Some(restored) = &log.restored {
                require_prefix(cell, (epoch, state), (*later, restored))?;
            }
        }
        Ok(())
    }
}

fn require_prefix(
    cell: Cell,
    (earlier, revealed): (Epoch, &[OpId]),
    (later, restored): (Epoch, &[OpId]),
) -> Result<(), Violation> {
    let text = format_args!(
        "{cell:?}: epoch {earlier} revealed {revealed:?}, but epoch {later} restored {restored:?}"
    );
    require(restored.starts_with(revealed), "INV-ACK-1/2", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL: Cell = Cell(0);

    fn claimed(checker: &mut DurabilityChecker, epoch: u64, floor: u64, serial: u64) {
        checker.on_claim_applied(CELL, Epoch::new(epoch), Epoch::new(floor), serial);
    }

    fn revealed(checker: &mut DurabilityChecker, upto: u64) -> Result<(), Violation> {
        checker.on_revealed(CELL, Epoch::new(1), &[OpId(7)], (Txid::new(1), Txid::new(upto)), |_| false)
    }

    fn acknowledged() -> DurabilityChecker {
        let mut checker = DurabilityChecker::default();
        claimed(&mut checker, 1, 0, 1);
        checker.on_restored(CELL, Epoch::new(1), &[]).unwrap();
        checker.on_landed(CELL, Epoch::new(1), Txid::new(1), 2);
        revealed(&mut checker, 1).unwrap();
        claimed(&mut checker, 2, 0, 3);
        checker
    }

    #[test]
    fn an_acknowledged_write_that_a_restore_lacks_is_noticed() {
        let mut checker = acknowledged();
        assert_eq!(checker.on_restored(CELL, Epoch::new(2), &[]).unwrap_err().invariant, "INV-ACK-1/2");
        checker.on_restored(CELL, Epoch::new(2), &[OpId(7), OpId(8)]).unwrap();
    }

    #[test]
    fn a_write_acknowledged_after_a_restore_without_it_is_noticed() {
        let mut checker = DurabilityChecker::default();
        claimed(&mut checker, 1, 0, 1);
        checker.on_landed(CELL, Epoch::new(1), Txid::new(1), 2);
        claimed(&mut checker, 2, 0, 3);
        checker.on_restored(CELL, Epoch::new(2), &[]).unwrap();
        assert_eq!(revealed(&mut checker, 1).unwrap_err().invariant, "INV-ACK-1/2");
    }

    #[test]
    fn an_acknowledgement_of_what_is_not_stored_or_stored_too_late_is_noticed() {
        let mut checker = DurabilityChecker::default();
        claimed(&mut checker, 1, 0, 1);
        assert_eq!(revealed(&mut checker, 1).unwrap_err().invariant, "INV-OWN-3");
        claimed(&mut checker, 2, 0, 3);
        checker.on_landed(CELL, Epoch::new(1), Txid::new(1), 4);
        assert_eq!(revealed(&mut checker, 1).unwrap_err().invariant, "INV-OWN-3");
    }

    #[test]
    fn an_ensemble_stands_in_for_the_bucket_until_a_later_claim_or_a_release() {
        let reveal = |checker: &mut DurabilityChecker| {
            checker.on_revealed(CELL, Epoch::new(1), &[OpId(7)], (Txid::new(1), Txid::new(1)), |_| true)
        };
        let mut checker = DurabilityChecker::default();
        claimed(&mut checker, 1, 0, 1);
        reveal(&mut checker).unwrap();
        assert_eq!(checker.on_released(CELL, Epoch::new(1)).unwrap_err().invariant, "INV-ACK-1/2");
        claimed(&mut checker, 2, 0, 3);
        assert_eq!(reveal(&mut checker).unwrap_err().invariant, "INV-OWN-3");
        checker.on_landed(CELL, Epoch::new(1), Txid::new(1), 4);
        checker.on_released(CELL, Epoch::new(1)).unwrap();
    }

    #[test]
    fn a_declared_loss_frees_later_epochs_of_what_was_lost_and_of_nothing_else() {
        let mut checker = DurabilityChecker::default();
        claimed(&mut checker, 1, 0, 1);
        checker.on_restored(CELL, Epoch::new(1), &[OpId(6)]).unwrap();
        let state = [OpId(6), OpId(7), OpId(8)];
        checker.on_revealed(CELL, Epoch::new(1), &state, (Txid::new(1), Txid::new(2)), |_| true).unwrap();
        assert_eq!(checker.on_lost(CELL, Epoch::new(1), Txid::new(2), Some(&state[..2])), 2);
        claimed(&mut checker, 2, 0, 2);
        assert!(checker.on_restored(CELL, Epoch::new(2), &[OpId(6)]).is_err(), "that was not lost");
        checker.on_restored(CELL, Epoch::new(2), &state[..2]).unwrap();
        assert_eq!(checker.on_lost(CELL, Epoch::new(1), Txid::new(1), None), 1, "what was restored is owed");
        checker.on_restored(CELL, Epoch::new(3), &[OpId(6), OpId(9)]).unwrap();
    }

    #[test]
    fn a_purge_frees_later_epochs_of_what_was_acknowledged() {
        let mut checker = acknowledged();
        claimed(&mut checker, 3, 3, 5);
        checker.on_restored(CELL, Epoch::new(4), &[]).unwrap();
    }
}
