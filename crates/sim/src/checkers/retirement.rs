//! INV-GC-1 nothing a possible restore reads is deleted. A restore without any fault, by the product's own plan, finds the
//! same before a deletion and after it, for whoever claims next.

use std::collections::BTreeMap;

use holdfast_core::lineage::{Lineage, LineageEffect, LineageEvent, OpenerView};
use holdfast_core::ownership::OwnerView;
use holdfast_types::{Epoch, Position};

use crate::bucket::{Body, Bucket, Cell, Key, OpId};
use crate::node::EpochPlan;
use crate::violation::{Violation, require};

/// What a restore finds, or why it finds nothing.
type Found = Result<(Option<Position>, Vec<OpId>), String>;

/// What restores of some cells find.
#[derive(Clone, Debug, Default)]
pub struct RetirementChecker {
    before: BTreeMap<Cell, Found>,
}

impl RetirementChecker {
    /// The store is about to delete these objects.
    pub fn before_deletion(&mut self, bucket: &Bucket, keys: &[Key]) {
        self.before.clear();
        for cell in keys.iter().filter_map(of_history) {
            self.before.entry(cell).or_insert_with(|| restore(bucket, cell));
        }
    }

    /// The store has deleted them.
    ///
    /// # Errors
    /// INV-GC-1: a restore finds something else.
    pub fn after_deletion(&self, bucket: &Bucket) -> Result<(), Violation> {
        for (cell, before) in &self.before {
            let after = restore(bucket, *cell);
            let text =
                format_args!("{cell:?}: a restore found {before:?} before a deletion and {after:?} after it");
            require(before.is_err() || before == &after, "INV-GC-1", text)?;
        }
        Ok(())
    }
}

pub(super) fn of_history(key: &Key) -> Option<Cell> {
    match key {
        Key::Opener(cell, _) | Key::File(cell, ..) => Some(*cell),
        _ => None,
    }
}

/// The epoch and the floor that a cell's owner record names.
pub(super) fn owner_of(bucket: &Bucket, cell: Cell) -> (Epoch, Epoch) {
    match bucket.peek(&Key::Owner(cell)) {
        Some(Body::Owner(OwnerView { epoch, floor, .. })) => (*epoch, *floor),
        _ => (Epoch::ZERO, Epoch::ZERO),
    }
}

pub(super) fn opener_of(bucket: &Bucket, cell: Cell, epoch: Epoch) -> Option<OpenerView> {
    match bucket.peek(&Key::Opener(cell, epoch)) {
        Some(Body::Opener(opener)) => Some(*opener),
        _ => None,
    }
}

/// What the next claimant would restore if it saw all that is there.
pub(super) fn restore(bucket: &Bucket, cell: Cell) -> Found {
    let (epoch, floor) = owner_of(bucket, cell);
    let (mut lineage, mut effect) = Lineage::start(epoch.next(), floor, None);
    let mut plans: Vec<EpochPlan> = Vec::new();
    loop {
        let event = match effect {
            LineageEffect::ReadMark => LineageEvent::MarkRead(match bucket.peek(&Key::Retired(cell)) {
                Some(Body::Retired(mark)) => Some(mark.clone()),
                _ => None,
            }),
            LineageEffect::Forget => {
                plans.clear();
                LineageEvent::Forgotten
            }
            LineageEffect::ReadOpeners(epochs) => {
                let opener = |epoch: Epoch| (epoch, opener_of(bucket, cell, epoch));
                LineageEvent::OpenersRead(epochs.into_iter().map(opener).collect())
            }
            LineageEffect::PlanEpoch(segment) => match EpochPlan::whole(bucket, cell, &segment) {
                Some(plan) => {
                    let event = LineageEvent::EpochPlanned { start: plan.start, end: plan.end };
                    plans.push(plan);
                    event
                }
                None => LineageEvent::Broken,
            },
            LineageEffect::Finish(chain) => {
                let state =
                    EpochPlan::apply_all(&plans, bucket).map_err(|key| format!("{key:?} is missing"))?;
                return Ok((chain.end, state));
            }
            LineageEffect::Fail(error) => return Err(error.to_string()),
            LineageEffect::GiveUp => return Err("a file is missing".to_owned()),
        };
        effect = lineage.on(event);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::rc::Rc;

    use holdfast_core::ownership::OwnerState;
    use holdfast_types::{NodeName, SessionId, Txid, WriteId};

    use super::*;
    use crate::bucket::{Level, Operation};

    pub(in crate::checkers) const CELL: Cell = Cell(0);

    fn put(bucket: &mut Bucket, key: Key, body: Body) {
        bucket.apply(&Operation::Put(key, body), 0, 0);
    }

    fn deletion(bucket: &mut Bucket, key: Key) -> Result<(), Violation> {
        let mut checker = RetirementChecker::default();
        let keys = vec![key];
        checker.before_deletion(bucket, &keys);
        bucket.apply(&Operation::Delete(keys), 0, 0);
        checker.after_deletion(bucket)
    }

    /// Three transactions of one epoch, and a snapshot that ends with the second.
    pub(in crate::checkers) fn history() -> Bucket {
        let at = |txid| Txid::new(txid);
        let epoch = Epoch::new(1);
        let mut bucket = Bucket::default();
        let owner = OwnerView {
            node: NodeName::parse("n1").unwrap(),
            session: SessionId::from_bits(1),
            epoch,
            state: OwnerState::Owned,
            floor: Epoch::ZERO,
            write_id: WriteId::from_bits(1),
        };
        put(&mut bucket, Key::Owner(CELL), Body::Owner(owner));
        put(&mut bucket, Key::Opener(CELL, epoch), Body::Opener(OpenerView { base: None }));
        for txid in 1..=3 {
            let op = OpId(u32::try_from(txid).unwrap());
            let body = Body::Transactions(Rc::from([(at(txid), vec![op])]));
            put(&mut bucket, Key::File(CELL, epoch, Level::Zero, at(txid), at(txid)), body);
        }
        put(
            &mut bucket,
            Key::File(CELL, epoch, Level::Snapshot, at(1), at(2)),
            Body::Snapshot(Rc::from([OpId(1), OpId(2)])),
        );
        bucket
    }

    #[test]
    fn a_deletion_of_what_restores_read_is_noticed() {
        let (at, epoch) = (Txid::new, Epoch::new(1));
        let mut bucket = history();
        deletion(&mut bucket, Key::File(CELL, epoch, Level::Zero, at(1), at(1))).unwrap();
        let violation = deletion(&mut bucket, Key::File(CELL, epoch, Level::Zero, at(3), at(3))).unwrap_err();
        assert_eq!(violation.invariant, "INV-GC-1");
        assert!(deletion(&mut bucket, Key::Opener(CELL, epoch)).is_err());
    }
}
