//! The cellnode: owns cells. It claims them, restores and runs their databases, replicates every commit, and releases an
//! output only when a durability proof covers what it may reveal. Every decision of the protocol is made by
//! `holdfast-core`; this crate executes. It must never acknowledge without a proof.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod activation;
mod alarm_index;
mod answers;
mod authority;
mod backoff;
mod blocking;
mod cells;
mod clock;
pub mod config;
mod critical;
mod cron;
mod data_dir;
mod dormant;
mod drain;
mod handoff;
mod host;
mod lease;
mod local_files;
pub mod log_records;
mod memory;
mod node;
mod node_log;
mod open_files;
mod orphans;
mod owners;
mod paged;
mod past;
mod patience;
mod random;
pub mod recovery;
mod release;
mod replication;
mod restore;
mod retire;
mod runtime;
mod service;
mod shed;
mod turn;
mod wake;

pub use authority::Authority;
pub use config::Config;
pub use owners::{OwnerReadError, Owners, lease_view};
pub use restore::{
    PlannedChain, RestoreError, RestoreJob, Restored, apply_chain, find_chain, find_past, restore,
};
pub use service::{Addresses, Exit, Service};
