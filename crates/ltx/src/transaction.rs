//! One LTX file from committed frames of a WAL. Of several frames of a page the last counts, and pages beyond the final
//! size are left out. Memory: one small entry per distinct page and one page.

use crate::encoder::{EncodeError, EncodedLtx, Encoder};
use crate::header::Header;
use crate::page_size::PageSize;
use crate::read_at::ReadAt;
use crate::wal::{Check, WalError, WalReader};
use holdfast_types::{Millis, Txid};
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::RangeInclusive;

/// The last version of each page in a range of frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameSet {
    /// First frame of the range.
    pub from: u32,
    /// Last frame of the range; it ends a transaction.
    pub to: u32,
    /// Page size of the database.
    pub page_size: PageSize,
    /// Size of the database after it, in pages.
    pub commit: u32,
    /// Page number to the number of the frame that holds its last version.
    pub pages: BTreeMap<u32, u32>,
}

/// Why a transaction cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum TransactionError {
    /// The WAL.
    #[error(transparent)]
    Wal(#[from] WalError),
    /// The file.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The header is not that of the frames. Disposition: bug.
    #[error("the header has {commit} pages of {page_size} bytes, the frames {set_commit} of {set_page_size}")]
    Header {
        /// Pages by the header.
        commit: u32,
        /// Page size by the header.
        page_size: PageSize,
        /// Pages by the frames.
        set_commit: u32,
        /// Page size by the frames.
        set_page_size: PageSize,
    },
}

/// Reads the frames `from..=to`, which are committed; `to` ends a transaction. Several SQLite transactions may lie in
/// the range: they become one.
///
/// # Errors
/// [`WalError`].
pub fn collect_transaction<F: ReadAt>(
    wal: &WalReader<F>,
    from: u32,
    to: u32,
    check: Check,
) -> Result<FrameSet, WalError> {
    let mut pages = BTreeMap::new();
    let mut commit = 0;
    for frame in wal.frames(from, to, check)? {
        let frame = frame?;
        pages.insert(frame.pgno, frame.number);
        commit = frame.commit;
    }
    if commit == 0 {
        return Err(WalError::NoCommit(to));
    }
    pages.retain(|&pgno, _| pgno <= commit);
    Ok(FrameSet { from, to, page_size: wal.header().page_size, commit, pages })
}

impl FrameSet {
    /// The header of the file that holds this set as transaction `txid`.
    #[must_use]
    pub fn header<F: ReadAt>(&self, wal: &WalReader<F>, txid: Txid, timestamp: Millis) -> Header {
        Header {
            page_size: self.page_size,
            commit: self.commit,
            min: txid,
            max: txid,
            timestamp,
            wal: wal.span(self.from, self.to),
            node_id: 0,
        }
    }
}

/// Writes the set as one file. With `header.min` 1 the database was empty before: a page that no frame holds is zero.
/// To begin a chain with a database that has pages already, use [`crate::encode_snapshot`] instead.
///
/// # Errors
/// [`TransactionError`].
pub fn encode_transaction<F: ReadAt, W: Write>(
    wal: &WalReader<F>,
    set: &FrameSet,
    header: Header,
    writer: W,
) -> Result<(W, EncodedLtx), TransactionError> {
    if (header.commit, header.page_size) != (set.commit, set.page_size) {
        return Err(TransactionError::Header {
            commit: header.commit,
            page_size: header.page_size,
            set_commit: set.commit,
            set_page_size: set.page_size,
        });
    }
    let mut encoder = Encoder::new(writer, header)?;
    let mut page = vec![0; set.page_size.bytes()];
    let mut next = 1;
    for (&pgno, &frame) in &set.pages {
        if header.is_snapshot() {
            encode_zeros(&mut encoder, next..=pgno.saturating_sub(1))?;
            next = pgno + 1;
        }
        wal.read_page(frame, &mut page)?;
        encoder.page(pgno, &page)?;
    }
    if header.is_snapshot() {
        encode_zeros(&mut encoder, next..=set.commit)?;
    }
    Ok(encoder.finish()?)
}

/// Writes zero pages, without the lock page.
pub(crate) fn encode_zeros<W: Write>(
    encoder: &mut Encoder<W>,
    pages: RangeInclusive<u32>,
) -> Result<(), EncodeError> {
    if pages.is_empty() {
        return Ok(());
    }
    let page_size = encoder.header().page_size;
    let lock_page = page_size.lock_page();
    let zeros = vec![0; page_size.bytes()];
    for pgno in pages.filter(|&pgno| pgno != lock_page) {
        encoder.page(pgno, &zeros)?;
    }
    Ok(())
}
