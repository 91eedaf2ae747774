//! Downloads one object: small ones into memory, large ones into a file, resumed by ranged reads where they break.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use holdfast_bucket::{Bucket, BucketError, ByteRange, ErrorKind, Version};
use tempfile::NamedTempFile;

use super::RestoreError;
use crate::backoff::Backoff;

/// Longest object that is held in memory, in bytes. With eight downloads ahead a restore holds at most 8 MiB.
pub(super) const MEMORY_LEN_MAX: u64 = 1 << 20;
/// Attempts to get further with one object before giving up.
const ATTEMPTS: u32 = 6;
/// Between them: 100 ms doubling to 1.6 s.
const PAUSES: Backoff = Backoff::new(100, 4);

/// A downloaded object.
#[derive(Debug)]
pub(crate) enum Fetched {
    /// Small.
    Memory(Bytes),
    /// Large; removed when dropped.
    File(NamedTempFile),
}

/// Downloads the object, which was listed with `len` bytes.
pub(crate) async fn fetch(
    bucket: &Arc<dyn Bucket>,
    key: &str,
    len: u64,
    dir: &Path,
) -> Result<Fetched, RestoreError> {
    if len <= MEMORY_LEN_MAX {
        for attempt in 0..ATTEMPTS {
            match bucket.get(key).await {
                Ok(Some(object)) => return Ok(Fetched::Memory(object.body)),
                Ok(None) => return Err(RestoreError::Vanished(key.to_owned())),
                Err(error) => pause_or_fail(error, attempt).await?,
            }
        }
        return Err(gave_up(key).into());
    }
    fetch_to_file(bucket, key, dir).await
}

async fn fetch_to_file(bucket: &Arc<dyn Bucket>, key: &str, dir: &Path) -> Result<Fetched, RestoreError> {
    let local = |source| RestoreError::Local { path: dir.to_path_buf(), source };
    let mut file = NamedTempFile::with_prefix_in("download-", dir).map_err(local)?;
    let mut received: u64 = 0;
    let mut version: Option<Version> = None;
    let mut attempt = 0;
    while attempt < ATTEMPTS {
        let range = (received > 0).then_some(ByteRange::From { offset: received });
        let object = match bucket.get_stream(key, range).await {
            Ok(Some(object)) => object,
            Ok(None) => return Err(RestoreError::Vanished(key.to_owned())),
            Err(error) => {
                pause_or_fail(error, attempt).await?;
                attempt += 1;
                continue;
            }
        };
        // An object of a chain is never overwritten with other bytes; if this one was, begin again.
        if version.as_ref().is_some_and(|version| *version != object.version) {
            file.as_file_mut().set_len(0).map_err(local)?;
            file = NamedTempFile::with_prefix_in("download-", dir).map_err(local)?;
            (received, version) = (0, None);
            attempt += 1;
            continue;
        }
        version = Some(object.version.clone());
        let mut stream = object.stream;
        let broken = loop {
            match stream.next().await {
                Some(Ok(piece)) => {
                    file.write_all(&piece).map_err(local)?;
                    received += piece.len() as u64;
                    attempt = 0;
                }
                Some(Err(error)) => break Some(error),
                None => break None,
            }
        };
        match broken {
            None if received == object.object_len => return Ok(Fetched::File(file)),
            None => attempt += 1,
            Some(error) => {
                pause_or_fail(error, attempt).await?;
                attempt += 1;
            }
        }
    }
    Err(gave_up(key).into())
}

fn gave_up(key: &str) -> BucketError {
    BucketError::new("get", key, ErrorKind::NoAnswer, format!("given up after {ATTEMPTS} attempts"))
}

async fn pause_or_fail(error: BucketError, attempt: u32) -> Result<(), BucketError> {
    if !error.kind.is_transient() {
        return Err(error);
    }
    PAUSES.pause(attempt).await;
    Ok(())
}
