//! A release: the owner gives a cell up by writing `released` at its own epoch, under the version it claimed with. Only
//! called once everything committed is covered in the cell's own prefix.

use holdfast_types::WriteId;

use super::{OwnerState, OwnerView, ReleaseEffect, ReleaseEvent, ReleaseOutcome};
use crate::store::{Answer, Guard};

/// Rounds whose outcome stayed unknown before leaving the cell to the lease's end.
const UNKNOWN_ROUNDS_MAX: u32 = 3;

/// One release of one cell.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Release {
    released: OwnerView,
    unknown_rounds: u32,
}

impl Release {
    /// Begins, from the record as claimed and its version. `write_id` is fresh randomness.
    ///
    /// # Panics
    /// When the record is not an ownership.
    #[must_use]
    pub fn start<V>(owned: &OwnerView, version: V, write_id: WriteId) -> (Self, ReleaseEffect<V>) {
        assert_eq!(owned.state, OwnerState::Owned, "only an ownership can be released");
        let released = OwnerView { state: OwnerState::Released, write_id, ..owned.clone() };
        let effect = ReleaseEffect::WriteOwner { owner: released.clone(), guard: Guard::Match(version) };
        (Self { released, unknown_rounds: 0 }, effect)
    }

    /// Takes the answer to the last effect and says what is next.
    pub fn on<V>(&mut self, event: ReleaseEvent<V>) -> ReleaseEffect<V> {
        match event {
            ReleaseEvent::Answered(Answer::Applied(_)) => self.done(),
            ReleaseEvent::Answered(Answer::Rejected) => ReleaseEffect::ReadOwner,
            ReleaseEvent::Answered(Answer::Unknown) | ReleaseEvent::ReadFailed => {
                self.unknown_rounds += 1;
                if self.unknown_rounds >= UNKNOWN_ROUNDS_MAX {
                    ReleaseEffect::Finish(ReleaseOutcome::Unknown)
                } else {
                    ReleaseEffect::ReadOwner
                }
            }
            ReleaseEvent::OwnerRead { owner: Some((owner, _)) }
                if owner.write_id == self.released.write_id =>
            {
                self.done()
            }
            ReleaseEvent::OwnerRead { owner: Some((owner, version)) }
                if owner.is_owned_by(&self.released.node, self.released.session, self.released.epoch) =>
            {
                self.unknown_rounds += 1;
                if self.unknown_rounds >= UNKNOWN_ROUNDS_MAX {
                    return ReleaseEffect::Finish(ReleaseOutcome::Unknown);
                }
                ReleaseEffect::WriteOwner { owner: self.released.clone(), guard: Guard::Match(version) }
            }
            ReleaseEvent::OwnerRead { .. } => ReleaseEffect::Finish(ReleaseOutcome::AlreadyLost),
        }
    }

    fn done<V>(&self) -> ReleaseEffect<V> {
        ReleaseEffect::Finish(ReleaseOutcome::Released(self.released.epoch))
    }
}
