//! Multipart uploads. Parts are kept as objects of the bucket under [`RESERVED`], which listings hide and requests may
//! not name; completing streams them, in order, into the one object, which appears whole or not at all.
//!
//! Keys: `<RESERVED><id>/upload` names the object that is to be; `<RESERVED><id>/<number>` is a part. The id begins with
//! the time of its creation, so that uploads that nobody finished can be removed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use holdfast_bucket::{Bucket, BucketError, ByteStream, ErrorKind};
use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, CompleteMultipartUploadInput,
    CompleteMultipartUploadOutput, CompletedPart, CreateMultipartUploadInput, CreateMultipartUploadOutput,
    ListPartsInput, ListPartsOutput, Part, UploadPartInput, UploadPartOutput,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};

use crate::answer::s3_error_of;
use crate::body::{Upload as Body, announced_len, upload as body_of};
use crate::etag;
use crate::object::{last_modified, signed};
use crate::service::BucketService;

/// Prefix of the keys that hold uploads in progress.
pub(crate) const RESERVED: &str = ".holdfast-uploads/";

/// An upload that is this old is taken for abandoned.
const STALE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Highest part number, as S3 has it.
const NUMBER_MAX: i32 = 10_000;

/// Whether a key belongs to an upload in progress.
pub(crate) fn is_reserved(key: &str) -> bool {
    key.starts_with(RESERVED)
}

fn part_key(id: &str, number: i32) -> String {
    format!("{RESERVED}{id}/{number:05}")
}

fn upload_key(id: &str) -> String {
    format!("{RESERVED}{id}/upload")
}

fn new_id(now: SystemTime) -> S3Result<String> {
    let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let random = getrandom::u64().map_err(|error| s3_error!(InternalError, "no randomness: {error}"))?;
    Ok(format!("{seconds:016x}{random:016x}"))
}

fn is_stale(id: &str, now: SystemTime) -> bool {
    let seconds = id.get(..16).and_then(|text| u64::from_str_radix(text, 16).ok());
    let begin = seconds.and_then(|seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds)));
    begin.is_some_and(|begin| now.duration_since(begin).is_ok_and(|age| age > STALE))
}

/// Removes the uploads that nobody finished in a week.
///
/// # Errors
/// The bucket's.
pub(crate) async fn remove_stale(bucket: &dyn Bucket) -> Result<(), BucketError> {
    let now = SystemTime::now();
    let mut after = None;
    loop {
        let listing = bucket.list(RESERVED, after.as_deref(), 1000).await?;
        let id_of =
            |key: &str| key.strip_prefix(RESERVED).and_then(|rest| rest.split('/').next()).map(str::to_owned);
        let stale: Vec<String> = listing
            .objects
            .into_iter()
            .map(|row| row.key)
            .filter(|key| id_of(key).is_some_and(|id| is_stale(&id, now)))
            .collect();
        bucket.delete_many(&stale).await?;
        match listing.next {
            Some(next) => after = Some(next),
            None => return Ok(()),
        }
    }
}

/// # Errors
/// `NoSuchUpload` when the id is unknown or belongs to another key.
async fn check_upload(service: &BucketService, bucket: &str, key: &str, id: &str) -> S3Result<()> {
    service.check_key(bucket, key)?;
    let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_id {
        let found = service.bucket.get(&upload_key(id)).await.map_err(s3_error_of)?;
        if found.is_some_and(|found| found.body == key.as_bytes()) {
            return Ok(());
        }
    }
    Err(s3_error!(NoSuchUpload, "the upload does not exist; it may have been completed or aborted"))
}

pub(crate) async fn create(
    service: &BucketService,
    request: S3Request<CreateMultipartUploadInput>,
) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
    let input = request.input;
    service.check_key(&input.bucket, &input.key)?;
    if input.sse_customer_key.is_some()
        || input.ssekms_key_id.is_some()
        || input.server_side_encryption.is_some()
    {
        return Err(s3_error!(NotImplemented, "there is no server-side encryption"));
    }
    let id = new_id(SystemTime::now())?;
    let body = Bytes::from(input.key.clone().into_bytes());
    service.bucket.put(&upload_key(&id), body).await.map_err(s3_error_of)?;
    Ok(S3Response::new(CreateMultipartUploadOutput {
        bucket: Some(input.bucket),
        key: Some(input.key),
        upload_id: Some(id),
        ..CreateMultipartUploadOutput::default()
    }))
}

pub(crate) async fn upload_part(
    service: &BucketService,
    mut request: S3Request<UploadPartInput>,
) -> S3Result<S3Response<UploadPartOutput>> {
    let body = request.input.body.take();
    let (stream, fault) =
        body_of(&request, body, announced_len(&request, request.input.content_length)).into_parts();
    let input = request.input;
    check_upload(service, &input.bucket, &input.key, &input.upload_id).await?;
    if !(1..=NUMBER_MAX).contains(&input.part_number) {
        return Err(s3_error!(InvalidArgument, "a part's number is from 1 to {NUMBER_MAX}"));
    }
    let key = part_key(&input.upload_id, input.part_number);
    let written = service.bucket.put_stream(&key, stream).await;
    let version = written.map_err(|error| Body::error(&fault, error))?;
    Ok(S3Response::new(UploadPartOutput { e_tag: Some(etag::of(&version)), ..UploadPartOutput::default() }))
}

pub(crate) async fn list_parts(
    service: &BucketService,
    request: S3Request<ListPartsInput>,
) -> S3Result<S3Response<ListPartsOutput>> {
    let input = request.input;
    check_upload(service, &input.bucket, &input.key, &input.upload_id).await?;
    let marker = input.part_number_marker.unwrap_or(0);
    let max = input.max_parts.unwrap_or(1000).clamp(1, 1000);
    let prefix = format!("{RESERVED}{}/", input.upload_id);
    let after = part_key(&input.upload_id, marker);
    let listing = service.bucket.list(&prefix, Some(&after), max as usize).await.map_err(s3_error_of)?;
    let mut parts = Vec::new();
    for row in listing.objects {
        let Some(number) = row.key.rsplit('/').next().and_then(|text| text.parse::<i32>().ok()) else {
            continue;
        };
        let Some(head) = service.bucket.head(&row.key).await.map_err(s3_error_of)? else { continue };
        parts.push(Part {
            part_number: Some(number),
            size: Some(signed(head.len)?),
            e_tag: Some(etag::of(&head.version)),
            last_modified: last_modified(),
            ..Part::default()
        });
    }
    let next = listing.next.and_then(|_| parts.last().and_then(|part| part.part_number));
    Ok(S3Response::new(ListPartsOutput {
        bucket: Some(input.bucket),
        key: Some(input.key),
        upload_id: Some(input.upload_id),
        max_parts: Some(max),
        is_truncated: Some(next.is_some()),
        next_part_number_marker: next,
        parts: Some(parts),
        ..ListPartsOutput::default()
    }))
}

pub(crate) async fn complete(
    service: &BucketService,
    request: S3Request<CompleteMultipartUploadInput>,
) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
    let input = request.input;
    check_upload(service, &input.bucket, &input.key, &input.upload_id).await?;
    if input.if_match.is_some() || input.if_none_match.is_some() {
        return Err(s3_error!(NotImplemented, "a multipart upload takes no condition"));
    }
    let parts = input.multipart_upload.and_then(|upload| upload.parts).unwrap_or_default();
    let keys = checked_parts(service, &input.upload_id, &parts).await?;
    // The object may be large: blanks keep the connection alive until it is written.
    let bucket = std::sync::Arc::clone(&service.bucket);
    let (name, key, id) = (input.bucket, input.key, input.upload_id);
    let written = async move {
        let version = bucket.put_stream(&key, concatenate(&bucket, keys)).await.map_err(s3_error_of)?;
        if let Err(error) = remove(&*bucket, &id).await {
            tracing::warn!(%error, "the parts of a completed upload stay until they are stale");
        }
        Ok(CompleteMultipartUploadOutput {
            bucket: Some(name),
            key: Some(key),
            e_tag: Some(etag::of(&version)),
            ..CompleteMultipartUploadOutput::default()
        })
    };
    Ok(S3Response::new(CompleteMultipartUploadOutput {
        future: Some(Box::pin(written)),
        ..CompleteMultipartUploadOutput::default()
    }))
}

/// The keys of the parts that the client names, in order, each with the version that it names.
async fn checked_parts(
    service: &BucketService,
    id: &str,
    parts: &[CompletedPart],
) -> S3Result<Vec<(String, holdfast_bucket::Version)>> {
    if parts.is_empty() {
        return Err(s3_error!(MalformedXML, "an upload is completed with at least one part"));
    }
    let mut last = 0;
    let mut keys = Vec::with_capacity(parts.len());
    for part in parts {
        let number = part.part_number.ok_or_else(|| s3_error!(MalformedXML, "a part has no number"))?;
        if number <= last || number > NUMBER_MAX {
            return Err(s3_error!(InvalidPartOrder, "part {number} does not come after part {last}"));
        }
        last = number;
        let key = part_key(id, number);
        let wanted = part.e_tag.as_ref().and_then(etag::version);
        let found = service.bucket.head(&key).await.map_err(s3_error_of)?;
        match (found, wanted) {
            (Some(found), Some(wanted)) if found.version == wanted => keys.push((key, wanted)),
            _ => return Err(s3_error!(InvalidPart, "part {number} was not uploaded, or has another etag")),
        }
    }
    Ok(keys)
}

/// The parts' bytes, one after the other.
fn concatenate(
    bucket: &std::sync::Arc<dyn Bucket>,
    keys: Vec<(String, holdfast_bucket::Version)>,
) -> ByteStream {
    let bucket = std::sync::Arc::clone(bucket);
    futures::stream::iter(keys)
        .then(move |(key, version)| {
            let bucket = std::sync::Arc::clone(&bucket);
            async move {
                match bucket.get_stream(&key, None).await? {
                    Some(found) if found.version == version => Ok(found.stream),
                    _ => {
                        let detail = "the part was removed or replaced while its upload was completed";
                        Err(BucketError::new("complete", key, ErrorKind::BadBody, detail))
                    }
                }
            }
        })
        .try_flatten()
        .boxed()
}

pub(crate) async fn abort(
    service: &BucketService,
    request: S3Request<AbortMultipartUploadInput>,
) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
    let input = request.input;
    check_upload(service, &input.bucket, &input.key, &input.upload_id).await?;
    remove(&*service.bucket, &input.upload_id).await.map_err(s3_error_of)?;
    Ok(S3Response::new(AbortMultipartUploadOutput::default()))
}

/// Removes an upload and its parts: first its name, so that no part is added meanwhile.
async fn remove(bucket: &dyn Bucket, id: &str) -> Result<(), BucketError> {
    bucket.delete(&upload_key(id)).await?;
    let prefix = format!("{RESERVED}{id}/");
    loop {
        let listing = bucket.list(&prefix, None, 1000).await?;
        let keys: Vec<String> = listing.objects.into_iter().map(|row| row.key).collect();
        bucket.delete_many(&keys).await?;
        if listing.next.is_none() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use holdfast_bucket::MemoryBucket;

    use super::*;

    #[tokio::test]
    async fn only_uploads_of_a_week_ago_are_removed() {
        let bucket = MemoryBucket::new();
        let now = SystemTime::now();
        let (old, new) = (new_id(now - 2 * STALE).unwrap(), new_id(now).unwrap());
        for key in [upload_key(&old), part_key(&old, 1), upload_key(&new), part_key(&new, 1)] {
            bucket.put(&key, Bytes::new()).await.unwrap();
        }
        remove_stale(&bucket).await.unwrap();
        let left = bucket.list("", None, 10).await.unwrap().objects;
        assert!(left.len() == 2 && left.iter().all(|row| row.key.contains(&new)), "{left:?}");
    }

    #[test]
    fn part_keys_sort_by_number() {
        assert!(part_key("id", 9) < part_key("id", 10) && part_key("id", 9999) < part_key("id", 10_000));
        assert!(part_key("id", 10_000) < upload_key("id"));
    }
}
