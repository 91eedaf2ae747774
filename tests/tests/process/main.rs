//! Scenarios on real processes: takeover, drain, fences, store faults, bad input, and a short chaos run.
//! They need the programs built: `cargo build -p holdfast -p holdfast-cellnode -p holdfast-ingress`.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod bad_input;
mod chaos;
mod clients;
mod drain;
mod fencing;
mod full_disk;
mod start;
mod store_faults;
mod support;
mod takeover;
