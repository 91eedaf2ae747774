//! The captured transactions of one residency that the bucket lacks, in order, and objects made of them.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use holdfast_ltx::{Decoder, compact};
use holdfast_sql::{Captured, CapturedBody};
use holdfast_types::{LogOffset, Txid};
use tempfile::NamedTempFile;

/// An object longer than this is merged on disk, in bytes.
const MEMORY_BYTES_MAX: u64 = 8 << 20;

/// What is captured and not uploaded.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    transactions: VecDeque<(Arc<Captured>, Option<LogOffset>)>,
}

impl Pending {
    /// Adds a transaction, with its offset where the node log took it.
    pub(crate) fn push(&mut self, captured: Arc<Captured>, offset: Option<LogOffset>) {
        self.transactions.push_back((captured, offset));
    }

    /// The transactions of a range; none unless all are there.
    pub(crate) fn range(&self, first: Txid, last: Txid) -> Option<Vec<Arc<Captured>>> {
        let wanted = |captured: &Captured| (first..=last).contains(&captured.txid);
        let found = self.transactions.iter().filter(|(captured, _)| wanted(captured));
        let found: Vec<_> = found.map(|(captured, _)| Arc::clone(captured)).collect();
        let len = last.get() - first.get() + 1;
        (u64::try_from(found.len()) == Ok(len)).then_some(found)
    }

    /// Forgets what the bucket has now. Returns the offsets of those frames.
    pub(crate) fn uploaded(&mut self, last: Txid) -> Vec<LogOffset> {
        let mut offsets = Vec::new();
        while let Some((captured, offset)) = self.transactions.front()
            && captured.txid <= last
        {
            offsets.extend(*offset);
            self.transactions.pop_front();
        }
        offsets
    }
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

/// Merges consecutive transactions into one LTX file. Blocks.
pub(super) fn merge(transactions: &[Arc<Captured>], dir: &Path) -> anyhow::Result<Merged> {
    let mut decoders: Vec<Decoder<Box<dyn Read>>> = Vec::with_capacity(transactions.len());
    for captured in transactions {
        let reader: Box<dyn Read> = match &captured.body {
            CapturedBody::Memory(bytes) => Box::new(io::Cursor::new(bytes.clone())),
            CapturedBody::File(path) => Box::new(io::BufReader::new(std::fs::File::open(path)?)),
        };
        decoders.push(Decoder::new(reader)?);
    }
    let len: u64 = transactions.iter().map(|captured| captured.len).sum();
    if len <= MEMORY_BYTES_MAX {
        let (body, _) = compact(decoders, Vec::new())?;
        return Ok(Merged::Memory(body.into()));
    }
    let file = NamedTempFile::with_prefix_in("merge-", dir)?;
    let (mut writer, _) = compact(decoders, io::BufWriter::new(file.reopen()?))?;
    writer.flush()?;
    Ok(Merged::File(file))
}
