//! Serves any [`holdfast_bucket::Bucket`] over the S3 protocol, so that several machines or ordinary S3 tools can use one
//! embedded bucket, and so that the S3 client is tested against a server. Owns the translation of S3 calls; it must
//! never weaken what the bucket promises: a condition that it cannot check atomically is refused, never guessed.
//!
//! What S3 has and this has not: one bucket, no versions, no access lists, no user metadata and no content types (both
//! are dropped on upload), no times (all objects are as old as 1970), no server-side encryption (refused).

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod answer;
mod body;
mod checksum;
mod etag;
mod list;
mod multipart;
mod object;
mod serve;
mod service;

pub use serve::{ServeError, ServeOptions, serve};
