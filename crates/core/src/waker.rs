//! The waker: which wake entries to look at, which cells to open and when, and which entries to delete (design 7). An entry
//! is a hint; the cell's own database says whether an alarm is due, and its owner fires it. Everything here may happen
//! twice, late or in two wakers at once: that costs work and no alarm. Keeps INV-WAKE-1 by deleting only what a retirement
//! proves obsolete, and INV-WAKE-2 by coming back to an entry for as long as it is there.

mod burial;
mod cell;
mod effect;
mod event;
mod machine;
mod queue;
mod retirement;
mod shards;
mod sweep;
mod window;

pub use burial::{BURIALS_MAX, Burial, Burials, LeaseSeen, UNCHANGED_MS_MIN};
pub use effect::WakerEffect;
pub use event::{DueEntry, HintOutcome, WakerEvent};
pub use machine::{BACKLOG_ENTRIES_MAX, Backlog, CELL_ENTRIES_MAX, PAGE_LEN, PAGE_LEN_FIRST, Waker};
pub use retirement::Retirement;
pub use shards::{ShardAction, ShardHolder, ShardLease, plan_shards, shard_of};
pub use sweep::recoverer;

#[cfg(test)]
mod tests;
