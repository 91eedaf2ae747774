//! Writes and deletes over S3. A conditional write is one request per attempt, and only a 2xx with an etag is a success.

use std::collections::HashSet;

use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::error::SdkError;
use aws_sdk_s3::operation::delete_objects::DeleteObjectsOutput;
use aws_sdk_s3::operation::put_object::builders::PutObjectFluentBuilder;
use aws_sdk_s3::operation::put_object::{PutObjectError, PutObjectOutput};
use aws_sdk_s3::primitives::ByteStream as SdkBody;
use aws_sdk_s3::types::{Delete, ObjectIdentifier};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use md5::{Digest, Md5};

use super::S3Bucket;
use super::error::{Failure, kind_of};
use super::read::version;
use crate::retry::{ATTEMPT, Attempt, commit, repeat, upload_limit, within};
use crate::{BucketError, Commit, ErrorKind, Guard, Version};

/// Most keys of one batch delete, as S3 has it.
const BATCH_LEN_MAX: usize = 1000;

/// How many single deletes run at once where a batch cannot.
const DELETES_AT_ONCE: usize = 16;

pub(super) async fn put(
    operation: &'static str,
    bucket: &S3Bucket,
    key: &str,
    body: Bytes,
) -> Result<Version, BucketError> {
    let full = bucket.full(operation, key)?;
    repeat(|| {
        let request = put_request(bucket, &full, &body);
        within(operation, key, upload_limit(body.len()), async {
            match request.send().await {
                Ok(answer) => version(operation, key, answer.e_tag()),
                Err(error) => Err(Failure::of(&error).into_error(operation, key)),
            }
        })
    })
    .await
}

fn put_request(bucket: &S3Bucket, full: &str, body: &Bytes) -> PutObjectFluentBuilder {
    let body = SdkBody::from(body.clone());
    bucket.client.put_object().bucket(&bucket.location.bucket).key(full).body(body)
}

pub(super) async fn put_if(
    bucket: &S3Bucket,
    key: &str,
    body: Bytes,
    guard: Guard,
    deadline_ms: u64,
) -> Commit {
    let full = match bucket.full("put_if", key) {
        Ok(full) => full,
        Err(error) => return Commit::Unknown(error),
    };
    let (absent, matching) = match &guard {
        Guard::Absent => (Some("*".to_owned()), None),
        Guard::Match(version) => (None, Some(version.as_str().to_owned())),
    };
    commit(key, deadline_ms, upload_limit(body.len()), || {
        let request = put_request(bucket, &full, &body)
            .set_if_none_match(absent.clone())
            .set_if_match(matching.clone());
        async { answer_of(key, &guard, request.send().await) }
    })
    .await
}

fn answer_of(
    key: &str,
    guard: &Guard,
    answer: Result<PutObjectOutput, SdkError<PutObjectError, HttpResponse>>,
) -> Attempt {
    let error = match answer {
        Ok(answer) => {
            return version("put_if", key, answer.e_tag()).map_or_else(Attempt::Open, Attempt::Applied);
        }
        Err(error) => error,
    };
    let failure = Failure::of(&error);
    let is_rejection = match failure.status {
        Some(412 | 304) => true,
        Some(404) => matches!(guard, Guard::Match(_)) && failure.is_no_such_key(),
        _ => false,
    };
    if is_rejection {
        return Attempt::Rejected;
    }
    let status = failure.status;
    let error = failure.into_error("put_if", key);
    match (status, error.kind) {
        (Some(409 | 429), ErrorKind::Unavailable) => Attempt::Refused(error),
        (Some(503), ErrorKind::Unavailable) => Attempt::Busy(error),
        _ => Attempt::Open(error),
    }
}

pub(super) async fn delete(operation: &'static str, bucket: &S3Bucket, key: &str) -> Result<(), BucketError> {
    let full = bucket.full(operation, key)?;
    repeat(|| {
        let request = bucket.client.delete_object().bucket(&bucket.location.bucket).key(&full);
        within(operation, key, ATTEMPT, async {
            match request.send().await {
                Ok(_) => Ok(()),
                Err(error) => {
                    let failure = Failure::of(&error);
                    if failure.is_no_such_key() { Ok(()) } else { Err(failure.into_error(operation, key)) }
                }
            }
        })
    })
    .await
}

pub(super) async fn delete_many(bucket: &S3Bucket, keys: &[String]) -> Result<(), BucketError> {
    for key in keys {
        bucket.full("delete_many", key)?;
    }
    // XML cannot carry control characters, and changes line ends.
    let (single, batch): (Vec<&str>, Vec<&str>) = keys
        .iter()
        .map(String::as_str)
        .partition(|key| key.chars().any(|c| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}')));
    delete_singly(bucket, &single).await?;
    for keys in batch.chunks(BATCH_LEN_MAX) {
        match repeat(|| within("delete_many", keys[0], ATTEMPT, delete_batch(bucket, keys))).await {
            Err(error) if error.kind == ErrorKind::Unsupported => delete_singly(bucket, keys).await?,
            answer => answer?,
        }
    }
    Ok(())
}

async fn delete_singly(bucket: &S3Bucket, keys: &[&str]) -> Result<(), BucketError> {
    let deletes: Vec<_> = keys.iter().map(|key| delete("delete_many", bucket, key)).collect();
    futures::stream::iter(deletes).buffer_unordered(DELETES_AT_ONCE).try_collect().await
}

async fn delete_batch(bucket: &S3Bucket, keys: &[&str]) -> Result<(), BucketError> {
    let broken = |kind, detail: String| BucketError::new("delete_many", keys[0], kind, detail);
    let identifiers = keys
        .iter()
        .map(|key| ObjectIdentifier::builder().key(bucket.location.full(key)).build())
        .collect::<Result<Vec<_>, _>>()
        .and_then(|objects| Delete::builder().set_objects(Some(objects)).build())
        .map_err(|error| broken(ErrorKind::Invalid, error.to_string()))?;
    let request = bucket.client.delete_objects().bucket(&bucket.location.bucket).delete(identifiers);
    // The operation needs a checksum; MD5 is the one that every store knows.
    let request = request.customize().mutate_request(|request| {
        let Some(digest) = request.body().bytes().map(|body| BASE64.encode(Md5::digest(body))) else {
            return;
        };
        let headers = request.headers_mut();
        let others: Vec<String> = headers
            .iter()
            .map(|(name, _)| name.to_owned())
            .filter(|name| name.starts_with("x-amz-checksum-") || name == "x-amz-sdk-checksum-algorithm")
            .collect();
        for name in others {
            headers.remove(name);
        }
        headers.insert("content-md5", digest);
    });
    let answer =
        request.send().await.map_err(|error| Failure::of(&error).into_error("delete_many", keys[0]))?;
    settle(bucket, keys, &answer)
}

/// Every key must be accounted for: a 200 says nothing about the single keys.
fn settle(bucket: &S3Bucket, keys: &[&str], answer: &DeleteObjectsOutput) -> Result<(), BucketError> {
    let mut gone: HashSet<&str> = answer.deleted().iter().filter_map(|row| row.key()).collect();
    for failed in answer.errors() {
        let (key, code) = (failed.key().unwrap_or_default(), failed.code().unwrap_or_default());
        if matches!(code, "NoSuchKey" | "NotFound") {
            gone.insert(key);
            continue;
        }
        let detail = format!("code {code}, {}", failed.message().unwrap_or("no message"));
        // Without a status the code alone decides; an unknown one is the store's trouble.
        return Err(BucketError::new("delete_many", key, kind_of(500, Some(code)), detail));
    }
    match keys.iter().find(|key| !gone.contains(bucket.location.full(key).as_str())) {
        None => Ok(()),
        Some(key) => {
            let detail = "the store's answer does not say that this key was deleted";
            Err(BucketError::new("delete_many", *key, ErrorKind::BadBody, detail))
        }
    }
}
