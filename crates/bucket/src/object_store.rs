//! `gs://` and `az://`, through the `object_store` crate: Google's generations and Azure's etags are the versions. Whether
//! a call is made again is decided here alone ([`crate::retry`]), so the crate's own retries are off. It must never read
//! a conflict as a lost condition.

mod answer;
mod connect;
mod error;
mod read;
mod write;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use object_store::path::Path;

pub use connect::{CloudOptions, CloudProvider};

use crate::location::Location;
use crate::range::check_key;
use crate::{
    Bucket, BucketError, ByteRange, ByteStream, Commit, ErrorKind, Guard, Listing, Object, ObjectHead,
    ObjectStream, Version,
};

/// A bucket of Google Cloud Storage or a container of Azure Blob Storage. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct CloudBucket {
    store: Arc<dyn connect::CloudStore>,
    provider: CloudProvider,
    location: Location,
}

impl CloudBucket {
    /// Prepares the connections to `location`, the part of the URL after the scheme and colon; nothing is sent yet.
    ///
    /// # Errors
    /// `Invalid` when the location, an option or an environment variable cannot be read.
    pub fn open(
        provider: CloudProvider,
        location: &str,
        options: &CloudOptions,
    ) -> Result<Self, BucketError> {
        let location = Location::parse(location)
            .map_err(|reason| BucketError::new("open", location, ErrorKind::Invalid, reason))?;
        let store = connect::store(provider, &location.bucket, options)?;
        Ok(Self { store, provider, location })
    }

    /// The key in the store.
    ///
    /// # Errors
    /// `Invalid` when it is empty or too long, or cannot be kept byte for byte (empty or dotted parts, a slash at an
    /// end, control characters): such a key would silently become another.
    fn path(&self, operation: &'static str, key: &str) -> Result<Path, BucketError> {
        check_key(operation, key)?;
        let full = self.location.full(key);
        check_key(operation, &full)?;
        if self.provider == CloudProvider::Azure && full.contains('\\') {
            let detail = "Azure takes a backslash for a slash";
            return Err(BucketError::new(operation, key, ErrorKind::Invalid, detail));
        }
        match Path::parse(&full) {
            Ok(path) if path.as_ref() == full => Ok(path),
            Ok(_) => {
                Err(BucketError::new(operation, key, ErrorKind::Invalid, "a slash begins or ends the key"))
            }
            Err(error) => Err(BucketError::new(operation, key, ErrorKind::Invalid, error.to_string())),
        }
    }
}

impl std::fmt::Debug for CloudBucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CloudBucket").field("url", &self.url()).finish_non_exhaustive()
    }
}

#[async_trait]
impl Bucket for CloudBucket {
    fn url(&self) -> String {
        self.location.url(self.provider.scheme())
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
        write::put_stream(self, key, body).await
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
