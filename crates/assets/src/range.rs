//! `Range` of one part (RFC 9110, 14).

use std::ops::Range;

/// What a field asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All of it.
    Whole,
    /// This part.
    Part(Range<usize>),
    /// Nothing that is there.
    Nothing,
}

/// Reads the field, for a body of so many bytes. What is not understood asks for all of it, as does more than one part.
pub(crate) fn wanted(field: &str, len: usize) -> Wanted {
    let Some(range) = field.strip_prefix("bytes=").filter(|range| !range.contains(',')) else {
        return Wanted::Whole;
    };
    let Some((first, last)) = range.trim().split_once('-') else { return Wanted::Whole };
    let range = match (first.parse::<usize>(), last.parse::<usize>()) {
        (Ok(first), Ok(last)) if first <= last => first..last.saturating_add(1).min(len),
        (Ok(first), Err(_)) if last.is_empty() => first..len,
        (Err(_), Ok(suffix)) if first.is_empty() => {
            if suffix == 0 {
                return Wanted::Nothing;
            }
            len.saturating_sub(suffix)..len
        }
        _ => return Wanted::Whole,
    };
    if range.start >= len { Wanted::Nothing } else { Wanted::Part(range) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_part_is_given_and_nothing_else_is_guessed() {
        for (field, len, expected) in [
            ("bytes=0-3", 10, Wanted::Part(0..4)),
            ("bytes=4-", 10, Wanted::Part(4..10)),
            ("bytes=4-99", 10, Wanted::Part(4..10)),
            ("bytes=-3", 10, Wanted::Part(7..10)),
            ("bytes=-99", 10, Wanted::Part(0..10)),
            ("bytes=10-", 10, Wanted::Nothing),
            ("bytes=-0", 10, Wanted::Nothing),
            ("bytes=0-", 0, Wanted::Nothing),
            ("bytes=3-1", 10, Wanted::Whole),
            ("bytes=0-1,3-4", 10, Wanted::Whole),
            ("lines=0-1", 10, Wanted::Whole),
            ("bytes=a-b", 10, Wanted::Whole),
            ("bytes=0-18446744073709551615", 10, Wanted::Part(0..10)),
        ] {
            assert_eq!(wanted(field, len), expected, "{field}");
        }
    }
}
