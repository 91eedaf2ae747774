//! Which pages a file may hold and in which order; the same rules when writing and when reading.

use crate::header::Header;

/// A page may not stand where it stands. Disposition: a bug of the caller when writing, corrupt when reading.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageOrderError {
    /// Pages count from 1.
    #[error("page number 0 does not exist")]
    Zero,
    /// The lock page is never stored.
    #[error("page {0} is the lock page, which no file may hold")]
    LockPage(u32),
    /// The page lies beyond the database's end.
    #[error("page {pgno} lies beyond the database's {commit} pages")]
    BeyondCommit {
        /// The page.
        pgno: u32,
        /// The database's size in pages.
        commit: u32,
    },
    /// Pages must ascend.
    #[error("page {pgno} follows page {last}; pages must ascend")]
    OutOfOrder {
        /// The page before.
        last: u32,
        /// The page.
        pgno: u32,
    },
    /// A snapshot must hold every page.
    #[error("the snapshot lacks page {missing} of {commit}")]
    SnapshotLacks {
        /// The first page that is missing.
        missing: u32,
        /// The database's size in pages.
        commit: u32,
    },
}

/// Follows the pages of one file.
pub(crate) struct PageOrder {
    is_snapshot: bool,
    commit: u32,
    lock_page: u32,
    last: u32,
    count: u32,
}

impl PageOrder {
    pub(crate) fn new(header: &Header) -> Self {
        Self {
            is_snapshot: header.is_snapshot(),
            commit: header.commit,
            lock_page: header.page_size.lock_page(),
            last: 0,
            count: 0,
        }
    }

    /// Admits the next page. A refusal changes nothing.
    pub(crate) fn admit(&mut self, pgno: u32) -> Result<(), PageOrderError> {
        if pgno == 0 {
            return Err(PageOrderError::Zero);
        }
        if pgno == self.lock_page {
            return Err(PageOrderError::LockPage(pgno));
        }
        if pgno > self.commit {
            return Err(PageOrderError::BeyondCommit { pgno, commit: self.commit });
        }
        if pgno <= self.last {
            return Err(PageOrderError::OutOfOrder { last: self.last, pgno });
        }
        if self.is_snapshot && pgno != self.expected() {
            return Err(PageOrderError::SnapshotLacks { missing: self.expected(), commit: self.commit });
        }
        self.last = pgno;
        self.count += 1;
        Ok(())
    }

    /// Checks that nothing is missing at the end.
    pub(crate) fn close(&self) -> Result<(), PageOrderError> {
        if self.is_snapshot && self.last < self.commit && self.expected() <= self.commit {
            return Err(PageOrderError::SnapshotLacks { missing: self.expected(), commit: self.commit });
        }
        Ok(())
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// The page that follows in a snapshot. `last < commit` whenever this is asked, so it cannot overflow by the
    /// first step; the lock page is far below the second.
    fn expected(&self) -> u32 {
        let next = self.last + 1;
        if next == self.lock_page { next + 1 } else { next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::WalSpan;
    use crate::page_size::PageSize;
    use holdfast_types::{Millis, Txid};

    fn snapshot_of(commit: u32) -> PageOrder {
        PageOrder::new(&Header {
            page_size: PageSize::new(65_536).unwrap(),
            commit,
            min: Txid::new(1),
            max: Txid::new(1),
            timestamp: Millis::ZERO,
            wal: WalSpan::default(),
            node_id: 0,
        })
    }

    #[test]
    fn a_snapshot_steps_over_the_lock_page_and_nothing_else() {
        let lock_page = 16_385;
        for commit in lock_page - 1..=lock_page + 2 {
            let mut order = snapshot_of(commit);
            for pgno in (1..=commit).filter(|&pgno| pgno != lock_page) {
                let missing = PageOrderError::SnapshotLacks { missing: pgno, commit };
                assert_eq!(order.close(), Err(missing));
                if pgno == lock_page - 1 {
                    assert!(order.admit(pgno + 1).is_err(), "the lock page, or beyond the end");
                }
                order.admit(pgno).unwrap();
            }
            assert_eq!(order.close(), Ok(()));
        }
    }

    #[test]
    fn a_database_that_ends_with_the_lock_page_is_whole_without_it() {
        let mut order = snapshot_of(16_385);
        (1..=16_384).for_each(|pgno| order.admit(pgno).unwrap());
        assert_eq!(order.close(), Ok(()));
        assert_eq!(order.count(), 16_384);
    }
}
