//! The embedded bucket, `file:///directory`: one machine, safe between its processes.
//!
//! A write goes to a temporary file, is made durable, then under the key's lock its condition is checked and the file
//! is renamed into place, and last the folder is made durable; only then is it answered. A kill at any point leaves the
//! old object or the new one. Readers take no lock: an open file is a snapshot, its version inside it. Every operation
//! is one hop to a blocking thread, apart from streams, which take one a piece. It must never change a published file.

mod fault;
mod folders;
mod layout;
mod listing;
mod locks;
mod object_file;
mod operations;
mod setup;
mod stream;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use percent_encoding::{AsciiSet, CONTROLS};

use self::fault::Call;
use self::operations::Store;
use crate::range::check_key;
use crate::{
    Bucket, BucketError, ByteRange, ByteStream, Commit, ErrorKind, Guard, Listing, Object, ObjectHead,
    ObjectStream, Version,
};

/// How long an operation without a deadline of its own may take: far above a slow disk, so that only a stopped process
/// that holds a lock, or a hanging network file system, reaches it.
const OPERATION_MAX: Duration = Duration::from_secs(30);

/// What a path may hold and a URL may not, as far as `open` would read it otherwise.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'%');

/// Most rows of one page of a listing, as S3 has it.
const PAGE_LEN_MAX: usize = 1000;

/// A bucket in a directory. Cheap to clone.
#[derive(Clone, Debug)]
pub struct LocalBucket {
    store: Arc<Store>,
}

impl LocalBucket {
    /// Opens the bucket in `directory`, which is created when absent, and clears what dead writers left behind. A
    /// directory that cannot be written but holds a bucket opens for reading.
    ///
    /// # Errors
    /// `Denied`, `NoSpace` or `Local` with the path; `Unsupported` for a directory of a newer format.
    pub async fn open(directory: impl Into<PathBuf>) -> Result<Self, BucketError> {
        let directory = directory.into();
        let name = directory.display().to_string();
        let opened = tokio::task::spawn_blocking(move || setup::open(&directory));
        let store = opened.await.map_err(|_| stopped(Call { operation: "open", key: &name }))?;
        let store = store.map_err(|error| BucketError { key: name, ..error })?;
        Ok(Self { store: Arc::new(store) })
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.store.directory()
    }

    /// Runs `work` on a blocking thread. The work goes on when the caller gives up, as a sent request would.
    async fn hop<T: Send + 'static>(
        &self,
        operation: &'static str,
        key: &str,
        work: impl FnOnce(&Store, Call<'_>, Instant) -> Result<T, BucketError> + Send + 'static,
    ) -> Result<T, BucketError> {
        self.hop_within(operation, key, OPERATION_MAX, work).await
    }

    async fn hop_within<T: Send + 'static>(
        &self,
        operation: &'static str,
        key: &str,
        limit: Duration,
        work: impl FnOnce(&Store, Call<'_>, Instant) -> Result<T, BucketError> + Send + 'static,
    ) -> Result<T, BucketError> {
        let store = Arc::clone(&self.store);
        let deadline = Instant::now() + limit;
        let owned = key.to_owned();
        let work = tokio::task::spawn_blocking(move || {
            let call = Call { operation, key: &owned };
            work(&store, call, deadline)
        });
        let call = Call { operation, key };
        match tokio::time::timeout(limit, work).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Ok(Err(_)) => Err(stopped(call)),
            Err(_) => Err(call.fail(ErrorKind::NoAnswer, format!("the disk did not answer in {limit:?}"))),
        }
    }
}

fn stopped(call: Call<'_>) -> BucketError {
    call.fail(ErrorKind::Local, "the program is shutting down")
}

#[async_trait]
impl Bucket for LocalBucket {
    fn url(&self) -> String {
        let path = self.directory().to_string_lossy();
        format!("file://{}", percent_encoding::utf8_percent_encode(&path, ESCAPED))
    }

    async fn get(&self, key: &str) -> Result<Option<Object>, BucketError> {
        check_key("get", key)?;
        self.hop("get", key, |store, call, _| store.get(call)).await
    }

    async fn get_range(&self, key: &str, range: ByteRange) -> Result<Option<Object>, BucketError> {
        check_key("get_range", key)?;
        self.hop("get_range", key, move |store, call, _| store.get_range(call, range)).await
    }

    async fn get_stream(
        &self,
        key: &str,
        range: Option<ByteRange>,
    ) -> Result<Option<ObjectStream>, BucketError> {
        check_key("get_stream", key)?;
        stream::read(self, key, range).await
    }

    async fn head(&self, key: &str) -> Result<Option<ObjectHead>, BucketError> {
        check_key("head", key)?;
        self.hop("head", key, |store, call, _| store.head(call)).await
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Listing, BucketError> {
        let start_after = start_after.map(str::to_owned);
        let limit = limit.clamp(1, PAGE_LEN_MAX);
        self.hop("list", prefix, move |store, call, _| store.list(call, start_after.as_deref(), limit)).await
    }

    async fn put(&self, key: &str, body: Bytes) -> Result<Version, BucketError> {
        check_key("put", key)?;
        self.hop("put", key, move |store, call, deadline| store.put(call, &body, deadline)).await
    }

    async fn put_stream(&self, key: &str, body: ByteStream) -> Result<Version, BucketError> {
        check_key("put_stream", key)?;
        stream::write(self, key, body).await
    }

    async fn put_if(&self, key: &str, body: Bytes, guard: Guard, deadline_ms: u64) -> Commit {
        if let Err(error) = check_key("put_if", key) {
            return Commit::Unknown(error);
        }
        let limit = Duration::from_millis(deadline_ms).min(OPERATION_MAX);
        let write =
            move |store: &Store, call: Call<'_>, deadline| store.put_if(call, &body, &guard, deadline);
        match self.hop_within("put_if", key, limit, write).await {
            Ok(Some(version)) => Commit::Applied(version),
            Ok(None) => Commit::Rejected,
            Err(error) => Commit::Unknown(error),
        }
    }

    async fn delete(&self, key: &str) -> Result<(), BucketError> {
        check_key("delete", key)?;
        self.hop("delete", key, |store, call, deadline| store.delete(call, deadline)).await
    }

    async fn delete_many(&self, keys: &[String]) -> Result<(), BucketError> {
        keys.iter().try_for_each(|key| check_key("delete_many", key))?;
        for batch in keys.chunks(PAGE_LEN_MAX) {
            let batch = batch.to_vec();
            let first = batch.first().cloned().expect("a chunk is not empty");
            self.hop("delete_many", &first, move |store, _, deadline| store.delete_many(&batch, deadline))
                .await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
