//! Which cells a token is for: a class, and a name in which `*` stands for any text. The class is always spelled out.

use std::fmt;

use holdfast_types::{CELL_NAME_LEN_MAX, CellName, CellNameError};
use serde::{Deserialize, Serialize};

/// A set of cells, for example `db:tenant-*`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CellPattern(String);

/// Why a text is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Without its `*` it is no cell name either.
    #[error(transparent)]
    Name(#[from] CellNameError),
    /// More wildcards than anybody needs.
    #[error("the pattern has more than {WILDCARDS_MAX} `*`")]
    TooManyWildcards,
}

/// Bounds the work of a match.
const WILDCARDS_MAX: usize = 8;

impl CellPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// [`PatternError`]. Disposition: reject.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        // `*` is a legal character of a name and not of a class, which is what a pattern needs, too.
        CellName::parse(text)?;
        if text.matches('*').count() > WILDCARDS_MAX {
            return Err(PatternError::TooManyWildcards);
        }
        Ok(Self(text.to_owned()))
    }

    /// Whether a cell is in the set.
    #[must_use]
    pub fn matches(&self, cell: &CellName) -> bool {
        debug_assert!(self.0.len() <= CELL_NAME_LEN_MAX, "parsed as a cell name");
        let mut pieces = self.0.split('*');
        let first = pieces.next().unwrap_or_default();
        let Some(mut rest) = cell.as_str().strip_prefix(first) else { return false };
        let mut pieces: Vec<&str> = pieces.collect();
        let Some(last) = pieces.pop() else { return rest.is_empty() };
        // Between two stars the earliest match leaves the most for what follows.
        for piece in pieces {
            let Some(at) = rest.find(piece) else { return false };
            rest = &rest[at + piece.len()..];
        }
        rest.ends_with(last)
    }
}

impl fmt::Display for CellPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for CellPattern {
    type Err = PatternError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl TryFrom<String> for CellPattern {
    type Error = PatternError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<CellPattern> for String {
    fn from(pattern: CellPattern) -> Self {
        pattern.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, cell: &str) -> bool {
        CellPattern::parse(pattern).unwrap().matches(&CellName::parse(cell).unwrap())
    }

    #[test]
    fn a_star_stands_for_any_text_and_nothing_else_does() {
        assert!(matches("db:a", "db:a"));
        assert!(!matches("db:a", "db:ab"));
        assert!(!matches("db:ab", "db:a"));
        assert!(matches("db:*", "db:anything/at all"));
        assert!(!matches("db:*", "kv:anything"));
        assert!(matches("db:t-*", "db:t-1"));
        assert!(matches("db:t-*", "db:t-"));
        assert!(!matches("db:t-*", "db:t"));
        assert!(matches("db:t-*-x", "db:t-1-x-x"));
        assert!(!matches("db:t-*-x", "db:t-1-x-y"));
        assert!(!matches("db:a*a", "db:a"), "the ends do not overlap");
        assert!(matches("db:*b*b*", "db:abab"));
        assert!(!matches("db:*b*b*b", "db:abab"));
        assert!(!matches("db:a.c", "db:abc") && !matches("db:a?c", "db:abc"));
    }

    #[test]
    fn a_pattern_spells_its_class_out() {
        assert!(CellPattern::parse("*").is_err());
        assert!(CellPattern::parse("*:a").is_err());
        assert!(CellPattern::parse("d*:a").is_err());
        assert!(CellPattern::parse("db:").is_err());
        assert_eq!(CellPattern::parse("db:*********"), Err(PatternError::TooManyWildcards));
    }
}
