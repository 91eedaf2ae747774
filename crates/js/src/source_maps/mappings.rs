//! The mappings of one map (ECMA-426): segments in base64, each relative to the one before. They stay as they are; marks at
//! some of them let a look-up begin near its place.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;

/// Segments from one mark to the next: a mark is as long as some ten of them.
const SEGMENTS_PER_MARK: usize = 256;

/// What is read of a map's JSON.
#[derive(Deserialize)]
struct Json<'j> {
    version: u32,
    #[serde(default)]
    sources: Vec<Option<String>>,
    #[serde(borrow)]
    mappings: Cow<'j, str>,
}

/// The mappings of one module.
#[derive(Debug)]
pub(super) struct Mappings {
    text: Bytes,
    sources: Vec<Option<String>>,
    /// In the order of their places.
    marks: Vec<Segment>,
    /// Where lines of the code begin, where it is not ASCII; otherwise none is asked for.
    line_starts: Vec<usize>,
}

/// One segment: a place in the code, and the place that it comes from. All count from 0; columns are UTF-16 units.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    /// Where the text goes on behind it.
    next: usize,
    line: i64,
    column: i64,
    has_original: bool,
    source: i64,
    original_line: i64,
    original_column: i64,
}

impl Mappings {
    /// Of a map's JSON; none where that is not one. Where its mappings are wrong it ends.
    pub(super) fn read(json: &Bytes, code: &[u8]) -> Option<Self> {
        let Json { version: 3, sources, mappings } = serde_json::from_slice::<Json<'_>>(json).ok()? else {
            return None;
        };
        let text = match mappings {
            Cow::Borrowed(text) => json.slice_ref(text.as_bytes()),
            Cow::Owned(text) => Bytes::from(text),
        };
        let line_starts = if code.is_ascii() {
            Vec::new()
        } else {
            std::iter::once(0).chain(memchr::memchr_iter(b'\n', code).map(|end| end + 1)).collect()
        };
        let mut mappings = Self { text, sources, marks: Vec::new(), line_starts };
        let (mut last, mut count) = (Segment::default(), 0);
        while let Some(segment) = mappings.after(last) {
            if count % SEGMENTS_PER_MARK == 0 {
                mappings.marks.push(segment);
            }
            (last, count) = (segment, count + 1);
        }
        Some(mappings)
    }

    /// The file, line and column, from 1, that a place of the engine comes from: lines from 1, columns in bytes.
    pub(super) fn original(&self, code: &[u8], line: u32, column: u32) -> Option<(&str, i64, i64)> {
        let line = i64::from(line) - 1;
        // The engine counts columns from the line break before, which the first line does not have.
        let column = i64::from(column) - i64::from(line > 0);
        let place = (line, self.units(code, line, column));
        let mark = self.marks.partition_point(|mark| (mark.line, mark.column) <= place).checked_sub(1)?;
        let mut found = self.marks[mark];
        for _ in 1..SEGMENTS_PER_MARK {
            match self.after(found) {
                Some(next) if (next.line, next.column) <= place => found = next,
                _ => break,
            }
        }
        // A line that begins with what the packager made up comes from nowhere.
        if found.line != line || !found.has_original {
            return None;
        }
        let file = self.sources.get(usize::try_from(found.source).ok()?)?.as_deref()?;
        Some((file, found.original_line + 1, found.original_column + 1))
    }

    /// A column of bytes in UTF-16 units.
    fn units(&self, code: &[u8], line: i64, column: i64) -> i64 {
        let before = || {
            let start = *self.line_starts.get(usize::try_from(line).ok()?)?;
            let end = (start + usize::try_from(column).ok()?).min(code.len());
            let text = String::from_utf8_lossy(code.get(start..end)?);
            i64::try_from(text.encode_utf16().count()).ok()
        };
        before().unwrap_or(column)
    }

    /// The segment behind another.
    fn after(&self, last: Segment) -> Option<Segment> {
        let mut segment = last;
        let mut at = last.next;
        loop {
            match self.text.get(at)? {
                b',' => at += 1,
                b';' => {
                    (segment.line, segment.column) = (segment.line + 1, 0);
                    at += 1;
                }
                _ => break,
            }
        }
        let mut fields = [0; 5];
        let mut count = 0;
        while let Some(byte) = self.text.get(at)
            && !matches!(byte, b',' | b';')
        {
            *fields.get_mut(count)? = self.number(&mut at)?;
            count += 1;
        }
        segment.next = at;
        segment.column = segment.column.checked_add(fields[0])?;
        segment.has_original = count >= 4;
        if segment.has_original {
            segment.source = segment.source.checked_add(fields[1])?;
            segment.original_line = segment.original_line.checked_add(fields[2])?;
            segment.original_column = segment.original_column.checked_add(fields[3])?;
        }
        Some(segment)
    }

    /// A number: digits of five bits, the lowest first, whose lowest bit is the sign.
    fn number(&self, at: &mut usize) -> Option<i64> {
        let mut value = 0_i64;
        // Numbers have 32 bits.
        for shift in (0..35).step_by(5) {
            let digit = i64::from(digit(*self.text.get(*at)?)?);
            *at += 1;
            value |= (digit & 31) << shift;
            if digit & 32 == 0 {
                return Some(if value & 1 == 0 { value >> 1 } else { -(value >> 1) });
            }
        }
        None
    }
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}
