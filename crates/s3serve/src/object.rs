//! Single objects: GET, HEAD, PUT, DELETE, batch delete, copy.

use std::time::SystemTime;

use bytes::Bytes;
use holdfast_bucket::{ByteRange, Commit, Guard, Version};
use s3s::dto::{
    CopyObjectInput, CopyObjectOutput, CopyObjectResult, CopySource, DeleteObjectInput, DeleteObjectOutput,
    DeleteObjectsInput, DeleteObjectsOutput, DeletedObject, ETagCondition, Error, GetObjectInput,
    GetObjectOutput, HeadObjectInput, HeadObjectOutput, PutObjectInput, PutObjectOutput, Range, Timestamp,
};
use s3s::{S3Error, S3Request, S3Response, S3Result, s3_error};

use crate::answer::{no_such_key, not_modified, precondition_failed, s3_error_of};
use crate::body::{Upload, announced_len, download, upload};
use crate::etag;
use crate::service::BucketService;

/// Longest body of a conditional write, in bytes: it is held in memory. Records are a few hundred bytes.
const CONDITIONAL_LEN_MAX: u64 = 16 * 1024 * 1024;

/// Bodies up to this length, in bytes, are written from memory in one piece.
const SMALL_LEN_MAX: u64 = 1024 * 1024;

/// How long the bucket may take over one conditional write.
const DEADLINE_MS: u64 = 10_000;

/// The time of every object: the bucket keeps none.
pub(crate) fn last_modified() -> Option<Timestamp> {
    Some(Timestamp::from(SystemTime::UNIX_EPOCH))
}

pub(crate) async fn get(
    service: &BucketService,
    request: S3Request<GetObjectInput>,
) -> S3Result<S3Response<GetObjectOutput>> {
    let input = request.input;
    service.check_key(&input.bucket, &input.key)?;
    if input.version_id.is_some() || input.part_number.is_some_and(|number| number != 1) {
        return Err(s3_error!(NotImplemented, "there are no versions and no part numbers"));
    }
    let range = input.range.map(byte_range).transpose()?;
    let found = service.bucket.get_stream(&input.key, range).await.map_err(s3_error_of)?;
    let found = found.ok_or_else(no_such_key)?;
    // The stream is a snapshot: what the conditions are checked against is what is sent.
    check_read(input.if_match.as_ref(), input.if_none_match.as_ref(), &found.version)?;
    let mut output = GetObjectOutput {
        accept_ranges: Some("bytes".to_owned()),
        e_tag: Some(etag::of(&found.version)),
        last_modified: last_modified(),
        ..GetObjectOutput::default()
    };
    let mut len = found.object_len;
    if let Some(range) = range {
        let span = range.resolve("get_stream", &input.key, found.object_len).map_err(s3_error_of)?;
        len = span.end - span.start;
        output.content_range = Some(format!("bytes {}-{}/{}", span.start, span.end - 1, found.object_len));
    }
    output.content_length = Some(signed(len)?);
    output.body = Some(download(found.stream, len));
    Ok(S3Response::new(output))
}

fn byte_range(range: Range) -> S3Result<ByteRange> {
    let refuse = || s3_error!(InvalidRange, "the requested range is not satisfiable");
    match range {
        Range::Int { first, last: None } => Ok(ByteRange::From { offset: first }),
        Range::Int { first, last: Some(last) } => {
            let len = last.checked_sub(first).ok_or_else(refuse)?.saturating_add(1);
            Ok(ByteRange::Span { offset: first, len })
        }
        Range::Suffix { length: 0 } => Err(refuse()),
        Range::Suffix { length } => Ok(ByteRange::Suffix { len: length }),
    }
}

/// RFC 9110, 13.2.2: `If-Match` first, then `If-None-Match`.
fn check_read(
    if_match: Option<&ETagCondition>,
    if_none_match: Option<&ETagCondition>,
    current: &Version,
) -> S3Result<()> {
    if if_match.is_some_and(|condition| !etag::holds(condition, current)) {
        return Err(precondition_failed());
    }
    if if_none_match.is_some_and(|condition| etag::holds(condition, current)) {
        return Err(not_modified());
    }
    Ok(())
}

pub(crate) async fn head(
    service: &BucketService,
    request: S3Request<HeadObjectInput>,
) -> S3Result<S3Response<HeadObjectOutput>> {
    let input = request.input;
    service.check_key(&input.bucket, &input.key)?;
    let found = service.bucket.head(&input.key).await.map_err(s3_error_of)?.ok_or_else(no_such_key)?;
    check_read(input.if_match.as_ref(), input.if_none_match.as_ref(), &found.version)?;
    Ok(S3Response::new(HeadObjectOutput {
        accept_ranges: Some("bytes".to_owned()),
        content_length: Some(signed(found.len)?),
        e_tag: Some(etag::of(&found.version)),
        last_modified: last_modified(),
        ..HeadObjectOutput::default()
    }))
}

pub(crate) async fn put(
    service: &BucketService,
    mut request: S3Request<PutObjectInput>,
) -> S3Result<S3Response<PutObjectOutput>> {
    let body = request.input.body.take();
    let len = announced_len(&request, request.input.content_length);
    let upload = upload(&request, body, len);
    let input = request.input;
    service.check_key(&input.bucket, &input.key)?;
    if input.sse_customer_key.is_some()
        || input.ssekms_key_id.is_some()
        || input.server_side_encryption.is_some()
    {
        return Err(s3_error!(NotImplemented, "there is no server-side encryption"));
    }
    if input.write_offset_bytes.is_some() {
        return Err(s3_error!(NotImplemented, "objects cannot be appended to"));
    }
    let version = match guard(input.if_match.as_ref(), input.if_none_match.as_ref())? {
        Some(guard) => {
            let len =
                len.ok_or_else(|| s3_error!(MissingContentLength, "a conditional write needs a length"))?;
            if len > CONDITIONAL_LEN_MAX {
                return Err(s3_error!(
                    EntityTooLarge,
                    "a conditional write may have at most {CONDITIONAL_LEN_MAX} bytes"
                ));
            }
            let _memory = service.reserve(len).await;
            let body = upload.collect().await?;
            put_if(service, &input.key, body, guard).await?
        }
        None if len.is_some_and(|len| len <= SMALL_LEN_MAX) => {
            let _memory = service.reserve(SMALL_LEN_MAX.min(len.unwrap_or(SMALL_LEN_MAX))).await;
            let body = upload.collect().await?;
            service.bucket.put(&input.key, body).await.map_err(s3_error_of)?
        }
        None => {
            let (stream, fault) = upload.into_parts();
            let written = service.bucket.put_stream(&input.key, stream).await;
            written.map_err(|error| Upload::error(&fault, error))?
        }
    };
    Ok(S3Response::new(PutObjectOutput { e_tag: Some(etag::of(&version)), ..PutObjectOutput::default() }))
}

/// The condition of a write.
///
/// # Errors
/// `NotImplemented` for what the bucket cannot check atomically.
fn guard(if_match: Option<&ETagCondition>, if_none_match: Option<&ETagCondition>) -> S3Result<Option<Guard>> {
    match (if_match, if_none_match) {
        (None, None) => Ok(None),
        (None, Some(ETagCondition::Any)) => Ok(Some(Guard::Absent)),
        // An etag that this server never gave out matches nothing.
        (Some(ETagCondition::ETag(etag)), None) => {
            etag::version(etag).map(|version| Some(Guard::Match(version))).ok_or_else(precondition_failed)
        }
        _ => Err(s3_error!(
            NotImplemented,
            "a write takes one condition: `If-None-Match: *`, or `If-Match` with an etag"
        )),
    }
}

async fn put_if(service: &BucketService, key: &str, body: Bytes, guard: Guard) -> S3Result<Version> {
    let is_match = matches!(guard, Guard::Match(_));
    match service.bucket.put_if(key, body, guard, DEADLINE_MS).await {
        Commit::Applied(version) => Ok(version),
        Commit::Unknown(error) => Err(s3_error_of(error)),
        Commit::Rejected if is_match => {
            // Both answers mean "rejected"; which of them is for people.
            let is_there = service.bucket.head(key).await.map_err(s3_error_of)?.is_some();
            Err(if is_there { precondition_failed() } else { no_such_key() })
        }
        Commit::Rejected => Err(precondition_failed()),
    }
}

pub(crate) async fn delete(
    service: &BucketService,
    request: S3Request<DeleteObjectInput>,
) -> S3Result<S3Response<DeleteObjectOutput>> {
    let input = request.input;
    service.check_key(&input.bucket, &input.key)?;
    if input.if_match.is_some() || input.version_id.is_some() {
        return Err(s3_error!(NotImplemented, "a delete takes no condition, and there are no versions"));
    }
    service.bucket.delete(&input.key).await.map_err(s3_error_of)?;
    Ok(S3Response::new(DeleteObjectOutput::default()))
}

pub(crate) async fn delete_many(
    service: &BucketService,
    request: S3Request<DeleteObjectsInput>,
) -> S3Result<S3Response<DeleteObjectsOutput>> {
    let input = request.input;
    service.check_bucket(&input.bucket)?;
    if input.delete.objects.len() > 1000 {
        return Err(s3_error!(MalformedXML, "a batch delete takes at most 1000 keys"));
    }
    let is_quiet = input.delete.quiet == Some(true);
    let mut keys = Vec::with_capacity(input.delete.objects.len());
    let mut errors = Vec::new();
    for object in input.delete.objects {
        let has_condition = object.e_tag.is_some() || object.version_id.is_some();
        match service.check_key(&input.bucket, &object.key) {
            Ok(()) if has_condition => {
                let refused =
                    s3_error!(NotImplemented, "a delete takes no condition, and there are no versions");
                errors.push(row(object.key, &refused));
            }
            Ok(()) => keys.push(object.key),
            Err(refused) => errors.push(row(object.key, &refused)),
        }
    }
    if let Err(error) = service.bucket.delete_many(&keys).await {
        // Which of them are gone is not known; a delete may be repeated.
        let error = s3_error_of(error);
        errors.extend(keys.drain(..).map(|key| row(key, &error)));
    }
    let deleted = keys.into_iter().map(|key| DeletedObject { key: Some(key), ..DeletedObject::default() });
    Ok(S3Response::new(DeleteObjectsOutput {
        deleted: (!is_quiet).then(|| deleted.collect()),
        errors: (!errors.is_empty()).then_some(errors),
        ..DeleteObjectsOutput::default()
    }))
}

fn row(key: String, error: &S3Error) -> Error {
    Error {
        code: Some(error.code().as_str().to_owned()),
        key: Some(key),
        message: error.message().map(str::to_owned),
        version_id: None,
    }
}

pub(crate) async fn copy(
    service: &BucketService,
    request: S3Request<CopyObjectInput>,
) -> S3Result<S3Response<CopyObjectOutput>> {
    let input = request.input;
    service.check_key(&input.bucket, &input.key)?;
    let CopySource::Bucket { bucket, key: source, version_id: None } = &input.copy_source else {
        return Err(s3_error!(NotImplemented, "a copy's source is BUCKET/KEY"));
    };
    service.check_key(bucket, source)?;
    let found = service.bucket.get_stream(source, None).await.map_err(s3_error_of)?;
    let found = found.ok_or_else(no_such_key)?;
    let (if_match, if_none_match) = (input.copy_source_if_match, input.copy_source_if_none_match);
    if check_read(if_match.as_ref(), if_none_match.as_ref(), &found.version).is_err() {
        return Err(precondition_failed());
    }
    let version = service.bucket.put_stream(&input.key, found.stream).await.map_err(s3_error_of)?;
    Ok(S3Response::new(CopyObjectOutput {
        copy_object_result: Some(CopyObjectResult {
            e_tag: Some(etag::of(&version)),
            last_modified: last_modified(),
            ..CopyObjectResult::default()
        }),
        ..CopyObjectOutput::default()
    }))
}

/// A length as S3's types have it.
pub(crate) fn signed(len: u64) -> S3Result<i64> {
    i64::try_from(len).map_err(|_| s3_error!(InternalError, "the object is too long"))
}

#[cfg(test)]
mod tests {
    use s3s::dto::ETag;

    use super::*;

    #[test]
    fn ranges_are_translated() {
        let span = byte_range(Range::Int { first: 2, last: Some(4) }).unwrap();
        assert_eq!(span, ByteRange::Span { offset: 2, len: 3 });
        let rest = byte_range(Range::Int { first: 2, last: None }).unwrap();
        assert_eq!(rest, ByteRange::From { offset: 2 });
        assert_eq!(byte_range(Range::Suffix { length: 9 }).unwrap(), ByteRange::Suffix { len: 9 });
        assert!(byte_range(Range::Suffix { length: 0 }).is_err());
        assert!(byte_range(Range::Int { first: 4, last: Some(2) }).is_err());
    }

    #[test]
    fn conditions_that_cannot_be_atomic_are_refused() {
        let etag = || ETagCondition::ETag(ETag::Strong("v".into()));
        assert_eq!(guard(None, None).unwrap(), None);
        assert_eq!(guard(None, Some(&ETagCondition::Any)).unwrap(), Some(Guard::Absent));
        assert_eq!(guard(Some(&etag()), None).unwrap(), Some(Guard::Match(Version::new("v"))));
        assert!(guard(Some(&ETagCondition::Any), None).is_err());
        assert!(guard(None, Some(&etag())).is_err());
        assert!(guard(Some(&etag()), Some(&ETagCondition::Any)).is_err());
    }
}
