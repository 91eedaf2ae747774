//! Opens a cell paged instead of restoring it: reads the index of each file of the chain, and makes a file of holes. Where
//! that cannot be done, whatever the reason, the cell is restored whole, which also tells damage exactly.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::database::{MappedObject, PagedDatabase, Parts};
use crate::node::Node;
use crate::restore::{PlannedChain, RestoreJob, key_of};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use holdfast_bucket::{Bucket, BucketError, ByteRange, ErrorKind, Version};
use holdfast_core::compaction::ChainSize;
use holdfast_core::paged::opens_paged;
use holdfast_ltx::{
    DecodeError, Decoder, HEADER_LEN, Header, HeaderError, INDEX_TAIL_LEN, MAP_BYTES_PER_PAGE, MapError,
    PageMap, PageMapBuilder, index_range,
};
use holdfast_sql::PageFailure;

/// What is read from the end of each file: the index of a file of some 1,500 pages, and all of a small one.
const TAIL_LEN: u64 = 16 << 10;
/// Files read at once.
const READS: usize = 8;
/// Longest chain that is opened paged. With their tails, 8 MiB.
const FILES_MAX: usize = 512;
/// Most pages of a database that is opened paged: its map has 33 MiB then, and the database 16 GiB at 4 KiB a page.
const PAGES_MAX: u32 = 4 << 20;

/// Why a cell is restored whole after all.
#[derive(Debug, thiserror::Error)]
enum PrepareError {
    #[error(transparent)]
    Bucket(#[from] BucketError),
    #[error("`{0}` was listed but is not there, or was written anew")]
    Vanished(String),
    #[error("`{key}`: {source}")]
    Header { key: String, source: HeaderError },
    #[error("`{key}`: {source}")]
    Map { key: String, source: MapError },
    #[error("`{key}`: {source}")]
    Damaged { key: String, source: DecodeError },
    #[error("the chain has {0} files")]
    TooManyFiles(usize),
    #[error("there is no memory left for a map of {0} pages")]
    NoMemory(u32),
    #[error("local file `{path}`: {source}")]
    Local { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Page(#[from] PageFailure),
}

/// A cell that can be opened.
pub(crate) struct Prepared {
    /// Its file.
    pub(crate) database: Arc<PagedDatabase>,
    /// Files and bytes read for it.
    pub(crate) read: ChainSize,
}

/// Prepares a cell to be opened paged over a new file at `path`; none where it is to be restored whole.
pub(crate) async fn prepare(
    node: &Arc<Node>,
    job: &RestoreJob,
    planned: &PlannedChain,
    path: PathBuf,
) -> Option<Prepared> {
    let chain_bytes = planned.files.iter().map(|(_, file)| file.len).sum();
    let is_large = opens_paged(chain_bytes, node.config.paged_from, planned.starts_from_local);
    if !is_large || planned.files.is_empty() || node.paging.is_distrusted(&job.cell) {
        return None;
    }
    match try_prepare(node, job, planned, path.clone()).await {
        Ok(prepared) => Some(prepared),
        Err(error) => {
            tracing::warn!(cell = %job.cell, %error, "a large cell cannot be opened paged; it is restored whole");
            let _ = std::fs::remove_file(path);
            None
        }
    }
}

async fn try_prepare(
    node: &Arc<Node>,
    job: &RestoreJob,
    planned: &PlannedChain,
    path: PathBuf,
) -> Result<Prepared, PrepareError> {
    let bucket = &node.buckets.bulk;
    if planned.files.len() > FILES_MAX {
        return Err(PrepareError::TooManyFiles(planned.files.len()));
    }
    let ends: Vec<FileEnd> = futures::stream::iter(planned.files.iter().copied())
        .map(|(epoch, file)| {
            let (bucket, key) = (Arc::clone(bucket), key_of(&job.cell, epoch, &file));
            async move { read_end(&bucket, key, file.len).await }
        })
        .buffered(READS)
        .try_collect()
        .await?;
    let pages = ends.iter().map(|end| end.header.commit).max().unwrap_or(0);
    // The map, and two bits.
    let bytes = u64::from(pages.min(PAGES_MAX)) * (4 * MAP_BYTES_PER_PAGE as u64 + 1) / 4;
    let memory = node.paging.reserve(bytes).ok_or(PrepareError::NoMemory(pages))?;
    let (map, read) = make_map(bucket, &ends).await?;
    let local = |source| PrepareError::Local { path: path.clone(), source };
    let file = std::fs::File::options().read(true).write(true).create(true).truncate(true).open(&path);
    let file = file.map_err(local)?;
    file.set_len(map.page_size().database_len(map.pages())).map_err(local)?;
    let objects =
        ends.into_iter().map(|FileEnd { key, len, version, .. }| MappedObject { key, len, version });
    let database = PagedDatabase::new(Parts {
        cell: job.cell.clone(),
        bucket: Arc::clone(bucket),
        runtime: node.runtime.clone(),
        paging: Arc::clone(&node.paging),
        file,
        objects: objects.collect(),
        map,
        memory,
    });
    // The header, and the schema as a rule: so that opening does not hold the cell's thread for it.
    database.bring(1..=1).await?;
    let files = u64::try_from(planned.files.len()).unwrap_or(u64::MAX);
    Ok(Prepared { database, read: ChainSize { files, bytes: read } })
}

/// A file's header and where its index is.
struct FileEnd {
    key: String,
    len: u64,
    version: Version,
    header: Header,
    index: Range<u64>,
    /// The index, where it is short.
    entries: Option<Bytes>,
    read: u64,
}

async fn read_end(bucket: &Arc<dyn Bucket>, key: String, len: u64) -> Result<FileEnd, PrepareError> {
    let tail = bucket.get_range(&key, ByteRange::Suffix { len: TAIL_LEN }).await?;
    let Some(tail) = tail else { return Err(PrepareError::Vanished(key)) };
    let (tail, version) = (tail.body, tail.version);
    let map_error = |source| PrepareError::Map { key: key.clone(), source };
    let tail_at = len.checked_sub(tail.len() as u64);
    let (Some(tail_at), Some(last)) = (tail_at, tail.last_chunk::<INDEX_TAIL_LEN>()) else {
        return Err(PrepareError::Vanished(key));
    };
    let index = index_range(last, len).map_err(|source| map_error(source.into()))?;
    let mut read = tail.len() as u64;
    let head = if tail_at == 0 {
        // All of it is here: its sum can be verified at once.
        let decoded = Decoder::new(&tail[..]).and_then(Decoder::finish);
        decoded.map_err(|source| PrepareError::Damaged { key: key.clone(), source })?;
        tail.slice(..HEADER_LEN)
    } else {
        let range = ByteRange::Span { offset: 0, len: HEADER_LEN as u64 };
        read += HEADER_LEN as u64;
        match bucket.get_range(&key, range).await? {
            Some(head) if head.version == version => head.body,
            _ => return Err(PrepareError::Vanished(key)),
        }
    };
    let Some(head) = head.first_chunk::<HEADER_LEN>() else { return Err(PrepareError::Vanished(key)) };
    let header =
        Header::from_bytes(head).map_err(|source| PrepareError::Header { key: key.clone(), source })?;
    let entries = (index.start >= tail_at).then(|| {
        let at = |byte: u64| usize::try_from(byte - tail_at).expect("within the tail");
        tail.slice(at(index.start)..at(index.end))
    });
    Ok(FileEnd { key, len, version, header, index, entries, read })
}

/// Reads the indexes, oldest first; long ones as a stream. Answers how many bytes were read in all.
async fn make_map(bucket: &Arc<dyn Bucket>, ends: &[FileEnd]) -> Result<(PageMap, u64), PrepareError> {
    let mut builder = PageMapBuilder::new(PAGES_MAX);
    let mut bytes = 0;
    let mut last_key = "";
    for FileEnd { key, version, header, index, entries, read, .. } in ends {
        let map_error = |source| PrepareError::Map { key: key.clone(), source };
        builder.begin(*header, index).map_err(map_error)?;
        bytes += read;
        if let Some(entries) = entries {
            builder.feed(entries).map_err(map_error)?;
        } else {
            let len = index.end - index.start;
            let range = ByteRange::Span { offset: index.start, len };
            let found = bucket.get_stream(key, Some(range)).await?;
            let Some(found) = found.filter(|found| found.version == *version) else {
                return Err(PrepareError::Vanished(key.clone()));
            };
            let (mut stream, mut received) = (found.stream, 0);
            while let Some(piece) = stream.next().await {
                let piece = piece?;
                received += piece.len() as u64;
                builder.feed(&piece).map_err(map_error)?;
            }
            if received != len {
                let detail = "the index ended early";
                return Err(BucketError::new("get_stream", key, ErrorKind::BadBody, detail).into());
            }
            bytes += received;
        }
        builder.end().map_err(map_error)?;
        last_key = key;
    }
    let map = builder.finish().map_err(|source| PrepareError::Map { key: last_key.to_owned(), source })?;
    Ok((map, bytes))
}
