//! CRC-64/GO-ISO as LTX files use it: a running digest, with bit 63 set in what is stored so that it is never zero.

use crc_fast::{CrcAlgorithm, Digest};

/// Set in every stored checksum.
const CHECKSUM_FLAG: u64 = 1 << 63;

/// A running checksum.
pub(crate) struct Checksum(Digest);

impl Checksum {
    pub(crate) fn new() -> Self {
        Self(Digest::new(CrcAlgorithm::Crc64GoIso))
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum as a file stores it.
    pub(crate) fn stored(&self) -> u64 {
        self.0.finalize() | CHECKSUM_FLAG
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_is_that_of_the_algorithm() {
        let mut checksum = Checksum::new();
        checksum.update(b"12345");
        checksum.update(b"6789");
        // The catalogue's check value of CRC-64/GO-ISO.
        assert_eq!(checksum.stored(), 0xb909_56c7_75a4_1001 | CHECKSUM_FLAG);
    }
}
