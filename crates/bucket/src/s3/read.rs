//! Reads over S3: whole objects, ranges, streams that go on where a connection broke, heads and listings. Every length
//! is checked against what was announced, and every range against what was asked for.

use std::future::Future;
use std::pin::Pin;

use aws_sdk_s3::operation::get_object::GetObjectOutput;
use aws_sdk_s3::operation::list_objects_v2::ListObjectsV2Output;
use aws_sdk_s3::primitives::ByteStream as SdkBody;
use aws_sdk_s3::types::EncodingType;
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use percent_encoding::percent_decode_str;
use tokio::time::timeout;

use super::S3Bucket;
use super::error::{Failure, chain};
use crate::retry::{ATTEMPT, STALL, repeat, within};
use crate::{
    BucketError, ByteRange, ErrorKind, ListedObject, Listing, Object, ObjectHead, ObjectStream, Version,
};

/// Most keys of one page, as S3 has it.
const PAGE_LEN_MAX: usize = 1000;

/// How many times one stream goes on after its connection broke.
const RESUMES_MAX: u32 = 4;

/// The begin of an answer to a GET: what is to come.
struct Opened {
    version: Version,
    object_len: u64,
    /// First byte of the body in the object, and its length.
    offset: u64,
    len: u64,
    body: SdkBody,
}

pub(super) async fn get(
    operation: &'static str,
    bucket: &S3Bucket,
    key: &str,
    range: Option<ByteRange>,
) -> Result<Option<Object>, BucketError> {
    let full = bucket.full(operation, key)?;
    check_range(operation, key, range)?;
    repeat(|| async {
        let Some(opened) = open(operation, bucket, key, &full, range, None).await? else { return Ok(None) };
        let version = opened.version.clone();
        let body = collect(operation, key, opened).await?;
        Ok(Some(Object { body, version }))
    })
    .await
}

pub(super) async fn get_stream(
    bucket: &S3Bucket,
    key: &str,
    range: Option<ByteRange>,
) -> Result<Option<ObjectStream>, BucketError> {
    let full = bucket.full("get_stream", key)?;
    check_range("get_stream", key, range)?;
    let Some(opened) = repeat(|| open("get_stream", bucket, key, &full, range, None)).await? else {
        return Ok(None);
    };
    let (object_len, version) = (opened.object_len, opened.version.clone());
    let reader = Reader {
        bucket: bucket.clone(),
        key: key.to_owned(),
        full,
        version: opened.version,
        offset: opened.offset,
        left: opened.len,
        body: opened.body,
        resumes: 0,
    };
    let stream = futures::stream::unfold(Some(reader), |reader| async {
        let mut reader = reader?;
        match reader.next().await {
            Ok(Some(piece)) => Some((Ok(piece), Some(reader))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    });
    Ok(Some(ObjectStream { object_len, version, stream: stream.boxed() }))
}

pub(super) async fn head(bucket: &S3Bucket, key: &str) -> Result<Option<ObjectHead>, BucketError> {
    let full = bucket.full("head", key)?;
    repeat(|| within("head", key, ATTEMPT, head_once(bucket, key, &full))).await
}

async fn head_once(bucket: &S3Bucket, key: &str, full: &str) -> Result<Option<ObjectHead>, BucketError> {
    let request = bucket.client.head_object().bucket(&bucket.location.bucket).key(full);
    match request.send().await {
        Ok(answer) => {
            let version = version("head", key, answer.e_tag())?;
            Ok(Some(ObjectHead { len: length("head", key, answer.content_length())?, version }))
        }
        Err(error) => {
            let failure = Failure::of(&error);
            // The answer to a HEAD has no body, so there is no code to ask for.
            if failure.status == Some(404) { Ok(None) } else { Err(failure.into_error("head", key)) }
        }
    }
}

/// Sends a GET and checks the head of its answer.
async fn open(
    operation: &'static str,
    bucket: &S3Bucket,
    key: &str,
    full: &str,
    range: Option<ByteRange>,
    version_wanted: Option<&Version>,
) -> Result<Option<Opened>, BucketError> {
    let request = bucket.client.get_object().bucket(&bucket.location.bucket).key(full);
    let request = request
        .set_range(range.map(range_header))
        .set_if_match(version_wanted.map(|version| version.as_str().to_owned()));
    let send = async {
        match request.send().await {
            Ok(answer) => Ok(Some(answer)),
            Err(error) => {
                let failure = Failure::of(&error);
                if failure.is_no_such_key() { Ok(None) } else { Err(failure.into_error(operation, key)) }
            }
        }
    };
    let Some(answer) = within(operation, key, ATTEMPT, send).await? else { return Ok(None) };
    opened(operation, key, range, answer).map(Some)
}

fn opened(
    operation: &'static str,
    key: &str,
    range: Option<ByteRange>,
    answer: GetObjectOutput,
) -> Result<Opened, BucketError> {
    let version = version(operation, key, answer.e_tag())?;
    let len = length(operation, key, answer.content_length())?;
    let Some(range) = range else {
        return Ok(Opened { version, object_len: len, offset: 0, len, body: answer.body });
    };
    let Some((first, last, object_len)) = answer.content_range().and_then(parse_content_range) else {
        let detail = "the store ignored the range: its answer has no Content-Range";
        return Err(BucketError::new(operation, key, ErrorKind::Unsupported, detail));
    };
    let expected = range.resolve(operation, key, object_len)?;
    if first != expected.start
        || last.checked_add(1) != Some(expected.end)
        || len != expected.end - expected.start
    {
        let detail = format!("asked for {expected:?} of {object_len}, got {len} bytes, {first} to {last}");
        return Err(BucketError::new(operation, key, ErrorKind::BadBody, detail));
    }
    Ok(Opened { version, object_len, offset: first, len, body: answer.body })
}

/// The next piece of a body of which `left` bytes are still to come; `None` at its proper end.
async fn next_piece(
    operation: &'static str,
    key: &str,
    body: &mut SdkBody,
    left: u64,
) -> Result<Option<Bytes>, BucketError> {
    let fail = |kind, detail: String| Err(BucketError::new(operation, key, kind, detail));
    match timeout(STALL, body.next()).await {
        Err(_) => fail(ErrorKind::NoAnswer, format!("the body was silent for {} s", STALL.as_secs())),
        Ok(Some(Err(error))) => fail(ErrorKind::BadBody, chain(&error)),
        Ok(None) if left == 0 => Ok(None),
        Ok(None) => fail(ErrorKind::BadBody, format!("the body ended {left} bytes early")),
        Ok(Some(Ok(piece))) if piece.len() as u64 > left => {
            fail(ErrorKind::BadBody, "the body is longer than announced".to_owned())
        }
        Ok(Some(Ok(piece))) => Ok(Some(piece)),
    }
}

async fn collect(operation: &'static str, key: &str, mut opened: Opened) -> Result<Bytes, BucketError> {
    let mut left = opened.len;
    let Some(first) = next_piece(operation, key, &mut opened.body, left).await? else {
        return Ok(Bytes::new());
    };
    left -= first.len() as u64;
    let mut whole = BytesMut::new();
    while let Some(piece) = next_piece(operation, key, &mut opened.body, left).await? {
        if whole.is_empty() {
            whole.extend_from_slice(&first);
        }
        left -= piece.len() as u64;
        whole.extend_from_slice(&piece);
    }
    // Most records arrive in one piece, which is then not copied.
    Ok(if whole.is_empty() { first } else { whole.freeze() })
}

/// A stream in progress.
struct Reader {
    bucket: S3Bucket,
    key: String,
    full: String,
    version: Version,
    offset: u64,
    left: u64,
    body: SdkBody,
    resumes: u32,
}

impl Reader {
    async fn next(&mut self) -> Result<Option<Bytes>, BucketError> {
        loop {
            let error = match next_piece("get_stream", &self.key, &mut self.body, self.left).await {
                Ok(Some(piece)) => {
                    self.offset += piece.len() as u64;
                    self.left -= piece.len() as u64;
                    return Ok(Some(piece));
                }
                Ok(None) => return Ok(None),
                Err(error) => error,
            };
            if self.left == 0 || self.resumes >= RESUMES_MAX {
                return Err(error);
            }
            self.resumes += 1;
            tracing::debug!(%error, offset = self.offset, "a read goes on where it broke");
            self.body = self.resume(error).await?;
        }
    }

    /// Asks for the rest of the same version; the same failure again when there is none.
    fn resume(
        &self,
        error: BucketError,
    ) -> Pin<Box<dyn Future<Output = Result<SdkBody, BucketError>> + Send + '_>> {
        Box::pin(async move {
            let range = Some(ByteRange::Span { offset: self.offset, len: self.left });
            let version = Some(&self.version);
            let rest =
                repeat(|| open("get_stream", &self.bucket, &self.key, &self.full, range, version)).await;
            match rest {
                Ok(Some(rest)) if rest.version == self.version => Ok(rest.body),
                _ => Err(error),
            }
        })
    }
}

/// One page, as large as `limit` and the store allow.
pub(super) async fn list(
    bucket: &S3Bucket,
    prefix: &str,
    start_after: Option<&str>,
    limit: usize,
) -> Result<Listing, BucketError> {
    let limit = limit.clamp(1, PAGE_LEN_MAX) as i32;
    let request = bucket
        .client
        .list_objects_v2()
        .bucket(&bucket.location.bucket)
        .prefix(bucket.location.full(prefix))
        .set_start_after(start_after.map(|after| bucket.location.full(after)))
        .encoding_type(EncodingType::Url)
        .max_keys(limit);
    let answer = repeat(|| {
        let send = request.clone().send();
        within("list", prefix, ATTEMPT, async {
            send.await.map_err(|error| Failure::of(&error).into_error("list", prefix))
        })
    })
    .await?;
    page(bucket, prefix, start_after, &answer)
}

fn page(
    bucket: &S3Bucket,
    prefix: &str,
    start_after: Option<&str>,
    answer: &ListObjectsV2Output,
) -> Result<Listing, BucketError> {
    let bad = |detail: String| BucketError::new("list", prefix, ErrorKind::BadBody, detail);
    let is_encoded = answer.encoding_type() == Some(&EncodingType::Url);
    let mut objects: Vec<ListedObject> = Vec::with_capacity(answer.contents().len());
    for row in answer.contents() {
        let name = row.key().ok_or_else(|| bad("a row has no key".to_owned()))?;
        let name = if is_encoded {
            decode(name).ok_or_else(|| bad(format!("bad escape in `{name}`")))?
        } else {
            name.into()
        };
        let key = name
            .strip_prefix(&bucket.location.prefix)
            .filter(|key| key.starts_with(prefix))
            .ok_or_else(|| bad(format!("`{name}` does not have the prefix")))?;
        let len = length("list", key, row.size())?;
        // Paging by the last key needs byte order; a store with another order would make rows vanish silently.
        let last = objects.last().map(|row: &ListedObject| row.key.as_str()).or(start_after);
        if last.is_some_and(|last| key <= last) {
            return Err(bad(format!("`{key}` is listed out of order, after `{}`", last.unwrap_or_default())));
        }
        objects.push(ListedObject { key: key.to_owned(), len });
    }
    let has_more = answer.is_truncated() == Some(true);
    if has_more && objects.is_empty() {
        return Err(bad("the listing says that more remains, but has no rows".to_owned()));
    }
    let next = has_more.then(|| objects.last().map(|row| row.key.clone())).flatten();
    Ok(Listing { objects, next })
}

/// Decodes a key of a listing: percent escapes, and `+` for a space (a plus itself is always escaped).
fn decode(text: &str) -> Option<String> {
    let text = text.replace('+', " ");
    percent_decode_str(&text).decode_utf8().ok().map(|text| text.into_owned())
}

/// A length of 0 means nothing in HTTP.
fn check_range(operation: &'static str, key: &str, range: Option<ByteRange>) -> Result<(), BucketError> {
    if matches!(range, Some(ByteRange::Span { len: 0, .. } | ByteRange::Suffix { len: 0 })) {
        let detail = "a range of length 0 was asked for";
        return Err(BucketError::new(operation, key, ErrorKind::Invalid, detail));
    }
    Ok(())
}

fn range_header(range: ByteRange) -> String {
    match range {
        ByteRange::Span { offset, len } => format!("bytes={offset}-{}", offset.saturating_add(len - 1)),
        ByteRange::From { offset } => format!("bytes={offset}-"),
        ByteRange::Suffix { len } => format!("bytes=-{len}"),
    }
}

/// First byte, last byte and length of the object, of `bytes 0-9/20`.
fn parse_content_range(text: &str) -> Option<(u64, u64, u64)> {
    let (span, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = span.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?, total.parse().ok()?))
}

/// The etag, byte for byte.
pub(super) fn version(
    operation: &'static str,
    key: &str,
    etag: Option<&str>,
) -> Result<Version, BucketError> {
    etag.filter(|etag| !etag.is_empty())
        .map(Version::new)
        .ok_or_else(|| BucketError::new(operation, key, ErrorKind::BadBody, "the store's answer has no etag"))
}

fn length(operation: &'static str, key: &str, length: Option<i64>) -> Result<u64, BucketError> {
    length.and_then(|length| u64::try_from(length).ok()).ok_or_else(|| {
        BucketError::new(operation, key, ErrorKind::BadBody, "the store's answer has no length")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_written_and_read() {
        assert_eq!(range_header(ByteRange::Span { offset: 3, len: 4 }), "bytes=3-6");
        assert_eq!(
            range_header(ByteRange::Span { offset: 1, len: u64::MAX }),
            format!("bytes=1-{}", u64::MAX)
        );
        assert_eq!(range_header(ByteRange::From { offset: 3 }), "bytes=3-");
        assert_eq!(range_header(ByteRange::Suffix { len: 3 }), "bytes=-3");
        assert_eq!(parse_content_range("bytes 0-9/20"), Some((0, 9, 20)));
        for bad in ["", "bytes */20", "bytes 0-9/*", "items 0-9/20", "bytes 0-9"] {
            assert_eq!(parse_content_range(bad), None, "{bad}");
        }
    }

    #[test]
    fn listed_keys_are_decoded() {
        assert_eq!(decode("a+b%2Bc%25").as_deref(), Some("a b+c%"));
        assert_eq!(decode("%FF"), None);
    }
}
