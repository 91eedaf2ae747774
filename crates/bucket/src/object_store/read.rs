//! Reads from Google and Azure. Every length is checked against what was announced.

use bytes::{Bytes, BytesMut};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::list::PaginatedListOptions;
use object_store::{GetOptions, GetRange, ObjectMeta};
use tokio::time::timeout;

use super::answer::watch;
use super::error::{bucket_error, is_no_such_key};
use super::{CloudBucket, CloudProvider};
use crate::retry::{ATTEMPT, STALL, repeat, within};
use crate::{
    BucketError, ByteRange, ByteStream, ErrorKind, ListedObject, Listing, Object, ObjectHead, ObjectStream,
    Version,
};

/// Most rows of one page, as both stores have it at least.
const PAGE_LEN_MAX: usize = 1000;

struct Opened {
    version: Version,
    object_len: u64,
    len: u64,
    body: BoxStream<'static, object_store::Result<Bytes>>,
}

pub(super) async fn get(
    operation: &'static str,
    bucket: &CloudBucket,
    key: &str,
    range: Option<ByteRange>,
) -> Result<Option<Object>, BucketError> {
    repeat(|| async {
        let Some(opened) = open(operation, bucket, key, range).await? else { return Ok(None) };
        let version = opened.version.clone();
        let whole =
            checked(operation, key, opened).try_fold(BytesMut::new(), |mut whole, piece| async move {
                whole.extend_from_slice(&piece);
                Ok(whole)
            });
        Ok(Some(Object { body: whole.await?.freeze(), version }))
    })
    .await
}

pub(super) async fn get_stream(
    bucket: &CloudBucket,
    key: &str,
    range: Option<ByteRange>,
) -> Result<Option<ObjectStream>, BucketError> {
    let Some(opened) = repeat(|| open("get_stream", bucket, key, range)).await? else { return Ok(None) };
    let (object_len, version) = (opened.object_len, opened.version.clone());
    Ok(Some(ObjectStream { object_len, version, stream: checked("get_stream", key, opened) }))
}

pub(super) async fn head(bucket: &CloudBucket, key: &str) -> Result<Option<ObjectHead>, BucketError> {
    repeat(|| head_once("head", bucket, key)).await
}

async fn head_once(
    operation: &'static str,
    bucket: &CloudBucket,
    key: &str,
) -> Result<Option<ObjectHead>, BucketError> {
    let path = bucket.path(operation, key)?;
    let options = GetOptions { head: true, ..GetOptions::default() };
    within(operation, key, ATTEMPT, async {
        match watch(bucket.store.get_opts(&path, options)).await {
            (Ok(found), _) => Ok(Some(ObjectHead {
                len: found.meta.size,
                version: version(operation, bucket, key, &found.meta)?,
            })),
            (Err(error), answer) if is_no_such_key(&error, answer.as_ref()) => Ok(None),
            (Err(error), answer) => Err(bucket_error(operation, key, &error, answer.as_ref())),
        }
    })
    .await
}

async fn open(
    operation: &'static str,
    bucket: &CloudBucket,
    key: &str,
    range: Option<ByteRange>,
) -> Result<Option<Opened>, BucketError> {
    let path = bucket.path(operation, key)?;
    let (wanted, if_match) = match (range, bucket.provider) {
        // Azure has no suffix ranges: ask for the length first, and for that same version then.
        (Some(suffix @ ByteRange::Suffix { .. }), CloudProvider::Azure) => {
            let Some(head) = head_once(operation, bucket, key).await? else { return Ok(None) };
            let span = suffix.resolve(operation, key, head.len)?;
            (Some(GetRange::Bounded(span)), Some(head.version.as_str().to_owned()))
        }
        (range, _) => (range.map(|range| get_range(operation, key, range)).transpose()?, None),
    };
    let options = GetOptions { range: wanted, if_match, ..GetOptions::default() };
    within(operation, key, ATTEMPT, async {
        match watch(bucket.store.get_opts(&path, options)).await {
            (Ok(found), _) => {
                let version = version(operation, bucket, key, &found.meta)?;
                let (object_len, len) = (found.meta.size, found.range.end - found.range.start);
                Ok(Some(Opened { version, object_len, len, body: found.into_stream() }))
            }
            (Err(error), answer) if is_no_such_key(&error, answer.as_ref()) => Ok(None),
            (Err(error), Some(answer)) if range.is_some() && answer.status < 300 => {
                // Azure's emulator answers a range past the end with something else than 416.
                if let Some(head) = head_once(operation, bucket, key).await? {
                    range.map(|range| range.resolve(operation, key, head.len)).transpose()?;
                }
                Err(bucket_error(operation, key, &error, Some(&answer)))
            }
            (Err(error), answer) => {
                let mut failure = bucket_error(operation, key, &error, answer.as_ref());
                if answer.is_some_and(|answer| answer.status == 412) {
                    // Overwritten between the two requests of a suffix: once more.
                    failure.kind = ErrorKind::Unavailable;
                }
                Err(failure)
            }
        }
    })
    .await
}

fn get_range(operation: &'static str, key: &str, range: ByteRange) -> Result<GetRange, BucketError> {
    match range {
        ByteRange::Span { len: 0, .. } | ByteRange::Suffix { len: 0 } => {
            Err(BucketError::new(operation, key, ErrorKind::Invalid, "a range of length 0 was asked for"))
        }
        ByteRange::Span { offset, len } => Ok(GetRange::Bounded(offset..offset.saturating_add(len))),
        ByteRange::From { offset } => Ok(GetRange::Offset(offset)),
        ByteRange::Suffix { len } => Ok(GetRange::Suffix(len)),
    }
}

/// The body, silent for a bounded time and exactly as long as announced.
fn checked(operation: &'static str, key: &str, opened: Opened) -> ByteStream {
    let key = key.to_owned();
    futures::stream::try_unfold((opened.body, opened.len), move |(mut body, left)| {
        let key = key.clone();
        async move {
            let fail = |kind, detail: String| Err(BucketError::new(operation, key.clone(), kind, detail));
            match timeout(STALL, body.next()).await {
                Err(_) => fail(ErrorKind::NoAnswer, format!("the body was silent for {} s", STALL.as_secs())),
                Ok(Some(Err(error))) => {
                    let mut failure = bucket_error(operation, &key, &error, None);
                    failure.kind = ErrorKind::BadBody;
                    Err(failure)
                }
                Ok(None) if left == 0 => Ok(None),
                Ok(None) => fail(ErrorKind::BadBody, format!("the body ended {left} bytes early")),
                Ok(Some(Ok(piece))) => match left.checked_sub(piece.len() as u64) {
                    None => fail(ErrorKind::BadBody, "the body is longer than announced".to_owned()),
                    Some(left) => Ok(Some((piece, (body, left)))),
                },
            }
        }
    })
    .boxed()
}

/// Google's generation, Azure's etag.
fn version(
    operation: &'static str,
    bucket: &CloudBucket,
    key: &str,
    meta: &ObjectMeta,
) -> Result<Version, BucketError> {
    let text = match bucket.provider {
        CloudProvider::Google => &meta.version,
        CloudProvider::Azure => &meta.e_tag,
    };
    text.clone().map(Version::new).ok_or_else(|| {
        BucketError::new(operation, key, ErrorKind::BadBody, "the store's answer has no version")
    })
}

/// One page. Pages without a row after `start_after` are passed over: Azure's emulator cannot begin in the middle.
pub(super) async fn list(
    bucket: &CloudBucket,
    prefix: &str,
    start_after: Option<&str>,
    limit: usize,
) -> Result<Listing, BucketError> {
    let limit = limit.clamp(1, PAGE_LEN_MAX);
    let full = bucket.location.full(prefix);
    let mut page_token = None;
    let mut objects: Vec<ListedObject> = Vec::new();
    objects.extend(the_prefix_itself(bucket, prefix, start_after).await?);
    loop {
        let options = PaginatedListOptions {
            offset: start_after.map(|after| bucket.location.full(after)),
            max_keys: Some(limit),
            page_token: page_token.take(),
            ..PaginatedListOptions::default()
        };
        let page = repeat(|| {
            within("list", prefix, ATTEMPT, async {
                let asked = (!full.is_empty()).then_some(full.as_str());
                let (page, answer) = watch(bucket.store.list_paginated(asked, options.clone())).await;
                page.map_err(|error| bucket_error("list", prefix, &error, answer.as_ref()))
            })
        })
        .await?;
        for meta in &page.result.objects {
            push(bucket, prefix, start_after, meta, &mut objects)?;
        }
        page_token = page.page_token;
        if page_token.is_none() || !objects.is_empty() {
            break;
        }
    }
    let has_more = page_token.is_some() || objects.len() > limit;
    objects.truncate(limit);
    let next = if has_more { objects.last().map(|row| row.key.clone()) } else { None };
    Ok(Listing { objects, next })
}

/// The row whose key is the prefix: `object_store` leaves it out of Azure's listings, where it may be a folder.
async fn the_prefix_itself(
    bucket: &CloudBucket,
    prefix: &str,
    start_after: Option<&str>,
) -> Result<Option<ListedObject>, BucketError> {
    let is_past = start_after.is_some_and(|after| after >= prefix);
    if bucket.provider != CloudProvider::Azure || is_past || bucket.path("list", prefix).is_err() {
        return Ok(None);
    }
    let head = repeat(|| head_once("list", bucket, prefix)).await?;
    Ok(head.map(|head| ListedObject { key: prefix.to_owned(), len: head.len }))
}

fn push(
    bucket: &CloudBucket,
    prefix: &str,
    start_after: Option<&str>,
    meta: &ObjectMeta,
    objects: &mut Vec<ListedObject>,
) -> Result<(), BucketError> {
    let bad = |detail: String| Err(BucketError::new("list", prefix, ErrorKind::BadBody, detail));
    let name: &str = meta.location.as_ref();
    let key = name.strip_prefix(&bucket.location.prefix).filter(|key| key.starts_with(prefix));
    let Some(key) = key else { return bad(format!("`{name}` does not have the prefix")) };
    if start_after.is_some_and(|after| key <= after) {
        return Ok(());
    }
    if let Some(last) = objects.last()
        && key <= last.key.as_str()
    {
        return bad(format!("`{key}` is listed out of order, after `{}`", last.key));
    }
    objects.push(ListedObject { key: key.to_owned(), len: meta.size });
    Ok(())
}
