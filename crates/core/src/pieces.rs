//! How transactions are cut into level-0 objects. An object holds an aligned block of transactions: 2^k of them, beginning
//! right after a multiple of 2^k, at most [`PIECE_TXIDS_MAX`]. Blocks nest or lie apart, so whoever cut, and wherever it
//! began, only [`PIECES_HOLDING`] keys can hold a given transaction, all known in advance: whether a chain goes on is a
//! few direct reads and never a matter of a listing that may be old (design 4.3).

use alloc::vec::Vec;

use holdfast_types::Txid;

/// Most transactions in one object of level 0.
pub const PIECE_TXIDS_MAX: u64 = 1_024;
/// Blocks that can hold one given transaction: of 1, 2, 4 … 1,024.
pub const PIECES_HOLDING: usize = 11;

/// A block: first and last transaction.
pub type Piece = (Txid, Txid);

/// The longest block that begins right after `covered` and ends at `last` or before; none where nothing is left.
#[must_use]
pub fn next_piece(covered: Txid, last: Txid) -> Option<Piece> {
    let left = last.get().checked_sub(covered.get()).filter(|left| *left > 0)?;
    let alignment = if covered == Txid::ZERO { PIECE_TXIDS_MAX } else { 1 << covered.get().trailing_zeros() };
    let len = (1 << left.ilog2()).min(alignment).min(PIECE_TXIDS_MAX);
    Some((covered.next(), Txid::new(covered.get() + len)))
}

/// Cuts a range, both ends included, into as few blocks as can be, in order.
///
/// # Panics
/// At transaction 0, which is none.
#[must_use]
pub fn pieces(first: Txid, last: Txid) -> Vec<Piece> {
    let covered = first.previous().expect("transactions start at 1");
    core::iter::successors(next_piece(covered, last), |(_, max)| next_piece(*max, last)).collect()
}

/// Every block that can hold the transaction, longest first.
///
/// # Panics
/// At transaction 0, which is none.
#[must_use]
pub fn pieces_holding(txid: Txid) -> [Piece; PIECES_HOLDING] {
    let index = txid.previous().expect("transactions start at 1").get();
    core::array::from_fn(|at| {
        let len = PIECE_TXIDS_MAX >> at;
        let before = index - index % len;
        (Txid::new(before + 1), Txid::new(before.saturating_add(len)))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(first: u64, last: u64) -> Vec<(u64, u64)> {
        pieces(Txid::new(first), Txid::new(last))
            .into_iter()
            .map(|(min, max)| (min.get(), max.get()))
            .collect()
    }

    #[test]
    fn a_range_is_cut_at_its_blocks() {
        assert_eq!(cut(1, 13), [(1, 8), (9, 12), (13, 13)]);
        assert_eq!(cut(4, 13), [(4, 4), (5, 8), (9, 12), (13, 13)]);
        assert_eq!(cut(1, 3_000).len(), 2 + 6);
        assert_eq!(cut(7, 7), [(7, 7)]);
        assert_eq!(cut(8, 7), []);
    }

    #[test]
    fn a_block_is_one_of_the_eleven_that_hold_its_transactions() {
        let held = pieces_holding(Txid::new(1_030)).map(|(min, max)| (min.get(), max.get()));
        assert_eq!(held[0], (1_025, 2_048));
        assert_eq!(held[8..], [(1_029, 1_032), (1_029, 1_030), (1_030, 1_030)]);
    }

    proptest! {
        #[test]
        fn blocks_follow_each_other_and_are_found_from_any_of_their_transactions(
            first in 1_u64..5_000, more in 0_u64..5_000, at in any::<prop::sample::Index>(),
        ) {
            let last = first + more;
            let blocks = cut(first, last);
            let mut next = first;
            for (min, max) in &blocks {
                prop_assert_eq!(*min, next);
                next = max + 1;
            }
            prop_assert_eq!(next, last + 1);
            prop_assert!(blocks.len() as u64 <= 2 * 10 + more / PIECE_TXIDS_MAX);
            let txid = first + at.index(usize::try_from(more + 1).unwrap()) as u64;
            let block = blocks.iter().find(|(min, max)| (min..=max).contains(&&txid)).unwrap();
            prop_assert!(pieces_holding(Txid::new(txid)).contains(&(Txid::new(block.0), Txid::new(block.1))));
        }
    }
}
