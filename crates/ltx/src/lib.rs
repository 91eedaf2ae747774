//! LTX files, SQLite WAL frames, compaction, snapshots, and the choice of files for a restore. Synchronous code over
//! `std::io`: no clock, no network, no async. It must never accept a file whose checksum does not hold, and never
//! allocate what a file merely claims. Keeps INV-CHAIN-1.
//!
//! # The format
//! LTX version 3, as Litestream 0.5 writes it. Integers are big-endian.
//!
//! | section | bytes | content |
//! |---|---|---|
//! | header | 100 | `LTX1`; flags `u32` (always `2`: no rolling database checksum); page size `u32`; commit `u32` (database size in pages); min txid, max txid, timestamp in ms, pre-apply checksum (0): `u64` each; WAL offset and size `u64`, WAL salts `u32` (zero in compactions); node id `u64`; 20 zero bytes |
//! | page frame, per page, ascending | 10 + n | page number `u32`; flags `u16` (`1`: a size follows); n `u32`; n bytes of one LZ4 block that decompresses to one page |
//! | end of pages | 6 | a zero page header, without size |
//! | page index | varies | per page three unsigned LEB128 varints: number, offset of its frame in the file, length of its frame; then one zero byte; then the length of all that as `u64` |
//! | trailer | 16 | post-apply checksum (0), file checksum |
//!
//! The file checksum is CRC-64/GO-ISO with bit 63 set, over header, page frames with the page *decompressed*, end of
//! pages, index, and post-apply checksum. A changed byte inside an LZ4 block that still decompresses to the same page
//! is therefore not noticed, and does no harm.
//!
//! A file from txid 1 is a *snapshot*: it holds every page from 1 to commit. The *lock page*, the one that holds byte
//! 2^30 of the database, is in no file: SQLite never uses it.
//!
//! # Litestream
//! Checked both ways against Litestream 0.5.17 (`tests/litestream.rs`, `golden/`): its `restore` makes of our files the
//! writer's database byte for byte, at every page size, and we do of its files. It keeps
//! `<replica>/ltx/<level>/<min16hex>-<max16hex>.ltx`: level 0 is one file per sync, levels 1 to 8 are compactions, 9 is
//! snapshots. An epoch's prefix in the bucket has the levels directly below, so copy or link it as `ltx` into an empty
//! folder and restore from that; an epoch with a base needs the files of its bases there too. Its compactions carry the
//! timestamp of their last input and no WAL position, as ours do. Our compressed bytes may differ from its own, and the file
//! checksum with them where lengths differ.
//!
//! Not supported, refused by name: files with a rolling database checksum (LiteFS), and files of early 0.5 releases whose
//! pages are LZ4 *frames* without a size.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod apply;
mod bytes;
mod checksum;
mod compact;
mod decoder;
mod encoder;
mod header;
mod index;
mod lz4;
mod order;
mod page_map;
mod page_size;
mod plan;
mod read_at;
mod snapshot;
mod transaction;
mod wal;

pub use apply::{Applied, Applier, ApplyError, Durability};
pub use compact::{CompactError, compact, merge};
pub use decoder::{DecodeError, DecodedLtx, Decoder, decode_frame};
pub use encoder::{EncodeError, EncodedLtx, Encoder};
pub use header::{HEADER_LEN, Header, HeaderError, TRAILER_LEN, WalSpan};
pub use index::{INDEX_TAIL_LEN, IndexError, index_range};
pub use order::PageOrderError;
pub use page_map::{MAP_BYTES_PER_PAGE, MapError, PageMap, PageMapBuilder, PagePlace, PageRun};
pub use page_size::{PageSize, PageSizeError};
pub use plan::{Plan, PlanError, PlannedFile, REQUEST_COST_BYTES, plan_epoch};
pub use read_at::{Ahead, ReadAt};
pub use snapshot::{SnapshotError, SnapshotSpec, encode_snapshot, encode_snapshot_with_wal};
pub use transaction::{FrameSet, TransactionError, collect_transaction, encode_transaction};
pub use wal::{Check, Frame, Frames, WAL_FRAME_HEADER_LEN, WAL_HEADER_LEN, WalError, WalHeader, WalReader};
