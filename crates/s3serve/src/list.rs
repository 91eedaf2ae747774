//! Listings, both versions: prefix, delimiter, paging. Rows carry the etag, which the bucket's listing has not, so each
//! row costs one `head`; a row whose object vanished meanwhile is left out.

use futures::StreamExt;
use holdfast_bucket::ListedObject;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use s3s::dto::{
    CommonPrefix, EncodingType, ListObjectsInput, ListObjectsOutput, ListObjectsV2Input, ListObjectsV2Output,
    Object,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};

use crate::answer::s3_error_of;
use crate::etag;
use crate::multipart::{RESERVED, is_reserved};
use crate::object::{last_modified, signed};
use crate::service::BucketService;

/// Most rows of a page, as S3 has it.
const PAGE_LEN_MAX: usize = 1000;

/// How many etags are fetched at once.
const HEADS_AT_ONCE: usize = 16;

/// What `encoding-type=url` leaves as it is.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

/// What is asked for.
struct Query {
    prefix: String,
    delimiter: Option<String>,
    /// Rows must sort after this.
    after: Option<String>,
    max: usize,
}

/// A page: objects and common prefixes, together at most `max`.
#[derive(Default)]
struct Page {
    objects: Vec<ListedObject>,
    prefixes: Vec<String>,
    /// The last row, when more rows follow it.
    last: Option<String>,
}

/// The least text that sorts after everything that begins with `prefix` (short of the last code point itself).
fn past(prefix: &str) -> String {
    format!("{prefix}{}", char::MAX)
}

async fn page(service: &BucketService, query: &Query) -> S3Result<Page> {
    let mut page = Page::default();
    if query.max == 0 {
        return Ok(page);
    }
    let mut after = query.after.clone();
    let mut last: Option<String> = None;
    loop {
        let limit = (query.max - page.objects.len() - page.prefixes.len() + 1).min(PAGE_LEN_MAX);
        let listing =
            service.bucket.list(&query.prefix, after.as_deref(), limit).await.map_err(s3_error_of)?;
        after = listing.next;
        for row in listing.objects {
            if is_reserved(&row.key) {
                after = Some(past(RESERVED));
                break;
            }
            if page.objects.len() + page.prefixes.len() == query.max {
                page.last = last;
                return Ok(page);
            }
            match common_prefix(query, &row.key) {
                Some(prefix) => {
                    // All other keys of the group are passed over at once.
                    after = Some(past(prefix));
                    last.clone_from(&after);
                    page.prefixes.push(prefix.to_owned());
                    break;
                }
                None => {
                    last = Some(row.key.clone());
                    page.objects.push(row);
                }
            }
        }
        if after.is_none() {
            return Ok(page);
        }
    }
}

fn common_prefix<'a>(query: &Query, key: &'a str) -> Option<&'a str> {
    let delimiter = query.delimiter.as_deref()?;
    let at = key[query.prefix.len()..].find(delimiter)?;
    Some(&key[..query.prefix.len() + at + delimiter.len()])
}

/// How names are written into the answer.
#[derive(Clone, Copy)]
struct Spelling {
    is_url: bool,
}

impl Spelling {
    fn of(encoding: Option<&EncodingType>) -> S3Result<Self> {
        match encoding.map(EncodingType::as_str) {
            None => Ok(Self { is_url: false }),
            Some("url") => Ok(Self { is_url: true }),
            Some(other) => Err(s3_error!(InvalidArgument, "the encoding type `{other}` is unknown")),
        }
    }

    fn spell(self, name: &str) -> String {
        if self.is_url { utf8_percent_encode(name, ENCODED).to_string() } else { name.to_owned() }
    }

    fn name(self) -> Option<EncodingType> {
        self.is_url.then(|| EncodingType::from_static(EncodingType::URL))
    }
}

async fn rows(
    service: &BucketService,
    objects: Vec<ListedObject>,
    spelling: Spelling,
) -> S3Result<Vec<Object>> {
    let heads: Vec<_> = objects
        .into_iter()
        .map(|row| async move {
            // One object that cannot be read must not hide all the others: it is listed without an etag.
            let head = match service.bucket.head(&row.key).await {
                Ok(Some(head)) => Some(head),
                Ok(None) => return Ok(None),
                Err(error) => {
                    tracing::warn!(key = row.key, %error, "an object is listed that cannot be read");
                    None
                }
            };
            Ok(Some(Object {
                key: Some(spelling.spell(&row.key)),
                size: Some(signed(head.as_ref().map_or(row.len, |head| head.len))?),
                e_tag: head.as_ref().map(|head| etag::of(&head.version)),
                last_modified: last_modified(),
                storage_class: Some("STANDARD".to_owned().into()),
                ..Object::default()
            }))
        })
        .collect();
    let rows: Vec<S3Result<Option<Object>>> =
        futures::stream::iter(heads).buffered(HEADS_AT_ONCE).collect().await;
    rows.into_iter().filter_map(Result::transpose).collect()
}

fn prefixes(prefixes: &[String], spelling: Spelling) -> Option<Vec<CommonPrefix>> {
    let rows = prefixes.iter().map(|prefix| CommonPrefix { prefix: Some(spelling.spell(prefix)) });
    (!prefixes.is_empty()).then(|| rows.collect())
}

fn page_len(max_keys: Option<i32>) -> S3Result<usize> {
    let asked = max_keys.map_or(Ok(PAGE_LEN_MAX), usize::try_from);
    let asked = asked.map_err(|_| s3_error!(InvalidArgument, "max-keys must not be negative"))?;
    Ok(asked.min(PAGE_LEN_MAX))
}

fn non_empty(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}

pub(crate) async fn list_v2(
    service: &BucketService,
    request: S3Request<ListObjectsV2Input>,
) -> S3Result<S3Response<ListObjectsV2Output>> {
    let input = request.input;
    service.check_bucket(&input.bucket)?;
    let spelling = Spelling::of(input.encoding_type.as_ref())?;
    let after = match non_empty(input.continuation_token.as_ref()) {
        Some(token) => Some(read_token(&token)?),
        None => non_empty(input.start_after.as_ref()),
    };
    let query = Query {
        prefix: input.prefix.clone().unwrap_or_default(),
        delimiter: non_empty(input.delimiter.as_ref()),
        after,
        max: page_len(input.max_keys)?,
    };
    let page = page(service, &query).await?;
    let common = prefixes(&page.prefixes, spelling);
    let contents = rows(service, page.objects, spelling).await?;
    let count = contents.len() + page.prefixes.len();
    Ok(S3Response::new(ListObjectsV2Output {
        name: Some(input.bucket),
        prefix: Some(spelling.spell(&query.prefix)),
        delimiter: query.delimiter.as_deref().map(|delimiter| spelling.spell(delimiter)),
        start_after: input.start_after.as_deref().map(|after| spelling.spell(after)),
        max_keys: i32::try_from(query.max).ok(),
        key_count: i32::try_from(count).ok(),
        is_truncated: Some(page.last.is_some()),
        next_continuation_token: page.last.as_deref().map(write_token),
        continuation_token: input.continuation_token,
        encoding_type: spelling.name(),
        contents: Some(contents),
        common_prefixes: common,
        ..ListObjectsV2Output::default()
    }))
}

pub(crate) async fn list_v1(
    service: &BucketService,
    request: S3Request<ListObjectsInput>,
) -> S3Result<S3Response<ListObjectsOutput>> {
    let input = request.input;
    service.check_bucket(&input.bucket)?;
    let spelling = Spelling::of(input.encoding_type.as_ref())?;
    let prefix = input.prefix.clone().unwrap_or_default();
    let delimiter = non_empty(input.delimiter.as_ref());
    // A marker that is a common prefix stands for the whole group.
    let after = non_empty(input.marker.as_ref()).map(|marker| match &delimiter {
        Some(delimiter) if marker.len() > prefix.len() && marker.ends_with(delimiter) => past(&marker),
        _ => marker,
    });
    let query = Query { prefix, delimiter, after, max: page_len(input.max_keys)? };
    let page = page(service, &query).await?;
    let common = prefixes(&page.prefixes, spelling);
    let next = page.last.as_deref().map(|last| spelling.spell(last.trim_end_matches(char::MAX)));
    Ok(S3Response::new(ListObjectsOutput {
        name: Some(input.bucket),
        prefix: Some(spelling.spell(&query.prefix)),
        delimiter: query.delimiter.as_deref().map(|delimiter| spelling.spell(delimiter)),
        marker: Some(spelling.spell(input.marker.as_deref().unwrap_or_default())),
        max_keys: i32::try_from(query.max).ok(),
        is_truncated: Some(next.is_some()),
        next_marker: next,
        encoding_type: spelling.name(),
        contents: Some(rows(service, page.objects, spelling).await?),
        common_prefixes: common,
        ..ListObjectsOutput::default()
    }))
}

/// A token is the last row, escaped so that XML and queries leave it alone.
fn write_token(last: &str) -> String {
    utf8_percent_encode(last, NON_ALPHANUMERIC).to_string().replace('%', "_")
}

fn read_token(token: &str) -> S3Result<String> {
    let escaped = token.replace('_', "%");
    let text = percent_decode_str(&escaped).decode_utf8();
    let text =
        text.map_err(|_| s3_error!(InvalidArgument, "the continuation token is not one of this server"))?;
    Ok(text.into_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use holdfast_bucket::{Bucket, MemoryBucket};

    use super::*;

    async fn service(keys: &[&str]) -> BucketService {
        let bucket = MemoryBucket::new();
        for key in keys {
            bucket.put(key, Bytes::from_static(b"x")).await.unwrap();
        }
        BucketService::new(Arc::new(bucket), "bucket".into())
    }

    /// All rows of a listing, page by page: objects plain, common prefixes in brackets.
    async fn walk(service: &BucketService, prefix: &str, delimiter: Option<&str>, max: usize) -> Vec<String> {
        let mut all = Vec::new();
        let mut after = None;
        loop {
            let delimiter = delimiter.map(str::to_owned);
            let query = Query { prefix: prefix.into(), delimiter, after, max };
            let page = page(service, &query).await.unwrap();
            assert!(page.objects.len() + page.prefixes.len() <= max);
            let mut rows: Vec<(String, String)> =
                page.objects.into_iter().map(|row| (row.key.clone(), row.key)).collect();
            rows.extend(page.prefixes.into_iter().map(|prefix| (prefix.clone(), format!("[{prefix}]"))));
            rows.sort();
            all.extend(rows.into_iter().map(|(_, row)| row));
            match page.last {
                // Through the token, as a client would.
                Some(last) => after = Some(read_token(&write_token(&last)).unwrap()),
                None => return all,
            }
        }
    }

    const KEYS: [&str; 8] = ["a", "a/1", "a/2", "a/b/3", "b", "c/4", "c/5", "d é_%"];

    #[tokio::test]
    async fn pages_of_any_size_give_the_same_rows() {
        let service = service(&KEYS).await;
        for max in 1..10 {
            assert_eq!(walk(&service, "", None, max).await, KEYS);
            assert_eq!(
                walk(&service, "", Some("/"), max).await,
                ["a", "[a/]", "b", "[c/]", "d é_%"],
                "{max}"
            );
            assert_eq!(walk(&service, "a/", Some("/"), max).await, ["a/1", "a/2", "[a/b/]"], "{max}");
        }
    }

    #[tokio::test]
    async fn parts_of_uploads_are_hidden() {
        let hidden = format!("{RESERVED}id/00001");
        let also = format!("{RESERVED}id/00002");
        let service = service(&["!", &hidden, &also, "a"]).await;
        for max in 1..4 {
            assert_eq!(walk(&service, "", None, max).await, ["!", "a"]);
            assert_eq!(walk(&service, "", Some("/"), max).await, ["!", "a"]);
            assert_eq!(walk(&service, RESERVED, None, max).await, Vec::<String>::new());
        }
    }
}
