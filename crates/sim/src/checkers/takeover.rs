//! No live session is taken over: a claim over an ownership of another session is applied only after that session's
//! authority has ended, by its own clock, or its process is gone. Holds only while clocks keep their bound.

use holdfast_core::ownership::{OwnerState, OwnerView};

use crate::bucket::Cell;
use crate::violation::{Violation, require};

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct TakeoverChecker {
    takeovers: u64,
}

impl TakeoverChecker {
    /// The store replaced an owner record; `has_authority` says of the earlier record's session whether its process lives
    /// and may act now.
    ///
    /// # Errors
    /// The takeover of a live session.
    pub fn on_written(
        &mut self,
        cell: Cell,
        before: Option<&OwnerView>,
        after: &OwnerView,
        has_authority: bool,
    ) -> Result<(), Violation> {
        let Some(before) = before else { return Ok(()) };
        let takes_over = before.state == OwnerState::Owned && before.session != after.session;
        self.takeovers += u64::from(takes_over);
        let text = format_args!("{cell:?}: {after:?} was claimed over the live {before:?}");
        require(!takes_over || !has_authority, "TAKEOVER", text)
    }

    /// Takeovers so far.
    #[must_use]
    pub const fn takeovers(&self) -> u64 {
        self.takeovers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::{Epoch, NodeName, SessionId, WriteId};

    #[test]
    fn a_claim_over_a_live_session_is_noticed() {
        let owner = |epoch: u64, session| OwnerView {
            node: NodeName::parse("n").unwrap(),
            session: SessionId::from_bits(session),
            epoch: Epoch::new(epoch),
            state: OwnerState::Owned,
            floor: Epoch::ZERO,
            write_id: WriteId::from_bits(session),
        };
        let mut checker = TakeoverChecker::default();
        checker.on_written(Cell(0), Some(&owner(1, 1)), &owner(2, 1), true).unwrap();
        checker.on_written(Cell(0), Some(&owner(2, 1)), &owner(3, 2), false).unwrap();
        assert!(checker.on_written(Cell(0), Some(&owner(3, 2)), &owner(4, 1), true).is_err());
        assert_eq!(checker.takeovers(), 2);
    }
}
