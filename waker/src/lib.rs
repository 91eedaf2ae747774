//! The waker: finds alarms that are due and has their cells opened, and cleans the alarm index; finds dead sessions and has their logs
//! recovered (design 7, 5.4). What to look at
//! and when is decided by `holdfast_core::waker`; here are the bucket, the clock and the calls. It must never run a handler
//! nor decide that one is due: a cell's own database does.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod balance;
mod bury;
mod clock;
pub mod config;
mod index;
mod leases;
mod random;
mod rounds;
mod service;
mod sessions;
mod shards;
mod sweep;

pub use config::Config;
pub use service::{Addresses, Exit, Service};

#[cfg(test)]
mod tests;
