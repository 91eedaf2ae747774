//! A bundle, `log/<node>/<session>/bundle/<first>.bundle`: frames of one node log, of many cells, in one object. Written once
//! by that session, read by it and by whoever recovers it. This file knows the bytes; what a bundle proves is the core's
//! (`ensemble`). Damage is an error, never fewer rows.
//!
//! All numbers are little-endian, crcs are CRC-32C:
//!
//! ```text
//! head    magic "HFB1" | crc u32 over the rest of head and index | session u128 | first u64 | below u64
//!         | rows u32 | index_len u32
//! index   row: offset u64 | epoch u64 | txid u64 | body_crc u32 | body_len u32 | cell_len u32 | cell
//! bodies  in the order of the rows
//! ```
//!
//! Rows are in the order of their cells, epochs and offsets, so that what a cell needs of a bundle is one range of it;
//! `first <= offset < below`. Frames that have no row were in their cells' prefixes when the bundle was made.

use std::ops::Range;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use crc_fast::{CrcAlgorithm, checksum};
use holdfast_types::{CellName, Epoch, LogOffset, SessionId, Txid};

const MAGIC: &[u8; 4] = b"HFB1";
const HEAD_LEN: usize = 4 + 4 + 16 + 8 + 8 + 4 + 4;
/// Of a row, without its cell's name.
const ROW_LEN: usize = 8 + 8 + 8 + 4 + 4 + 4;
/// A bundle is not longer, in bytes: so much is sent, or read for a recovery, in one piece.
pub const BUNDLE_BYTES_MAX: usize = 8 << 20;

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleRow {
    /// Its place in the log.
    pub offset: LogOffset,
    /// The cell.
    pub cell: CellName,
    /// The cell's epoch.
    pub epoch: Epoch,
    /// The transaction.
    pub txid: Txid,
    /// One LTX file.
    pub body: Bytes,
}

impl BundleRow {
    /// What a row adds to a bundle, in bytes.
    #[must_use]
    pub fn len_of(cell: &CellName, body_len: usize) -> usize {
        ROW_LEN + cell.as_str().len() + body_len
    }
}

/// A bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// Whose log it is of.
    pub session: SessionId,
    /// The first frame that it speaks of.
    pub first: LogOffset,
    /// The frame after the last one that it speaks of.
    pub below: LogOffset,
    /// The frames, in the order of their cells, epochs and offsets.
    pub rows: Vec<BundleRow>,
}

/// An object is not the bundle that its key names. Disposition: corrupt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// It does not begin like one.
    #[error("it is no bundle of this format")]
    Magic,
    /// It is shorter or longer than it says.
    #[error("it is {found} bytes long where {wanted} are needed")]
    Len {
        /// How long it is.
        found: usize,
        /// How long it should be, or should be at least.
        wanted: usize,
    },
    /// Its head or index does not match its crc.
    #[error("its index does not match its crc")]
    Index,
    /// A body does not match its crc.
    #[error("frame {0} does not match its crc")]
    Body(LogOffset),
    /// It contradicts itself although its crc is right.
    #[error("{0}")]
    Malformed(&'static str),
}

/// Bytes of a bundle, and where in them the body of each row is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedBundle {
    /// The object.
    pub bytes: Bytes,
    /// Of each row, in their order.
    pub bodies: Vec<Range<usize>>,
}

/// The crc of a body, as a row has it.
#[must_use]
pub fn body_crc(body: &[u8]) -> u32 {
    u32::try_from(checksum(CrcAlgorithm::Crc32Iscsi, body)).expect("a CRC-32 has 32 bits")
}

impl Bundle {
    /// Bytes of a bundle without a row.
    pub const EMPTY_LEN: usize = HEAD_LEN;

    /// Spells it.
    ///
    /// # Panics
    /// Where rows are out of order or out of bounds, or where the whole is longer than a `u32` says: bugs of the caller.
    #[must_use]
    pub fn encode(&self) -> EncodedBundle {
        let Self { session, first, below, rows } = self;
        let narrow = |len: usize| u32::try_from(len).expect("a bundle is short");
        let mut index = BytesMut::new();
        assert!(rows.is_sorted_by(|left, right| order(left) < order(right)), "rows are in order");
        for row in rows {
            assert!((*first..*below).contains(&row.offset), "rows are in bounds");
            index.put_u64_le(row.offset.get());
            index.put_u64_le(row.epoch.get());
            index.put_u64_le(row.txid.get());
            index.put_u32_le(body_crc(&row.body));
            index.put_u32_le(narrow(row.body.len()));
            index.put_u32_le(narrow(row.cell.as_str().len()));
            index.put_slice(row.cell.as_str().as_bytes());
        }
        let bodies_len: usize = rows.iter().map(|row| row.body.len()).sum();
        let mut bytes = BytesMut::with_capacity(HEAD_LEN + index.len() + bodies_len);
        bytes.put_slice(MAGIC);
        bytes.put_u32_le(0);
        bytes.put_u128_le(session.bits());
        bytes.put_u64_le(first.get());
        bytes.put_u64_le(below.get());
        bytes.put_u32_le(narrow(rows.len()));
        bytes.put_u32_le(narrow(index.len()));
        bytes.put_slice(&index);
        let crc = body_crc(&bytes[8..]);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        let mut bodies = Vec::with_capacity(rows.len());
        for row in rows {
            let start = bytes.len();
            bytes.put_slice(&row.body);
            bodies.push(start..bytes.len());
        }
        EncodedBundle { bytes: bytes.freeze(), bodies }
    }

    /// Reads a whole object. The bodies share its memory.
    ///
    /// # Errors
    /// [`BundleError`] for anything that [`Self::encode`] does not make.
    pub fn decode(object: &Bytes) -> Result<Self, BundleError> {
        let len = object.len();
        let short = |wanted| BundleError::Len { found: len, wanted };
        if len < HEAD_LEN {
            return Err(short(HEAD_LEN));
        }
        let mut head = &object[..HEAD_LEN];
        if &head[..MAGIC.len()] != MAGIC {
            return Err(BundleError::Magic);
        }
        head.advance(MAGIC.len());
        let crc = head.get_u32_le();
        let session = SessionId::from_bits(head.get_u128_le());
        let (first, below) = (LogOffset::new(head.get_u64_le()), LogOffset::new(head.get_u64_le()));
        let (rows_len, index_len) = (head.get_u32_le(), head.get_u32_le());
        let index_len = usize::try_from(index_len).unwrap_or(usize::MAX);
        let bodies_at = HEAD_LEN.saturating_add(index_len);
        if len < bodies_at {
            return Err(short(bodies_at));
        }
        if body_crc(&object[8..bodies_at]) != crc {
            return Err(BundleError::Index);
        }
        let mut bodies = object.slice(bodies_at..);
        let mut index = &object[HEAD_LEN..bodies_at];
        let mut rows = Vec::new();
        for _ in 0..rows_len {
            let (row, crc) = read_row(&mut index, &mut bodies, len)?;
            let is_in_order = rows.last().is_none_or(|before| order(before) < order(&row));
            if !is_in_order || !(first..below).contains(&row.offset) {
                return Err(BundleError::Malformed("a row is out of order or out of bounds"));
            }
            if body_crc(&row.body) != crc {
                return Err(BundleError::Body(row.offset));
            }
            rows.push(row);
        }
        if !index.is_empty() {
            return Err(BundleError::Malformed("its index is longer than its rows"));
        }
        if !bodies.is_empty() {
            return Err(short(len - bodies.len()));
        }
        Ok(Self { session, first, below, rows })
    }
}

/// Where a row stands.
fn order(row: &BundleRow) -> (&CellName, Epoch, LogOffset) {
    (&row.cell, row.epoch, row.offset)
}

fn read_row(
    index: &mut &[u8],
    bodies: &mut Bytes,
    object_len: usize,
) -> Result<(BundleRow, u32), BundleError> {
    if index.len() < ROW_LEN {
        return Err(BundleError::Malformed("its index is shorter than its rows"));
    }
    let offset = LogOffset::new(index.get_u64_le());
    let (epoch, txid) = (Epoch::new(index.get_u64_le()), Txid::new(index.get_u64_le()));
    let crc = index.get_u32_le();
    let body_len = usize::try_from(index.get_u32_le()).unwrap_or(usize::MAX);
    let cell_len = usize::try_from(index.get_u32_le()).unwrap_or(usize::MAX);
    let cell = index.split_off(..cell_len).and_then(|cell| std::str::from_utf8(cell).ok());
    let cell = cell.and_then(|cell| CellName::parse(cell).ok());
    let cell = cell.ok_or(BundleError::Malformed("a row names no cell"))?;
    if bodies.len() < body_len {
        let wanted = object_len.saturating_add(body_len - bodies.len());
        return Err(BundleError::Len { found: object_len, wanted });
    }
    Ok((BundleRow { offset, cell, epoch, txid, body: bodies.split_to(body_len) }, crc))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GOLDEN: &[u8] = include_bytes!("../golden/bundle-1.bin");

    fn row(offset: u64, cell: &str, body: &'static [u8]) -> BundleRow {
        BundleRow {
            offset: LogOffset::new(offset),
            cell: CellName::parse(cell).expect("a good name"),
            epoch: Epoch::new(3),
            txid: Txid::new(offset + 7),
            body: Bytes::from_static(body),
        }
    }

    fn bundle() -> Bundle {
        Bundle {
            session: SessionId::from_bits(0xffee_ddcc_bbaa_9988_7766_5544_3322_1100),
            first: LogOffset::new(41),
            below: LogOffset::new(45),
            rows: vec![row(41, "db:a", b"ltx one"), row(44, "db:a", b"ltx two!"), row(42, "db:ü/b", b"")],
        }
    }

    #[test]
    fn the_golden_bundle_decodes_and_encodes_to_itself() {
        assert_eq!(Bundle::decode(&Bytes::from_static(GOLDEN)), Ok(bundle()));
        assert_eq!(bundle().encode().bytes, GOLDEN);
    }

    #[test]
    fn bodies_are_where_their_ranges_say() {
        let encoded = bundle().encode();
        for (row, range) in bundle().rows.iter().zip(encoded.bodies) {
            assert_eq!(encoded.bytes.slice(range), row.body);
        }
        let rows: usize = bundle().rows.iter().map(|row| BundleRow::len_of(&row.cell, row.body.len())).sum();
        assert_eq!(encoded.bytes.len(), Bundle::EMPTY_LEN + rows);
    }

    #[test]
    fn what_is_cut_or_longer_is_no_bundle() {
        for len in 0..GOLDEN.len() {
            assert!(Bundle::decode(&Bytes::copy_from_slice(&GOLDEN[..len])).is_err(), "{len} bytes");
        }
        let mut longer = GOLDEN.to_vec();
        longer.push(0);
        let error = Bundle::decode(&longer.into()).expect_err("bytes beyond the end are damage");
        assert_eq!(error, BundleError::Len { found: GOLDEN.len() + 1, wanted: GOLDEN.len() });
    }

    fn any_bundle() -> impl Strategy<Value = Bundle> {
        let rows = prop::collection::vec(
            (1_u64..4, "[a-z]{1,12}", 0_u64..9, 0_u64..9, prop::collection::vec(any::<u8>(), 0..40)),
            0..12,
        );
        (any::<u128>(), 0_u64..1_000, rows, 1_u64..5).prop_map(|(session, first, rows, more)| {
            let mut at = first;
            let mut rows: Vec<BundleRow> = rows
                .into_iter()
                .map(|(step, name, epoch, txid, body)| {
                    at += step;
                    BundleRow {
                        offset: LogOffset::new(at),
                        cell: CellName::new("db", &name).expect("a good name"),
                        epoch: Epoch::new(epoch),
                        txid: Txid::new(txid),
                        body: body.into(),
                    }
                })
                .collect();
            rows.sort_by(|left, right| order(left).cmp(&order(right)));
            let (first, below) = (LogOffset::new(first), LogOffset::new(at + more));
            Bundle { session: SessionId::from_bits(session), first, below, rows }
        })
    }

    proptest! {
        #[test]
        fn every_bundle_reads_back(bundle in any_bundle()) {
            prop_assert_eq!(Bundle::decode(&bundle.encode().bytes), Ok(bundle));
        }

        #[test]
        fn a_changed_byte_is_damage(
            bundle in any_bundle(), at in any::<prop::sample::Index>(), change in 1_u8..=255,
        ) {
            let mut bytes = bundle.encode().bytes.to_vec();
            let at = at.index(bytes.len());
            bytes[at] ^= change;
            prop_assert!(Bundle::decode(&bytes.into()).is_err());
        }

        #[test]
        fn arbitrary_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(Bundle::decode(&bytes.clone().into()).is_err());
            let mut like_one = MAGIC.to_vec();
            like_one.extend(bytes);
            prop_assert!(Bundle::decode(&like_one.into()).is_err());
        }
    }
}
