//! The trait that every store implements (design 3.2), and the values it speaks in.

use std::fmt;
use std::pin::Pin;

use async_trait::async_trait;
use bytes::Bytes;
use futures::Stream;

use crate::{BucketError, Commit, Guard};

/// A store's opaque name of one content of one key (an etag or a generation). Sent back byte for byte.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Version(String);

impl Version {
    /// Wraps what the store sent.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// What the store sent.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A whole object and the version that its bytes belong to; the two never tear.
#[derive(Clone, Debug)]
pub struct Object {
    /// The bytes.
    pub body: Bytes,
    /// Their version.
    pub version: Version,
}

/// What is known of an object without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectHead {
    /// Length in bytes.
    pub len: u64,
    /// The version.
    pub version: Version,
}

/// Bytes in pieces, in order. An error ends the stream; a stream that is shorter than announced is an error.
pub type ByteStream = Pin<Box<dyn Stream<Item = Result<Bytes, BucketError>> + Send>>;

/// An object whose bytes arrive in pieces. All pieces belong to the one version.
pub struct ObjectStream {
    /// Length of the whole object in bytes, also when a range was asked for.
    pub object_len: u64,
    /// The version that the bytes belong to.
    pub version: Version,
    /// The bytes asked for.
    pub stream: ByteStream,
}

/// Which bytes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteRange {
    /// `offset..offset + len`, cut at the object's end. `len` must not be 0.
    Span {
        /// First byte.
        offset: u64,
        /// How many bytes.
        len: u64,
    },
    /// From `offset` to the end.
    From {
        /// First byte.
        offset: u64,
    },
    /// The last `len` bytes, or the whole object when it is shorter. `len` must not be 0.
    Suffix {
        /// How many bytes.
        len: u64,
    },
}

/// One row of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedObject {
    /// The key.
    pub key: String,
    /// Length in bytes.
    pub len: u64,
}

/// One page of a listing, in byte order of the keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The rows.
    pub objects: Vec<ListedObject>,
    /// Where more remains: list again with `start_after` set to this key.
    pub next: Option<String>,
}

/// An object store with conditional writes.
///
/// Every call has a deadline of its own inside the store (see each store's options) and may be dropped at any point: a
/// dropped write may still land. Reads see every write that was answered before they began.
#[async_trait]
pub trait Bucket: Send + Sync + fmt::Debug + 'static {
    /// The store's URL, without credentials, for messages.
    fn url(&self) -> String;

    /// The whole object, or `None` when the key is absent. For objects known to be small.
    ///
    /// # Errors
    /// [`BucketError`]; absence is not an error.
    async fn get(&self, key: &str) -> Result<Option<Object>, BucketError>;

    /// The bytes of a range, or `None` when the key is absent.
    ///
    /// # Errors
    /// `RangeNotSatisfiable` (416) when the range begins at or past the end.
    async fn get_range(&self, key: &str, range: ByteRange) -> Result<Option<Object>, BucketError>;

    /// The object, or a range of it, in pieces; `None` when the key is absent.
    ///
    /// # Errors
    /// As [`Bucket::get_range`]; the stream itself ends with an error when the body breaks or is short.
    async fn get_stream(
        &self,
        key: &str,
        range: Option<ByteRange>,
    ) -> Result<Option<ObjectStream>, BucketError>;

    /// Length and version, or `None` when the key is absent.
    ///
    /// # Errors
    /// [`BucketError`]; absence is not an error.
    async fn head(&self, key: &str) -> Result<Option<ObjectHead>, BucketError>;

    /// One page of the keys that start with `prefix` and sort after `start_after`, at most `limit` rows
    /// (a store may return fewer; `next` tells whether more remains).
    ///
    /// # Errors
    /// [`BucketError`].
    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Listing, BucketError>;

    /// Writes without a condition. Retries inside are safe only because the caller never reuses a key with other
    /// bytes while a write of it may be in flight.
    ///
    /// # Errors
    /// [`BucketError`]; the write may have landed unless the kind says otherwise.
    async fn put(&self, key: &str, body: Bytes) -> Result<Version, BucketError>;

    /// Writes a large body in pieces (multipart where the store has it). The object appears whole or not at all.
    ///
    /// # Errors
    /// As [`Bucket::put`]; an error of `body` aborts the write.
    async fn put_stream(&self, key: &str, body: ByteStream) -> Result<Version, BucketError>;

    /// Writes under a condition, once: no retry inside after an answer that leaves the outcome open. 409, 429 and 503
    /// are retried with jitter inside `deadline_ms`, which bounds the whole call.
    async fn put_if(&self, key: &str, body: Bytes, guard: Guard, deadline_ms: u64) -> Commit;

    /// Removes the key; absent already is success.
    ///
    /// # Errors
    /// [`BucketError`].
    async fn delete(&self, key: &str) -> Result<(), BucketError>;

    /// Removes many keys, any number; absent ones are success.
    ///
    /// # Errors
    /// The first failure; some keys may be gone. Safe to repeat.
    async fn delete_many(&self, keys: &[String]) -> Result<(), BucketError>;
}
