//! A database's page size, and what follows from it: offsets, the lock page, the bound of a compressed page.

use core::fmt;

/// SQLite locks bytes from here on and leaves the page that holds the first of them unused.
const PENDING_BYTE: u32 = 0x4000_0000;

/// A page size: a power of two from 512 to 65,536 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageSize(u32);

/// A number is not a page size. Disposition: corrupt when it was read, reject when it was given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("page size {0} is not a power of two from 512 to 65536")]
pub struct PageSizeError(pub u32);

impl PageSize {
    /// Checks a number.
    ///
    /// # Errors
    /// [`PageSizeError`] unless it is a power of two from 512 to 65,536.
    pub const fn new(bytes: u32) -> Result<Self, PageSizeError> {
        if bytes.is_power_of_two() && bytes >= 512 && bytes <= 65_536 {
            Ok(Self(bytes))
        } else {
            Err(PageSizeError(bytes))
        }
    }

    /// The size in bytes.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The size in bytes, for lengths of buffers.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.0 as usize
    }

    /// The number of the page that SQLite leaves unused for its locks.
    #[must_use]
    pub const fn lock_page(self) -> u32 {
        PENDING_BYTE / self.0 + 1
    }

    /// Where a page begins in a database file. Pages count from 1.
    ///
    /// # Panics
    /// For page 0, which does not exist.
    #[must_use]
    pub const fn offset_of(self, pgno: u32) -> u64 {
        assert!(pgno > 0, "pages count from 1");
        (pgno as u64 - 1) * self.0 as u64
    }

    /// The length of a database of so many pages.
    #[must_use]
    pub const fn database_len(self, pages: u32) -> u64 {
        pages as u64 * self.0 as u64
    }
}

impl fmt::Display for PageSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for PageSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_eight_sizes_of_sqlite_are_page_sizes() {
        let valid: Vec<u32> = (0..=131_072).filter(|&bytes| PageSize::new(bytes).is_ok()).collect();
        assert_eq!(valid, [512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536]);
    }

    #[test]
    fn the_lock_page_holds_byte_two_to_the_thirty() {
        for (bytes, pgno) in [(512, 2_097_153), (4096, 262_145), (65_536, 16_385)] {
            let page_size = PageSize::new(bytes).unwrap();
            assert_eq!(page_size.lock_page(), pgno);
            assert_eq!(page_size.offset_of(pgno), 1 << 30);
        }
    }
}
