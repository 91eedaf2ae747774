//! The name of a cell, `Class:name`, and its spelling inside a bucket key.

use alloc::string::String;
use core::fmt;

/// Longest cell name in bytes, class and colon included.
pub const CELL_NAME_LEN_MAX: usize = 255;

/// A cell's name: an ASCII class, a colon, and any UTF-8 name without control characters; 3 to 255 bytes in all.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellName {
    text: String,
    class_len: usize,
}

/// Why a text is not a cell name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CellNameError {
    /// There is no colon between class and name.
    #[error("cell name `{0}` has no class: write it as `Class:name`, for example `db:users`")]
    NoClass(String),
    /// The class is empty or has a character that an identifier may not have.
    #[error(
        "cell class `{0}` is not an identifier: use ASCII letters, digits and `_`, not starting with a digit"
    )]
    BadClass(String),
    /// The name after the colon is empty.
    #[error("cell of class `{0}` has an empty name")]
    EmptyName(String),
    /// The whole is longer than [`CELL_NAME_LEN_MAX`].
    #[error("cell name is {0} bytes long; the limit is 255 bytes, class and colon included")]
    TooLong(usize),
    /// The name holds a control character.
    #[error("cell name holds the control character U+{0:04X}; control characters are not allowed")]
    Control(u32),
    /// A key segment does not decode to a cell name.
    #[error("`{0}` is not an encoded cell name")]
    BadEncoding(String),
}

impl CellName {
    /// Parses `Class:name`.
    ///
    /// # Errors
    /// [`CellNameError`] names the part that is wrong. Disposition: reject.
    pub fn parse(text: &str) -> Result<Self, CellNameError> {
        let Some((class, name)) = text.split_once(':') else {
            return Err(CellNameError::NoClass(clip(text)));
        };
        Self::new(class, name)
    }

    /// Joins a class and a name.
    ///
    /// # Errors
    /// As [`CellName::parse`].
    pub fn new(class: &str, name: &str) -> Result<Self, CellNameError> {
        let mut bytes = class.bytes();
        let starts_well = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
        if !starts_well || !bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return Err(CellNameError::BadClass(clip(class)));
        }
        if name.is_empty() {
            return Err(CellNameError::EmptyName(clip(class)));
        }
        let len = class.len() + 1 + name.len();
        if len > CELL_NAME_LEN_MAX {
            return Err(CellNameError::TooLong(len));
        }
        if let Some(control) = name.chars().find(|c| c.is_control()) {
            return Err(CellNameError::Control(control as u32));
        }
        let mut text = String::with_capacity(len);
        text.push_str(class);
        text.push(':');
        text.push_str(name);
        Ok(Self { text, class_len: class.len() })
    }

    /// The class, before the colon.
    #[must_use]
    pub fn class(&self) -> &str {
        &self.text[..self.class_len]
    }

    /// The name, after the colon.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.text[self.class_len + 1..]
    }

    /// The whole, `Class:name`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The name as one segment of a bucket key: bytes outside `A-Z a-z 0-9 - _ .` and the first colon become
    /// `%XX` in upper case, so that no name leaves its segment and no two names share one.
    #[must_use]
    pub fn to_key_segment(&self) -> String {
        const HEX: &[u8; 16] = b"0123456789ABCDEF";
        let mut out = String::with_capacity(self.text.len() + 8);
        out.push_str(self.class());
        out.push(':');
        for byte in self.name().bytes() {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') {
                out.push(char::from(byte));
            } else {
                out.push('%');
                out.push(char::from(HEX[usize::from(byte >> 4)]));
                out.push(char::from(HEX[usize::from(byte & 15)]));
            }
        }
        out
    }

    /// Reads [`CellName::to_key_segment`] back; refuses any other spelling of the same name.
    ///
    /// # Errors
    /// [`CellNameError::BadEncoding`], or what [`CellName::parse`] says of the decoded text.
    pub fn from_key_segment(segment: &str) -> Result<Self, CellNameError> {
        let bad = || CellNameError::BadEncoding(clip(segment));
        let mut bytes = alloc::vec::Vec::with_capacity(segment.len());
        let mut rest = segment.as_bytes();
        while let Some((&first, tail)) = rest.split_first() {
            if first == b'%' {
                let (hex, tail) = tail.split_at_checked(2).ok_or_else(bad)?;
                let hex = core::str::from_utf8(hex).map_err(|_| bad())?;
                bytes.push(u8::from_str_radix(hex, 16).map_err(|_| bad())?);
                rest = tail;
            } else {
                bytes.push(first);
                rest = tail;
            }
        }
        let cell = Self::parse(core::str::from_utf8(&bytes).map_err(|_| bad())?)?;
        if cell.to_key_segment() == segment { Ok(cell) } else { Err(bad()) }
    }
}

/// Keeps error texts short whatever was sent.
fn clip(text: &str) -> String {
    text.chars().take(80).collect()
}

impl fmt::Display for CellName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for CellName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.text)
    }
}

impl core::str::FromStr for CellName {
    type Err = CellNameError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_name_survives_its_key_segment() {
        for name in ["a", "..", ".", "a/b", "a:b", "ü", "a b", "%41", "🦀", "../../x", "*", "~"] {
            let cell = CellName::new("db", name).expect("valid");
            let segment = cell.to_key_segment();
            assert!(!segment.contains('/'), "{segment}");
            assert_eq!(CellName::from_key_segment(&segment).expect("decodes"), cell);
        }
    }

    #[test]
    fn another_spelling_of_a_segment_is_refused() {
        assert!(CellName::from_key_segment("db:%61").is_err());
        assert!(CellName::from_key_segment("db:%2f").is_err());
        assert!(CellName::from_key_segment("db:%2").is_err());
        assert!(CellName::from_key_segment("db:%FF").is_err());
    }

    #[test]
    fn a_bad_name_is_refused_with_its_reason() {
        assert!(matches!(CellName::parse("users"), Err(CellNameError::NoClass(_))));
        assert!(matches!(CellName::parse("1a:b"), Err(CellNameError::BadClass(_))));
        assert!(matches!(CellName::parse("db:"), Err(CellNameError::EmptyName(_))));
        assert!(matches!(CellName::parse("db:a\0b"), Err(CellNameError::Control(0))));
        let long = "x".repeat(300);
        let error = CellName::new("db", &long).expect_err("too long").to_string();
        assert!(error.contains("303 bytes") && error.contains("255"), "{error}");
        let fits = "x".repeat(252);
        assert_eq!(CellName::new("db", &fits).expect("fits").as_str().len(), 255);
    }
}
