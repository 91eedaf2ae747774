//! One upload, one owner read: each answers the gate. An upload that is repeated puts the same bytes under the same key.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt;
use holdfast_bucket::{Bucket, BucketError, ByteStream, ErrorKind};
use holdfast_core::compaction::CompactionEvent;
use holdfast_core::gate::GateEvent;
use holdfast_records::{Key, Level};
use holdfast_sql::{Captured, CapturedBody};
use holdfast_telemetry::{Outcome, metrics};
use holdfast_types::Txid;
use tokio_util::io::ReaderStream;

use super::compact;
use crate::cells::Resident;
use crate::owners::OwnerReadError;
use crate::random;

/// Longest wait for the answer of one try; larger bodies get more, at a megabyte a second.
const TRY_MS_MAX: u64 = 5_000;

/// Puts the captured transaction into the bucket and tells the gate.
pub(crate) async fn upload(resident: Arc<Resident>, txid: Txid, attempt: u32) {
    pause_before(attempt).await;
    let Some(node) = resident.node() else { return };
    let captured = resident.captured.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let Some(captured) = captured.filter(|captured| captured.txid == txid && !resident.has_failed()) else {
        return;
    };
    let key = Key::Ltx {
        cell: resident.cell.clone(),
        epoch: resident.epoch,
        level: Level::Zero,
        min: txid,
        max: txid,
    }
    .to_string();
    let started = Instant::now();
    let patience = Duration::from_millis(TRY_MS_MAX + captured.len / 1_000);
    let put = put(&node.buckets.bulk, &key, &captured);
    let result = match tokio::time::timeout(patience, put).await {
        Ok(result) => result,
        Err(_) => Err(BucketError::new("put", &key, ErrorKind::NoAnswer, "no answer in time")),
    };
    match result {
        Ok(()) => {
            metrics().upload(Outcome::Ok, captured.len, started.elapsed());
            let slot = &mut *resident.captured.lock().unwrap_or_else(PoisonError::into_inner);
            if slot.as_ref().is_some_and(|current| current.txid == txid) {
                *slot = None;
            }
        }
        Err(error) => {
            metrics().upload(Outcome::Failed, captured.len, started.elapsed());
            tracing::warn!(cell = %resident.cell, %txid, attempt, %error, "an upload failed; it is tried again");
            return resident.on(GateEvent::UploadFailed { txid });
        }
    }
    resident.on(GateEvent::Uploaded { txid });
    let database_len = resident.database_len.load(std::sync::atomic::Ordering::Relaxed);
    let uploaded = CompactionEvent::Uploaded { txid, len: captured.len, database_len };
    compact::on(&resident, uploaded);
}

async fn put(bucket: &Arc<dyn Bucket>, key: &str, captured: &Captured) -> Result<(), BucketError> {
    match &captured.body {
        CapturedBody::Memory(bytes) => bucket.put(key, bytes.clone()).await.map(drop),
        CapturedBody::File(path) => put_file(bucket, key, path).await,
    }
}

/// Streams a local file into the bucket.
pub(super) async fn put_file(
    bucket: &Arc<dyn Bucket>,
    key: &str,
    path: &std::path::Path,
) -> Result<(), BucketError> {
    let local = |error: std::io::Error| {
        BucketError::new("put_stream", "staged file", ErrorKind::Local, error.to_string())
    };
    let file = tokio::fs::File::open(path).await.map_err(local)?;
    let body: ByteStream =
        Box::pin(ReaderStream::with_capacity(file, 256 << 10).map(move |piece| piece.map_err(local)));
    bucket.put_stream(key, body).await.map(drop)
}

/// Reads the owner record and tells the gate what it says.
pub(crate) async fn read_owner(resident: Arc<Resident>, attempt: u32) {
    pause_before(attempt).await;
    let Some(node) = resident.node() else { return };
    let read = node.owners.read(&resident.cell);
    let event = match tokio::time::timeout(Duration::from_millis(TRY_MS_MAX), read).await {
        Ok(Ok(owner)) => GateEvent::OwnerRead { owner: owner.map(|(owner, _)| owner) },
        // What cannot be read as an owner record does not name this session.
        Ok(Err(error @ OwnerReadError::Record { .. })) => {
            tracing::error!(cell = %resident.cell, %error, "the owner record cannot be used");
            GateEvent::OwnerRead { owner: None }
        }
        Ok(Err(error @ OwnerReadError::Bucket(_))) => {
            tracing::warn!(cell = %resident.cell, attempt, %error, "the owner record could not be read; tried again");
            GateEvent::OwnerUnreadable
        }
        Err(_) => {
            tracing::warn!(cell = %resident.cell, attempt, "the owner record was not answered in time; tried again");
            GateEvent::OwnerUnreadable
        }
    };
    resident.on(event);
}

/// Later tries pause: 50 ms doubling to 1.6 s, with jitter.
async fn pause_before(attempt: u32) {
    if attempt > 0 {
        let pause = 50_u64 << (attempt - 1).min(5);
        let jitter = pause * u64::from(random::byte()) / 512;
        tokio::time::sleep(Duration::from_millis(pause - jitter)).await;
    }
}
