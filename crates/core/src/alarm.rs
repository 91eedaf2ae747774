//! The alarm of one resident cell (design 7). The truth is in the cell's database and reaches this machine as committed
//! states; everything in the bucket's alarm index is a hint to open the cell and look. Keeps INV-WAKE-1: what reveals an
//! installation leaves only when its wake entry is confirmed, and an entry is deleted only when a proof covers a state in
//! which its installation is not armed. Keeps INV-WAKE-2 while the cell is resident: what is due runs, until it has
//! succeeded or is given up.
//!
//! Handlers run at least once, never before the deadline by the wall clock, and never two at a time. A handler that ends its
//! process is started seven times at most (INV-WAKE-3).

mod counting;
mod effect;
mod event;
mod firing;
mod machine;
mod publication;
mod retirement;
mod state;

pub use counting::{Orphan, UNENDED_MAX};
pub use effect::{Abandoned, AlarmEffect};
pub use event::{AlarmEvent, AlarmNow, HandlerEnd};
pub use firing::{FAILURES_MAX, retry_delay_ms};
pub use machine::Alarm;
pub use retirement::{ENTRIES_PER_DELETE, Mark, OBSOLETE_MAX};
pub use state::{AlarmState, Armed, EntryName};

#[cfg(test)]
mod tests;
