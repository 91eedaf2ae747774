//! INV-PAST-1 a state of the past that is found is the one that the writer had there, and the present one continues it;
//! INV-PAST-2 what was written after a mark is found until another is swept; INV-PAST-3 a state that was cut for a bookmark is
//! found by itself for as long. Looked at around each deletion, and bookmarks when they are given out, by a walk without any
//! fault.

use std::collections::BTreeMap;

use holdfast_core::lineage::{FileSpan, Past, PastEffect, PastError, PastEvent, PastTarget};
use holdfast_types::{Epoch, Position};

use super::chain::ChainChecker;
use super::retirement::{of_history, opener_of, owner_of, restore};
use crate::bucket::{Body, Bucket, Cell, Key, Level, OpId};
use crate::node::EpochPlan;
use crate::violation::{Violation, require};

/// Clocks that made a mark may be this far from the true one, in milliseconds.
const CLOCK_MARGIN_MS: u64 = 2_000;
/// States of a cell that are looked for around a deletion.
const SAMPLES: usize = 6;

/// What a walk finds, or why it finds nothing.
type Found = Result<(Position, Vec<OpId>), Lost>;

/// Why a walk finds nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Lost {
    /// The core says so.
    Past(PastError),
    /// What was planned is not there.
    Missing(Key),
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct PastChecker {
    /// When each transaction was captured, in true time.
    captured: BTreeMap<Cell, Vec<(u64, Position)>>,
    /// Those that have a bookmark.
    bookmarks: BTreeMap<Cell, Vec<(u64, Position)>>,
    before: BTreeMap<(Cell, Position), Found>,
}

impl PastChecker {
    /// A writer captured a transaction.
    pub fn on_captured(&mut self, cell: Cell, at: Position, now: u64) {
        self.captured.entry(cell).or_default().push((now, at));
    }

    /// A bookmark is given out: the bucket has its state, and it is proved.
    ///
    /// # Errors
    /// INV-PAST-3.
    pub fn on_bookmark(&mut self, bucket: &Bucket, cell: Cell, at: Position) -> Result<(), Violation> {
        let captured = self.captured.get(&cell).map_or(&[][..], Vec::as_slice);
        let Some((time, _)) = captured.iter().rev().find(|(_, captured)| *captured == at) else {
            return Ok(());
        };
        if *time >= kept_since(bucket, cell) {
            check_bookmark(bucket, cell, at)?;
        }
        self.bookmarks.entry(cell).or_default().push((*time, at));
        Ok(())
    }

    /// The store is about to delete these objects.
    ///
    /// # Errors
    /// INV-PAST-1, INV-PAST-3.
    pub fn before_deletion(
        &mut self,
        bucket: &Bucket,
        keys: &[Key],
        chain: &ChainChecker,
    ) -> Result<(), Violation> {
        self.before.clear();
        let mut cells: Vec<Cell> = keys.iter().filter_map(of_history).collect();
        cells.dedup();
        for cell in cells {
            let present = restore(bucket, cell);
            let captured = self.captured.get(&cell).map_or(&[][..], Vec::as_slice);
            for (_, at) in sample(captured) {
                let found = past(bucket, cell, PastTarget::Position(*at));
                if let Ok((position, state)) = &found {
                    let text = format_args!("{cell:?}: {at} was looked for, and {position} found");
                    require(position <= at, "INV-PAST-1", text)?;
                    chain.on_restored(cell, Some(*position), state)?;
                    let text = format_args!("{cell:?}: {position} was {state:?} and is now {present:?}");
                    let is_continued = present.as_ref().is_ok_and(|(_, now)| now.starts_with(state));
                    require(is_continued || present.is_err(), "INV-PAST-1", text)?;
                }
            }
            let since = kept_since(bucket, cell);
            let bookmarks = self.bookmarks.get(&cell).map_or(&[][..], Vec::as_slice);
            for (_, at) in sample(bookmarks).filter(|(time, _)| *time >= since) {
                check_bookmark(bucket, cell, *at)?;
            }
            if since == 0 {
                continue;
            }
            let kept = captured.partition_point(|(time, _)| *time < since);
            for (_, at) in sample(&captured[kept..]) {
                let found = past(bucket, cell, PastTarget::Position(*at));
                if found.is_ok() {
                    self.before.insert((cell, *at), found);
                }
            }
        }
        Ok(())
    }

    /// The store has deleted them.
    ///
    /// # Errors
    /// INV-PAST-2: a state that was to be kept is not found any more, or another is.
    pub fn after_deletion(&self, bucket: &Bucket) -> Result<(), Violation> {
        for ((cell, at), before) in &self.before {
            let after = past(bucket, *cell, PastTarget::Position(*at));
            let text =
                format_args!("{cell:?}: {at} was {before:?} before a deletion and is {after:?} after it");
            require(before == &after, "INV-PAST-2", text)?;
        }
        Ok(())
    }
}

/// Some of them, the last one included.
fn sample(of: &[(u64, Position)]) -> impl Iterator<Item = &(u64, Position)> {
    of.iter().rev().step_by(of.len().div_ceil(SAMPLES).max(1))
}

/// From when on what is written is kept, in true time; 0 where nothing is retired.
fn kept_since(bucket: &Bucket, cell: Cell) -> u64 {
    match bucket.peek(&Key::Retired(cell)) {
        Some(Body::Retired(mark)) => mark.marked_ms.get().saturating_add(CLOCK_MARGIN_MS),
        _ => 0,
    }
}

/// The state of a bookmark is there by itself, unless it is not of the cell's history any more: then it was purged.
fn check_bookmark(bucket: &Bucket, cell: Cell, at: Position) -> Result<(), Violation> {
    let (epoch, floor) = owner_of(bucket, cell);
    let found = go(bucket, cell, Past::start_exactly(epoch.next(), floor, at));
    let is_lost = matches!(found, Err(Lost::Past(PastError::Inexact { .. } | PastError::NotKept { .. })));
    let text = format_args!("{cell:?}: the state of the bookmark {at} was looked for: {found:?}");
    require(!is_lost, "INV-PAST-3", text)
}

/// What whoever looks for a state of the past finds if it sees all that is there.
fn past(bucket: &Bucket, cell: Cell, target: PastTarget) -> Found {
    let (epoch, floor) = owner_of(bucket, cell);
    go(bucket, cell, Past::start(epoch.next(), floor, target))
}

fn go(bucket: &Bucket, cell: Cell, (mut walk, mut effect): (Past, PastEffect)) -> Found {
    let mut plans: Vec<EpochPlan> = Vec::new();
    loop {
        let event = match effect {
            PastEffect::ReadOpeners(epochs) => {
                let opener = |epoch: Epoch| (epoch, opener_of(bucket, cell, epoch));
                PastEvent::OpenersRead(epochs.into_iter().map(opener).collect())
            }
            PastEffect::ListFiles(epoch) => {
                let files = bucket.listing(cell, epoch).into_iter().map(|key| match key {
                    Key::File(_, _, level, min, last) => {
                        FileSpan { first: (level != Level::Snapshot).then_some(min), last }
                    }
                    _ => unreachable!("only files are listed"),
                });
                PastEvent::FilesListed(files.collect())
            }
            PastEffect::ReadTime(_) => unreachable!("no time is looked for"),
            PastEffect::PlanEpoch(segment) => match EpochPlan::whole(bucket, cell, &segment) {
                Some(plan) => {
                    let event = PastEvent::EpochPlanned(plan.start);
                    plans.push(plan);
                    event
                }
                None => PastEvent::Missing,
            },
            PastEffect::Finish(position) => {
                let state = EpochPlan::apply_all(&plans, bucket).map_err(Lost::Missing)?;
                return Ok((position, state));
            }
            PastEffect::Fail(error) => return Err(Lost::Past(error)),
        };
        effect = walk.on(event);
    }
}

#[cfg(test)]
mod tests {
    use super::super::retirement::tests::{CELL, history};
    use super::*;
    use crate::bucket::Operation;
    use holdfast_core::retire::{Kept, Mark};
    use holdfast_types::{Millis, Txid, WriteId};

    fn at(txid: u64) -> Position {
        Position { epoch: Epoch::new(1), txid: Txid::new(txid) }
    }

    /// A history of three transactions that was marked at this time, its writer and its past.
    fn world(marked_ms: u64) -> (Bucket, ChainChecker, PastChecker) {
        let mut bucket = history();
        let mark = Mark {
            write_id: WriteId::from_bits(1),
            by: Epoch::new(1),
            kept: Kept::default(),
            marked_ms: Millis::new(marked_ms),
            is_swept: false,
        };
        bucket.apply(&Operation::Put(Key::Retired(CELL), Body::Retired(mark)), 0, 0);
        let (mut chain, mut past) = (ChainChecker::default(), PastChecker::default());
        for txid in 1..=3 {
            let state: Vec<OpId> = (1..=u32::try_from(txid).unwrap()).map(OpId).collect();
            chain.on_captured(CELL, at(txid), &state).unwrap();
            past.on_captured(CELL, at(txid), txid * 10_000);
        }
        (bucket, chain, past)
    }

    fn delete(world: &mut (Bucket, ChainChecker, PastChecker), txid: u64) -> Result<(), Violation> {
        let (bucket, chain, past) = world;
        let txid = Txid::new(txid);
        let keys = vec![Key::File(CELL, Epoch::new(1), Level::Zero, txid, txid)];
        past.before_deletion(bucket, &keys, chain)?;
        bucket.apply(&Operation::Delete(keys), 0, 0);
        past.after_deletion(bucket)
    }

    #[test]
    fn a_deletion_of_what_is_younger_than_the_mark_is_noticed() {
        // A snapshot ends with transaction 2.
        delete(&mut world(25_000), 1).unwrap();
        assert_eq!(delete(&mut world(25_000), 3).unwrap_err().invariant, "INV-PAST-2");
        delete(&mut world(35_000), 3).unwrap();
        assert_eq!(delete(&mut world(1_000), 1).unwrap_err().invariant, "INV-PAST-2");
    }

    #[test]
    fn a_bookmark_within_an_object_is_noticed() {
        let (mut bucket, _, mut past) = world(0);
        past.on_bookmark(&bucket, CELL, at(3)).unwrap();
        // The object that ends with it goes, and one is there that goes beyond it.
        let gone = vec![Key::File(CELL, Epoch::new(1), Level::Zero, Txid::new(3), Txid::new(3))];
        bucket.apply(&Operation::Delete(gone), 0, 0);
        let file = |txid: u64| (Txid::new(txid), vec![OpId(u32::try_from(txid).unwrap())]);
        let key = Key::File(CELL, Epoch::new(1), Level::Zero, Txid::new(3), Txid::new(4));
        bucket.apply(&Operation::Put(key, Body::Transactions([file(3), file(4)].to_vec().into())), 0, 0);
        assert_eq!(past.on_bookmark(&bucket, CELL, at(3)).unwrap_err().invariant, "INV-PAST-3");
    }

    #[test]
    fn a_past_that_its_writer_did_not_have_is_noticed() {
        let (bucket, _, past) = &mut world(0);
        let mut other = ChainChecker::default();
        for txid in 1..=3 {
            other.on_captured(CELL, at(txid), &[OpId(9)]).unwrap();
        }
        let keys = [Key::File(CELL, Epoch::new(1), Level::Zero, Txid::new(1), Txid::new(1))];
        assert_eq!(past.before_deletion(bucket, &keys, &other).unwrap_err().invariant, "INV-CHAIN-1");
    }
}
