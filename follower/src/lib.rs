//! The follower: stores the node logs of cellnodes and knows nothing of cells or ownership (design 5.3). What it accepts and
//! what it acknowledges is decided by `holdfast_core::follower`; here are the disk, the network and the lease. It must
//! never answer an append before its fsync, nor accept one of a log that is sealed.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod announce;
mod clock;
pub mod config;
mod host;
pub mod journal;
mod lease;
mod log_dir;
mod log_record;
mod random;
mod service;

pub use config::Config;
pub use service::{Addresses, Exit, Service};
