//! What clients may expect of the answers they got, judged by those alone: an acknowledged write is in every read that
//! begins later and in the final state (unless a purge came between), a refused write is in none, and after faults stop
//! every cell answers.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_types::{Epoch, NodeName, SessionId};

use crate::bucket::{Cell, OpId};
use crate::violation::{Violation, require};

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct ClientsChecker {
    /// Acknowledged writes of a cell: when, and in which epoch.
    acknowledged: BTreeMap<Cell, Vec<(u64, Epoch, OpId)>>,
    refused: BTreeSet<OpId>,
    /// Declared lost by a person.
    lost: BTreeSet<OpId>,
    purged: BTreeMap<Cell, Epoch>,
    acknowledged_len: u64,
}

impl ClientsChecker {
    /// A client was told that its write is durable.
    ///
    /// # Errors
    /// It had been told before that it did not run.
    pub fn on_acknowledged(&mut self, cell: Cell, op: OpId, epoch: Epoch, now: u64) -> Result<(), Violation> {
        self.acknowledged_len += 1;
        self.acknowledged.entry(cell).or_default().push((now, epoch, op));
        require(!self.refused.contains(&op), "REFUSED", format_args!("{op:?} was refused and acknowledged"))
    }

    /// A client was told that its write did not run.
    pub fn on_refused(&mut self, op: OpId) {
        self.refused.insert(op);
    }

    /// A purge was applied at `epoch`.
    pub fn on_purged(&mut self, cell: Cell, epoch: Epoch) {
        self.purged.insert(cell, epoch);
    }

    /// A person declared writes lost.
    pub fn on_lost(&mut self, ops: impl IntoIterator<Item = OpId>) {
        self.lost.extend(ops);
    }

    /// A client read `state` with a request that began at `began`; `is_recent` asks for what was acknowledged before.
    ///
    /// # Errors
    /// A refused write is there, or an acknowledged one is not.
    pub fn on_read(&self, cell: Cell, began: u64, state: &[OpId], is_recent: bool) -> Result<(), Violation> {
        let refused = state.iter().find(|op| self.refused.contains(op));
        require(
            refused.is_none(),
            "REFUSED",
            format_args!("{cell:?}: {refused:?} was refused, but is there"),
        )?;
        if !is_recent {
            return Ok(());
        }
        let floor = self.purged.get(&cell).copied().unwrap_or_default();
        let there: BTreeSet<&OpId> = state.iter().collect();
        let expected = self.acknowledged.get(&cell).into_iter().flatten();
        let is_owed = |op: &OpId| !self.lost.contains(op);
        let mut expected = expected.filter(|(at, epoch, op)| *at < began && *epoch >= floor && is_owed(op));
        let missing = expected.find(|(_, _, op)| !there.contains(op));
        let text = format_args!("{cell:?}: a read begun at {began} lacks {missing:?}: {state:?}");
        require(missing.is_none(), "RECENCY", text)
    }

    /// The time for every cell to answer, for every node to have its lease and for every dead session to be recovered
    /// after faults stopped is over.
    ///
    /// # Errors
    /// Some did not.
    pub fn on_patience_over(
        &self,
        silent: &[Cell],
        absent: &[NodeName],
        unrecovered: &[SessionId],
    ) -> Result<(), Violation> {
        let text =
            format_args!("{silent:?} {absent:?} {unrecovered:?} did not come back after faults stopped");
        require(silent.is_empty() && absent.is_empty() && unrecovered.is_empty(), "LIVENESS", text)
    }

    /// Acknowledged writes so far.
    #[must_use]
    pub const fn acknowledged_len(&self) -> u64 {
        self.acknowledged_len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL: Cell = Cell(0);

    #[test]
    fn a_read_that_misses_an_earlier_acknowledgement_is_noticed() {
        let mut checker = ClientsChecker::default();
        checker.on_acknowledged(CELL, OpId(1), Epoch::new(1), 10).unwrap();
        checker.on_read(CELL, 10, &[], true).unwrap();
        assert_eq!(checker.on_read(CELL, 11, &[], true).unwrap_err().invariant, "RECENCY");
        checker.on_read(CELL, 11, &[OpId(1)], true).unwrap();
        checker.on_acknowledged(CELL, OpId(2), Epoch::new(1), 11).unwrap();
        checker.on_lost([OpId(2)]);
        checker.on_read(CELL, 12, &[OpId(1)], true).unwrap();
        checker.on_purged(CELL, Epoch::new(2));
        checker.on_read(CELL, 12, &[], true).unwrap();
    }

    #[test]
    fn a_refused_write_that_is_there_is_noticed() {
        let mut checker = ClientsChecker::default();
        checker.on_refused(OpId(1));
        assert!(checker.on_read(CELL, 0, &[OpId(1)], false).is_err());
        assert!(checker.on_acknowledged(CELL, OpId(1), Epoch::new(1), 0).is_err());
    }

    #[test]
    fn a_silent_cell_is_noticed() {
        let checker = ClientsChecker::default();
        checker.on_patience_over(&[], &[], &[]).unwrap();
        assert!(checker.on_patience_over(&[], &[], &[SessionId::from_bits(1)]).is_err());
        assert!(checker.on_patience_over(&[CELL], &[], &[]).is_err());
        assert!(checker.on_patience_over(&[], &[NodeName::parse("n").unwrap()], &[]).is_err());
    }
}
