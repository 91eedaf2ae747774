//! The program `holdfast` as its users run it: a fleet of its own on a temporary directory, and every command against it.

#![allow(clippy::unwrap_used)]

mod cells;
mod deploy;
mod dev;
mod diagnose;
mod reload;
mod store;
mod support;
