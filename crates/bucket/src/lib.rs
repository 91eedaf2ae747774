//! The bucket: the only coordinator of a fleet. This crate owns the [`Bucket`] trait, its stores, and the conformance
//! suite that every store must pass. It must never decide a protocol step: it reports what the store answered.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod args;
mod clock;
mod commit;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod error;
pub mod faults;
mod local;
mod location;
mod memory;
mod object_store;
mod open;
mod parts;
pub mod probe;
mod range;
mod retry;
mod s3;
mod settle;
mod store;

pub use args::{BucketArgs, Buckets};
pub use commit::{Commit, Guard};
pub use error::{BucketError, ErrorKind};
pub use local::LocalBucket;
pub use memory::MemoryBucket;
pub use object_store::{CloudBucket, CloudOptions, CloudProvider};
pub use open::{OpenError, OpenOptions, Pool, open};
pub use range::KEY_LEN_MAX;
pub use s3::{S3Bucket, S3Credentials, S3Options};
pub use settle::{Settled, settle_put_if};
pub use store::{
    Bucket, ByteRange, ByteStream, ListedObject, Listing, Object, ObjectHead, ObjectStream, Version,
};
