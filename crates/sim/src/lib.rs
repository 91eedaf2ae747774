//! Seeded simulation of the real core (design 11): a fake store, clocks, processes and clients around the machines of
//! `holdfast-core`, with a checker for each promise. Single-threaded; no real clock, no order that the seed does not decide.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod alarms;
pub mod balance;
pub mod bucket;
pub mod checkers;
mod client;
mod clock;
mod event;
mod fault;
mod follower;
mod forcing;
pub mod frame;
mod journal;
mod network;
mod node;
mod observe;
mod quiescence;
pub mod rng;
pub mod run;
pub mod scenario;
pub mod tally;
pub mod trace;
pub mod violation;
mod waker;
pub mod weather;
pub mod world;
