//! Where each page of a database is in the files of its chain, from the files' indexes alone: what a whole restore would
//! apply last. Memory: [`MAP_BYTES_PER_PAGE`] bytes for each page of the largest size that the database has in the chain,
//! and no more than the caller allows, whatever a file claims. Keeps INV-CHAIN-1 by the same rules as the applier: files
//! follow each other without a gap, pages that a file cuts away are gone, and zero where a later file grows over them.

use crate::header::Header;
use crate::index::{IndexError, IndexReader};
use crate::page_size::PageSize;
use holdfast_types::Txid;
use std::ops::Range;

/// What a map costs for each page.
pub const MAP_BYTES_PER_PAGE: usize = size_of::<u64>();

/// An entry: the file's number plus one (11 bits), the offset of the frame (36 bits), its length (17 bits). Zero: the page
/// is in no file, and zero.
const LEN_BITS: u32 = 17;
const OFFSET_BITS: u32 = 36;
/// Files that a map can name.
const FILES_MAX: usize = (1 << (64 - LEN_BITS - OFFSET_BITS)) - 1;

/// Why there is no map. Disposition: restore the whole database, which has no such bounds and tells damage exactly.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// The database has more pages than a map may have.
    #[error("the database has {pages} pages; a page map may have {pages_max}")]
    TooManyPages {
        /// Its size in pages, at some point of the chain.
        pages: u32,
        /// The bound.
        pages_max: u32,
    },
    /// The chain has more files than a map can name.
    #[error("the chain has more than {FILES_MAX} files")]
    TooManyFiles,
    /// A file is longer than a map can point into.
    #[error("a file of the chain has {0} bytes; a page map reaches 64 GiB into one")]
    TooLong(u64),
    /// A file does not follow the one before.
    #[error("a file from transaction {min} to {max} cannot follow transaction {position}")]
    NotContiguous {
        /// Where the files before end.
        position: Txid,
        /// First transaction of the file.
        min: Txid,
        /// Its last.
        max: Txid,
    },
    /// The page size changes within the chain.
    #[error("the file from transaction {min} has page size {found}, the first has {expected}")]
    PageSize {
        /// First transaction of the file.
        min: Txid,
        /// Its page size.
        found: PageSize,
        /// The first file's.
        expected: PageSize,
    },
    /// An index cannot be used.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// There are no files.
    #[error("the chain has no files")]
    Empty,
}

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagePlace {
    /// Which file, counted from 0 in the order of the chain.
    pub file: usize,
    /// Where its frame begins there.
    pub offset: u64,
    /// The length of the frame in bytes.
    pub len: u32,
}

/// Pages whose frames stand one after the other in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRun {
    /// The first page.
    pub first: u32,
    /// The last.
    pub last: u32,
    /// Which file.
    pub file: usize,
    /// Where the first frame begins.
    pub offset: u64,
    /// The length of all frames, in bytes.
    pub len: u64,
}

/// Where each page of a database is.
#[derive(Debug)]
pub struct PageMap {
    page_size: PageSize,
    /// By page number, less one.
    entries: Vec<u64>,
    files: Vec<Header>,
}

impl PageMap {
    /// The database's page size.
    #[must_use]
    pub fn page_size(&self) -> PageSize {
        self.page_size
    }

    /// The database's size in pages.
    #[must_use]
    pub fn pages(&self) -> u32 {
        u32::try_from(self.entries.len()).expect("a builder takes no more pages than a number can count")
    }

    /// The headers of the files, in the order of the chain.
    #[must_use]
    pub fn files(&self) -> &[Header] {
        &self.files
    }

    /// The memory that the map takes, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.entries.capacity() * MAP_BYTES_PER_PAGE + self.files.capacity() * size_of::<Header>()
    }

    /// Where a page is. None for one that is zero, for the lock page, and beyond the end.
    #[must_use]
    pub fn place(&self, pgno: u32) -> Option<PagePlace> {
        let entry = *self.entries.get(pgno.checked_sub(1)? as usize)?;
        let file = usize::try_from(entry >> (LEN_BITS + OFFSET_BITS)).ok()?.checked_sub(1)?;
        let offset = (entry >> LEN_BITS) & ((1 << OFFSET_BITS) - 1);
        Some(PagePlace { file, offset, len: (entry & ((1 << LEN_BITS) - 1)) as u32 })
    }

    /// The page and those after it that are wanted, as long as their frames follow each other and have no more than
    /// `len_max` bytes together. The page itself in any case. None where the page is in no file.
    #[must_use]
    pub fn run(&self, first: u32, len_max: u64, is_wanted: impl Fn(u32) -> bool) -> Option<PageRun> {
        let PagePlace { file, offset, len } = self.place(first)?;
        let mut run = PageRun { first, last: first, file, offset, len: u64::from(len) };
        while let Some(next) = run.last.checked_add(1).and_then(|next| self.place(next)) {
            let follows = next.file == file && next.offset == offset + run.len;
            let fits = run.len + u64::from(next.len) <= len_max;
            if !follows || !fits || !is_wanted(run.last + 1) {
                break;
            }
            run.last += 1;
            run.len += u64::from(next.len);
        }
        Some(run)
    }

    /// How many pages each file holds that no later one replaces.
    #[must_use]
    pub fn pages_by_file(&self) -> Vec<u32> {
        let mut pages = vec![0; self.files.len()];
        (1..=self.pages()).filter_map(|pgno| self.place(pgno)).for_each(|place| pages[place.file] += 1);
        pages
    }
}

/// Makes a map of a chain, file by file, oldest first.
pub struct PageMapBuilder {
    pages_max: u32,
    entries: Vec<u64>,
    files: Vec<Header>,
    reading: Option<(IndexReader, Header)>,
}

impl PageMapBuilder {
    /// For a database of at most so many pages.
    #[must_use]
    pub fn new(pages_max: u32) -> Self {
        Self { pages_max, entries: Vec::new(), files: Vec::new(), reading: None }
    }

    /// Begins a file, whose index stands at `index`. The first must be a snapshot.
    ///
    /// # Errors
    /// [`MapError`]; the builder is then of no use.
    ///
    /// # Panics
    /// When the file before was not ended.
    pub fn begin(&mut self, header: Header, index: &Range<u64>) -> Result<(), MapError> {
        assert!(self.reading.is_none(), "a file is ended before the next begins");
        let position = self.files.last().map_or(Txid::ZERO, |last| last.max);
        let Header { min, max, commit, page_size, .. } = header;
        if min > position.next() || max <= position {
            return Err(MapError::NotContiguous { position, min, max });
        }
        if let Some(expected) =
            self.files.first().map(|first| first.page_size).filter(|size| *size != page_size)
        {
            return Err(MapError::PageSize { min, found: page_size, expected });
        }
        if commit > self.pages_max {
            return Err(MapError::TooManyPages { pages: commit, pages_max: self.pages_max });
        }
        if self.files.len() >= FILES_MAX {
            return Err(MapError::TooManyFiles);
        }
        if index.end >> OFFSET_BITS != 0 {
            return Err(MapError::TooLong(index.end));
        }
        self.reading = Some((IndexReader::new(&header, index), header));
        Ok(())
    }

    /// Takes the next bytes of the index.
    ///
    /// # Errors
    /// [`MapError::Index`]; the builder is then of no use.
    ///
    /// # Panics
    /// When no file was begun.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), MapError> {
        let (reader, _) = self.reading.as_mut().expect("a file was begun");
        let (entries, file) = (&mut self.entries, self.files.len() as u64 + 1);
        Ok(reader.feed(bytes, |pgno, offset, len| {
            let at = pgno as usize - 1;
            // Grows by what was read, not by what the header claims.
            if at >= entries.len() {
                entries.resize(at + 1, 0);
            }
            entries[at] = (file << (LEN_BITS + OFFSET_BITS)) | (offset << LEN_BITS) | u64::from(len);
        })?)
    }

    /// Ends the file.
    ///
    /// # Errors
    /// [`MapError::Index`]; the builder is then of no use.
    ///
    /// # Panics
    /// When no file was begun.
    pub fn end(&mut self) -> Result<(), MapError> {
        let (reader, header) = self.reading.take().expect("a file was begun");
        reader.finish()?;
        // As the applier cuts and grows the database: what is cut is gone, what grows is zero.
        self.entries.resize(header.commit as usize, 0);
        self.files.push(header);
        Ok(())
    }

    /// The map.
    ///
    /// # Errors
    /// [`MapError::Empty`].
    pub fn finish(self) -> Result<PageMap, MapError> {
        let Self { mut entries, files, .. } = self;
        let page_size = files.first().ok_or(MapError::Empty)?.page_size;
        entries.shrink_to_fit();
        Ok(PageMap { page_size, entries, files })
    }
}
