//! This server under test: by the suite that every store must pass, and by what ordinary tools do.

#![allow(clippy::unwrap_used)]

mod conformance;
mod protocol;
mod server;
