//! Reads. A reader takes the record first and then the body that it names; a body that is gone was replaced or deleted
//! since, and the record is read anew.

use std::ops::Range;

use holdfast_bucket::ByteRange;
use holdfast_records::{Key, R2Body, R2ObjectHead};
use holdfast_types::R2BucketName;

use super::{R2, Seen, damaged, record_key};
use crate::answer::{Shown, object_json};
use crate::limits::check_key;
use crate::range;
use crate::request::Get;
use crate::{Answer, AnswerBody, R2Error};

/// Bodies that may vanish under one read before it gives up.
const LOOKS_MAX: u32 = 16;

impl R2 {
    pub(super) async fn head(&self, name: &R2BucketName, key: &str) -> Result<Answer, R2Error> {
        check_key(key)?;
        let seen = self.look(&record_key(name, key)).await?;
        Ok(Answer::object(seen.object().map(|head| object_json(head, Some(&(0..head.size)), Shown::ALL))))
    }

    pub(super) async fn get(&self, name: &R2BucketName, get: Get) -> Result<Answer, R2Error> {
        check_key(&get.key)?;
        let key = record_key(name, &get.key);
        let mut gone = None;
        for _ in 0..LOOKS_MAX {
            let seen = self.read(&key).await?;
            let Some(head) = seen.object() else { return Ok(Answer::object(None)) };
            if !get.only_if.holds(seen.state()) {
                let whole = 0..head.size;
                return Ok(Answer::object(Some(object_json(head, Some(&whole), Shown::ALL))));
            }
            if gone.as_ref() == Some(&head.body) {
                return Err(damaged(&key, "the body that it names is missing"));
            }
            let range = wanted(&get, head.size)?;
            if let Some(body) = self.open_body(name, &seen, head, &range).await? {
                let object = object_json(head, Some(&range), Shown::ALL);
                return Ok(Answer::with_body(&object, body));
            }
            gone = Some(head.body.clone());
        }
        Err(R2Error::internal(format!("`{key}` is replaced all the time")))
    }

    /// The bytes of an object; none where its body is gone.
    async fn open_body(
        &self,
        name: &R2BucketName,
        seen: &Seen,
        head: &R2ObjectHead,
        range: &Range<u64>,
    ) -> Result<Option<AnswerBody>, R2Error> {
        if let R2Body::Parts(upload) = head.body {
            return self.open_parts(name, (seen, head), upload, range).await;
        }
        let R2Body::Blob(id) = head.body else {
            let within = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
            let range = within(range.start)..within(range.end);
            if seen.body.len() as u64 != head.size {
                return Err(damaged(&head.key, "it has not the bytes that it says"));
            }
            return Ok(Some(AnswerBody::Whole(seen.body.slice(range))));
        };
        let key = Key::R2Body(name.clone(), head.key.clone(), id).to_string();
        let len = range.end - range.start;
        let part = (len < head.size).then_some(ByteRange::Span { offset: range.start, len });
        let Some(body) = self.bucket.get_stream(&key, part).await? else { return Ok(None) };
        if body.object_len != head.size {
            return Err(damaged(&key, format!("it has {} of {} bytes", body.object_len, head.size)));
        }
        Ok(Some(AnswerBody::Stream { len, stream: body.stream }))
    }
}

fn wanted(get: &Get, size: u64) -> Result<Range<u64>, R2Error> {
    match (&get.range_header, get.range) {
        (Some(field), _) => Ok(range::of_header(field, size).unwrap_or(0..size)),
        (None, Some(range)) => range.of(size),
        (None, None) => Ok(0..size),
    }
}
