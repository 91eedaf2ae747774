//! The bucket: the only coordinator of a fleet. This crate owns the [`Bucket`] trait, its stores, and the conformance
//! suite that every store must pass. It must never decide a protocol step: it reports what the store answered.

mod commit;
mod error;
mod store;

pub use commit::{Commit, Guard};
pub use error::{BucketError, ErrorKind};
pub use store::{
    Bucket, ByteRange, ByteStream, ListedObject, Listing, Object, ObjectHead, ObjectStream, Version,
};
