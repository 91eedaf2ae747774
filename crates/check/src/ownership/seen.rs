//! What the properties speak of: claims, acknowledgements and restores so far. Sets of epochs are bits.

use std::collections::BTreeMap;

use holdfast_core::ownership::{OwnerState, OwnerView};
use holdfast_types::{Epoch, SessionId};

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seen {
    /// How many claims were told that they own an epoch.
    claimants: BTreeMap<Epoch, u8>,
    /// The newest epoch of the record.
    newest: Epoch,
    /// The record's epoch fell, or a claim kept it.
    pub epoch_fell: bool,
    /// Epochs whose write was acknowledged.
    pub acknowledged: u32,
    /// Epochs whose write was in the bucket before a later claim.
    pub stored_in_time: u32,
    /// For each activated epoch: the epochs whose write it restored.
    pub restored: BTreeMap<Epoch, u32>,
    /// Sessions whose log was recovered.
    pub recovered: Vec<SessionId>,
    /// A cell was claimed from a session whose log was not recovered.
    pub claimed_unrecovered: bool,
    /// A cell was claimed from a session whose lease had not ended.
    pub claimed_live: bool,
    /// An output left after the lease.
    pub left_fenced: bool,
    /// A proof failed because another owns the cell.
    pub proof_failed: bool,
}

pub(super) const fn bit(epoch: Epoch) -> u32 {
    1 << epoch.get()
}

impl Seen {
    pub(super) fn note_claimed(&mut self, epoch: Epoch) {
        *self.claimants.entry(epoch).or_default() += 1;
    }

    pub(super) fn claimed_twice(&self) -> bool {
        self.claimants.values().any(|claims| *claims > 1)
    }

    /// The record changed.
    pub(super) fn note_record(&mut self, before: Option<&OwnerView>, after: &OwnerView, was_live: bool) {
        self.epoch_fell |= after.epoch < self.newest;
        self.newest = self.newest.max(after.epoch);
        let Some(before) = before.filter(|before| before.state == OwnerState::Owned) else { return };
        if before.session != after.session {
            self.claimed_unrecovered |= !self.recovered.contains(&before.session);
            self.claimed_live |= was_live;
        }
    }

    /// The write of the epoch is in the bucket.
    pub(super) fn note_stored(&mut self, epoch: Epoch) {
        if epoch == self.newest {
            self.stored_in_time |= bit(epoch);
        }
    }

    pub(super) fn later_epochs_have_it(&self) -> bool {
        self.restored.iter().all(|(epoch, restored)| {
            let earlier = bit(*epoch) - 1;
            self.acknowledged & earlier & !restored == 0
        })
    }
}
