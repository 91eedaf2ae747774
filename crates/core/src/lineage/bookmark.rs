//! Bookmarks: what an application holds of a state of its object. Texts sort as the states follow each other, and a text of
//! another object, or one that was changed, is refused.

use alloc::format;
use alloc::string::String;

use holdfast_types::{CellName, Epoch, Position, Txid};

/// Names a state of one cell: `<epoch>-<txid>-<restore>-<sum>`, in hex digits of fixed numbers (16, 16, 8, 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bookmark {
    /// The state after this transaction; where `restore` is not 0, the transaction that wished for the restore.
    pub position: Position,
    /// The number of a restore of the cell: then the state is the one that it took the place of. 0: none.
    pub restore: u32,
}

/// Why a text is no bookmark of a cell. Disposition: reject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BookmarkError {
    /// It does not look like one.
    #[error("this is not a bookmark: one is `<16 hex digits>-<16>-<8>-<8>`")]
    Malformed,
    /// Its last part does not fit the rest and the cell's name.
    #[error("this is a bookmark of another object, or was changed")]
    OtherCell,
}

impl Bookmark {
    /// Of the state after a transaction.
    #[must_use]
    pub const fn at(position: Position) -> Self {
        Self { position, restore: 0 }
    }

    /// The text, for the cell whose state it is.
    #[must_use]
    pub fn text(&self, cell: &CellName) -> String {
        let Self { position: Position { epoch, txid }, restore } = self;
        format!("{}-{}-{restore:08x}-{:08x}", epoch.to_hex(), txid.to_hex(), self.sum(cell))
    }

    /// Reads a text that is to be of this cell.
    ///
    /// # Errors
    /// [`BookmarkError`].
    pub fn parse(text: &str, cell: &CellName) -> Result<Self, BookmarkError> {
        let mut parts = text.split('-');
        let mut part = || parts.next().ok_or(BookmarkError::Malformed);
        let (epoch, txid, restore, sum) = (part()?, part()?, part()?, part()?);
        if parts.next().is_some() {
            return Err(BookmarkError::Malformed);
        }
        let epoch = Epoch::from_hex(epoch).map_err(|_| BookmarkError::Malformed)?;
        let txid = Txid::from_hex(txid).map_err(|_| BookmarkError::Malformed)?;
        let restore = parse_hex8(restore).ok_or(BookmarkError::Malformed)?;
        let sum = parse_hex8(sum).ok_or(BookmarkError::Malformed)?;
        let bookmark = Self { position: Position { epoch, txid }, restore };
        if sum == bookmark.sum(cell) { Ok(bookmark) } else { Err(BookmarkError::OtherCell) }
    }

    /// FNV-1a over the cell's name and the numbers. It guards against mistakes, not against anybody who wants to deceive:
    /// only the object itself can use its bookmarks.
    fn sum(&self, cell: &CellName) -> u32 {
        let Self { position: Position { epoch, txid }, restore } = *self;
        let numbers = [epoch.get(), txid.get(), restore.into()];
        let bytes = cell.as_str().bytes().chain(numbers.into_iter().flat_map(u64::to_be_bytes));
        bytes.fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    }
}

/// Eight lower-case hex digits: one spelling for each number.
fn parse_hex8(text: &str) -> Option<u32> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != 8 || !text.bytes().all(is_hex) {
        return None;
    }
    u32::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cell(name: &str) -> CellName {
        CellName::new("Notes", name).unwrap()
    }

    fn bookmark((epoch, txid, restore): (u64, u64, u32)) -> Bookmark {
        let position = Position { epoch: Epoch::new(epoch), txid: Txid::new(txid) };
        Bookmark { position, restore }
    }

    #[test]
    fn a_text_stays_what_it_is() {
        let text = bookmark((2, 0x1f, 3)).text(&cell("a"));
        assert_eq!(text, "0000000000000002-000000000000001f-00000003-9bb5e91d");
    }

    #[test]
    fn what_is_no_bookmark_of_the_cell_says_why() {
        let text = bookmark((2, 0x1f, 3)).text(&cell("a"));
        let parse = |text: &str| Bookmark::parse(text, &cell("a")).unwrap_err();
        for text in
            ["", "2-1f-3-0", &text.to_uppercase(), &text[1..], &format!("{text}-0"), &format!("{text}0")]
        {
            assert_eq!(parse(text), BookmarkError::Malformed, "{text}");
        }
        assert_eq!(parse(&text.replace("1f", "1e")), BookmarkError::OtherCell);
        assert_eq!(Bookmark::parse(&text, &cell("b")), Err(BookmarkError::OtherCell));
    }

    proptest! {
        #[test]
        fn texts_come_back_and_sort_as_their_states(
            left in any::<(u64, u64, u32)>(), right in any::<(u64, u64, u32)>(),
        ) {
            let (left, right, cell) = (bookmark(left), bookmark(right), cell("a"));
            prop_assert_eq!(Bookmark::parse(&left.text(&cell), &cell), Ok(left));
            prop_assert_eq!(left.text(&cell) < right.text(&cell), left < right);
        }
    }
}
