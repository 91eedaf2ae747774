//! One upload, one owner read: each answers the gate. An upload that is repeated puts the same bytes under the same key.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use holdfast_bucket::{Bucket, BucketError, ByteStream, ErrorKind};
use holdfast_core::compaction::CompactionEvent;
use holdfast_core::gate::GateEvent;
use holdfast_records::{Key, Level};
use holdfast_telemetry::{Outcome, metrics};
use holdfast_types::Txid;
use tokio_util::io::ReaderStream;

use super::compact;
use super::pending::{Body, Merged, Source, merge, path_of, read};
use crate::backoff::Backoff;
use crate::blocking::blocking;
use crate::cells::Resident;
use crate::node::Node;
use crate::owners::OwnerReadError;
use crate::patience::in_time;

/// Longest wait for the owner record.
const OWNER_READ_TIMEOUT: Duration = Duration::from_secs(5);
/// Before later tries: 50 ms doubling to 1.6 s.
const PAUSES: Backoff = Backoff::new(50, 5);

/// Puts captured transactions into the bucket, as one object of level 0, and tells the gate and the node log.
pub(crate) async fn upload(resident: Arc<Resident>, (first, last): (Txid, Txid), attempt: u32) {
    PAUSES.pause_before(attempt).await;
    let Some(node) = resident.node() else { return };
    if !node.authority.is_live() {
        return; // a session that is over writes nothing; its log's recovery does
    }
    let transactions = resident.pending().range(first, last);
    let transactions = transactions.expect("what the gate asks for was captured and is not uploaded");
    let key = Key::Ltx {
        cell: resident.cell.clone(),
        epoch: resident.epoch,
        level: Level::Zero,
        min: first,
        max: last,
    }
    .to_string();
    let _lane = node.uploads.acquire().await.expect("the semaphore is never closed");
    let started = Instant::now();
    let len = match put(&node, &key, transactions).await {
        Ok(len) => len,
        Err(error) => {
            metrics().upload(Outcome::Failed, 0, started.elapsed());
            tracing::warn!(cell = %resident.cell, %first, %last, attempt, error = format!("{error:#}"), "an upload failed; it is tried again");
            return resident.on(GateEvent::UploadFailed { last });
        }
    };
    metrics().upload(Outcome::Ok, len, started.elapsed());
    let offsets = resident.pending().uploaded(last);
    node.log.covered(&offsets);
    resident.on(GateEvent::Uploaded { last });
    resident.note_uploaded(last);
    let database_len = resident.database_len.load(std::sync::atomic::Ordering::Relaxed);
    compact::on(&resident, CompactionEvent::Uploaded { txid: last, len, database_len });
}

async fn put(node: &Arc<Node>, key: &str, transactions: Vec<Body>) -> anyhow::Result<u64> {
    let bucket = &node.buckets.bulk;
    let transactions = read(&**bucket, transactions).await?;
    if let [source] = &transactions[..] {
        let put = async {
            match source {
                Source::Memory(bytes) => bucket.put(key, bytes.clone()).await.map(drop),
                Source::File(captured) => put_file(bucket, key, path_of(captured)).await,
            }
        };
        in_time(("put", key), source.len(), put).await?;
        return Ok(source.len());
    }
    let dir = node.data_dir.spool();
    let merged = blocking(move || merge(&transactions, &dir)).await?;
    let len = merged.len()?;
    let put = async {
        match &merged {
            Merged::Memory(bytes) => bucket.put(key, bytes.clone()).await.map(drop),
            Merged::File(file) => put_file(bucket, key, file.path()).await,
        }
    };
    in_time(("put", key), len, put).await?;
    Ok(len)
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
    PAUSES.pause_before(attempt).await;
    let Some(node) = resident.node() else { return };
    let read = node.owners.read(&resident.cell);
    let event = match tokio::time::timeout(OWNER_READ_TIMEOUT, read).await {
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
