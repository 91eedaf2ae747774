//! What `node:buffer` computes on bytes: texts in and out of them, and searches. Encodings have their numbers from
//! [`Encoding`], in the order of `buffer.js`.

use base64::Engine;
use base64::alphabet::{Alphabet, STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use memchr::memmem;
use rquickjs::function::Func;
use rquickjs::{ArrayBuffer, Ctx, Exception, Object, Result, String as JsString, TypedArray};

use crate::plain;
use crate::{buffers, foreign};

/// The text encodings that Node has.
#[derive(Clone, Copy)]
enum Encoding {
    Utf8,
    Utf16Le,
    Latin1,
    Ascii,
    Base64,
    Base64Url,
    Hex,
}

impl Encoding {
    fn of(ctx: &Ctx<'_>, number: u8) -> Result<Self> {
        Ok(match number {
            0 => Self::Utf8,
            1 => Self::Utf16Le,
            2 => Self::Latin1,
            3 => Self::Ascii,
            4 => Self::Base64,
            5 => Self::Base64Url,
            6 => Self::Hex,
            _ => return Err(Exception::throw_internal(ctx, &format!("no encoding has the number {number}"))),
        })
    }
}

const fn base64(alphabet: &Alphabet, pads: bool) -> GeneralPurpose {
    let config = GeneralPurposeConfig::new()
        .with_encode_padding(pads)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    GeneralPurpose::new(alphabet, config)
}

const BASE64: GeneralPurpose = base64(&STANDARD, true);
const BASE64_URL: GeneralPurpose = base64(&URL_SAFE, false);

pub(super) fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    native.set("encode", Func::from(encode))?;
    native.set("decode", Func::from(decode))?;
    native.set("utf8Len", Func::from(utf8_len))?;
    native.set("compare", Func::from(compare))?;
    native.set("indexOf", Func::from(index_of))?;
    native.set("fill", Func::from(fill))?;
    native.set("swap", Func::from(swap))?;
    native.set("isUtf8", Func::from(|bytes: TypedArray<'_, u8>| buffers::look(&bytes, is_utf8)))?;
    native.set("isAscii", Func::from(|bytes: TypedArray<'_, u8>| buffers::look(&bytes, <[u8]>::is_ascii)))?;
    Ok(native)
}

fn is_utf8(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok()
}

/// The bytes of a text, at most `max` of them, and never a part of a character.
fn encode<'js>(ctx: Ctx<'js>, text: JsString<'js>, encoding: u8, max: usize) -> Result<ArrayBuffer<'js>> {
    let units = foreign::units_of(&text)?;
    let mut bytes = match Encoding::of(&ctx, encoding)? {
        Encoding::Utf8 => return ArrayBuffer::new(ctx, utf8(&units, max)),
        Encoding::Utf16Le => {
            let units = &units[..units.len().min(max / 2)];
            units.iter().flat_map(|unit| unit.to_le_bytes()).collect()
        }
        // The low byte of each unit, as Node has it.
        Encoding::Latin1 | Encoding::Ascii => units.iter().map(|unit| unit.to_le_bytes()[0]).collect(),
        Encoding::Base64 | Encoding::Base64Url => from_base64(&units),
        Encoding::Hex => from_hex(&units),
    };
    bytes.truncate(max);
    ArrayBuffer::new(ctx, bytes)
}

/// UTF-8, with U+FFFD for half of a surrogate pair.
fn utf8(units: &[u16], max: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(units.len().min(max));
    for decoded in char::decode_utf16(units.iter().copied()) {
        let char = decoded.unwrap_or(char::REPLACEMENT_CHARACTER);
        if bytes.len() + char.len_utf8() > max {
            break;
        }
        bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
    }
    bytes
}

fn utf8_len(text: JsString<'_>) -> Result<usize> {
    let units = foreign::units_of(&text)?;
    let len =
        |decoded: std::result::Result<char, _>| decoded.unwrap_or(char::REPLACEMENT_CHARACTER).len_utf8();
    Ok(char::decode_utf16(units).map(len).sum())
}

/// Both alphabets; what is in neither is passed over, and `=` ends it.
fn from_base64(units: &[u16]) -> Vec<u8> {
    let mut digits: Vec<u8> = units
        .iter()
        .map(|unit| u8::try_from(*unit).unwrap_or(b' '))
        .take_while(|byte| *byte != b'=')
        .filter_map(|byte| match byte {
            b'-' => Some(b'+'),
            b'_' => Some(b'/'),
            b'+' | b'/' => Some(byte),
            _ => byte.is_ascii_alphanumeric().then_some(byte),
        })
        .collect();
    // One digit alone is no byte.
    if digits.len() % 4 == 1 {
        digits.pop();
    }
    BASE64.decode(digits).expect("they are digits, in a number that makes bytes")
}

/// As far as it is hexadecimal.
fn from_hex(units: &[u16]) -> Vec<u8> {
    let digit = |unit: u16| char::from_u32(u32::from(unit)).and_then(|char| char.to_digit(16));
    let byte = |pair: &[u16]| Some(u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).expect("two digits"));
    units.chunks_exact(2).map_while(byte).collect()
}

fn decode<'js>(
    ctx: Ctx<'js>,
    bytes: TypedArray<'js, u8>,
    encoding: u8,
    start: usize,
    end: usize,
) -> Result<JsString<'js>> {
    let encoding = Encoding::of(&ctx, encoding)?;
    if let Encoding::Utf16Le = encoding {
        let units: Vec<u16> = buffers::look(&bytes, move |bytes| {
            let pairs = range(bytes, start, end).chunks_exact(2);
            pairs.map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect()
        });
        return foreign::string_of_units(&ctx, &units);
    }
    let text: String = buffers::look(&bytes, move |bytes| {
        let bytes = range(bytes, start, end);
        match encoding {
            Encoding::Utf8 => String::from_utf8_lossy(bytes).into_owned(),
            Encoding::Latin1 => bytes.iter().map(|byte| char::from(*byte)).collect(),
            Encoding::Ascii => bytes.iter().map(|byte| char::from(byte & 0x7f)).collect(),
            Encoding::Base64 => BASE64.encode(bytes),
            Encoding::Base64Url => BASE64_URL.encode(bytes),
            Encoding::Hex => hex(bytes),
            Encoding::Utf16Le => unreachable!("it was decoded above"),
        }
    });
    JsString::from_str(ctx, &text)
}

fn range(bytes: &[u8], start: usize, end: usize) -> &[u8] {
    bytes.get(start..end.min(bytes.len())).unwrap_or_default()
}

fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).expect("a nibble is a digit");
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0x0f)]).collect()
}

/// -1, 0 or 1.
fn compare(first: TypedArray<'_, u8>, second: TypedArray<'_, u8>) -> i8 {
    let second = buffers::read(&second);
    buffers::look(&first, move |first| first.cmp(&second) as i8)
}

/// Where `needle` is first at or after `from`, or last at or before it; -1 if nowhere. With `step` 2 both are UTF-16: only
/// even distances from the start count, and a byte that is half of a unit does not.
fn index_of(
    bytes: TypedArray<'_, u8>,
    needle: TypedArray<'_, u8>,
    from: usize,
    is_forward: bool,
    step: usize,
) -> i64 {
    let needle = buffers::read(&needle);
    let found = buffers::look(&bytes, move |bytes| {
        if step == 2 {
            return find_units(bytes, &needle, from / 2, is_forward).map(|at| at * 2);
        }
        if is_forward {
            let from = from.min(bytes.len());
            memmem::find(&bytes[from..], &needle).map(|at| at + from)
        } else {
            let end = from.saturating_add(needle.len()).min(bytes.len());
            memmem::rfind(&bytes[..end], &needle)
        }
    });
    found.map_or(-1, |at| i64::try_from(at).expect("an index of memory"))
}

/// As [`index_of`], in units. Backward, it is the first of what is read from the end.
fn find_units(bytes: &[u8], needle: &[u8], from: usize, is_forward: bool) -> Option<usize> {
    let unit = |bytes: &[u8], at: usize| u16::from_le_bytes([bytes[2 * at], bytes[2 * at + 1]]);
    let (len, wanted) = (bytes.len() / 2, needle.len() / 2);
    let start = if is_forward { from.min(len) } else { 0 };
    let end = if is_forward { len } else { from.saturating_add(wanted).min(len) };
    if wanted == 0 || end - start < wanted {
        return None;
    }
    if is_forward {
        let at = first_of((end - start, |at| unit(bytes, start + at)), (wanted, |at| unit(needle, at)))?;
        Some(start + at)
    } else {
        let turned = |at| unit(needle, wanted - 1 - at);
        let at = first_of((end, |at| unit(bytes, end - 1 - at)), (wanted, turned))?;
        Some(end - at - wanted)
    }
}

/// Where `needle`, which is not empty, is first in `units`, each of a length (Knuth, Morris, Pratt): the time grows with both
/// lengths and not with their product, since nothing interrupts it.
fn first_of(
    (len, units): (usize, impl Fn(usize) -> u16),
    (wanted, needle): (usize, impl Fn(usize) -> u16),
) -> Option<usize> {
    // Of each start of the needle: how long the longest start within it is that is its end, too.
    let mut starts = vec![0_u32; wanted];
    let longer = |starts: &[u32], mut len: usize, unit: u16| {
        while len > 0 && needle(len) != unit {
            len = starts[len - 1] as usize;
        }
        len + usize::from(needle(len) == unit)
    };
    for at in 1..wanted {
        let len = longer(&starts, starts[at - 1] as usize, needle(at));
        starts[at] = u32::try_from(len).expect("a text within the memory of an isolate");
    }
    let mut matched = 0;
    for at in 0..len {
        matched = longer(&starts, matched, units(at));
        if matched == wanted {
            return Some(at + 1 - wanted);
        }
    }
    None
}

/// Repeats `pattern`, which is not empty, from `start` to `end`.
fn fill<'js>(
    ctx: Ctx<'js>,
    bytes: TypedArray<'js, u8>,
    pattern: TypedArray<'js, u8>,
    start: usize,
    end: usize,
) -> Result<()> {
    let pattern = buffers::read(&pattern);
    let mut all = buffers::read(&bytes);
    let end = end.min(all.len());
    if let Some(part) = all.get_mut(start..end) {
        for (byte, from) in part.iter_mut().zip(pattern.iter().cycle()) {
            *byte = *from;
        }
    }
    buffers::write(&ctx, &bytes, &all)
}

/// Turns the order of each `width` bytes round.
fn swap<'js>(ctx: Ctx<'js>, bytes: TypedArray<'js, u8>, width: usize) -> Result<()> {
    if width == 0 {
        return Err(Exception::throw_internal(&ctx, "a group has a byte at least"));
    }
    let mut all = buffers::read(&bytes);
    for group in all.chunks_exact_mut(width) {
        group.reverse();
    }
    buffers::write(&ctx, &bytes, &all)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn wide(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn units_are_found_where_they_are_and_never_across_two() {
        let find = |text: &str, needle: &str, from, is_forward| {
            find_units(&wide(text), &wide(needle), from, is_forward)
        };
        for (text, needle) in
            [("abaabab", "aba"), ("aaaa", "aa"), ("xyz", "z"), ("abcab", "abd"), ("a", "aa")]
        {
            for from in 0..9 {
                let text_units: Vec<u16> = text.encode_utf16().collect();
                let needle_units: Vec<u16> = needle.encode_utf16().collect();
                let is_there = |at: &usize| text_units[*at..].starts_with(&needle_units);
                let forward = (from..text.len()).find(is_there);
                let backward = (0..text.len().min(from + 1)).rev().find(is_there);
                assert_eq!(find(text, needle, from, true), forward, "{needle} in {text} from {from}");
                assert_eq!(find(text, needle, from, false), backward, "{needle} in {text} up to {from}");
            }
        }
        // The bytes are there, at an odd distance; half of a unit is none.
        assert_eq!(find_units(&[0, 1, 2, 3], &[1, 2], 0, true), None);
        assert_eq!(find_units(&[1, 2, 3], &[1, 2, 9], 0, true), Some(0));
        assert_eq!(find_units(&[1, 2], &[1], 0, true), None);
    }

    #[test]
    fn a_search_that_nearly_finds_everywhere_takes_no_product_of_the_lengths() {
        let began = Instant::now();
        // A million times half a million: minutes, for one who begins anew at each place.
        let text = "ab".repeat(1 << 19);
        let needle = format!("{}aa", "ab".repeat(1 << 18));
        for is_forward in [true, false] {
            assert_eq!(find_units(&wide(&text), &wide(&needle), 1 << 19, is_forward), None);
        }
        assert_eq!(find_units(&wide(&text), &wide(&needle), 0, true), None);
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    }
}
