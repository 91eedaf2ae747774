//! A whole database as one LTX file from transaction 1: from a plain database file, or from one under a WAL whose
//! frames are not checkpointed yet. Memory: one page.

use crate::encoder::{EncodeError, EncodedLtx, Encoder};
use crate::header::{Header, WalSpan};
use crate::page_size::PageSize;
use crate::read_at::ReadAt;
use crate::transaction::FrameSet;
use crate::wal::{WalError, WalReader};
use holdfast_types::{Millis, Txid};
use std::io::{self, Write};

/// What a snapshot is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotSpec {
    /// Page size of the database.
    pub page_size: PageSize,
    /// Size of the database in pages.
    pub commit: u32,
    /// The last transaction that the database holds.
    pub max: Txid,
    /// When that was captured.
    pub timestamp: Millis,
}

/// Why a snapshot cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The database is shorter than it should be. Disposition: corrupt.
    #[error("the database file ends before page {pgno} of {commit} does")]
    Short {
        /// The page.
        pgno: u32,
        /// Size of the database in pages.
        commit: u32,
    },
    /// Reading the database failed. Disposition: retry.
    #[error("reading the database failed: {0}")]
    Io(#[from] io::Error),
    /// The WAL.
    #[error(transparent)]
    Wal(#[from] WalError),
    /// The file.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// Writes a snapshot of a plain database file that has no WAL, or none with frames that are not checkpointed.
///
/// # Errors
/// [`SnapshotError`].
pub fn encode_snapshot<D: ReadAt + ?Sized, W: Write>(
    database: &D,
    spec: SnapshotSpec,
    writer: W,
) -> Result<(W, EncodedLtx), SnapshotError> {
    encode_pages(spec, WalSpan::default(), writer, |pgno, page| read_database(database, spec, pgno, page))
}

/// Writes a snapshot of a database under a WAL: pages that `set` holds come from the WAL, the others from the database
/// file, which has `database_pages` pages; one that neither holds is zero. `set` must reach from the first frame that
/// is not checkpointed (frame 1 is always right) and sets the size; `spec.commit` must agree.
///
/// # Errors
/// [`SnapshotError`].
///
/// # Panics
/// When size or page size of `spec` are not those of `set`.
pub fn encode_snapshot_with_wal<D: ReadAt + ?Sized, F: ReadAt, W: Write>(
    database: &D,
    database_pages: u32,
    wal: &WalReader<F>,
    set: &FrameSet,
    spec: SnapshotSpec,
    writer: W,
) -> Result<(W, EncodedLtx), SnapshotError> {
    assert_eq!((spec.commit, spec.page_size), (set.commit, set.page_size), "the spec is that of the frames");
    encode_pages(spec, wal.span(set.from, set.to), writer, |pgno, page| {
        if let Some(&frame) = set.pages.get(&pgno) {
            wal.read_page(frame, page)?;
        } else if pgno <= database_pages {
            read_database(database, spec, pgno, page)?;
        } else {
            page.fill(0);
        }
        Ok(())
    })
}

fn encode_pages<W: Write>(
    spec: SnapshotSpec,
    wal: WalSpan,
    writer: W,
    mut read: impl FnMut(u32, &mut [u8]) -> Result<(), SnapshotError>,
) -> Result<(W, EncodedLtx), SnapshotError> {
    let SnapshotSpec { page_size, commit, max, timestamp } = spec;
    let header = Header { page_size, commit, min: Txid::new(1), max, timestamp, wal, node_id: 0 };
    let mut encoder = Encoder::new(writer, header)?;
    let mut page = vec![0; page_size.bytes()];
    for pgno in (1..=commit).filter(|&pgno| pgno != page_size.lock_page()) {
        read(pgno, &mut page)?;
        encoder.page(pgno, &page)?;
    }
    Ok(encoder.finish()?)
}

fn read_database<D: ReadAt + ?Sized>(
    database: &D,
    spec: SnapshotSpec,
    pgno: u32,
    page: &mut [u8],
) -> Result<(), SnapshotError> {
    database.read_exact_at(page, spec.page_size.offset_of(pgno)).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => SnapshotError::Short { pgno, commit: spec.commit },
        _ => SnapshotError::Io(error),
    })
}
