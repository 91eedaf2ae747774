//! What the checkers see of the store: each write that took place.

use holdfast_core::ownership::{OwnerState, OwnerView};

use holdfast_types::Txid;

use crate::bucket::{Body, Cell, Change, Key, Level};
use crate::violation::{Violation, require};
use crate::world::World;

impl World {
    /// Shows a change to the checkers.
    pub(crate) fn observe(&mut self, change: &Change) -> Result<(), Violation> {
        match (&change.key, &change.before, &change.after) {
            (Key::Owner(cell), before, Body::Owner(after)) => {
                let before = match before {
                    Some(Body::Owner(before)) => Some(before),
                    _ => None,
                };
                self.observe_owner(*cell, before, after, change.serial)
            }
            (Key::File(cell, epoch, level, min, max), before, after) => {
                if *level == Level::Zero {
                    for txid in txids(*min, *max) {
                        self.checkers.durability.on_landed(*cell, *epoch, txid, change.serial);
                    }
                }
                never_other_bytes(change, before.as_ref(), after)
            }
            (Key::Opener(..), before, after) => never_other_bytes(change, before.as_ref(), after),
            _ => Ok(()),
        }
    }

    fn observe_owner(
        &mut self,
        cell: Cell,
        before: Option<&OwnerView>,
        after: &OwnerView,
        serial: u64,
    ) -> Result<(), Violation> {
        self.checkers.ownership.on_written(cell, before, after)?;
        let is_claim = before.is_none_or(|before| before.epoch != after.epoch);
        if is_claim {
            self.checkers.durability.on_claim_applied(cell, after.epoch, after.floor, serial);
        }
        if after.state == OwnerState::Purged {
            self.checkers.purge.on_purged(cell, after.epoch);
            self.checkers.clients.on_purged(cell, after.epoch);
        }
        let is_live =
            self.plan.clocks_in_bounds && before.is_some_and(|before| self.has_authority(before.session));
        self.checkers.takeover.on_written(cell, before, after, is_live)
    }
}

/// A range of transactions, both ends included.
pub(crate) fn txids(min: Txid, max: Txid) -> impl Iterator<Item = Txid> {
    (min.get()..=max.get()).map(Txid::new)
}

/// Design 3.2: a key is never reused with other bytes, or a late landing would do harm.
fn never_other_bytes(change: &Change, before: Option<&Body>, after: &Body) -> Result<(), Violation> {
    let same = before.is_none_or(|before| before == after);
    require(same, "KEY-REUSE", format_args!("{:?}: {before:?} became {after:?}", change.key))
}
