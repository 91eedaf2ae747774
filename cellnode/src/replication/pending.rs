//! The captured transactions of one residency that its cell's prefix lacks, in order, and objects made of them. Their bytes
//! are here or in a bundle.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use holdfast_bucket::{Bucket, BucketError};
use holdfast_ltx::{Decoder, compact};
use holdfast_sql::{Captured, CapturedBody};
use holdfast_types::{LogOffset, Txid};
use tempfile::NamedTempFile;

use crate::node_log::BundledBody;

/// An object longer than this is merged on disk, in bytes.
const MEMORY_BYTES_MAX: u64 = 8 << 20;

/// Where the bytes of a transaction are.
#[derive(Clone, Debug)]
pub(super) enum Body {
    Captured(Arc<Captured>),
    Bundled(BundledBody),
}

#[derive(Debug)]
struct Transaction {
    txid: Txid,
    /// Where the node log took it.
    offset: Option<LogOffset>,
    body: Body,
}

/// What is captured and not uploaded.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    transactions: VecDeque<Transaction>,
}

impl Pending {
    /// Adds a transaction, with its offset where the node log took it.
    pub(crate) fn push(&mut self, captured: Arc<Captured>, offset: Option<LogOffset>) {
        self.transactions.push_back(Transaction {
            txid: captured.txid,
            offset,
            body: Body::Captured(captured),
        });
    }

    /// A transaction is in a bundle: its bytes need not be here any more.
    pub(crate) fn bundled(&mut self, txid: Txid, body: BundledBody) {
        let at = self.transactions.partition_point(|transaction| transaction.txid < txid);
        if let Some(transaction) = self.transactions.get_mut(at).filter(|found| found.txid == txid) {
            transaction.body = Body::Bundled(body);
        }
    }

    /// The transactions of a range; none unless all are there.
    pub(super) fn range(&self, first: Txid, last: Txid) -> Option<Vec<Body>> {
        let wanted = |transaction: &&Transaction| (first..=last).contains(&transaction.txid);
        let found = self.transactions.iter().filter(wanted);
        let found: Vec<_> = found.map(|transaction| transaction.body.clone()).collect();
        let len = last.get() - first.get() + 1;
        (u64::try_from(found.len()) == Ok(len)).then_some(found)
    }

    /// Forgets what the bucket has now. Returns the offsets of those frames.
    pub(crate) fn uploaded(&mut self, last: Txid) -> Vec<LogOffset> {
        let mut offsets = Vec::new();
        while let Some(transaction) = self.transactions.pop_front_if(|first| first.txid <= last) {
            offsets.extend(transaction.offset);
        }
        offsets
    }
}

/// A transaction whose bytes are at hand.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Memory(Bytes),
    /// Kept on disk for as long as the capture is.
    File(Arc<Captured>),
}

/// Reads what is in bundles: one range for all of a cell's frames in one of them.
pub(super) async fn read(bucket: &dyn Bucket, bodies: Vec<Body>) -> Result<Vec<Source>, BucketError> {
    let mut sources = Vec::with_capacity(bodies.len());
    let in_same = |left: &Body, right: &Body| match (left, right) {
        (Body::Bundled(left), Body::Bundled(right)) => Arc::ptr_eq(&left.bundle, &right.bundle),
        _ => false,
    };
    for run in bodies.chunk_by(in_same) {
        if let [Body::Bundled(first), ..] = run
            && let Some(Body::Bundled(last)) = run.last()
        {
            let start = first.range.start;
            let read = first.bundle.read(bucket, start..last.range.end).await?;
            for body in run {
                let Body::Bundled(body) = body else { unreachable!("the run is of one bundle") };
                sources.push(Source::Memory(body.take(&read, start)?));
            }
            continue;
        }
        for body in run {
            let Body::Captured(captured) = body else { unreachable!("no run of a bundle") };
            sources.push(match &captured.body {
                CapturedBody::Memory(bytes) => Source::Memory(bytes.clone()),
                CapturedBody::File(_) => Source::File(Arc::clone(captured)),
            });
        }
    }
    Ok(sources)
}

/// A merged object.
#[derive(Debug)]
pub(super) enum Merged {
    Memory(Bytes),
    File(NamedTempFile),
}

impl Merged {
    pub(super) fn len(&self) -> io::Result<u64> {
        match self {
            Self::Memory(bytes) => Ok(bytes.len().try_into().unwrap_or(u64::MAX)),
            Self::File(file) => Ok(file.as_file().metadata()?.len()),
        }
    }
}

impl Source {
    /// In bytes.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len().try_into().unwrap_or(u64::MAX),
            Self::File(captured) => captured.len,
        }
    }
}

/// Where a capture on disk is.
pub(super) fn path_of(captured: &Captured) -> &Path {
    match &captured.body {
        CapturedBody::File(path) => path,
        CapturedBody::Memory(_) => unreachable!("a capture in memory has no path"),
    }
}

/// Merges consecutive transactions into one LTX file. Blocks.
pub(super) fn merge(transactions: &[Source], dir: &Path) -> anyhow::Result<Merged> {
    let mut decoders: Vec<Decoder<Box<dyn Read>>> = Vec::with_capacity(transactions.len());
    for source in transactions {
        let reader: Box<dyn Read> = match source {
            Source::Memory(bytes) => Box::new(io::Cursor::new(bytes.clone())),
            Source::File(captured) => Box::new(io::BufReader::new(std::fs::File::open(path_of(captured))?)),
        };
        decoders.push(Decoder::new(reader)?);
    }
    let len: u64 = transactions.iter().map(Source::len).sum();
    if len <= MEMORY_BYTES_MAX {
        let (body, _) = compact(decoders, Vec::new())?;
        return Ok(Merged::Memory(body.into()));
    }
    let file = NamedTempFile::with_prefix_in("merge-", dir)?;
    let (mut writer, _) = compact(decoders, io::BufWriter::new(file.reopen()?))?;
    writer.flush()?;
    Ok(Merged::File(file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_log::StoredBundle;
    use holdfast_bucket::faults::{FaultBucket, Operation};
    use holdfast_bucket::{ErrorKind, MemoryBucket};

    /// A bundle's key, and the transactions of one cell and of the one behind it.
    async fn evicted(bucket: &FaultBucket, key: &str, bodies: &[&'static [u8]]) -> Vec<Body> {
        bucket.put(key, [b"head", &bodies.concat()[..], b"tail"].concat().into()).await.unwrap();
        let bundle = StoredBundle::evicted(key);
        let mut start = 4;
        let bodies = bodies.iter().map(|body| {
            let range = start..start + body.len();
            start = range.end;
            Body::Bundled(BundledBody::new(&bundle, range, body))
        });
        bodies.collect()
    }

    fn bytes(sources: Vec<Source>) -> Vec<Bytes> {
        let bytes = sources.into_iter().map(|source| match source {
            Source::Memory(bytes) => bytes,
            Source::File(_) => unreachable!("bundles are no files"),
        });
        bytes.collect()
    }

    #[tokio::test]
    async fn evicted_bundles_are_read_back_one_range_for_all_of_a_cells_frames_in_each() {
        let bucket = FaultBucket::new(Arc::new(MemoryBucket::new()));
        let mut wanted = evicted(&bucket, "older", &[b"one", b"second", b"3", b"another cell's"]).await;
        wanted.truncate(3);
        wanted.extend(evicted(&bucket, "newer", &[b"fourth"]).await);
        let found = bytes(read(&bucket, wanted).await.unwrap());
        assert_eq!(found, ["one", "second", "3", "fourth"]);
        let reads = |operation| (bucket.count(operation, "older"), bucket.count(operation, "newer"));
        assert_eq!((reads(Operation::GetRange), reads(Operation::Get)), ((1, 1), (0, 0)));
    }

    #[tokio::test]
    async fn a_bundle_that_is_not_what_it_was_is_no_upload() {
        let bucket = FaultBucket::new(Arc::new(MemoryBucket::new()));
        for damaged in ["headonX", "headon"] {
            let wanted = evicted(&bucket, "bundle", &[b"one"]).await;
            bucket.put("bundle", damaged.into()).await.unwrap();
            let error = read(&bucket, wanted).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Local, "{error}");
        }
    }
}
