//! The public edge: HTTP/1.1 and HTTP/2 in; the deployed application's Worker, or one call to a cell's owner. It
//! authorizes, bounds and forwards. It owns no cell, and it must never replay a request that may have run, nor end a
//! broken answer cleanly.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod answer;
mod application;
mod auth;
pub mod config;
mod edge;
mod headers;
mod listen;
mod path;
mod service;
mod socket;
mod tls;
mod tracked;
mod upload;
mod worker;

pub use auth::AuthMode;
pub use config::Config;
pub use service::{Addresses, Exit, Service};

#[cfg(test)]
mod tests;
