//! From committed WAL frames to one LTX transaction. All commits since the last capture become one, up to the first cut;
//! frames beyond the last commit (an open transaction that spilled) are never read. A failed capture leaves the position where it was, so
//! that it may be tried again.

use std::fs::File;
use std::io;

use bytes::Bytes;
use holdfast_ltx::{
    Check, EncodedLtx, ReadAt, TransactionError, WalError, WalReader, collect_transaction, encode_transaction,
};
use holdfast_types::{Millis, Txid};
use tempfile::TempPath;

use super::Engine;
use super::open::beside;
use super::spool::{Spool, Spooled};

/// Frames that are read at once, headers and pages: most transactions have fewer, and a system call for each part costs more.
const AHEAD_FRAMES_MAX: u32 = 8;

/// One LTX transaction.
#[derive(Debug)]
pub struct Captured {
    /// Its number: one more than the last.
    pub txid: Txid,
    /// Pages in it.
    pub pages: u32,
    /// Size of the database after it, in pages.
    pub commit_pages: u32,
    /// Length of the file in bytes.
    pub len: u64,
    /// The file.
    pub body: CapturedBody,
}

/// Where a captured file is.
#[derive(Debug)]
pub enum CapturedBody {
    /// In memory.
    Memory(Bytes),
    /// On disk, deleted when dropped.
    File(TempPath),
}

/// Why a capture failed. The position has not moved; the commits stay uncaptured.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The WAL could not be opened. Disposition: retry.
    #[error("cannot open the write-ahead log: {0}")]
    Open(#[source] io::Error),
    /// The frames are not what was committed. Disposition: corrupt.
    #[error(transparent)]
    Wal(#[from] WalError),
    /// The file could not be written. Disposition: by its cause.
    #[error(transparent)]
    Encode(#[from] TransactionError),
    /// The spool failed, for example because the disk is full. Disposition: retry.
    #[error("cannot write the capture: {0}")]
    Spool(#[source] io::Error),
}

impl Engine {
    /// Turns all that was committed since the last capture, or what of it is before the first cut, into one LTX transaction.
    /// `now` is a wall clock time, for the file's timestamp. Answers none when nothing was. Allowed while a transaction is open.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn capture(&mut self, now: Millis) -> Result<Option<Captured>, CaptureError> {
        self.settle();
        let cut = self.cuts.front().copied();
        let (from, to) = (self.captured_frames + 1, cut.unwrap_or_else(|| self.shared.wal_frames()));
        if to < from {
            return Ok(None);
        }
        if self.wal.is_none() {
            let file = File::open(beside(&self.path, "-wal")).map_err(CaptureError::Open)?;
            self.wal = Some(WalReader::open(file)?);
        }
        let wal = self.wal.as_ref().expect("opened above");
        let txid = self.position.next();
        let (spool, encoded, commit) = if to - from < AHEAD_FRAMES_MAX {
            self.encode(&wal.read_ahead(from, to)?, (from, to), txid, now)?
        } else {
            self.encode(wal, (from, to), txid, now)?
        };
        let body = match spool.finish().map_err(CaptureError::Spool)? {
            Spooled::Memory(bytes) => CapturedBody::Memory(bytes),
            Spooled::File(path) => CapturedBody::File(path),
        };
        self.position = txid;
        self.captured_frames = to;
        self.cuts.pop_front();
        self.commit_pages = commit;
        Ok(Some(Captured { txid, pages: encoded.pages, commit_pages: commit, len: encoded.len, body }))
    }

    /// Makes the file of some frames; answers the size of the database after it, too, in pages.
    fn encode<F: ReadAt>(
        &self,
        wal: &WalReader<F>,
        (from, to): (u32, u32),
        txid: Txid,
        now: Millis,
    ) -> Result<(Spool, EncodedLtx, u32), CaptureError> {
        // The operating system's cache holds what SQLite has just written: the salts tell whose frames they are, and
        // summing every page again would prove nothing.
        let set = collect_transaction(wal, from, to, Check::Salts)?;
        let expected = (set.pages.len() + 1) * (self.page_size as usize / 2 + 64) + 256;
        let spool = Spool::new(&self.options.spool_dir, self.options.memory_capture_max, expected);
        let (spool, encoded) = encode_transaction(wal, &set, set.header(wal, txid, now), spool)?;
        Ok((spool, encoded, set.commit))
    }
}
