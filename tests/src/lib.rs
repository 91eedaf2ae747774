//! Process tests: the real binaries on loopback, faults before the store and in the processes, and a ledger of every
//! acknowledgement that is checked at the end through another node (design 11.4). Nothing here links a program; it
//! must never know more of one than its flags, its ready file, its answers and its log.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod chaos;
pub mod checker;
pub mod client;
pub mod cluster;
pub mod etcd_load;
pub mod fault_proxy;
pub mod ledger;
pub mod object_load;
pub mod raw_store;
pub mod rng;
pub mod sigv4;
pub mod wait;
pub mod workerd;
pub mod workload;
