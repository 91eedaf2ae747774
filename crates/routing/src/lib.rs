//! Finds the owner of a cell and forwards requests to it (design 6.2). `holdfast_core::routing` decides; this crate reads
//! the records, remembers what they said, and sends. It must never send a request twice that may have run, and it owns
//! no cell.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod cache;
mod error;
mod leases;
mod owners;
mod request;
mod router;
mod shared;
mod successors;
mod wake_format;

pub use error::RouteError;
pub use leases::node_names;
pub use router::{Router, RouterOptions, Woken};
pub use successors::Successors;
pub use wake_format::{WAKE_SHARDS, WakeFormatError, wake_format};

#[cfg(test)]
mod tests;
