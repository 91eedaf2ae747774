//! The JavaScript engine of cells and Workers, and the API that it offers to them: Web platform, Workers, Durable
//! Objects. An isolate belongs to one thread and does no I/O itself: it asks its embedder, and is told.
#![cfg_attr(test, allow(clippy::unwrap_used))]
#![cfg_attr(not(test), allow(dead_code, reason = "the isolate that begins with the prelude is next"))]

mod buffers;
mod foreign;
mod prelude;
#[cfg(test)]
mod testing;
mod web;
