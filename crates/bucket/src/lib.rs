//! The bucket: the only coordinator of a fleet. This crate owns the [`Bucket`] trait, its stores, and the conformance
//! suite that every store must pass. It must never decide a protocol step: it reports what the store answered.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod commit;
mod error;
mod local;
mod memory;
mod open;
mod range;
mod store;

pub use commit::{Commit, Guard};
pub use error::{BucketError, ErrorKind};
pub use local::LocalBucket;
pub use memory::MemoryBucket;
pub use open::{OpenError, OpenOptions, Pool, open};
pub use range::KEY_LEN_MAX;
pub use store::{
    Bucket, ByteRange, ByteStream, ListedObject, Listing, Object, ObjectHead, ObjectStream, Version,
};
