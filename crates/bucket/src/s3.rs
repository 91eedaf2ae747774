//! `s3://`: any store that speaks the S3 protocol, through the AWS SDK. The SDK signs, sends and parses; whether a call
//! is made again is decided here alone ([`crate::retry`]), so its own retries are off. It must never send a checksum
//! trailer or a header that older stores refuse, and never take an answer that it does not understand for a success.

mod connect;
mod error;
mod multipart;
mod read;
mod write;

use async_trait::async_trait;
use aws_sdk_s3::Client;
use bytes::Bytes;

pub use connect::{S3Credentials, S3Options};

use crate::location::Location;
use crate::range::check_key;
use crate::{
    Bucket, BucketError, ByteRange, ByteStream, Commit, Guard, Listing, Object, ObjectHead, ObjectStream,
    Version,
};

/// A bucket behind the S3 protocol. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct S3Bucket {
    client: Client,
    location: Location,
}

impl S3Bucket {
    /// Prepares the connections to `bucket` (and `prefix` in it); nothing is sent yet, except what the credential
    /// chain needs to find a region.
    ///
    /// # Errors
    /// `Invalid` when the location or an option cannot be read.
    pub async fn open(location: &str, options: &S3Options) -> Result<Self, BucketError> {
        let location = Location::parse(location)
            .map_err(|reason| BucketError::new("open", location, crate::ErrorKind::Invalid, reason))?;
        let client = connect::client(options).await?;
        Ok(Self { client, location })
    }

    /// The key in the store.
    ///
    /// # Errors
    /// `Invalid` when it is empty or, with the prefix, too long.
    fn full(&self, operation: &'static str, key: &str) -> Result<String, BucketError> {
        check_key(operation, key)?;
        let full = self.location.full(key);
        check_key(operation, &full)?;
        Ok(full)
    }
}

impl std::fmt::Debug for S3Bucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("S3Bucket").field("url", &self.url()).finish_non_exhaustive()
    }
}

#[async_trait]
impl Bucket for S3Bucket {
    fn url(&self) -> String {
        self.location.url("s3")
    }

    async fn get(&self, key: &str) -> Result<Option<Object>, BucketError> {
        read::get("get", self, key, None).await
    }

    async fn get_range(&self, key: &str, range: ByteRange) -> Result<Option<Object>, BucketError> {
        read::get("get_range", self, key, Some(range)).await
    }

    async fn get_stream(
        &self,
        key: &str,
        range: Option<ByteRange>,
    ) -> Result<Option<ObjectStream>, BucketError> {
        read::get_stream(self, key, range).await
    }

    async fn head(&self, key: &str) -> Result<Option<ObjectHead>, BucketError> {
        read::head(self, key).await
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Listing, BucketError> {
        read::list(self, prefix, start_after, limit).await
    }

    async fn put(&self, key: &str, body: Bytes) -> Result<Version, BucketError> {
        write::put("put", self, key, body).await
    }

    async fn put_stream(&self, key: &str, body: ByteStream) -> Result<Version, BucketError> {
        multipart::put_stream(self, key, body).await
    }

    async fn put_if(&self, key: &str, body: Bytes, guard: Guard, deadline_ms: u64) -> Commit {
        write::put_if(self, key, body, guard, deadline_ms).await
    }

    async fn delete(&self, key: &str) -> Result<(), BucketError> {
        write::delete("delete", self, key).await
    }

    async fn delete_many(&self, keys: &[String]) -> Result<(), BucketError> {
        write::delete_many(self, keys).await
    }
}
