//! Reads one LTX file as a stream and checks every byte of it. Trusts no size: memory is two pages whatever the file
//! claims (the page index is checked against a running digest, so nothing is kept per page). Pages that were handed out
//! count only when [`Decoder::finish`] has returned `Ok`.

use crate::bytes::{u32_at, u64_at};
use crate::checksum::Checksum;
use crate::header::{HEADER_LEN, Header, HeaderError};
use crate::index::IndexDigest;
use crate::lz4::{self, FLAG_SIZE, FRAME_PREFIX_LEN, PAGE_HEADER_LEN};
use crate::order::{PageOrder, PageOrderError};
use crate::page_size::PageSize;
use std::io::{self, Read};

/// Why a file is not acceptable. Disposition: corrupt, except [`DecodeError::Io`] (retry) and
/// [`DecodeError::BufferLen`], [`DecodeError::Failed`] (bug).
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The file ends early.
    #[error("the LTX file ends at byte {offset}, inside its {section}")]
    Truncated {
        /// What was being read.
        section: &'static str,
        /// Where that began.
        offset: u64,
    },
    /// The header is not acceptable.
    #[error("the LTX header is not acceptable: {0}")]
    Header(#[from] HeaderError),
    /// A page may not stand where it stands.
    #[error("the LTX file's pages are not in order: {0}")]
    Order(#[from] PageOrderError),
    /// The page is in the encoding of LTX before page sizes.
    #[error(
        "page {pgno} is an LZ4 frame without a size, as early LTX versions wrote it; this is not supported"
    )]
    LegacyPage {
        /// The page.
        pgno: u32,
    },
    /// Unknown page flags.
    #[error("page {pgno} has the unknown flags {flags:#06x}")]
    PageFlags {
        /// The page.
        pgno: u32,
        /// Its flags.
        flags: u16,
    },
    /// A compressed page claims a size that no page needs.
    #[error("page {pgno} claims {len} compressed bytes; 1 to {len_max} are possible")]
    BlockLen {
        /// The page.
        pgno: u32,
        /// The claimed length.
        len: u32,
        /// The most that is possible.
        len_max: usize,
    },
    /// A block does not decompress to a page.
    #[error("page {pgno} does not decompress to one page")]
    Block {
        /// The page.
        pgno: u32,
    },
    /// A page's frame holds another page.
    #[error("the frame of page {expected} holds page {found}")]
    OtherPage {
        /// The page that was wanted.
        expected: u32,
        /// The page that is there.
        found: u32,
    },
    /// A page's frame has another length than the index says.
    #[error("the frame of page {pgno} does not have the {len} bytes that the index says")]
    FrameLen {
        /// The page.
        pgno: u32,
        /// The length in the index.
        len: usize,
    },
    /// The index is not that of the pages.
    #[error("the LTX page index does not match the pages")]
    Index,
    /// A database checksum where none may be.
    #[error("the LTX trailer holds a database checksum, which the header rules out")]
    PostApplyChecksum,
    /// The file checksum does not hold.
    #[error("the LTX file checksum is {found:#018x} but the content has {computed:#018x}")]
    FileChecksum {
        /// What the trailer says.
        found: u64,
        /// What the content has.
        computed: u64,
    },
    /// Bytes after the trailer.
    #[error("bytes follow the end of the LTX file at byte {0}")]
    TrailingBytes(u64),
    /// The caller's buffer is not one page.
    #[error("the page buffer has {len} bytes; the page size is {page_size}")]
    BufferLen {
        /// Its length.
        len: usize,
        /// The page size in bytes.
        page_size: u32,
    },
    /// An earlier call failed.
    #[error("the LTX file was already found unacceptable")]
    Failed,
    /// The reader failed.
    #[error("reading an LTX file failed: {0}")]
    Io(#[from] io::Error),
}

/// A file that was read and verified to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodedLtx {
    /// The header.
    pub header: Header,
    /// Length of the file in bytes.
    pub len: u64,
    /// Number of pages.
    pub pages: u32,
    /// The file checksum, as the trailer stores it.
    pub file_checksum: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Pages,
    PagesEnded,
    Failed,
}

/// Reads one file from a [`Read`]; several small reads per page, so give a buffered one.
pub struct Decoder<R> {
    reader: R,
    header: Header,
    order: PageOrder,
    checksum: Checksum,
    index: IndexDigest,
    block: Vec<u8>,
    offset: u64,
    /// Where the frame of the last page begins.
    frame_at: u64,
    state: State,
}

impl<R: Read> Decoder<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn new(mut reader: R) -> Result<Self, DecodeError> {
        let mut bytes = [0; HEADER_LEN];
        read_exact(&mut reader, &mut bytes, "header", 0)?;
        let header = Header::from_bytes(&bytes)?;
        let mut checksum = Checksum::new();
        checksum.update(&bytes);
        Ok(Self {
            reader,
            header,
            order: PageOrder::new(&header),
            checksum,
            index: IndexDigest::new(),
            block: vec![0; lz4::block_len_max(header.page_size)],
            offset: HEADER_LEN as u64,
            frame_at: 0,
            state: State::Pages,
        })
    }

    /// The file's header. Verified only when [`Decoder::finish`] returns `Ok`.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Where in the file the frame of the last page begins that [`Decoder::next_page`] read.
    #[must_use]
    pub fn frame_at(&self) -> u64 {
        self.frame_at
    }

    /// Reads the next page into `page`, which is one page long. `None` after the last.
    ///
    /// # Errors
    /// [`DecodeError`]; every later call fails too.
    pub fn next_page(&mut self, page: &mut [u8]) -> Result<Option<u32>, DecodeError> {
        let page_size = self.header.page_size;
        if page.len() != page_size.bytes() {
            return Err(DecodeError::BufferLen { len: page.len(), page_size: page_size.get() });
        }
        match self.state {
            State::Failed => Err(DecodeError::Failed),
            State::PagesEnded => Ok(None),
            State::Pages => {
                let next = self.read_page(page);
                match &next {
                    Ok(Some(_)) => {}
                    Ok(None) => self.state = State::PagesEnded,
                    Err(_) => self.state = State::Failed,
                }
                next
            }
        }
    }

    /// Reads what is left, pages included, and verifies the whole file: index, checksum, and that nothing follows.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn finish(mut self) -> Result<DecodedLtx, DecodeError> {
        if self.state != State::PagesEnded {
            let mut page = vec![0; self.header.page_size.bytes()];
            while self.next_page(&mut page)?.is_some() {}
        }
        self.read_index()?;
        let mut trailer = [0; 16];
        self.read("trailer", &mut trailer)?;
        if u64_at(&trailer, 0) != 0 {
            return Err(DecodeError::PostApplyChecksum);
        }
        self.checksum.update(&trailer[..8]);
        let (found, computed) = (u64_at(&trailer, 8), self.checksum.stored());
        if found != computed {
            return Err(DecodeError::FileChecksum { found, computed });
        }
        let mut rest = [0];
        match read_exact(&mut self.reader, &mut rest, "end", self.offset) {
            Err(DecodeError::Truncated { .. }) => {}
            Ok(()) => return Err(DecodeError::TrailingBytes(self.offset)),
            Err(error) => return Err(error),
        }
        let Self { header, order, offset, .. } = self;
        Ok(DecodedLtx { header, len: offset, pages: order.count(), file_checksum: found })
    }

    fn read_page(&mut self, page: &mut [u8]) -> Result<Option<u32>, DecodeError> {
        let frame_at = self.offset;
        let mut head = [0; PAGE_HEADER_LEN];
        self.read("page header", &mut head)?;
        self.checksum.update(&head);
        if head == [0; PAGE_HEADER_LEN] {
            self.order.close()?;
            return Ok(None);
        }
        let pgno = u32_at(&head, 0);
        match u16::from_be_bytes([head[4], head[5]]) {
            FLAG_SIZE => {}
            0 => return Err(DecodeError::LegacyPage { pgno }),
            flags => return Err(DecodeError::PageFlags { pgno, flags }),
        }
        self.order.admit(pgno)?;
        self.read_block(pgno, page)?;
        self.checksum.update(page);
        self.index.push(pgno, frame_at, self.offset - frame_at);
        self.frame_at = frame_at;
        Ok(Some(pgno))
    }

    fn read_block(&mut self, pgno: u32, page: &mut [u8]) -> Result<(), DecodeError> {
        let mut size = [0; 4];
        self.read("page size", &mut size)?;
        self.checksum.update(&size);
        let len = u32::from_be_bytes(size);
        let len_max = self.block.len();
        let Some(block) = (1..=len_max).contains(&(len as usize)).then(|| &mut self.block[..len as usize])
        else {
            return Err(DecodeError::BlockLen { pgno, len, len_max });
        };
        read_exact(&mut self.reader, block, "page", self.offset)?;
        self.offset += u64::from(len);
        if lz4::decompress(block, page) { Ok(()) } else { Err(DecodeError::Block { pgno }) }
    }

    fn read_index(&mut self) -> Result<(), DecodeError> {
        let (len, expected) = std::mem::replace(&mut self.index, IndexDigest::new()).close();
        let mut found = Checksum::new();
        let mut left = len;
        let mut chunk = [0; 4096];
        while left > 0 {
            let part = &mut chunk[..left.min(4096) as usize];
            self.read("page index", part)?;
            self.checksum.update(part);
            found.update(part);
            left -= part.len() as u64;
        }
        let mut size = [0; 8];
        self.read("page index size", &mut size)?;
        self.checksum.update(&size);
        let matches = found.stored() == expected && u64::from_be_bytes(size) == len;
        if matches { Ok(()) } else { Err(DecodeError::Index) }
    }

    fn read(&mut self, section: &'static str, bytes: &mut [u8]) -> Result<(), DecodeError> {
        read_exact(&mut self.reader, bytes, section, self.offset)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }
}

/// Decompresses one page from its frame, as the index of its file has it. Structure and length are checked; the sum of the
/// file cannot be, for a part of it.
///
/// # Errors
/// [`DecodeError`].
pub fn decode_frame(
    page_size: PageSize,
    pgno: u32,
    frame: &[u8],
    page: &mut [u8],
) -> Result<(), DecodeError> {
    if page.len() != page_size.bytes() {
        return Err(DecodeError::BufferLen { len: page.len(), page_size: page_size.get() });
    }
    let wrong_len = DecodeError::FrameLen { pgno, len: frame.len() };
    let Some((prefix, block)) = frame.split_at_checked(FRAME_PREFIX_LEN) else { return Err(wrong_len) };
    let found = u32_at(prefix, 0);
    if found != pgno {
        return Err(DecodeError::OtherPage { expected: pgno, found });
    }
    let flags = u16::from_be_bytes([prefix[4], prefix[5]]);
    if flags != FLAG_SIZE {
        return Err(DecodeError::PageFlags { pgno, flags });
    }
    if u32_at(prefix, 6) as usize != block.len() {
        return Err(wrong_len);
    }
    if lz4::decompress(block, page) { Ok(()) } else { Err(DecodeError::Block { pgno }) }
}

fn read_exact(
    reader: &mut impl Read,
    bytes: &mut [u8],
    section: &'static str,
    offset: u64,
) -> Result<(), DecodeError> {
    reader.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => DecodeError::Truncated { section, offset },
        _ => DecodeError::Io(error),
    })
}
