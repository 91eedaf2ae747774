//! Settling one conditional write (design 3.2): what might have been applied is read back, and a write whose condition
//! still holds is sent again with the same bytes. It must never call a write refused while it may be the record, nor
//! applied on anything but the store's word or a read of the record.

mod effect;
mod event;
mod state;

pub use effect::{CommitEffect, Settlement};
pub use event::{CommitEvent, Seen};
pub use state::CommitSettler;

#[cfg(test)]
mod tests;
