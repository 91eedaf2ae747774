//! A body on its way into the bucket: counted, hashed, and held to the length that was promised.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use holdfast_bucket::{BucketError, ByteStream, ErrorKind};
use holdfast_records::{Key, R2Body, R2Checksums};
use holdfast_telemetry::metrics;
use holdfast_types::R2BucketName;

use super::{INLINE_LEN_MAX, R2, fresh_body_id};
use crate::R2Error;
use crate::digest::{Digests, Given};
use crate::request::Put;

/// Longest wait for room.
const ROOM_TIMEOUT: Duration = Duration::from_secs(60);
/// Memory of one upload, at most: what the stores' clients take for the parts that they send.
const UPLOAD_LEN_MAX: u64 = 24 << 20;

/// A body that is in the bucket, or that goes into the record.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) place: R2Body,
    /// The bytes, where they go into the record.
    pub(super) inline: Bytes,
    pub(super) etag: String,
    pub(super) checksums: R2Checksums,
}

/// Longest piece that is passed on: what a store's client copies, and what is hashed in one go.
const PIECE_LEN_MAX: usize = 1 << 20;

/// The body in pieces that are not long, so that nobody is held up by one.
fn cut(body: ByteStream) -> ByteStream {
    let pieces = stream::try_unfold((body, Bytes::new()), |(mut body, mut rest)| async move {
        while rest.is_empty() {
            match body.try_next().await? {
                Some(piece) => rest = piece,
                None => return Ok(None),
            }
        }
        let piece = rest.split_to(rest.len().min(PIECE_LEN_MAX));
        tokio::task::yield_now().await;
        Ok(Some((piece, (body, rest))))
    });
    pieces.boxed()
}

/// What is known of a body that passes.
struct Passed {
    len: u64,
    digests: Digests,
    /// Why it ended before its time.
    broken: Option<String>,
}

type Shared = Arc<Mutex<Passed>>;

fn lock(shared: &Shared) -> MutexGuard<'_, Passed> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The body, looked at as it passes. It breaks where it has not the length that was promised.
fn watched(body: ByteStream, expected: u64, shared: Shared) -> ByteStream {
    let breaks = move |shared: &Shared, why: String| {
        lock(shared).broken = Some(why.clone());
        BucketError::new("put", "", ErrorKind::BadBody, why)
    };
    let pieces = stream::try_unfold(body, move |mut body| {
        let shared = Arc::clone(&shared);
        async move {
            match body.try_next().await {
                Ok(Some(piece)) => {
                    let len = {
                        let mut passed = lock(&shared);
                        passed.len += piece.len() as u64;
                        passed.digests.update(&piece);
                        passed.len
                    };
                    if len > expected {
                        return Err(breaks(
                            &shared,
                            format!("it has more than the {expected} bytes promised"),
                        ));
                    }
                    Ok(Some((piece, body)))
                }
                Ok(None) => {
                    let len = lock(&shared).len;
                    if len < expected {
                        return Err(breaks(
                            &shared,
                            format!("it has {len} of the {expected} bytes promised"),
                        ));
                    }
                    Ok(None)
                }
                Err(error) => Err(breaks(&shared, error.detail)),
            }
        }
    });
    pieces.boxed()
}

impl R2 {
    /// Writes the body of a put, whose record is not written yet.
    pub(super) async fn write_body(
        &self,
        name: &R2BucketName,
        put: &Put,
        body: ByteStream,
    ) -> Result<Written, R2Error> {
        let given = put.checksum.as_ref();
        let passed = Passed { len: 0, digests: Digests::new(given), broken: None };
        let shared = Arc::new(Mutex::new(passed));
        let body = watched(cut(body), put.length, Arc::clone(&shared));
        let (place, inline, outcome) = if put.length <= INLINE_LEN_MAX {
            let whole = body.try_fold(BytesMut::new(), |mut whole, piece| async move {
                whole.extend_from_slice(&piece);
                Ok(whole)
            });
            let (inline, outcome) = match whole.await {
                Ok(whole) => (whole.freeze(), Ok(())),
                Err(error) => (Bytes::new(), Err(error)),
            };
            (R2Body::Inline, inline, outcome)
        } else {
            let _room = self.upload_room(put.length).await?;
            let id = fresh_body_id()?;
            let key = Key::R2Body(name.clone(), put.key.clone(), id).to_string();
            let outcome = self.bucket.put_stream(&key, body).await.map(drop);
            (R2Body::Blob(id), Bytes::new(), outcome)
        };
        let finished = finish(&shared, outcome, given);
        if finished.is_err() {
            // It may have arrived all the same; no record names it.
            self.remove_body(name, &put.key, Some(&place)).await;
        }
        let (etag, checksums) = finished?;
        metrics().r2_bytes("in", put.length);
        Ok(Written { place, inline, etag, checksums })
    }

    /// Writes a part of a multipart upload; gives its MD5.
    pub(super) async fn write_part(
        &self,
        key: &str,
        length: u64,
        body: ByteStream,
    ) -> Result<[u8; 16], R2Error> {
        let shared = Arc::new(Mutex::new(Passed { len: 0, digests: Digests::new(None), broken: None }));
        let body = watched(cut(body), length, Arc::clone(&shared));
        let _room = self.upload_room(length).await?;
        let outcome = self.bucket.put_stream(key, body).await.map(drop);
        let md5 = finish_part(&shared, outcome)?;
        metrics().r2_bytes("in", length);
        Ok(md5)
    }

    async fn upload_room(&self, len: u64) -> Result<tokio::sync::SemaphorePermit<'_>, R2Error> {
        let mib = u32::try_from(len.min(UPLOAD_LEN_MAX).div_ceil(1 << 20)).expect("it is bounded");
        let room = tokio::time::timeout(ROOM_TIMEOUT, self.uploads.acquire_many(mib)).await;
        room.map_err(|_| R2Error::busy())?.map_err(R2Error::internal)
    }
}

fn finish_part(shared: &Shared, outcome: Result<(), BucketError>) -> Result<[u8; 16], R2Error> {
    let mut passed = lock(shared);
    if let Some(why) = passed.broken.take() {
        return Err(R2Error::broken_body(&why));
    }
    outcome?;
    Ok(std::mem::replace(&mut passed.digests, Digests::new(None)).md5())
}

fn finish(
    shared: &Shared,
    outcome: Result<(), BucketError>,
    given: Option<&Given>,
) -> Result<(String, R2Checksums), R2Error> {
    let mut passed = lock(shared);
    if let Some(why) = passed.broken.take() {
        return Err(R2Error::broken_body(&why));
    }
    outcome?;
    std::mem::replace(&mut passed.digests, Digests::new(None)).finish(given)
}
