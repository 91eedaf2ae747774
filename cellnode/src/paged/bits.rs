//! One bit for each page.

/// Bits of pages, which count from 1.
#[derive(Debug, Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn new(pages: u32) -> Self {
        Self(vec![0; pages as usize / 64 + 1])
    }

    pub(super) fn get(&self, pgno: u32) -> bool {
        self.0.get(pgno as usize / 64).is_some_and(|word| word & (1 << (pgno % 64)) != 0)
    }

    /// A no-op beyond the end.
    pub(super) fn set(&mut self, pgno: u32) {
        if let Some(word) = self.0.get_mut(pgno as usize / 64) {
            *word |= 1 << (pgno % 64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_is_of_its_page_alone() {
        let mut bits = Bits::new(128);
        for pgno in [1, 63, 64, 128] {
            bits.set(pgno);
        }
        bits.set(500);
        let set: Vec<_> = (0..600).filter(|pgno| bits.get(*pgno)).collect();
        assert_eq!(set, [1, 63, 64, 128]);
    }
}
