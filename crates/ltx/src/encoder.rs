//! Writes one LTX file, page by page. Refuses whatever its readers would refuse. Memory: one page, its block, and the
//! encoded index (6 to 10 bytes per page as a rule, 20 at most).

use crate::checksum::Checksum;
use crate::header::{Header, HeaderError};
use crate::index::IndexWriter;
use crate::lz4::{FRAME_PREFIX_LEN, FrameWriter, PAGE_HEADER_LEN};
use crate::order::{PageOrder, PageOrderError};
use std::io::{self, Write};

/// Why a file cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// The header is not acceptable. Disposition: bug.
    #[error("cannot write an LTX file: {0}")]
    Header(#[from] HeaderError),
    /// The page may not follow. Disposition: bug.
    #[error("cannot write an LTX page: {0}")]
    Order(#[from] PageOrderError),
    /// The page has another length than the header says. Disposition: bug.
    #[error("page {pgno} has {len} bytes; the page size is {page_size}")]
    PageLen {
        /// The page.
        pgno: u32,
        /// Its length.
        len: usize,
        /// The page size in bytes.
        page_size: u32,
    },
    /// An earlier write failed, so the file is torn. Disposition: bug; start a new file.
    #[error("the LTX file is torn by an earlier failed write; start a new one")]
    Torn,
    /// The writer failed. Disposition: retry with a new file.
    #[error("writing an LTX file failed: {0}")]
    Io(#[from] io::Error),
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodedLtx {
    /// The header.
    pub header: Header,
    /// Length of the file in bytes.
    pub len: u64,
    /// Number of pages.
    pub pages: u32,
    /// The file checksum, as the trailer stores it.
    pub file_checksum: u64,
}

/// Writes one file to a [`Write`]; one call of it per page, so give a buffered one.
pub struct Encoder<W> {
    writer: W,
    header: Header,
    order: PageOrder,
    checksum: Checksum,
    index: IndexWriter,
    frames: FrameWriter,
    len: u64,
    is_torn: bool,
}

impl<W: Write> Encoder<W> {
    /// Starts a file by writing its header.
    ///
    /// # Errors
    /// [`EncodeError::Header`], [`EncodeError::Io`].
    pub fn new(writer: W, header: Header) -> Result<Self, EncodeError> {
        header.validate()?;
        let mut encoder = Self {
            writer,
            header,
            order: PageOrder::new(&header),
            checksum: Checksum::new(),
            index: IndexWriter::default(),
            frames: FrameWriter::new(header.page_size),
            len: 0,
            is_torn: false,
        };
        encoder.write_checked(&header.to_bytes())?;
        Ok(encoder)
    }

    /// The file's header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Adds a page. Pages ascend, lie within `commit`, and leave out the lock page; a snapshot leaves out no other.
    ///
    /// # Errors
    /// [`EncodeError`]; a refused page leaves the file as it was.
    pub fn page(&mut self, pgno: u32, page: &[u8]) -> Result<(), EncodeError> {
        if self.is_torn {
            return Err(EncodeError::Torn);
        }
        let page_size = self.header.page_size;
        if page.len() != page_size.bytes() {
            return Err(EncodeError::PageLen { pgno, len: page.len(), page_size: page_size.get() });
        }
        self.order.admit(pgno)?;
        let frame = self.frames.frame(pgno, page);
        self.checksum.update(&frame[..FRAME_PREFIX_LEN]);
        self.checksum.update(page);
        if let Err(error) = self.writer.write_all(frame) {
            self.is_torn = true;
            return Err(error.into());
        }
        self.index.push(pgno, self.len, frame.len() as u64);
        self.len += frame.len() as u64;
        Ok(())
    }

    /// Ends the file with index and trailer, flushes the writer and gives it back.
    ///
    /// # Errors
    /// [`EncodeError::Order`] when a snapshot lacks pages; [`EncodeError::Torn`]; [`EncodeError::Io`].
    pub fn finish(mut self) -> Result<(W, EncodedLtx), EncodeError> {
        if self.is_torn {
            return Err(EncodeError::Torn);
        }
        self.order.close()?;
        let index = std::mem::take(&mut self.index).into_section();
        self.write_checked(&[0; PAGE_HEADER_LEN])?;
        self.write_checked(&index)?;
        // The post-apply checksum: zero without a rolling checksum.
        self.write_checked(&[0; 8])?;
        let file_checksum = self.checksum.stored();
        self.write_checked(&file_checksum.to_be_bytes())?;
        self.writer.flush()?;
        let Self { writer, header, order, len, .. } = self;
        Ok((writer, EncodedLtx { header, len, pages: order.count(), file_checksum }))
    }

    fn write_checked(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.checksum.update(bytes);
        self.len += bytes.len() as u64;
        self.writer.write_all(bytes).map_err(|error| {
            self.is_torn = true;
            error.into()
        })
    }
}
