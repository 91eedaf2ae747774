//! Which bytes of an object a read asks for.

use std::ops::Range;

use serde::Deserialize;

use crate::R2Error;

/// A range, as the API spells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct WantedRange {
    /// First byte.
    pub(crate) offset: Option<u64>,
    /// Bytes.
    pub(crate) length: Option<u64>,
    /// Bytes at the end; instead of the others.
    pub(crate) suffix: Option<u64>,
}

impl WantedRange {
    /// The bytes of an object of `size` bytes.
    ///
    /// # Errors
    /// It has none of them.
    pub(crate) fn of(self, size: u64) -> Result<Range<u64>, R2Error> {
        let Self { offset, length, suffix } = self;
        let start = match suffix {
            Some(suffix) => size.saturating_sub(suffix),
            None => offset.unwrap_or(0),
        };
        let end = match (suffix, length) {
            (None, Some(length)) => start.saturating_add(length).min(size),
            (Some(_), _) | (None, None) => size,
        };
        if start < end { Ok(start..end) } else { Err(R2Error::invalid_range()) }
    }
}

/// The one range that a `Range` field asks for, of an object of `size` bytes; none for what it may not be answered with:
/// several, other units, one that is not satisfiable.
pub(crate) fn of_header(field: &str, size: u64) -> Option<Range<u64>> {
    let (unit, spec) = field.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = spec.trim().split_once('-')?;
    let number = |text: &str| -> Option<u64> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse().unwrap_or(u64::MAX))
    };
    let (first, last) = (first.trim(), last.trim());
    let range = match (first.is_empty(), last.is_empty()) {
        (true, _) => size.saturating_sub(number(last)?)..size,
        (false, true) => number(first)?..size,
        (false, false) => number(first)?..number(last)?.saturating_add(1).min(size),
    };
    (range.start < range.end).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_at_the_end_and_never_empty() {
        let of = |offset, length, suffix, size| {
            WantedRange { offset, length, suffix }.of(size).map_err(|error| error.code())
        };
        assert_eq!(of(None, None, None, 10), Ok(0..10));
        assert_eq!(of(Some(3), None, None, 10), Ok(3..10));
        assert_eq!(of(Some(3), Some(4), None, 10), Ok(3..7));
        assert_eq!(of(Some(3), Some(u64::MAX), None, 10), Ok(3..10));
        assert_eq!(of(None, Some(4), None, 10), Ok(0..4));
        assert_eq!(of(None, None, Some(4), 10), Ok(6..10));
        assert_eq!(of(None, None, Some(40), 10), Ok(0..10));
        for (offset, length, suffix, size) in [
            (Some(10), None, None, 10),
            (Some(11), None, None, 10),
            (None, Some(0), None, 10),
            (None, None, Some(0), 10),
            (Some(0), None, None, 0),
        ] {
            assert_eq!(of(offset, length, suffix, size), Err(10_039), "{offset:?} {length:?} {suffix:?}");
        }
    }

    #[test]
    fn a_field_gives_one_range_or_the_whole() {
        for (field, expected) in [
            ("bytes=0-3", Some(0..4)),
            ("bytes=3-", Some(3..10)),
            ("bytes=-3", Some(7..10)),
            ("bytes=-30", Some(0..10)),
            (" Bytes = 2 - 99 ", Some(2..10)),
            ("bytes=9-9", Some(9..10)),
            ("bytes=10-", None),
            ("bytes=5-4", None),
            ("bytes=-0", None),
            ("bytes=-", None),
            ("bytes=0-1,3-4", None),
            ("bytes=+1-2", None),
            ("items=0-1", None),
            ("", None),
        ] {
            assert_eq!(of_header(field, 10), expected, "{field}");
        }
    }
}
