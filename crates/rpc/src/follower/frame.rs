//! A frame of a node log: one captured LTX transaction, and the crc that it keeps on the wire and on every disk.

use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest};
use holdfast_types::{CellName, Epoch, LogOffset, SessionId, Txid};

/// A frame. Cheap to clone, but for the cell's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFrame {
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
    /// CRC-32C over everything, the session too: see `follower.proto`.
    pub crc: u32,
}

impl LogFrame {
    /// A frame of `session`'s log, with its crc.
    #[must_use]
    pub fn new(
        session: SessionId,
        offset: LogOffset,
        cell: CellName,
        epoch: Epoch,
        txid: Txid,
        body: Bytes,
    ) -> Self {
        let mut frame = Self { offset, cell, epoch, txid, body, crc: 0 };
        frame.crc = frame.checksum(session);
        frame
    }

    /// Whether it is what `session` made.
    #[must_use]
    pub fn is_intact(&self, session: SessionId) -> bool {
        self.crc == self.checksum(session)
    }

    fn checksum(&self, session: SessionId) -> u32 {
        let Self { offset, cell, epoch, txid, body, crc: _ } = self;
        let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
        let mut head = [0; 40];
        head[..16].copy_from_slice(&session.bits().to_be_bytes());
        head[16..24].copy_from_slice(&offset.get().to_be_bytes());
        head[24..32].copy_from_slice(&epoch.get().to_be_bytes());
        head[32..].copy_from_slice(&txid.get().to_be_bytes());
        digest.update(&head);
        digest.update(cell.as_str().as_bytes());
        digest.update(body);
        u32::try_from(digest.finalize()).expect("a CRC-32 has 32 bits")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> LogFrame {
        let cell = CellName::parse("db:a").unwrap();
        let body = Bytes::from_static(b"ltx");
        LogFrame::new(SessionId::from_bits(7), LogOffset::new(1), cell, Epoch::new(2), Txid::new(3), body)
    }

    #[test]
    fn the_crc_is_the_documented_one() {
        let mut bytes = 7_u128.to_be_bytes().to_vec();
        bytes.extend([1_u64, 2, 3].map(u64::to_be_bytes).concat());
        bytes.extend(b"db:altx");
        // Bit by bit, as the definition has it: reflected, polynomial 0x1EDC6F41.
        let mut crc = u32::MAX;
        for byte in bytes {
            crc ^= u32::from(byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
            }
        }
        assert_eq!(frame().crc, !crc);
    }

    #[test]
    fn a_frame_of_another_session_or_place_is_not_intact() {
        let frame = frame();
        assert!(frame.is_intact(SessionId::from_bits(7)));
        assert!(!frame.is_intact(SessionId::from_bits(8)));
        for other in [
            LogFrame { offset: LogOffset::new(2), ..frame.clone() },
            LogFrame { epoch: Epoch::new(3), ..frame.clone() },
            LogFrame { txid: Txid::new(2), ..frame.clone() },
            LogFrame { cell: CellName::parse("db:b").unwrap(), ..frame.clone() },
            LogFrame { body: Bytes::from_static(b"ltX"), ..frame },
        ] {
            assert!(!other.is_intact(SessionId::from_bits(7)), "{other:?}");
        }
    }
}
