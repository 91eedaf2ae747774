//! Writes to Google and Azure. A conditional write is one request per attempt.

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use object_store::multipart::PartId;
use object_store::path::Path;
use object_store::{MultipartId, PutMode, PutOptions, PutPayload, PutResult, UpdateVersion};

use super::answer::{Answer, watch};
use super::error::{bucket_error, is_no_such_key};
use super::{CloudBucket, CloudProvider};
use crate::parts::{PART_LEN, PARTS_IN_FLIGHT, PARTS_MAX, parts};
use crate::retry::{ATTEMPT, Attempt, commit, repeat, upload_limit, within};
use crate::{BucketError, ByteStream, Commit, ErrorKind, Guard, Version};

/// Most keys of one batch delete, as Azure has it.
const BATCH_LEN_MAX: usize = 256;

pub(super) async fn put(
    operation: &'static str,
    bucket: &CloudBucket,
    key: &str,
    body: Bytes,
) -> Result<Version, BucketError> {
    let path = bucket.path(operation, key)?;
    repeat(|| {
        within(operation, key, upload_limit(body.len()), async {
            let payload = PutPayload::from_bytes(body.clone());
            let put = bucket.store.put_opts(&path, payload, PutOptions::from(PutMode::Overwrite));
            let (written, answer) = watch(put).await;
            match written {
                Ok(written) => version(operation, bucket, key, &written),
                Err(error) => Err(bucket_error(operation, key, &error, answer.as_ref())),
            }
        })
    })
    .await
}

pub(super) async fn put_if(
    bucket: &CloudBucket,
    key: &str,
    body: Bytes,
    guard: Guard,
    deadline_ms: u64,
) -> Commit {
    let path = match bucket.path("put_if", key) {
        Ok(path) => path,
        Err(error) => return Commit::Unknown(error),
    };
    let mode = mode(bucket.provider, &guard);
    commit(key, deadline_ms, upload_limit(body.len()), || {
        let (bucket, path, guard) = (bucket, &path, &guard);
        let options = PutOptions::from(mode.clone());
        let payload = PutPayload::from_bytes(body.clone());
        async move {
            let (written, answer) = watch(bucket.store.put_opts(path, payload, options)).await;
            match written {
                Ok(written) => {
                    version("put_if", bucket, key, &written).map_or_else(Attempt::Open, Attempt::Applied)
                }
                Err(error) => outcome(key, guard, &error, answer.as_ref()),
            }
        }
    })
    .await
}

fn mode(provider: CloudProvider, guard: &Guard) -> PutMode {
    match guard {
        Guard::Absent => PutMode::Create,
        Guard::Match(version) => {
            let text = Some(version.as_str().to_owned());
            PutMode::Update(match provider {
                CloudProvider::Google => UpdateVersion { e_tag: None, version: text },
                CloudProvider::Azure => UpdateVersion { e_tag: text, version: None },
            })
        }
    }
}

/// What a failed attempt came to. Only a clean "condition not met" is a rejection: Azure says 409 to a create over an
/// existing blob, but to other conflicts too.
fn outcome(key: &str, guard: &Guard, error: &object_store::Error, answer: Option<&Answer>) -> Attempt {
    let status = answer.map(|answer| answer.status);
    let code = answer.and_then(|answer| answer.code.as_deref());
    let is_rejection = match status {
        Some(412 | 304) => true,
        Some(409) => *guard == Guard::Absent && code == Some("BlobAlreadyExists"),
        Some(404) => matches!(guard, Guard::Match(_)) && is_no_such_key(error, answer),
        _ => false,
    };
    if is_rejection {
        return Attempt::Rejected;
    }
    let error = bucket_error("put_if", key, error, answer);
    match (status, error.kind) {
        (Some(409 | 429), ErrorKind::Unavailable) => Attempt::Refused(error),
        (Some(503), ErrorKind::Unavailable) => Attempt::Busy(error),
        _ => Attempt::Open(error),
    }
}

pub(super) async fn put_stream(
    bucket: &CloudBucket,
    key: &str,
    body: ByteStream,
) -> Result<Version, BucketError> {
    const OPERATION: &str = "put_stream";
    let path = bucket.path(OPERATION, key)?;
    let mut parts = Box::pin(parts(body));
    let first = parts.try_next().await?.unwrap_or_default();
    if first.len() < PART_LEN {
        return put(OPERATION, bucket, key, first).await;
    }
    let id = repeat(|| {
        within(OPERATION, key, ATTEMPT, async {
            let (id, answer) = watch(bucket.store.create_multipart(&path)).await;
            id.map_err(|error| bucket_error(OPERATION, key, &error, answer.as_ref()))
        })
    })
    .await?;
    let upload = Upload { bucket, key, path, id };
    let all = futures::stream::once(std::future::ready(Ok(first))).chain(parts);
    let sent = all
        .enumerate()
        .map(|(index, part)| upload.send_part(index, part))
        .buffered(PARTS_IN_FLIGHT)
        .try_collect::<Vec<PartId>>();
    let done = match sent.await {
        Ok(parts) => upload.complete(parts).await,
        Err(error) => Err(error),
    };
    if done.is_err() {
        upload.abort().await;
    }
    done
}

struct Upload<'a> {
    bucket: &'a CloudBucket,
    key: &'a str,
    path: Path,
    id: MultipartId,
}

impl Upload<'_> {
    async fn send_part(&self, index: usize, part: Result<Bytes, BucketError>) -> Result<PartId, BucketError> {
        let part = part?;
        if index >= PARTS_MAX {
            let detail = format!("the body is longer than {PARTS_MAX} parts of {PART_LEN} bytes");
            return Err(BucketError::new("put_stream", self.key, ErrorKind::Invalid, detail));
        }
        repeat(|| {
            within("put_stream", self.key, upload_limit(part.len()), async {
                let payload = PutPayload::from_bytes(part.clone());
                let (id, answer) =
                    watch(self.bucket.store.put_part(&self.path, &self.id, index, payload)).await;
                id.map_err(|error| bucket_error("put_stream", self.key, &error, answer.as_ref()))
            })
        })
        .await
    }

    /// One attempt: a second could not tell its own success from a lost upload.
    async fn complete(&self, parts: Vec<PartId>) -> Result<Version, BucketError> {
        let written = within("put_stream", self.key, ATTEMPT * 12, async {
            let (written, answer) =
                watch(self.bucket.store.complete_multipart(&self.path, &self.id, parts)).await;
            written.map_err(|error| bucket_error("put_stream", self.key, &error, answer.as_ref()))
        })
        .await?;
        version("put_stream", self.bucket, self.key, &written)
    }

    async fn abort(&self) {
        let aborted = within("put_stream", self.key, ATTEMPT, async {
            let (aborted, answer) = watch(self.bucket.store.abort_multipart(&self.path, &self.id)).await;
            aborted.map_err(|error| bucket_error("put_stream", self.key, &error, answer.as_ref()))
        });
        if let Err(error) = aborted.await {
            tracing::warn!(%error, "a failed upload could not be aborted");
        }
    }
}

pub(super) async fn delete(
    operation: &'static str,
    bucket: &CloudBucket,
    key: &str,
) -> Result<(), BucketError> {
    delete_batch(operation, bucket, vec![(key, bucket.path(operation, key)?)]).await
}

pub(super) async fn delete_many(bucket: &CloudBucket, keys: &[String]) -> Result<(), BucketError> {
    let mut paths = Vec::with_capacity(keys.len());
    for key in keys {
        paths.push((key.as_str(), bucket.path("delete_many", key)?));
    }
    for batch in paths.chunks(BATCH_LEN_MAX) {
        delete_batch("delete_many", bucket, batch.to_vec()).await?;
    }
    Ok(())
}

/// Deletes at most one batch; every key must be accounted for.
async fn delete_batch(
    operation: &'static str,
    bucket: &CloudBucket,
    batch: Vec<(&str, Path)>,
) -> Result<(), BucketError> {
    let first = batch.first().map(|(key, _)| *key).unwrap_or_default();
    repeat(|| {
        let paths: Vec<_> = batch.iter().map(|(_, path)| Ok(path.clone())).collect();
        within(operation, first, ATTEMPT, async move {
            let count = paths.len();
            let answers = bucket.store.delete_stream(futures::stream::iter(paths).boxed());
            let (answers, answer) = watch(answers.collect::<Vec<_>>()).await;
            let detail = format!("{count} keys were to be deleted, {} answers came", answers.len());
            let has_all = answers.len() == count;
            for error in answers.into_iter().filter_map(Result::err) {
                if !matches!(error, object_store::Error::NotFound { .. }) {
                    return Err(bucket_error(operation, first, &error, answer.as_ref()));
                }
                let is_container =
                    answer.as_ref().is_some_and(|a| a.code.as_deref() == Some("ContainerNotFound"));
                if is_container || error.to_string().contains("NoSuchBucket") {
                    return Err(bucket_error(operation, first, &error, answer.as_ref()));
                }
            }
            if has_all { Ok(()) } else { Err(BucketError::new(operation, first, ErrorKind::BadBody, detail)) }
        })
    })
    .await
}

/// Google's generation, Azure's etag.
fn version(
    operation: &'static str,
    bucket: &CloudBucket,
    key: &str,
    written: &PutResult,
) -> Result<Version, BucketError> {
    let text = match bucket.provider {
        CloudProvider::Google => &written.version,
        CloudProvider::Azure => &written.e_tag,
    };
    text.clone().map(Version::new).ok_or_else(|| {
        BucketError::new(operation, key, ErrorKind::BadBody, "the store's answer has no version")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome_of(guard: &Guard, status: u16, code: Option<&str>) -> Attempt {
        let answer = Answer { status, code: code.map(str::to_owned), date: None };
        let error = match status {
            404 => object_store::Error::NotFound { path: "k".into(), source: "scripted".into() },
            409 => object_store::Error::AlreadyExists { path: "k".into(), source: "scripted".into() },
            _ => object_store::Error::Generic { store: "test", source: "scripted".into() },
        };
        outcome("k", guard, &error, Some(&answer))
    }

    #[test]
    fn only_a_clean_condition_not_met_is_a_rejection() {
        let matching = Guard::Match(Version::new("1"));
        for (guard, status, code) in [
            (&Guard::Absent, 412, None),
            (&Guard::Absent, 409, Some("BlobAlreadyExists")),
            (&matching, 412, Some("ConditionNotMet")),
            (&matching, 304, None),
            (&matching, 404, Some("BlobNotFound")),
        ] {
            assert!(
                matches!(outcome_of(guard, status, code), Attempt::Rejected),
                "{guard:?} {status} {code:?}"
            );
        }
    }

    #[test]
    fn a_conflict_is_not_a_rejection() {
        let matching = Guard::Match(Version::new("1"));
        for (guard, status, code) in [
            (&Guard::Absent, 409, None),
            (&Guard::Absent, 409, Some("OperationNotAllowed")),
            (&matching, 409, Some("BlobAlreadyExists")),
            (&Guard::Absent, 429, None),
        ] {
            assert!(
                matches!(outcome_of(guard, status, code), Attempt::Refused(_)),
                "{guard:?} {status} {code:?}"
            );
        }
        assert!(matches!(outcome_of(&Guard::Absent, 503, None), Attempt::Busy(_)));
        for status in [301, 400, 403, 404, 500, 502, 504] {
            assert!(matches!(outcome_of(&Guard::Absent, status, None), Attempt::Open(_)), "{status}");
        }
        assert!(matches!(outcome_of(&matching, 404, Some("ContainerNotFound")), Attempt::Open(_)));
    }
}
