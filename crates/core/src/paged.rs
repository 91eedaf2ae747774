//! How a large cell is opened before its database is here (design 4.4): whether, how much is read when a page is missed, in
//! which order the rest is filled in, and when the file is whole. A file that is not whole is never used again.

use alloc::collections::BTreeSet;

/// The least that is read for a page that is missed, in bytes of the object: a request costs more than they do.
pub const READ_AHEAD_MIN: u64 = 64 << 10;
/// The most, when pages are missed in order: 20 ms at 50 MB/s, so that what waits for the first page does not wait long.
pub const READ_AHEAD_MAX: u64 = 1 << 20;
/// Pages by which a reader in order may step over what it has or does not need.
const NEAR_PAGES: u32 = 8;

/// Whether a cell is opened paged: its chain has at least so many bytes in the bucket, and nothing of it is here.
#[must_use]
pub const fn opens_paged(chain_bytes: u64, from_bytes: u64, starts_from_local: bool) -> bool {
    !starts_from_local && chain_bytes >= from_bytes
}

/// How much to read ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadAhead {
    /// The page after the last that was read.
    next: u32,
    bytes: u64,
}

impl Default for ReadAhead {
    fn default() -> Self {
        Self { next: 0, bytes: READ_AHEAD_MIN }
    }
}

impl ReadAhead {
    /// A page is missed: how many bytes to read from it on, at most. Doubles while pages are missed in order.
    pub fn missed(&mut self, pgno: u32) -> u64 {
        let is_in_order = self.next > 0 && (self.next..=self.next.saturating_add(NEAR_PAGES)).contains(&pgno);
        self.bytes = if is_in_order { (self.bytes * 2).min(READ_AHEAD_MAX) } else { READ_AHEAD_MIN };
        self.bytes
    }

    /// The pages up to this one have been read.
    pub fn read_to(&mut self, last: u32) {
        self.next = last.saturating_add(1);
    }
}

/// How far the file of a cell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Pages are missing, or are not verified by the sum of their object.
    Sparse,
    /// It is what a restore of everything would have made, and what was written since.
    Whole,
    /// An object is gone or damaged. For good.
    Lost,
}

/// What is left to fill in: objects of the chain, by their place in it. An object counts once it was read to its end and its
/// checksum held, so that a whole file is as verified as a restored one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filling {
    unverified: BTreeSet<usize>,
    is_lost: bool,
}

impl Filling {
    /// For the objects that hold a page of the database; the others are not read.
    #[must_use]
    pub fn new(objects: impl IntoIterator<Item = usize>) -> Self {
        Self { unverified: objects.into_iter().collect(), is_lost: false }
    }

    /// The object to read next: oldest first, since the oldest holds most. None when there is nothing left to do.
    #[must_use]
    pub fn next(&self) -> Option<usize> {
        if self.is_lost { None } else { self.unverified.first().copied() }
    }

    /// An object was read to its end, all its pages are in the file or replaced, and its checksum holds.
    pub fn verified(&mut self, object: usize) {
        self.unverified.remove(&object);
    }

    /// An object is gone or damaged.
    pub fn lost(&mut self) {
        self.is_lost = true;
    }

    /// How far the file is.
    #[must_use]
    pub fn standing(&self) -> Standing {
        match (self.is_lost, self.unverified.is_empty()) {
            (true, _) => Standing::Lost,
            (false, true) => Standing::Whole,
            (false, false) => Standing::Sparse,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_large_chain_that_is_not_here_opens_paged() {
        assert!(opens_paged(64, 64, false) && opens_paged(0, 0, false));
        assert!(!opens_paged(63, 64, false) && !opens_paged(64, 64, true));
    }

    #[test]
    fn read_ahead_doubles_in_order_up_to_its_bound_and_begins_anew_elsewhere() {
        let mut ahead = ReadAhead::default();
        assert_eq!(ahead.missed(1), READ_AHEAD_MIN, "the first page of all is not in order");
        let mut next = 1;
        for bytes in [128, 256, 512, 1_024, 1_024] {
            next += 10;
            ahead.read_to(next - 1);
            assert_eq!(ahead.missed(next), bytes << 10);
        }
        ahead.read_to(200);
        assert_eq!(ahead.missed(209), READ_AHEAD_MAX, "eight pages on are near");
        ahead.read_to(300);
        assert_eq!(ahead.missed(310), READ_AHEAD_MIN);
        ahead.read_to(400);
        assert_eq!(ahead.missed(400), READ_AHEAD_MIN, "backwards");
        ahead.read_to(u32::MAX);
        assert_eq!(ahead.missed(7), READ_AHEAD_MIN);
    }

    #[test]
    fn a_file_is_whole_once_every_object_that_it_needs_is_verified() {
        let mut filling = Filling::new([0, 2, 5]);
        for object in [0, 2, 5] {
            assert_eq!((filling.next(), filling.standing()), (Some(object), Standing::Sparse));
            filling.verified(object);
        }
        assert_eq!((filling.next(), filling.standing()), (None, Standing::Whole));
        assert_eq!(Filling::new([]).standing(), Standing::Whole, "a database of zeros");
    }

    #[test]
    fn what_is_lost_is_never_whole() {
        let mut filling = Filling::new([0]);
        filling.lost();
        assert_eq!((filling.next(), filling.standing()), (None, Standing::Lost));
        filling.verified(0);
        assert_eq!((filling.next(), filling.standing()), (None, Standing::Lost));
    }
}
