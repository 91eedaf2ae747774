//! What of a kept answer a request gets: all of it, that it has not changed, or a range of its bytes.

use std::ops::Range;
use std::time::Instant;

use bytes::Bytes;
use serde::Deserialize;

use super::entries::Kept;
use super::policy::all;

/// The fields of a request that matter.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Wanted {
    /// `If-None-Match`
    pub(super) none_match: Option<String>,
    /// `If-Modified-Since` in milliseconds since 1970.
    pub(super) modified_since: Option<i64>,
    /// `Range`
    pub(super) range: Option<String>,
    /// `If-Range`
    pub(super) if_range: Option<String>,
}

/// An answer from a cache.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) status: u16,
    pub(super) status_text: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) has_body: bool,
    pub(super) pieces: Vec<Bytes>,
}

/// Chooses.
pub(super) fn select(kept: &Kept, pieces: &[Bytes], wanted: &Wanted, now: Instant) -> Chosen {
    let len: u64 = pieces.iter().map(|piece| piece.len() as u64).sum();
    let mut headers = kept.headers.clone();
    let told = ["cf-cache-status", "age", "content-length", "content-range"];
    headers.retain(|(name, _)| !told.iter().any(|other| name.eq_ignore_ascii_case(other)));
    headers.push(("CF-Cache-Status".to_owned(), "HIT".to_owned()));
    headers.push(("Age".to_owned(), now.saturating_duration_since(kept.stored).as_secs().to_string()));
    let etag = all(&kept.headers, "etag").first().copied();
    if is_unchanged(kept, etag, wanted) {
        return empty(304, "Not Modified", headers);
    }
    let may_cut = kept.status == 200 && wanted.if_range.as_deref().is_none_or(|tag| holds(tag, kept, etag));
    let range = wanted.range.as_deref().filter(|_| may_cut).and_then(|range| range_of(range, len));
    match range {
        None => {
            headers.push(("Content-Length".to_owned(), len.to_string()));
            let has_body = !matches!(kept.status, 204 | 205 | 304);
            let (status, status_text) = (kept.status, kept.status_text.clone());
            Chosen { status, status_text, headers, has_body, pieces: pieces.to_vec() }
        }
        Some(None) => {
            headers.push(("Content-Range".to_owned(), format!("bytes */{len}")));
            empty(416, "Range Not Satisfiable", headers)
        }
        Some(Some(range)) => {
            let (first, last) = (range.start, range.end - 1);
            headers.push(("Content-Range".to_owned(), format!("bytes {first}-{last}/{len}")));
            headers.push(("Content-Length".to_owned(), (range.end - range.start).to_string()));
            let (status, status_text) = (206, "Partial Content".to_owned());
            Chosen { status, status_text, headers, has_body: true, pieces: cut(pieces, &range) }
        }
    }
}

fn empty(status: u16, text: &str, headers: Vec<(String, String)>) -> Chosen {
    Chosen { status, status_text: text.to_owned(), headers, has_body: false, pieces: Vec::new() }
}

fn opaque(etag: &str) -> &str {
    etag.trim().trim_start_matches("W/")
}

fn is_unchanged(kept: &Kept, etag: Option<&str>, wanted: &Wanted) -> bool {
    match (&wanted.none_match, wanted.modified_since) {
        (Some(list), _) if list.trim() == "*" => true,
        (Some(list), _) => {
            etag.is_some_and(|etag| list.split(',').any(|other| opaque(other) == opaque(etag)))
        }
        (None, Some(since)) => kept.last_modified.is_some_and(|modified| modified <= since),
        (None, None) => false,
    }
}

/// Whether an `If-Range` names what is kept: its strong etag, or its date as it is spelled.
fn holds(tag: &str, kept: &Kept, etag: Option<&str>) -> bool {
    let is_strong = !tag.trim().starts_with("W/");
    (is_strong && etag == Some(tag.trim()))
        || all(&kept.headers, "last-modified").first().is_some_and(|date| *date == tag.trim())
}

/// One range of bytes; none within where it cannot be had, none at all for what is no range, or several.
fn range_of(field: &str, len: u64) -> Option<Option<Range<u64>>> {
    let (first, last) = field.trim().strip_prefix("bytes=")?.trim().split_once('-')?;
    let number = |text: &str| -> Option<Option<u64>> {
        match text.trim() {
            "" => Some(None),
            digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => Some(Some(digits.parse().ok()?)),
            _ => None,
        }
    };
    let range = match (number(first)?, number(last)?) {
        (None, None) => return None,
        (None, Some(suffix)) => len.saturating_sub(suffix)..len,
        (Some(first), None) => first..len,
        (Some(first), Some(last)) if last < first => return None,
        (Some(first), Some(last)) => first..last.saturating_add(1).min(len),
    };
    Some((range.start < range.end).then_some(range))
}

fn cut(pieces: &[Bytes], range: &Range<u64>) -> Vec<Bytes> {
    let mut begin = 0;
    let mut chosen = Vec::new();
    for piece in pieces {
        let end = begin + piece.len() as u64;
        let (from, to) = (range.start.max(begin), range.end.min(end));
        if from < to {
            let within = |at: u64| usize::try_from(at - begin).expect("it is within a piece");
            chosen.push(piece.slice(within(from)..within(to)));
        }
        begin = end;
    }
    chosen
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn kept(headers: &[(&str, &str)]) -> Kept {
        Kept {
            status: 200,
            status_text: "OK".into(),
            headers: headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            last_modified: Some(5_000),
            stored: Instant::now(),
            lifetime: Duration::from_secs(60),
        }
    }

    fn chosen(wanted: &Wanted) -> (u16, String, Option<String>) {
        let kept = kept(&[("ETag", "\"a\""), ("Age", "9"), ("Last-Modified", "then")]);
        let pieces = [Bytes::from_static(b"0123"), Bytes::from_static(b"456789")];
        let chosen = select(&kept, &pieces, wanted, kept.stored + Duration::from_millis(3_500));
        assert_eq!(all(&chosen.headers, "cf-cache-status"), ["HIT"]);
        assert_eq!(all(&chosen.headers, "age"), ["3"]);
        let range = all(&chosen.headers, "content-range").first().map(|range| (*range).to_owned());
        let body = String::from_utf8(chosen.pieces.concat()).unwrap();
        assert_eq!(chosen.has_body, !matches!(chosen.status, 304 | 416));
        (chosen.status, body, range)
    }

    fn text(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn a_range_gives_its_bytes() {
        let ranged = |range: &str| chosen(&Wanted { range: text(range), ..Wanted::default() });
        assert_eq!(ranged("bytes=2-5"), (206, "2345".into(), text("bytes 2-5/10")));
        assert_eq!(ranged("bytes=8-"), (206, "89".into(), text("bytes 8-9/10")));
        assert_eq!(ranged("bytes=-3"), (206, "789".into(), text("bytes 7-9/10")));
        assert_eq!(ranged("bytes=0-99"), (206, "0123456789".into(), text("bytes 0-9/10")));
        assert_eq!(ranged("bytes=10-"), (416, String::new(), text("bytes */10")));
        for whole in ["bytes=0-1,3-4", "bytes=5-2", "bytes=-", "bytes=x-1", "lines=1-2", "bytes=+1-2"] {
            assert_eq!(ranged(whole), (200, "0123456789".into(), None), "{whole}");
        }
        let conditional = |tag: &str| {
            chosen(&Wanted { range: text("bytes=0-0"), if_range: text(tag), ..Wanted::default() }).0
        };
        assert_eq!([conditional("\"a\""), conditional("then")], [206, 206]);
        assert_eq!([conditional("\"b\""), conditional("W/\"a\""), conditional("now")], [200, 200, 200]);
    }

    #[test]
    fn what_has_not_changed_is_not_sent_again() {
        let tagged = |list: &str| chosen(&Wanted { none_match: text(list), ..Wanted::default() }).0;
        assert_eq!([tagged("\"a\""), tagged("\"b\", W/\"a\""), tagged("*")], [304, 304, 304]);
        assert_eq!([tagged("\"b\""), tagged("a")], [200, 200]);
        let dated = |ms: i64| chosen(&Wanted { modified_since: Some(ms), ..Wanted::default() }).0;
        assert_eq!([dated(4_999), dated(5_000), dated(9_000)], [200, 304, 304]);
        let both = Wanted { none_match: text("\"b\""), modified_since: Some(9_000), ..Wanted::default() };
        assert_eq!(chosen(&both).0, 200, "the etag decides");
    }
}
