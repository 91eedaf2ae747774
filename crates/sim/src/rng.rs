//! The simulation's only source of chance: SplitMix64, so that a seed means the same run on every machine for ever.

/// A stream of numbers that a seed decides.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The stream of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The next 128 bits.
    pub fn wide_bits(&mut self) -> u128 {
        u128::from(self.bits()) << 64 | u128::from(self.bits())
    }

    /// One byte.
    pub fn byte(&mut self) -> u8 {
        self.bits().to_le_bytes()[0]
    }

    /// A number below `end`, which must not be 0.
    pub fn below(&mut self, end: u64) -> u64 {
        assert!(end > 0, "a range has at least one number");
        self.bits() % end
    }

    /// An index into something of this length.
    pub fn index(&mut self, len: usize) -> usize {
        let len = u64::try_from(len).expect("a length fits 64 bits");
        usize::try_from(self.below(len)).expect("below a length")
    }

    /// A number from `low` to `high`, both included.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True in `per_mille` of 1,000 cases.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1_000) < per_mille
    }
}
