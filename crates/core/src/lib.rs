//! Every protocol decision of Holdfast as a pure state machine: events in, effects out. This crate must never know a
//! clock, a socket, a thread or a source of randomness: times and random ids arrive inside events, and an effect carries
//! all that its executor needs. The shells execute; they never decide.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;

pub mod advisory;
pub mod alarm;
pub mod commit;
pub mod compaction;
pub mod ensemble;
pub mod follower;
pub mod gate;
pub mod lease;
pub mod lineage;
pub mod log_record;
pub mod mutant;
pub mod ownership;
pub mod paged;
pub mod pieces;
pub mod placement;
pub mod probe;
pub mod rebalance;
pub mod recovery;
pub mod retire;
pub mod routing;
pub mod shedding;
pub mod store;
pub mod waker;
