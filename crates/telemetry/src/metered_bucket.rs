//! A bucket whose every operation is counted and timed, by method and outcome.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_bucket::{
    Bucket, BucketError, Buckets, ByteRange, ByteStream, Commit, ErrorKind, Guard, Listing, Object,
    ObjectHead, ObjectStream, Version,
};

use crate::{BucketOperation as Operation, BucketOutcome as Outcome, metrics};

/// Counts and times what passes through. Streams are timed to their beginning.
#[derive(Debug)]
pub struct MeteredBucket {
    inner: Arc<dyn Bucket>,
}

impl MeteredBucket {
    /// Around this bucket.
    #[must_use]
    pub fn wrap(inner: Arc<dyn Bucket>) -> Arc<dyn Bucket> {
        Arc::new(Self { inner })
    }

    /// Around each handle of a program.
    #[must_use]
    pub fn around(buckets: Buckets) -> Buckets {
        let Buckets { bulk, records, leases } = buckets;
        Buckets { bulk: Self::wrap(bulk), records: Self::wrap(records), leases: Self::wrap(leases) }
    }
}

fn failed(error: &BucketError) -> Outcome {
    match error.kind {
        ErrorKind::NoAnswer => Outcome::NoAnswer,
        ErrorKind::Unavailable => Outcome::Unavailable,
        _ => Outcome::Failed,
    }
}

fn note<T>(operation: Operation, since: Instant, result: &Result<T, BucketError>) {
    let outcome = result.as_ref().map_or_else(failed, |_| Outcome::Ok);
    metrics().bucket_operation(operation, outcome, since.elapsed());
}

fn note_read<T>(operation: Operation, since: Instant, result: &Result<Option<T>, BucketError>) {
    let outcome = match result {
        Ok(Some(_)) => Outcome::Ok,
        Ok(None) => Outcome::Missing,
        Err(error) => failed(error),
    };
    metrics().bucket_operation(operation, outcome, since.elapsed());
}

#[async_trait]
impl Bucket for MeteredBucket {
    fn url(&self) -> String {
        self.inner.url()
    }

    async fn get(&self, key: &str) -> Result<Option<Object>, BucketError> {
        let since = Instant::now();
        let result = self.inner.get(key).await;
        note_read(Operation::Get, since, &result);
        result
    }

    async fn get_range(&self, key: &str, range: ByteRange) -> Result<Option<Object>, BucketError> {
        let since = Instant::now();
        let result = self.inner.get_range(key, range).await;
        note_read(Operation::GetRange, since, &result);
        result
    }

    async fn get_stream(
        &self,
        key: &str,
        range: Option<ByteRange>,
    ) -> Result<Option<ObjectStream>, BucketError> {
        let since = Instant::now();
        let result = self.inner.get_stream(key, range).await;
        note_read(Operation::GetStream, since, &result);
        result
    }

    async fn head(&self, key: &str) -> Result<Option<ObjectHead>, BucketError> {
        let since = Instant::now();
        let result = self.inner.head(key).await;
        note_read(Operation::Head, since, &result);
        result
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Listing, BucketError> {
        let since = Instant::now();
        let result = self.inner.list(prefix, start_after, limit).await;
        note(Operation::List, since, &result);
        result
    }

    async fn put(&self, key: &str, body: Bytes) -> Result<Version, BucketError> {
        let since = Instant::now();
        let result = self.inner.put(key, body).await;
        note(Operation::Put, since, &result);
        result
    }

    async fn put_stream(&self, key: &str, body: ByteStream) -> Result<Version, BucketError> {
        let since = Instant::now();
        let result = self.inner.put_stream(key, body).await;
        note(Operation::PutStream, since, &result);
        result
    }

    async fn put_if(&self, key: &str, body: Bytes, guard: Guard, deadline_ms: u64) -> Commit {
        let since = Instant::now();
        let commit = self.inner.put_if(key, body, guard, deadline_ms).await;
        let outcome = match &commit {
            Commit::Applied(_) => Outcome::Ok,
            Commit::Rejected => Outcome::Rejected,
            Commit::Unknown(_) => Outcome::Unknown,
        };
        metrics().bucket_operation(Operation::PutIf, outcome, since.elapsed());
        commit
    }

    async fn delete(&self, key: &str) -> Result<(), BucketError> {
        let since = Instant::now();
        let result = self.inner.delete(key).await;
        note(Operation::Delete, since, &result);
        result
    }

    async fn delete_many(&self, keys: &[String]) -> Result<(), BucketError> {
        let since = Instant::now();
        let result = self.inner.delete_many(keys).await;
        note(Operation::DeleteMany, since, &result);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_bucket::MemoryBucket;

    #[tokio::test]
    async fn operations_are_counted_by_outcome() {
        let bucket = MeteredBucket::wrap(Arc::new(MemoryBucket::new()));
        assert!(bucket.get("absent").await.unwrap().is_none());
        bucket.put("k", Bytes::from_static(b"v")).await.unwrap();
        assert!(matches!(bucket.put_if("k", Bytes::new(), Guard::Absent, 100).await, Commit::Rejected));
        let text = crate::render_prometheus();
        for (operation, outcome) in [("get", "missing"), ("put", "ok"), ("put_if", "rejected")] {
            let found = text.lines().any(|line| {
                line.contains(&format!("operation=\"{operation}\""))
                    && line.contains(&format!("outcome=\"{outcome}\""))
            });
            assert!(found, "{operation} {outcome}\n{text}");
        }
    }
}
