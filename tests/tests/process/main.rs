//! Scenarios on real processes: takeover, drain, fences, followers, store faults, bad input, and a short chaos run.
//! They need the programs built: `cargo build -p holdfast -p holdfast-cellnode -p holdfast-follower -p holdfast-ingress
//! -p holdfast-waker`.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod alarm_storm;
mod alarms;
mod application;
mod bad_input;
mod bookmarks;
mod bundles;
mod chaos;
mod clients;
mod clocks;
mod cron;
mod differential;
mod drain;
mod ensembles;
mod examples;
mod fencing;
mod fleet;
mod follower_acks;
mod full_disk;
mod keys;
mod libraries;
mod long_tail;
mod lost_disks;
mod lost_records;
mod orphans;
mod paged;
mod poison;
mod r2;
mod restart_orders;
mod shedding;
mod sockets;
mod start;
mod store_faults;
mod support;
mod takeover;
mod tcp;
mod tier;
mod traffic;
mod versions;
mod waker;
