//! A bucket in memory, for tests and simulations: every operation is atomic and answers at once. It must never stand
//! in for a store whose contents matter.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt};

use crate::range::{check_key, version_of};
use crate::{
    Bucket, BucketError, ByteRange, ByteStream, Commit, Guard, ListedObject, Listing, Object, ObjectHead,
    ObjectStream, Version,
};

/// Size of the pieces of a streamed read: small, so that tests see several.
const PIECE_LEN: usize = 64 * 1024;

/// Most rows of one page of a listing, as S3 has it.
const PAGE_LEN_MAX: usize = 1000;

/// A bucket in this process's memory. Share it through an `Arc`.
#[derive(Default)]
pub struct MemoryBucket {
    objects: Mutex<BTreeMap<String, Object>>,
}

impl MemoryBucket {
    /// An empty bucket.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn objects(&self) -> MutexGuard<'_, BTreeMap<String, Object>> {
        // No operation panics between two changes, so a poisoned map is still whole.
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, operation: &'static str, key: &str) -> Result<Option<Object>, BucketError> {
        check_key(operation, key)?;
        Ok(self.objects().get(key).cloned())
    }

    fn insert(&self, operation: &'static str, key: &str, body: Bytes) -> Result<Version, BucketError> {
        check_key(operation, key)?;
        let version = version_of(&body);
        self.objects().insert(key.to_owned(), Object { body, version: version.clone() });
        Ok(version)
    }
}

impl std::fmt::Debug for MemoryBucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryBucket").field("objects", &self.objects().len()).finish()
    }
}

fn cut(object: Object, operation: &'static str, key: &str, range: ByteRange) -> Result<Object, BucketError> {
    let range = range.resolve(operation, key, object.body.len() as u64)?;
    let body = object.body.slice(range.start as usize..range.end as usize);
    Ok(Object { body, version: object.version })
}

#[async_trait]
impl Bucket for MemoryBucket {
    fn url(&self) -> String {
        "memory:".to_owned()
    }

    async fn get(&self, key: &str) -> Result<Option<Object>, BucketError> {
        self.find("get", key)
    }

    async fn get_range(&self, key: &str, range: ByteRange) -> Result<Option<Object>, BucketError> {
        let object = self.find("get_range", key)?;
        object.map(|object| cut(object, "get_range", key, range)).transpose()
    }

    async fn get_stream(
        &self,
        key: &str,
        range: Option<ByteRange>,
    ) -> Result<Option<ObjectStream>, BucketError> {
        let Some(whole) = self.find("get_stream", key)? else { return Ok(None) };
        let object_len = whole.body.len() as u64;
        let part = match range {
            Some(range) => cut(whole, "get_stream", key, range)?,
            None => whole,
        };
        let version = part.version.clone();
        let pieces = futures::stream::unfold(part.body, |mut rest| async move {
            if rest.is_empty() {
                return None;
            }
            let piece = rest.split_to(rest.len().min(PIECE_LEN));
            Some((Ok(piece), rest))
        });
        Ok(Some(ObjectStream { object_len, version, stream: pieces.boxed() }))
    }

    async fn head(&self, key: &str) -> Result<Option<ObjectHead>, BucketError> {
        let object = self.find("head", key)?;
        Ok(object.map(|o| ObjectHead { len: o.body.len() as u64, version: o.version }))
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Listing, BucketError> {
        let limit = limit.clamp(1, PAGE_LEN_MAX);
        let from = match start_after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let objects = self.objects();
        let mut rows = objects
            .range::<str, _>((from, Bound::Unbounded))
            .take_while(|(key, _)| key.starts_with(prefix))
            .map(|(key, object)| ListedObject { key: key.clone(), len: object.body.len() as u64 });
        let page: Vec<ListedObject> = rows.by_ref().take(limit).collect();
        let next = rows.next().and_then(|_| page.last().map(|row| row.key.clone()));
        Ok(Listing { objects: page, next })
    }

    async fn put(&self, key: &str, body: Bytes) -> Result<Version, BucketError> {
        self.insert("put", key, body)
    }

    async fn put_stream(&self, key: &str, body: ByteStream) -> Result<Version, BucketError> {
        let whole = body
            .try_fold(BytesMut::new(), |mut whole, piece| async move {
                whole.extend_from_slice(&piece);
                Ok(whole)
            })
            .await?;
        self.insert("put_stream", key, whole.freeze())
    }

    async fn put_if(&self, key: &str, body: Bytes, guard: Guard, _deadline_ms: u64) -> Commit {
        if let Err(error) = check_key("put_if", key) {
            return Commit::Unknown(error);
        }
        let version = version_of(&body);
        let mut objects = self.objects();
        let holds = match (&guard, objects.get(key)) {
            (Guard::Absent, current) => current.is_none(),
            (Guard::Match(expected), Some(current)) => current.version == *expected,
            (Guard::Match(_), None) => false,
        };
        if !holds {
            return Commit::Rejected;
        }
        objects.insert(key.to_owned(), Object { body, version: version.clone() });
        Commit::Applied(version)
    }

    async fn delete(&self, key: &str) -> Result<(), BucketError> {
        check_key("delete", key)?;
        self.objects().remove(key);
        Ok(())
    }

    async fn delete_many(&self, keys: &[String]) -> Result<(), BucketError> {
        let mut objects = self.objects();
        for key in keys {
            check_key("delete_many", key)?;
            objects.remove(key);
        }
        Ok(())
    }
}
