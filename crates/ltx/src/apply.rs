//! Applies files in turn to a database file that nobody has open. The first failure inside a file poisons the applier:
//! the database is then of no transaction at all and must be thrown away. Memory: two pages.

use crate::decoder::{DecodeError, DecodedLtx, Decoder};
use crate::page_size::PageSize;
use holdfast_types::Txid;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

/// Why a file cannot be applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The file does not follow. The database is unchanged. Disposition: reject.
    #[error("the database is at transaction {position}; a file from {min} to {max} cannot follow: it must hold transaction {}", .position.next())]
    NotContiguous {
        /// Where the database is.
        position: Txid,
        /// First transaction of the file.
        min: Txid,
        /// Its last.
        max: Txid,
    },
    /// The page size changed. The database is unchanged. Disposition: corrupt.
    #[error("the file from transaction {min} has page size {found}, the database has {expected}")]
    PageSize {
        /// First transaction of the file.
        min: Txid,
        /// Its page size.
        found: PageSize,
        /// The database's.
        expected: PageSize,
    },
    /// The file is not acceptable. Poisons. Disposition: that of the source.
    #[error("file {min} to {max}: {source}")]
    Decode {
        /// First transaction of the file.
        min: Txid,
        /// Its last.
        max: Txid,
        /// What is wrong.
        source: DecodeError,
    },
    /// The database cannot be written. Poisons. Disposition: retry from the start.
    #[error("writing the database failed: {0}")]
    Io(#[from] io::Error),
    /// An earlier failure. Disposition: bug; throw the database away.
    #[error("an earlier file failed half applied; the database must be thrown away")]
    Poisoned,
}

/// Whether the database must survive the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Sync the file before returning. Syncing its folder is the caller's.
    Synced,
    /// Leave it to the operating system.
    Unsynced,
}

/// A database that files were applied to.
#[derive(Debug)]
pub struct Applied {
    /// The database file.
    pub file: File,
    /// The last transaction it holds.
    pub position: Txid,
    /// Its size in pages.
    pub commit: u32,
    /// Its page size, unless no file was applied.
    pub page_size: Option<PageSize>,
}

/// Applies files to one database file.
pub struct Applier {
    file: File,
    position: Txid,
    page_size: Option<PageSize>,
    file_len: u64,
    page: Vec<u8>,
    is_poisoned: bool,
}

impl Applier {
    /// Starts a new database in `file`, which is emptied. The first file must be a snapshot, from transaction 1.
    ///
    /// # Errors
    /// [`ApplyError::Io`].
    pub fn create(file: File) -> Result<Self, ApplyError> {
        file.set_len(0)?;
        Ok(Self::over(file, Txid::ZERO, None, 0))
    }

    /// Goes on with a database that holds exactly the transactions up to `position`.
    ///
    /// # Errors
    /// [`ApplyError::Io`].
    pub fn resume(file: File, position: Txid, page_size: PageSize) -> Result<Self, ApplyError> {
        let file_len = file.metadata()?.len();
        Ok(Self::over(file, position, Some(page_size), file_len))
    }

    fn over(file: File, position: Txid, page_size: Option<PageSize>, file_len: u64) -> Self {
        Self { file, position, page_size, file_len, page: Vec::new(), is_poisoned: false }
    }

    /// The last transaction applied.
    #[must_use]
    pub fn position(&self) -> Txid {
        self.position
    }

    /// The database's page size, once known.
    #[must_use]
    pub fn page_size(&self) -> Option<PageSize> {
        self.page_size
    }

    /// Applies one file, which must hold the transaction after the position. It may begin before it: its pages are as of
    /// its end.
    ///
    /// # Errors
    /// [`ApplyError`]; all but the first two poison.
    pub fn apply<R: Read>(&mut self, decoder: Decoder<R>) -> Result<DecodedLtx, ApplyError> {
        if self.is_poisoned {
            return Err(ApplyError::Poisoned);
        }
        let header = *decoder.header();
        if header.min > self.position.next() || header.max <= self.position {
            let (position, min, max) = (self.position, header.min, header.max);
            return Err(ApplyError::NotContiguous { position, min, max });
        }
        if let Some(expected) = self.page_size.filter(|&expected| expected != header.page_size) {
            return Err(ApplyError::PageSize { min: header.min, found: header.page_size, expected });
        }
        self.is_poisoned = true;
        let decoded = self.apply_pages(decoder)?;
        self.is_poisoned = false;
        self.position = header.max;
        self.page_size = Some(header.page_size);
        Ok(decoded)
    }

    /// Ends the work.
    ///
    /// # Errors
    /// [`ApplyError::Poisoned`], [`ApplyError::Io`].
    pub fn finish(self, durability: Durability) -> Result<Applied, ApplyError> {
        if self.is_poisoned {
            return Err(ApplyError::Poisoned);
        }
        if durability == Durability::Synced {
            self.file.sync_all()?;
        }
        let Self { file, position, page_size, file_len, .. } = self;
        let pages = page_size.map_or(0, |page_size| file_len / u64::from(page_size.get()));
        let commit = u32::try_from(pages).unwrap_or(u32::MAX);
        Ok(Applied { file, position, commit, page_size })
    }

    fn apply_pages<R: Read>(&mut self, mut decoder: Decoder<R>) -> Result<DecodedLtx, ApplyError> {
        let header = *decoder.header();
        let failed = |source| ApplyError::Decode { min: header.min, max: header.max, source };
        self.page.resize(header.page_size.bytes(), 0);
        while let Some(pgno) = decoder.next_page(&mut self.page).map_err(failed)? {
            self.write_page(header.page_size.offset_of(pgno))?;
        }
        let decoded = decoder.finish().map_err(failed)?;
        // The size only now: until here it is the header's unverified word. Growing leaves zeros.
        self.file_len = header.page_size.database_len(header.commit);
        self.file.set_len(self.file_len)?;
        Ok(decoded)
    }

    /// Writes the page, or leaves a hole where it is zero and the file does not reach yet.
    fn write_page(&mut self, offset: u64) -> io::Result<()> {
        if offset >= self.file_len && self.page.iter().all(|&byte| byte == 0) {
            return Ok(());
        }
        self.file.write_all_at(&self.page, offset)?;
        self.file_len = self.file_len.max(offset + self.page.len() as u64);
        Ok(())
    }
}
