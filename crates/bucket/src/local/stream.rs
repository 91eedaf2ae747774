//! Large objects of the embedded bucket, in pieces: memory holds one piece of each stream.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;

use super::LocalBucket;
use super::object_file::ObjectFile;
use crate::{BucketError, ByteRange, ByteStream, ObjectStream, Version};

/// A piece read: one hop to a blocking thread for every 256 KiB.
const PIECE_LEN: u64 = 256 * 1024;

/// Small pieces of a body are joined up to this before a hop writes them.
const JOIN_LEN: usize = 1024 * 1024;

/// Opens an object; the first piece comes with the same hop.
pub(super) async fn read(
    bucket: &LocalBucket,
    key: &str,
    range: Option<ByteRange>,
) -> Result<Option<ObjectStream>, BucketError> {
    let opened = bucket.hop("get_stream", key, move |store, call, _| {
        let Some(file) = store.open(call)? else { return Ok(None) };
        let bytes = match range {
            Some(range) => range.resolve(call.operation, call.key, file.len)?,
            None => 0..file.len,
        };
        let (first, rest) = cut(bytes);
        let piece = store.read(call, &file, first.start, (first.end - first.start) as usize)?;
        Ok(Some((file, piece, rest)))
    });
    let Some((file, first, rest)) = opened.await? else { return Ok(None) };
    let (object_len, version) = (file.len, file.version.clone());
    let reader = Reader { bucket: bucket.clone(), key: key.to_owned(), file: Arc::new(file), rest };
    let rest = futures::stream::try_unfold(reader, Reader::next);
    let first = futures::stream::iter((!first.is_empty()).then_some(Ok(first)));
    Ok(Some(ObjectStream { object_len, version, stream: first.chain(rest).boxed() }))
}

/// The first piece of a range, and what remains.
fn cut(range: Range<u64>) -> (Range<u64>, Range<u64>) {
    let middle = range.end.min(range.start + PIECE_LEN);
    (range.start..middle, middle..range.end)
}

struct Reader {
    bucket: LocalBucket,
    key: String,
    file: Arc<ObjectFile>,
    rest: Range<u64>,
}

impl Reader {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, BucketError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (piece, rest) = cut(self.rest.clone());
        let file = Arc::clone(&self.file);
        let read = self.bucket.hop("get_stream", &self.key, move |store, call, _| {
            store.read(call, &file, piece.start, (piece.end - piece.start) as usize)
        });
        let bytes = read.await?;
        self.rest = rest;
        Ok(Some((bytes, self)))
    }
}

/// Writes an object from pieces; an error of the body removes what was written.
pub(super) async fn write(
    bucket: &LocalBucket,
    key: &str,
    mut body: ByteStream,
) -> Result<Version, BucketError> {
    let mut draft = bucket.hop("put_stream", key, |store, call, _| store.begin(call)).await?;
    let mut joined: Vec<Bytes> = Vec::new();
    let mut joined_len = 0;
    while let Some(piece) = body.next().await {
        let piece = piece?;
        joined_len += piece.len();
        joined.push(piece);
        if joined_len >= JOIN_LEN {
            let pieces = std::mem::take(&mut joined);
            joined_len = 0;
            let append = bucket.hop("put_stream", key, move |store, call, _| {
                pieces.iter().try_for_each(|piece| store.append(call, &mut draft, piece))?;
                Ok(draft)
            });
            draft = append.await?;
        }
    }
    let finish = bucket.hop("put_stream", key, move |store, call, deadline| {
        joined.iter().try_for_each(|piece| store.append(call, &mut draft, piece))?;
        store.publish(call, draft, deadline)
    });
    finish.await
}
