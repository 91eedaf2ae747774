//! The steps of one attempt, each one request on objects of the attempt's own.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use holdfast_core::probe::{ProbeAnswer, ProbeStep};

use super::{STEP_MS_MAX, taken};
use crate::{Bucket, BucketError, ByteRange, Commit, ErrorKind, Guard, Object, Version};

/// Length of the second object: no power of two, so that a store that pads or rounds shows.
const RANGED_LEN: usize = 1000;

/// The range read inside it, and the length of its end.
const RANGE_OFFSET: u64 = 129;
const RANGE_LEN: u64 = 71;
const SUFFIX_LEN: u64 = 57;

/// How a step was answered.
pub(super) struct Taken {
    pub(super) answer: ProbeAnswer,
    pub(super) detail: String,
}

/// The objects of one attempt.
pub(super) struct Attempt<'a> {
    bucket: &'a dyn Bucket,
    first: String,
    second: String,
    missing: String,
    ranged: Bytes,
    created: Option<Version>,
    updated: Option<Version>,
}

/// A key below `probe/` that no other probe uses.
pub(super) fn fresh_name(role: &str) -> String {
    let random = getrandom::u64().unwrap_or_else(|_| u64::from(std::process::id()));
    format!("probe/{random:016x}-{role}")
}

/// Bounds a request whose store has no deadline of its own in reach.
pub(super) async fn within<T>(
    operation: &'static str,
    key: &str,
    request: impl Future<Output = Result<T, BucketError>>,
) -> Result<T, BucketError> {
    tokio::time::timeout(Duration::from_millis(STEP_MS_MAX), request).await.unwrap_or_else(|_| {
        Err(BucketError::new(operation, key, ErrorKind::NoAnswer, format!("no answer in {STEP_MS_MAX} ms")))
    })
}

impl<'a> Attempt<'a> {
    pub(super) fn new(bucket: &'a dyn Bucket) -> Self {
        Self {
            bucket,
            first: fresh_name("first"),
            second: fresh_name("second"),
            missing: fresh_name("missing"),
            // A pattern without a short period, so that bytes of another offset differ.
            ranged: (0..RANGED_LEN).map(|i| (i * i / 7 % 251) as u8).collect(),
            created: None,
            updated: None,
        }
    }

    pub(super) async fn take(&mut self, step: ProbeStep) -> Taken {
        match step {
            ProbeStep::Create => {
                let (taken, version) = self.put_if(&self.first, "one", Guard::Absent).await;
                self.created = version;
                taken
            }
            ProbeStep::RejectCreate => self.put_if(&self.first, "two", Guard::Absent).await.0,
            ProbeStep::Update => {
                let (taken, version) = self.put_if(&self.first, "three", self.at_created()).await;
                self.updated = version;
                taken
            }
            ProbeStep::RejectStale => self.put_if(&self.first, "four", self.at_created()).await.0,
            ProbeStep::RejectMissing => self.put_if(&self.missing, "five", self.at_created()).await.0,
            ProbeStep::Read => self.read().await,
            ProbeStep::Prepare => {
                match within("put", &self.second, self.bucket.put(&self.second, self.ranged.clone())).await {
                    Ok(_) => taken(ProbeAnswer::Applied, "applied"),
                    Err(error) => failed(&error),
                }
            }
            ProbeStep::Range => {
                let range = ByteRange::Span { offset: RANGE_OFFSET, len: RANGE_LEN };
                self.read_range(range, RANGE_OFFSET as usize, RANGE_LEN as usize).await
            }
            ProbeStep::Suffix => {
                let offset = RANGED_LEN - SUFFIX_LEN as usize;
                self.read_range(ByteRange::Suffix { len: SUFFIX_LEN }, offset, SUFFIX_LEN as usize).await
            }
        }
    }

    /// Removes the attempt's objects.
    pub(super) async fn clean(self) -> Result<(), BucketError> {
        for key in [&self.first, &self.second, &self.missing] {
            within("delete", key, self.bucket.delete(key)).await?;
        }
        Ok(())
    }

    fn at_created(&self) -> Guard {
        Guard::Match(
            self.created.clone().expect("the steps that need it come after a create that was applied"),
        )
    }

    async fn put_if(&self, key: &str, body: &'static str, guard: Guard) -> (Taken, Option<Version>) {
        match self.bucket.put_if(key, Bytes::from_static(body.as_bytes()), guard, STEP_MS_MAX).await {
            Commit::Applied(version) => {
                let detail = format!("applied at version {version:?}");
                (taken(ProbeAnswer::Applied, detail), Some(version))
            }
            Commit::Rejected => (taken(ProbeAnswer::Rejected, "refused: the condition does not hold"), None),
            Commit::Unknown(error) => (failed(&error), None),
        }
    }

    async fn read(&self) -> Taken {
        match within("get", &self.first, self.bucket.get(&self.first)).await {
            Ok(Some(Object { body, version })) if body == "three" => {
                if self.updated.as_ref() == Some(&version) {
                    return taken(ProbeAnswer::Exact, "the bytes and the version of the update");
                }
                let detail = format!("version {version:?}, but the update answered {:?}", self.updated);
                taken(ProbeAnswer::WrongBytes, detail)
            }
            Ok(Some(Object { body, .. })) => taken(ProbeAnswer::WrongBytes, show("three", &body)),
            Ok(None) => taken(ProbeAnswer::Missing, "no such object"),
            Err(error) => failed(&error),
        }
    }

    async fn read_range(&self, range: ByteRange, offset: usize, len: usize) -> Taken {
        match within("get_range", &self.second, self.bucket.get_range(&self.second, range)).await {
            Ok(Some(object)) if object.body == self.ranged[offset..offset + len] => {
                taken(ProbeAnswer::Exact, format!("{len} bytes from {offset}"))
            }
            Ok(Some(object)) if object.body == self.ranged => {
                taken(ProbeAnswer::Whole, format!("all {RANGED_LEN} bytes for {range:?}"))
            }
            Ok(Some(object)) => {
                let detail = format!("{} bytes that are not those of {range:?}", object.body.len());
                taken(ProbeAnswer::WrongBytes, detail)
            }
            Ok(None) => taken(ProbeAnswer::Missing, "no such object"),
            Err(error) => failed(&error),
        }
    }
}

fn show(expected: &str, body: &[u8]) -> String {
    let start = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
    format!("read {start:?} instead of {expected:?}")
}

/// What an error says of the store. Listed in full, so that a new kind must be placed.
fn failed(error: &BucketError) -> Taken {
    let answer = match error.kind {
        ErrorKind::Unsupported => ProbeAnswer::Unsupported,
        ErrorKind::Denied | ErrorKind::ClockSkew | ErrorKind::Invalid => ProbeAnswer::Refused,
        ErrorKind::RangeNotSatisfiable => ProbeAnswer::WrongBytes,
        ErrorKind::NoAnswer
        | ErrorKind::Unavailable
        | ErrorKind::BadBody
        | ErrorKind::NoSpace
        | ErrorKind::Local => ProbeAnswer::Failed,
    };
    taken(answer, error.to_string())
}
