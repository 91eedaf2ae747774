//! The options of `list` as a range of keys. Keys are ordered by their UTF-8 bytes.

use holdfast_sql::KvRange;
use rquickjs::{Array, Ctx, FromJs, Object, Result, Value};

use super::state::storage;

/// What `storage.js` made of the options.
#[derive(Debug, Default)]
pub(super) struct ListOptions {
    start: Option<String>,
    start_after: Option<String>,
    end: Option<String>,
    prefix: Option<String>,
    is_reverse: bool,
    limit: Option<u32>,
}

impl<'js> FromJs<'js> for ListOptions {
    fn from_js(_ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        let object: Object<'js> = value.get()?;
        Ok(Self {
            start: object.get("start")?,
            start_after: object.get("startAfter")?,
            end: object.get("end")?,
            prefix: object.get("prefix")?,
            is_reverse: object.get("reverse")?,
            limit: object.get("limit")?,
        })
    }
}

/// Keys and values in turn.
pub(super) fn list<'js>(ctx: Ctx<'js>, options: ListOptions) -> Result<Array<'js>> {
    let Some(range) = range_of(options) else { return Array::new(ctx) };
    let pairs = storage(&ctx).run(&ctx, |engine| engine.kv_list(&range))?;
    super::pairs_to_js(&ctx, pairs)
}

/// The range; none where no key can be in it.
fn range_of(options: ListOptions) -> Option<KvRange> {
    let ListOptions { start, start_after, end, prefix, is_reverse, limit } = options;
    let mut start = start.unwrap_or_default().into_bytes();
    if let Some(after) = start_after {
        start = after.into_bytes();
        start.push(0);
    }
    let mut end = end.map(String::into_bytes);
    if let Some(prefix) = prefix.map(String::into_bytes) {
        let after = after_prefix(&prefix);
        start = start.max(prefix);
        end = match (end, after) {
            (Some(end), Some(after)) => Some(end.min(after)),
            (end, after) => end.or(after),
        };
    }
    let is_empty = end.as_ref().is_some_and(|end| *end <= start);
    (!is_empty).then_some(KvRange { start, end, is_reverse, limit })
}

/// The first key after all with the prefix; none where there is no such key.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut after = prefix.to_vec();
    // No byte of UTF-8 is 0xff.
    *after.last_mut()? += 1;
    Some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_and_prefix_meet_in_one_range() {
        let range = |start: &str, after: Option<&str>, end: Option<&str>, prefix: Option<&str>| {
            let options = ListOptions {
                start: Some(start.to_owned()),
                start_after: after.map(str::to_owned),
                end: end.map(str::to_owned),
                prefix: prefix.map(str::to_owned),
                ..ListOptions::default()
            };
            range_of(options).map(|range| (range.start, range.end))
        };
        let text = |text: &str| text.as_bytes().to_vec();
        assert_eq!(range("", None, None, None), Some((text(""), None)));
        assert_eq!(range("", None, None, Some("")), Some((text(""), None)));
        assert_eq!(range("", None, None, Some("a")), Some((text("a"), Some(text("b")))));
        assert_eq!(range("ab", None, Some("ac"), Some("a")), Some((text("ab"), Some(text("ac")))));
        assert_eq!(range("", Some("a"), None, Some("a")), Some((text("a\0"), Some(text("b")))));
        assert_eq!(range("b", None, Some("a"), None), None);
        assert_eq!(range("c", None, None, Some("b")), None);
        assert_eq!(range("", None, Some("a"), Some("b")), None);
        assert_eq!(range("", None, Some(""), None), None);
    }
}
