//! Names of contents: a hash says what the bytes must be, so a reader can verify whatever it was given.

use alloc::string::String;
use core::fmt;

/// A text is not 64 lower-case hex digits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("content hash `{text}` is not 64 lower-case hex digits")]
pub struct ContentHashError {
    /// The text, cut to 80 characters.
    pub text: String,
}

/// The SHA-256 of some bytes, spelled as 64 lower-case hex digits. Whoever hashes brings the function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// Wraps a digest.
    #[must_use]
    pub const fn from_digest(digest: [u8; 32]) -> Self {
        Self(digest)
    }

    /// The digest.
    #[must_use]
    pub const fn digest(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads 64 lower-case hex digits.
    ///
    /// # Errors
    /// [`ContentHashError`] for any other spelling. Disposition: reject.
    pub fn parse(text: &str) -> Result<Self, ContentHashError> {
        let bad = || ContentHashError { text: text.chars().take(80).collect() };
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        if text.len() != 64 {
            return Err(bad());
        }
        let mut digest = [0; 32];
        for (byte, pair) in digest.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else { return Err(bad()) };
            *byte = high << 4 | low;
        }
        Ok(Self(digest))
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::str::FromStr for ContentHash {
    type Err = ContentHashError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_hash_survives_its_text() {
        let hash = ContentHash::from_digest(core::array::from_fn(|index| index as u8 * 8 + 7));
        assert_eq!(ContentHash::parse(&hash.to_string()), Ok(hash));
    }

    #[test]
    fn another_spelling_is_refused() {
        let text = ContentHash::from_digest([0xab; 32]).to_string();
        for bad in [&text[1..], &text.to_uppercase(), &text.replacen('a', "g", 1), ""] {
            assert!(ContentHash::parse(bad).is_err(), "{bad}");
        }
    }
}
