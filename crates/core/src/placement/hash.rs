//! Rendezvous hashing in integers. A cell draws a number for every node; as exponential waiting times with rates in
//! proportion to the weights, the shortest wait wins, and each node wins in proportion to its weight (Schindelhauer and
//! Schomaker 2005, "Weighted distributed hash tables").

use holdfast_types::{CellName, NodeName};

/// Bits after the binary point of a logarithm.
const FRACTION_BITS: u32 = 32;

/// The draw of a cell for a node: uniform over all 64-bit numbers, a function of the two names.
fn draw(cell: &CellName, node: &NodeName) -> u64 {
    // FNV-1a over both names with a byte between them that neither may hold, then the finalizer of SplitMix64, without
    // which FNV's high bits hardly depend on the last bytes.
    let bytes = cell.as_str().bytes().chain([0]).chain(node.as_str().bytes());
    let fnv = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    mix(fnv)
}

/// The finalizer of SplitMix64: every bit of the input moves every bit of the output.
pub(crate) const fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// `-log2(draw / 2^64)` in fixed point: between 0 and 64.
fn negative_log2(draw: u64) -> u64 {
    let draw = if draw == 0 { 1 } else { draw };
    let zeros = draw.leading_zeros();
    // The mantissa, in [1, 2) with 63 bits after the point; each squaring yields one more bit of its logarithm.
    let mut mantissa = draw << zeros;
    let mut fraction: u64 = 0;
    for _ in 0..FRACTION_BITS {
        let square = (u128::from(mantissa) * u128::from(mantissa)) >> 63;
        fraction <<= 1;
        if square >> 64 == 0 {
            mantissa = u64::try_from(square).expect("below 2^64");
        } else {
            fraction |= 1;
            mantissa = u64::try_from(square >> 1).expect("below 2^65, halved");
        }
    }
    (u64::from(zeros + 1) << FRACTION_BITS) - fraction
}

/// How long a cell waits for a node, before it is divided by the node's weight: the shortest wait wins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    length: u64,
    weight: u32,
}

impl Wait {
    pub(super) fn new(cell: &CellName, node: &NodeName, weight: u32) -> Self {
        Self { length: negative_log2(draw(cell, node)), weight: weight.max(1) }
    }

    /// Whether this wait is shorter; exact, by cross-multiplication.
    pub(super) fn is_shorter_than(self, other: Self) -> bool {
        u128::from(self.length) * u128::from(other.weight)
            < u128::from(other.length) * u128::from(self.weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_right_to_its_last_bits() {
        let exact = |draw: u64| 64.0 - (draw as f64).log2();
        for draw in [1, 2, 3, 1 << 32, (1 << 63) + 1, 0x0123_4567_89ab_cdef, u64::MAX - 1, u64::MAX] {
            let ours = negative_log2(draw) as f64 / f64::from(2.0_f32.powi(32));
            assert!((ours - exact(draw)).abs() < 1e-8, "{draw}: {ours} {}", exact(draw));
        }
        assert_eq!(negative_log2(0), negative_log2(1));
        assert_eq!(negative_log2(1 << 63), 1 << FRACTION_BITS);
    }
}
