//! Writes JSON straight into the reply's buffer, row by row, within a bound.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use crate::error::SqlFailure;
use crate::ffi::Column;

/// Integers beyond this, either way, are no exact numbers in JavaScript.
pub(super) const EXACT_INTEGER_MAX: i64 = 1 << 53;

/// A bounded buffer of JSON.
#[derive(Debug)]
pub(super) struct JsonOut {
    bytes: Vec<u8>,
    max: usize,
}

impl JsonOut {
    pub(super) fn new(max: usize) -> Self {
        Self { bytes: Vec::with_capacity(256), max }
    }

    pub(super) fn unbounded() -> Self {
        Self::new(usize::MAX)
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(super) fn max(&self) -> usize {
        self.max
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    /// Appends JSON as it is.
    pub(super) fn raw(&mut self, json: &str) {
        self.bytes.extend_from_slice(json.as_bytes());
    }

    /// Appends a comma, unless this is the first of several.
    pub(super) fn comma(&mut self, is_first: bool) {
        if !is_first {
            self.bytes.push(b',');
        }
    }

    /// Appends a string.
    pub(super) fn string(&mut self, text: &str) {
        serde_json::to_writer(&mut self.bytes, text).expect("a string always serializes into memory");
    }

    /// Appends a string or null.
    pub(super) fn optional_string(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.string(text),
            None => self.raw("null"),
        }
    }

    /// Appends what `Display` gives, which must be JSON.
    pub(super) fn display(&mut self, value: impl std::fmt::Display) {
        write!(self.bytes, "{value}").expect("memory takes all writes");
    }

    /// Appends a float. Infinities become numbers beyond the range of a double, which JavaScript and Python read as
    /// infinities; JSON has no other spelling.
    pub(super) fn float(&mut self, float: f64) {
        if float.is_finite() {
            serde_json::to_writer(&mut self.bytes, &float).expect("a float always serializes into memory");
        } else {
            self.raw(if float > 0.0 { "1e999" } else { "-1e999" });
        }
    }

    /// Appends an integer, as a string where a double would not hold it.
    pub(super) fn integer(&mut self, integer: i64) {
        if (-EXACT_INTEGER_MAX..=EXACT_INTEGER_MAX).contains(&integer) {
            self.display(integer);
        } else {
            self.display(format_args!("\"{integer}\""));
        }
    }

    /// Appends text that may not be UTF-8; what is not is replaced.
    pub(super) fn text(&mut self, text: &[u8]) {
        self.string(&String::from_utf8_lossy(text));
    }

    /// Appends a string of base64 without padding.
    pub(super) fn base64(&mut self, blob: &[u8]) {
        self.bytes.push(b'"');
        let start = self.bytes.len();
        let len = base64::encoded_len(blob.len(), false).expect("a blob is far from half the address space");
        self.bytes.resize(start + len, 0);
        STANDARD_NO_PAD.encode_slice(blob, &mut self.bytes[start..]).expect("the length was computed for it");
        self.bytes.push(b'"');
    }

    /// Appends `{"message", "code"}`.
    pub(super) fn failure(&mut self, failure: &SqlFailure) {
        self.raw("{\"message\":");
        self.string(&failure.message);
        self.raw(",\"code\":");
        self.string(failure.code);
        self.raw("}");
    }

    /// Fails when a value would not fit, or what was written did not.
    ///
    /// # Errors
    /// `RESULT_TOO_LARGE`.
    pub(super) fn check(&self, value: Column<'_>) -> Result<(), SqlFailure> {
        let len = match value {
            Column::Text(bytes) | Column::Blob(bytes) => bytes.len(),
            Column::Null | Column::Integer(_) | Column::Float(_) => 0,
        };
        if self.bytes.len().saturating_add(len) <= self.max {
            return Ok(());
        }
        let text = format!(
            "the result is too large: a reply holds at most {} bytes; read less, for example with LIMIT",
            self.max
        );
        Err(SqlFailure::new("RESULT_TOO_LARGE", text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_exact() {
        let mut out = JsonOut::unbounded();
        for integer in [0, -1, EXACT_INTEGER_MAX, EXACT_INTEGER_MAX + 1, i64::MIN] {
            out.integer(integer);
            out.raw(" ");
        }
        for float in [0.1, 1.0, f64::INFINITY, f64::NEG_INFINITY, 1e300] {
            out.float(float);
            out.raw(" ");
        }
        assert_eq!(
            String::from_utf8(out.into_bytes()).unwrap(),
            "0 -1 9007199254740992 \"9007199254740993\" \"-9223372036854775808\" 0.1 1.0 1e999 -1e999 1e+300 "
        );
    }
}
