//! Reads of an object that was a multipart upload: its parts one after the other, each opened when the one before has ended.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use holdfast_bucket::{Bucket, BucketError, ByteRange, ByteStream, ErrorKind};
use holdfast_records::{Key, R2ObjectHead, R2Part};
use holdfast_types::{R2BodyId, R2BucketName};

use super::{R2, Seen, damaged};
use crate::{AnswerBody, R2Error};

/// Bytes of one part.
struct Span {
    key: String,
    part_len: u64,
    offset: u64,
    len: u64,
}

impl Span {
    /// None where the part is gone.
    async fn open(&self, bucket: &dyn Bucket) -> Result<Option<ByteStream>, BucketError> {
        let range =
            (self.len < self.part_len).then_some(ByteRange::Span { offset: self.offset, len: self.len });
        let Some(body) = bucket.get_stream(&self.key, range).await? else { return Ok(None) };
        if body.object_len != self.part_len {
            let why = format!("it has {} of {} bytes", body.object_len, self.part_len);
            return Err(broken(&self.key, &why));
        }
        Ok(Some(body.stream))
    }
}

fn broken(key: &str, why: &str) -> BucketError {
    BucketError::new("get_stream", key, ErrorKind::BadBody, why.to_owned())
}

/// Where the bytes of a range lie.
fn spans(
    (name, key, upload): (&R2BucketName, &str, R2BodyId),
    parts: &[R2Part],
    range: &Range<u64>,
) -> VecDeque<Span> {
    let mut begin = 0;
    let mut spans = VecDeque::new();
    for R2Part(id, len) in parts {
        let end = begin + len;
        let (from, to) = (range.start.max(begin), range.end.min(end));
        if from < to {
            let key = Key::R2Part(name.clone(), key.to_owned(), upload, *id).to_string();
            spans.push_back(Span { key, part_len: *len, offset: from - begin, len: to - from });
        }
        begin = end;
    }
    spans
}

impl R2 {
    /// The bytes of an object; none where its first part is gone.
    pub(super) async fn open_parts(
        &self,
        name: &R2BucketName,
        (seen, head): (&Seen, &R2ObjectHead),
        upload: R2BodyId,
        range: &Range<u64>,
    ) -> Result<Option<AnswerBody>, R2Error> {
        let parts = R2Part::decode_list(&seen.body)
            .filter(|parts| parts.iter().map(|part| part.1).sum::<u64>() == head.size)
            .ok_or_else(|| {
                damaged(&head.key, "its parts are not listed, or have not the bytes that it says")
            })?;
        let mut rest = spans((name, &head.key, upload), &parts, range);
        let Some(first) = rest.pop_front() else { return Ok(Some(AnswerBody::Whole(Bytes::new()))) };
        let Some(first) = first.open(&*self.bucket).await? else { return Ok(None) };
        let bucket = Arc::clone(&self.bucket);
        let stream = stream::try_unfold((first, rest), move |(mut open, mut rest)| {
            let bucket = Arc::clone(&bucket);
            async move {
                loop {
                    if let Some(piece) = open.try_next().await? {
                        return Ok(Some((piece, (open, rest))));
                    }
                    let Some(next) = rest.pop_front() else { return Ok(None) };
                    // Those of an object that was replaced go while it is read.
                    open = next.open(&*bucket).await?.ok_or_else(|| broken(&next.key, "it is gone"))?;
                }
            }
        });
        Ok(Some(AnswerBody::Stream { len: range.end - range.start, stream: stream.boxed() }))
    }
}
