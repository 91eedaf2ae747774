//! Objects in the bucket. A key's record is replaced by compare-and-swap on what was seen of it, so a condition is decided
//! on exactly what is replaced. A body of its own is written first, under a key that is never used again.

mod body;
mod complete;
mod delete;
mod get;
mod list;
mod multipart;
mod parts;
mod put;
mod sweep;
mod sweep_uploads;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use holdfast_bucket::{Bucket, ByteRange, ByteStream, Guard, Object, Settled, Version, settle_put_if};
use holdfast_records::{Key, R2Body, R2ObjectHead, R2Record, Record as _, r2_upload_prefix};
use holdfast_telemetry::metrics;
use holdfast_types::{R2BodyId, R2BucketName, WriteId};
use tokio::sync::Semaphore;

use crate::request::Request;
use crate::{Answer, AnswerBody, R2Error};

pub use sweep::Swept;

/// Most bytes of an object that lie in its record: it is read and written in one call.
const INLINE_LEN_MAX: u64 = 16 << 10;
/// Rows of one listing of the store, and keys that are deleted together.
const ROWS_MAX: usize = 1_000;
/// Bytes of a record that are read for its line: nearly every line is shorter.
const LINE_READ_LEN: u64 = 4 << 10;
/// Bound of one conditional write, in milliseconds.
const WRITE_DEADLINE_MS: u64 = 10_000;
/// Races that one write may lose before it gives up.
const RACES_MAX: u32 = 64;
/// Longest pause after a lost race.
const RACE_PAUSE_MAX: Duration = Duration::from_millis(200);
/// Memory of all uploads that are under way, in MiB. One takes three parts of the store's at most.
const UPLOAD_ROOM_MIB: u32 = 256;
/// Records and bodies that one call reads or deletes together.
const LANES: usize = 16;

/// The R2 buckets of a fleet. A cheap clone; clones share the bound of memory.
#[derive(Clone, Debug)]
pub struct R2 {
    bucket: Arc<dyn Bucket>,
    uploads: Arc<Semaphore>,
}

/// Why a request failed: R2's text, behind the name of the method.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{method}: {error}")]
pub struct Failure {
    method: &'static str,
    /// What happened.
    pub error: R2Error,
}

impl R2 {
    /// In this bucket: the handle for what may be large, so that no record of the fleet waits behind an application.
    #[must_use]
    pub fn new(bucket: Arc<dyn Bucket>) -> Self {
        let room = usize::try_from(UPLOAD_ROOM_MIB).expect("32 bits fit");
        Self { bucket, uploads: Arc::new(Semaphore::new(room)) }
    }

    /// Does what an isolate asks of a bucket. `body` is what is put; it is not touched where nothing is.
    ///
    /// # Errors
    /// [`Failure`]. A write that failed may have taken place where the bucket did not answer.
    pub async fn answer(&self, bucket: &str, request: &[u8], body: ByteStream) -> Result<Answer, Failure> {
        let invalid = |text: String| Failure { method: "R2", error: R2Error::invalid_argument(text) };
        let name = R2BucketName::parse(bucket).map_err(|error| invalid(error.to_string()))?;
        let request: Request = serde_json::from_slice(request)
            .map_err(|error| invalid(format!("the request cannot be read: {error}")))?;
        let method = request.name();
        let answer = self.run(&name, request, body).await;
        metrics().r2_operation(method, answer.is_ok());
        if let Ok(Answer { body, .. }) = &answer {
            metrics().r2_bytes("out", body.len());
        }
        answer.map_err(|error| Failure { method, error })
    }

    async fn run(&self, name: &R2BucketName, request: Request, body: ByteStream) -> Result<Answer, R2Error> {
        match request {
            Request::Head { key } => self.head(name, &key).await,
            Request::Get(get) => self.get(name, get).await,
            Request::Put(put) => self.put(name, put, body).await,
            Request::Delete { keys } => {
                self.delete(name, keys).await?;
                Ok(Answer { head: Bytes::from_static(b"{}"), body: AnswerBody::None })
            }
            Request::List(list) => self.list(name, &list).await,
            Request::CreateMultipartUpload(create) => self.create_upload(name, create).await,
            Request::UploadPart(part) => self.upload_part(name, part, body).await,
            Request::CompleteMultipartUpload(complete) => self.complete_upload(name, complete).await,
            Request::AbortMultipartUpload(abort) => self.abort_upload(name, abort).await,
        }
    }

    /// What is at a key, as far as its line goes.
    async fn look(&self, key: &str) -> Result<Seen, R2Error> {
        let range = ByteRange::Span { offset: 0, len: LINE_READ_LEN };
        match self.bucket.get_range(key, range).await? {
            None => Ok(Seen::nothing()),
            Some(object) if R2Record::line_len(&object.body).is_some() => Seen::read(key, object),
            Some(_) => self.read(key).await,
        }
    }

    /// What is at a key, with the bytes behind its line.
    async fn read(&self, key: &str) -> Result<Seen, R2Error> {
        self.bucket.get(key).await?.map_or(Ok(Seen::nothing()), |object| Seen::read(key, object))
    }

    /// Replaces what was seen of an object.
    async fn replace(
        &self,
        name: &R2BucketName,
        object: &str,
        seen: &Seen,
        record: &R2Record,
        body: &[u8],
    ) -> Replaced {
        let key = &record_key(name, object);
        // Whoever would make the same upload the object once more has looked before this write, and loses, or finds after it
        // that the upload is over.
        if let Some(upload) = seen.upload()
            && record.object.as_ref().and_then(|object| object.body.upload()) != Some(upload)
            && let Err(error) = self.close_upload(name, object, upload).await
        {
            return Replaced::Unknown(error);
        }
        let write_id = record.write_id;
        let is_mine = move |bytes: &[u8]| {
            let line = R2Record::line_len(bytes).and_then(|len| R2Record::decode(&bytes[..len]).ok());
            line.is_some_and(|record| record.write_id == write_id)
        };
        let bytes = Bytes::from(record.encode_with(body));
        let guard = seen.guard();
        match settle_put_if(&*self.bucket, key, bytes, guard, is_mine, WRITE_DEADLINE_MS).await {
            Settled::Applied(_) => Replaced::Yes,
            Settled::Rejected(None) => Replaced::No,
            Settled::Rejected(Some(object)) => match Seen::read(key, object) {
                Ok(now) => Replaced::Overtaken(Box::new(now)),
                Err(error) => Replaced::Unknown(error),
            },
            Settled::Unknown(error) => Replaced::Unknown(R2Error::internal(error)),
        }
    }

    /// Deletes a body that no record names any more, or ever did. One that stays is found by the sweep.
    async fn remove_body(&self, name: &R2BucketName, key: &str, body: Option<&R2Body>) {
        let (key, removed) = match body {
            None | Some(R2Body::Inline) => return,
            Some(R2Body::Blob(id)) => {
                let key = Key::R2Body(name.clone(), key.to_owned(), *id).to_string();
                let removed = self.bucket.delete(&key).await.map_err(R2Error::internal);
                (key, removed)
            }
            Some(R2Body::Parts(upload)) => {
                let removed = self.remove_parts(name, key, *upload, &BTreeSet::new()).await.map(drop);
                (r2_upload_prefix(name, key, *upload), removed)
            }
        };
        if let Err(error) = removed {
            tracing::warn!(%key, %error, "a body of an R2 bucket stays behind, until `holdfast r2 sweep`");
        }
    }
}

/// How a replacement ended.
enum Replaced {
    /// It is there.
    Yes,
    /// Another was faster. This one never was there, nor will be.
    No,
    /// Another is there, and this one may have been for a moment before.
    Overtaken(Box<Seen>),
    /// Nobody knows.
    Unknown(R2Error),
}

/// What was at a key.
struct Seen {
    record: Option<R2Record>,
    version: Option<Version>,
    /// The bytes behind the line, as far as they were read.
    body: Bytes,
}

impl Seen {
    const fn nothing() -> Self {
        Self { record: None, version: None, body: Bytes::new() }
    }

    fn read(key: &str, object: Object) -> Result<Self, R2Error> {
        let Object { body, version } = object;
        let line = R2Record::line_len(&body).ok_or_else(|| damaged(key, "its line has no end"))?;
        let record = R2Record::decode(&body[..line]).map_err(|error| damaged(key, error))?;
        Ok(Self { record: Some(record), version: Some(version), body: body.slice(line + 1..) })
    }

    fn object(&self) -> Option<&R2ObjectHead> {
        self.record.as_ref()?.object.as_ref()
    }

    /// Which put made the object.
    fn revision(&self) -> Option<WriteId> {
        self.object().map(|object| object.revision)
    }

    /// The multipart upload that the object was.
    fn upload(&self) -> Option<R2BodyId> {
        self.object()?.body.upload()
    }

    fn barred(&self) -> &[R2BodyId] {
        self.record.as_ref().map_or(&[], |record| &record.barred)
    }

    fn guard(&self) -> Guard {
        self.version.clone().map_or(Guard::Absent, Guard::Match)
    }

    /// What a condition looks at.
    fn state(&self) -> Option<(&str, u64)> {
        self.object().map(|object| (object.etag.as_str(), object.uploaded_ms.get()))
    }
}

fn damaged(key: &str, why: impl std::fmt::Display) -> R2Error {
    R2Error::internal(format!("`{key}` is damaged: {why}"))
}

/// The key of an object's record.
fn record_key(name: &R2BucketName, key: &str) -> String {
    Key::R2Object(name.clone(), key.to_owned()).to_string()
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn random() -> Result<u128, R2Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(R2Error::internal)?;
    Ok(u128::from_be_bytes(bytes))
}

fn fresh_body_id() -> Result<R2BodyId, R2Error> {
    Ok(R2BodyId::new(now_ms(), random()?))
}

fn fresh_write_id() -> Result<WriteId, R2Error> {
    random().map(WriteId::from_bits)
}

/// Waits after a lost race: a random part of a span that grows.
async fn pause(races: u32) -> Result<(), R2Error> {
    let span = Duration::from_millis(1 << races.min(10)).min(RACE_PAUSE_MAX);
    let part = u32::try_from(random()? & 0xffff).expect("16 bits fit");
    tokio::time::sleep(span * part / 0xffff).await;
    Ok(())
}
