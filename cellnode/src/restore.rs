//! Rebuilds a cell's database from the bucket (design 4.4): which epochs count is decided by the core's lineage, which
//! files of an epoch by `holdfast-ltx`; this module lists, downloads and applies. Memory does not grow with the chain.
//! Keeps INV-CHAIN-1: a gap is an error that names the missing object; it never yields wrong data.

mod chain;
mod download;
mod listing;
mod mark;
mod past;

use crate::blocking::blocking;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::StreamExt;
use holdfast_bucket::{Bucket, BucketError};
use holdfast_core::compaction::ChainSize;
use holdfast_core::lineage::{LineageError, PastError};
use holdfast_core::retire::LastMark;
use holdfast_ltx::{Applier, ApplyError, DecodeError, Decoder, Durability, PageSize, PlanError, PlannedFile};
use holdfast_records::{Key, Level, RecordError};
use holdfast_types::{CellName, Epoch, Position, Txid};

pub use chain::{PlannedChain, find_chain};
pub(crate) use download::{Fetched, fetch};
pub(crate) use listing::{EpochListing, list_level, list_level_zero};
pub use mark::MarkReadError;
pub(crate) use mark::{read_mark, record_of};
pub use past::find_past;

/// Downloads ahead of the file that is being applied: small files, each at most [`download::MEMORY_LEN_MAX`].
const PREFETCH: usize = 8;

/// Why a database cannot be rebuilt.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The store failed. Disposition: retry.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// An opener cannot be read. Disposition: corrupt, or reject (too new).
    #[error("`{key}`: {source}")]
    Opener {
        /// The object.
        key: String,
        /// What is wrong.
        source: RecordError,
    },
    /// The mark of what is retired cannot be read. Disposition: corrupt, or reject (too new).
    #[error(transparent)]
    Mark(MarkReadError),
    /// An epoch has data and no opener. Disposition: corrupt.
    #[error(
        "`{key}` is gone, but the epoch has data (`{object}`): restore the object from a backup of the bucket"
    )]
    OpenerLost {
        /// The opener.
        key: String,
        /// An object of the epoch.
        object: String,
    },
    /// The chain of epochs is broken. Disposition: corrupt.
    #[error("cell `{cell}` cannot be restored: {source}")]
    Lineage {
        /// The cell.
        cell: CellName,
        /// What is wrong.
        source: LineageError,
    },
    /// A state of the past is not to be had. Disposition: reject, or corrupt.
    #[error("cell `{cell}` has no such past: {source}")]
    Past {
        /// The cell.
        cell: CellName,
        /// Why.
        source: PastError,
    },
    /// An epoch has a gap. Disposition: corrupt.
    #[error(
        "cell `{cell}` cannot be restored: epoch {epoch}: {source}; the first missing object is `{missing}`"
    )]
    Gap {
        /// The cell.
        cell: CellName,
        /// The epoch.
        epoch: Epoch,
        /// What is wrong, with the newest consistent position.
        source: Box<PlanError>,
        /// The object that would close the gap.
        missing: String,
    },
    /// An object vanished between listing and reading. Disposition: retry, then corrupt.
    #[error("`{0}` was listed but is not there")]
    Vanished(String),
    /// An object's content is damaged, or does not fit where it should follow. Disposition: corrupt.
    #[error("`{key}` cannot be applied: {source}")]
    Damaged {
        /// The object.
        key: String,
        /// What is wrong.
        source: DamageError,
    },
    /// The chain grew between two looks at it. Disposition: retry in a new epoch.
    #[error("the chain of cell `{cell}` grew while it was restored; come again")]
    Moved {
        /// The cell.
        cell: CellName,
    },
    /// The local disk. Disposition: retry once there is space.
    #[error("local file `{path}`: {source}")]
    Local {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: std::io::Error,
    },
}

/// What is wrong with an object.
#[derive(Debug, thiserror::Error)]
pub enum DamageError {
    /// It is not an LTX file.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// It cannot be applied here.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// It cannot be read back from the local disk.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl RestoreError {
    /// Whether a later owner has taken the cell over meanwhile: nothing is wrong with it.
    #[must_use]
    pub const fn is_superseded(&self) -> bool {
        matches!(self, Self::Lineage { source: LineageError::Superseded { .. }, .. })
    }

    /// Whether the same restore may succeed later without anybody changing anything.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Bucket(error) => error.kind.is_transient(),
            Self::Vanished(_) | Self::Local { .. } | Self::Moved { .. } => true,
            Self::Lineage { source: LineageError::Moving, .. } => true,
            Self::Opener { .. }
            | Self::Mark(_)
            | Self::OpenerLost { .. }
            | Self::Lineage { .. }
            | Self::Past { .. }
            | Self::Gap { .. }
            | Self::Damaged { .. } => false,
        }
    }
}

impl From<MarkReadError> for RestoreError {
    fn from(error: MarkReadError) -> Self {
        match error {
            MarkReadError::Bucket(error) => Self::Bucket(error),
            error @ MarkReadError::Record { .. } => Self::Mark(error),
        }
    }
}

/// A rebuilt database.
#[derive(Clone, Debug)]
pub struct Restored {
    /// The position it stands at; none for an empty database (no file is made).
    pub end: Option<Position>,
    /// What the next restore would read.
    pub chain: ChainSize,
    /// Files and bytes read for this one.
    pub read: ChainSize,
    /// Whether the local file was the start.
    pub from_local: bool,
    /// What was known of the last mark.
    pub mark: LastMark,
}

/// What to rebuild, and where.
#[derive(Clone, Debug)]
pub struct RestoreJob {
    /// The cell.
    pub cell: CellName,
    /// Epochs from this one on are not read: the claimed epoch.
    pub below: Epoch,
    /// Nor epochs below this one.
    pub floor: Epoch,
    /// Where the database goes. An existing file is replaced.
    pub database: PathBuf,
    /// A cleanly closed database of the cell and its position, to start from where it lies on the chain. It is moved.
    pub local: Option<(PathBuf, Position)>,
}

/// Rebuilds the database.
///
/// # Errors
/// [`RestoreError`]; what stands at `database` is then of no use.
pub async fn restore(bucket: &Arc<dyn Bucket>, job: &RestoreJob) -> Result<Restored, RestoreError> {
    let planned = plan(bucket, job).await?;
    apply_chain(bucket, job, &planned).await
}

/// Finds what [`apply_chain`] reads for a job.
///
/// # Errors
/// [`RestoreError`].
pub async fn plan(bucket: &Arc<dyn Bucket>, job: &RestoreJob) -> Result<PlannedChain, RestoreError> {
    let local = job.local.as_ref().map(|(_, position)| *position);
    find_chain(bucket, &job.cell, (job.below, job.floor), local).await
}

/// Downloads and applies a planned chain.
///
/// # Errors
/// [`RestoreError`]; what stands at `database` is then of no use.
pub async fn apply_chain(
    bucket: &Arc<dyn Bucket>,
    job: &RestoreJob,
    planned: &PlannedChain,
) -> Result<Restored, RestoreError> {
    let from_local = planned.starts_from_local;
    let mut applier = Some(open_target(job, planned)?);
    let dir = job.database.parent().unwrap_or(Path::new(".")).to_path_buf();
    let mut fetches = futures::stream::iter(planned.files.iter().copied())
        .map(|(epoch, file)| {
            let key = key_of(&job.cell, epoch, &file);
            let (bucket, dir) = (Arc::clone(bucket), dir.clone());
            async move { fetch(&bucket, &key, file.len, &dir).await.map(|fetched| (key, fetched)) }
        })
        .buffered(PREFETCH);
    while let Some(fetched) = fetches.next().await {
        let (key, fetched) = fetched?;
        let mut target = applier.take().expect("the applier comes back from each file");
        let (target, result) = blocking(move || {
            let result = apply(&mut target, &fetched);
            (target, result)
        })
        .await;
        result.map_err(|source| RestoreError::Damaged { key, source })?;
        applier = Some(target);
    }
    drop(fetches);
    let applied = applier.expect("the applier comes back").finish(Durability::Unsynced);
    let applied = applied
        .map_err(|source| RestoreError::Damaged { key: job.cell.to_string(), source: source.into() })?;
    let end_txid = planned.end.map_or(Txid::ZERO, |end| end.txid);
    // INV-CHAIN-1: what was applied is what was planned.
    assert_eq!(applied.position, end_txid, "a restore ends where its plan ends");
    if planned.end.is_none() {
        let _ = std::fs::remove_file(&job.database);
    }
    let read = ChainSize {
        files: u64::try_from(planned.files.len()).unwrap_or(u64::MAX),
        bytes: planned.files.iter().map(|(_, file)| file.len).sum(),
    };
    Ok(Restored { end: planned.end, chain: planned.size, read, from_local, mark: planned.mark })
}

fn open_target(job: &RestoreJob, planned: &PlannedChain) -> Result<Applier, RestoreError> {
    let path = &job.database;
    let failed = |source| RestoreError::Local { path: path.clone(), source };
    if let (true, Some((local, position))) = (planned.starts_from_local, &job.local) {
        if local != path {
            std::fs::rename(local, path).map_err(failed)?;
        }
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
        let page_size = page_size_of(&file).map_err(failed)?;
        return Applier::resume(file, position.txid, page_size).map_err(|source| RestoreError::Damaged {
            key: path.display().to_string(),
            source: source.into(),
        });
    }
    let file =
        OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path).map_err(failed)?;
    Applier::create(file)
        .map_err(|source| RestoreError::Damaged { key: path.display().to_string(), source: source.into() })
}

/// The page size in a database's header: bytes 16 and 17, where 1 stands for 65,536 (SQLite file format, 1.3.2).
pub(crate) fn page_size_of(file: &File) -> std::io::Result<PageSize> {
    use std::os::unix::fs::FileExt;
    let mut bytes = [0_u8; 2];
    file.read_exact_at(&mut bytes, 16)?;
    let size = match u16::from_be_bytes(bytes) {
        1 => 65_536,
        size => u32::from(size),
    };
    PageSize::new(size).map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidData, error))
}

fn apply(applier: &mut Applier, fetched: &Fetched) -> Result<(), DamageError> {
    match fetched {
        Fetched::Memory(bytes) => applier.apply(Decoder::new(&bytes[..])?)?,
        Fetched::File(file) => {
            let reader = std::io::BufReader::with_capacity(128 << 10, file.reopen()?);
            applier.apply(Decoder::new(reader)?)?
        }
    };
    Ok(())
}

/// The key of a planned file.
#[must_use]
pub fn key_of(cell: &CellName, epoch: Epoch, file: &PlannedFile) -> String {
    let level = Level::from_number(file.level).expect("only known levels are listed");
    Key::Ltx { cell: cell.clone(), epoch, level, min: file.min, max: file.max }.to_string()
}
