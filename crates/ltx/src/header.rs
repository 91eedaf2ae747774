//! The 100-byte header of a file, and the sizes of what surrounds its pages.

use crate::bytes::{u32_at, u64_at};
use crate::page_size::{PageSize, PageSizeError};
use holdfast_types::{Millis, Txid};

/// Bytes of a header.
pub const HEADER_LEN: usize = 100;
/// Bytes of a trailer.
pub const TRAILER_LEN: usize = 16;

const MAGIC: &[u8; 4] = b"LTX1";
/// No rolling checksum of the database: what Litestream 0.5 always sets.
const FLAG_NO_CHECKSUM: u32 = 1 << 1;
/// The largest page number of SQLite (`SQLITE_MAX_PAGE_COUNT`).
const PAGES_MAX: u32 = u32::MAX - 1;
const RESERVED_AT: usize = 80;

/// The part of a WAL that a file was captured from; all zero in snapshots of a plain database and in compactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalSpan {
    /// Offset of the first frame in the WAL, in bytes.
    pub offset: u64,
    /// Length of the frames, in bytes, their headers included.
    pub len: u64,
    /// First salt of the WAL.
    pub salt1: u32,
    /// Second salt of the WAL.
    pub salt2: u32,
}

/// What a file says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Page size of the database.
    pub page_size: PageSize,
    /// Size of the database after this file, in pages; at least 1.
    pub commit: u32,
    /// First transaction; 1 makes the file a snapshot.
    pub min: Txid,
    /// Last transaction.
    pub max: Txid,
    /// When the last transaction was captured.
    pub timestamp: Millis,
    /// Where it was captured from.
    pub wal: WalSpan,
    /// The node that wrote it, or 0; Litestream leaves 0.
    pub node_id: u64,
}

/// A header is not acceptable. Disposition: corrupt when it was read, a bug of the caller when writing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Not an LTX file.
    #[error("the file starts with {0:02x?}, not with `LTX1`")]
    Magic([u8; 4]),
    /// Another variant of the format.
    #[error(
        "header flags are {0:#010x}; only 0x00000002 is supported (a file without a rolling database checksum)"
    )]
    Flags(u32),
    /// Not a page size of SQLite.
    #[error(transparent)]
    PageSize(#[from] PageSizeError),
    /// A database has at least one page.
    #[error("the database has no pages after this file")]
    NoPages,
    /// Transaction numbers count from 1 and do not descend.
    #[error("transactions {min} to {max} are not a range from 1 on")]
    Range {
        /// First transaction.
        min: Txid,
        /// Last transaction.
        max: Txid,
    },
    /// A field holds what the format does not allow.
    #[error("header field `{0}` holds what the format does not allow")]
    Field(&'static str),
}

impl Header {
    /// Whether the file holds the whole database: it starts with transaction 1.
    #[must_use]
    pub fn is_snapshot(&self) -> bool {
        self.min == Txid::new(1)
    }

    /// Checks what the format demands, so that no file is written that its readers would refuse.
    ///
    /// # Errors
    /// [`HeaderError`] names the field.
    pub fn validate(&self) -> Result<(), HeaderError> {
        if self.commit == 0 {
            return Err(HeaderError::NoPages);
        }
        if self.commit > PAGES_MAX {
            return Err(HeaderError::Field("commit"));
        }
        // The last number of all would have no successor.
        let last = Txid::new(u64::MAX);
        if self.min == Txid::ZERO || self.min > self.max || self.max == last {
            return Err(HeaderError::Range { min: self.min, max: self.max });
        }
        // The other implementation holds these as signed numbers.
        let signed = [
            ("timestamp", self.timestamp.get()),
            ("wal offset", self.wal.offset),
            ("wal size", self.wal.len),
        ];
        if let Some((field, _)) = signed.into_iter().find(|(_, number)| i64::try_from(*number).is_err()) {
            return Err(HeaderError::Field(field));
        }
        let has_wal = self.wal.len != 0 || self.wal.salt1 != 0 || self.wal.salt2 != 0;
        if has_wal && self.wal.offset == 0 {
            return Err(HeaderError::Field("wal offset"));
        }
        Ok(())
    }

    /// The header's bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HEADER_LEN] {
        let Self { page_size, commit, min, max, timestamp, wal, node_id } = *self;
        let WalSpan { offset, len, salt1, salt2 } = wal;
        let mut bytes = [0; HEADER_LEN];
        bytes[0..4].copy_from_slice(MAGIC);
        bytes[4..8].copy_from_slice(&FLAG_NO_CHECKSUM.to_be_bytes());
        bytes[8..12].copy_from_slice(&page_size.get().to_be_bytes());
        bytes[12..16].copy_from_slice(&commit.to_be_bytes());
        bytes[16..24].copy_from_slice(&min.get().to_be_bytes());
        bytes[24..32].copy_from_slice(&max.get().to_be_bytes());
        bytes[32..40].copy_from_slice(&timestamp.get().to_be_bytes());
        // 40..48: the pre-apply checksum, which is zero without a rolling checksum.
        bytes[48..56].copy_from_slice(&offset.to_be_bytes());
        bytes[56..64].copy_from_slice(&len.to_be_bytes());
        bytes[64..68].copy_from_slice(&salt1.to_be_bytes());
        bytes[68..72].copy_from_slice(&salt2.to_be_bytes());
        bytes[72..80].copy_from_slice(&node_id.to_be_bytes());
        bytes
    }

    /// Reads a header's bytes.
    ///
    /// # Errors
    /// [`HeaderError`] names what is wrong.
    pub fn from_bytes(bytes: &[u8; HEADER_LEN]) -> Result<Self, HeaderError> {
        if &bytes[0..4] != MAGIC {
            return Err(HeaderError::Magic([bytes[0], bytes[1], bytes[2], bytes[3]]));
        }
        let flags = u32_at(bytes, 4);
        if flags != FLAG_NO_CHECKSUM {
            return Err(HeaderError::Flags(flags));
        }
        if u64_at(bytes, 40) != 0 {
            return Err(HeaderError::Field("pre-apply checksum"));
        }
        if bytes[RESERVED_AT..].iter().any(|&byte| byte != 0) {
            return Err(HeaderError::Field("reserved"));
        }
        let header = Self {
            page_size: PageSize::new(u32_at(bytes, 8))?,
            commit: u32_at(bytes, 12),
            min: Txid::new(u64_at(bytes, 16)),
            max: Txid::new(u64_at(bytes, 24)),
            timestamp: Millis::new(u64_at(bytes, 32)),
            wal: WalSpan {
                offset: u64_at(bytes, 48),
                len: u64_at(bytes, 56),
                salt1: u32_at(bytes, 64),
                salt2: u32_at(bytes, 68),
            },
            node_id: u64_at(bytes, 72),
        };
        header.validate()?;
        Ok(header)
    }
}
