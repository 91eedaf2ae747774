//! One page of a listing: which keys are objects of it, which are told by a prefix, and where the next page begins.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use crate::R2Error;
use crate::limits::LIST_MAX;
use crate::request::List;

/// What the keys of a page come to, one after the other.
#[derive(Debug)]
pub(crate) struct Page {
    prefix: String,
    delimiter: Option<String>,
    limit: usize,
    entries: usize,
    /// The last key that the page has taken account of.
    reached: Option<String>,
    prefixes: Vec<String>,
}

/// What becomes of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is an object of the page.
    Object,
    /// A prefix tells it, this one for the first time or not.
    Prefix,
    /// It is for the next page.
    Beyond,
}

impl Page {
    /// A page, and the key that it begins after.
    ///
    /// # Errors
    /// A limit that is not allowed, a cursor that is none of ours.
    pub(crate) fn new(list: &List) -> Result<(Self, Option<String>), R2Error> {
        let limit = match list.limit {
            None => LIST_MAX,
            Some(limit) => usize::try_from(limit)
                .ok()
                .filter(|limit| (1..=LIST_MAX).contains(limit))
                .ok_or_else(R2Error::invalid_limit)?,
        };
        let cursor = list.cursor.as_deref().map(read_cursor).transpose()?;
        // Whichever is further.
        let after = cursor.max(list.start_after.clone());
        let delimiter = list.delimiter.clone().filter(|delimiter| !delimiter.is_empty());
        let page = Self {
            prefix: list.prefix.clone(),
            delimiter,
            limit,
            entries: 0,
            reached: None,
            prefixes: Vec::new(),
        };
        Ok((page, after))
    }

    fn prefix_of(&self, key: &str) -> Option<String> {
        let delimiter = self.delimiter.as_deref()?;
        let rest = key.strip_prefix(self.prefix.as_str())?;
        let end = rest.find(delimiter)? + delimiter.len();
        Some(format!("{}{}", self.prefix, &rest[..end]))
    }

    /// Takes the next key, in order.
    pub(crate) fn take(&mut self, key: &str) -> Place {
        let prefix = self.prefix_of(key);
        let is_told = prefix.is_some() && prefix.as_ref() == self.prefixes.last();
        if !is_told && self.entries == self.limit {
            return Place::Beyond;
        }
        self.reached = Some(key.to_owned());
        match prefix {
            None => {
                self.entries += 1;
                Place::Object
            }
            Some(prefix) => {
                if !is_told {
                    self.entries += 1;
                    self.prefixes.push(prefix);
                }
                Place::Prefix
            }
        }
    }

    /// Takes account of a key that means nothing: it was deleted.
    pub(crate) fn pass(&mut self, key: &str) {
        self.reached = Some(key.to_owned());
    }

    /// Where keys are told by a prefix that has been told: no key before this needs to be looked at. It sorts behind all
    /// but the oddest of those keys.
    pub(crate) fn skip_to(&self) -> Option<String> {
        let last = self.prefixes.last()?;
        let is_inside = self.reached.as_ref().is_some_and(|reached| reached.starts_with(last.as_str()));
        is_inside.then(|| format!("{last}\u{10ffff}"))
    }

    /// The prefixes, and where the next page begins if there is one.
    pub(crate) fn finish(self, is_truncated: bool) -> (Vec<String>, Option<String>) {
        let next = match self.prefixes.last() {
            // Further keys of the prefix would tell it a second time.
            Some(last) if self.reached.as_ref().is_some_and(|key| key.starts_with(last.as_str())) => {
                Some(format!("{last}\u{10ffff}"))
            }
            Some(_) | None => self.reached,
        };
        let cursor = next.filter(|_| is_truncated).map(|key| BASE64_URL_SAFE_NO_PAD.encode(key));
        (self.prefixes, cursor)
    }
}

fn read_cursor(cursor: &str) -> Result<String, R2Error> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok();
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| R2Error::invalid_argument("The cursor is not one that a listing gave."))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All pages over these keys: objects and prefixes in order, a page each.
    fn pages(keys: &[&str], list: &List) -> Vec<(Vec<String>, Vec<String>)> {
        let (mut pages, mut cursor) = (Vec::new(), None);
        loop {
            let list = List {
                prefix: list.prefix.clone(),
                cursor: cursor.clone(),
                limit: list.limit,
                delimiter: list.delimiter.clone(),
                start_after: list.start_after.clone(),
                ..List::default()
            };
            let (mut page, after) = Page::new(&list).unwrap();
            let mut objects = Vec::new();
            let mut is_truncated = false;
            for key in keys.iter().filter(|key| key.starts_with(list.prefix.as_str())) {
                if after.as_deref().is_some_and(|after| *key <= after) {
                    continue;
                }
                match page.take(key) {
                    Place::Object => objects.push((*key).to_owned()),
                    Place::Prefix => {}
                    Place::Beyond => {
                        is_truncated = true;
                        break;
                    }
                }
            }
            let (prefixes, next) = page.finish(is_truncated);
            pages.push((objects, prefixes));
            assert!(pages.len() <= keys.len() + 1, "it goes on for ever: {pages:?}");
            match next {
                Some(next) => cursor = Some(next),
                None => return pages,
            }
        }
    }

    fn list(prefix: &str, delimiter: Option<&str>, limit: Option<i64>) -> List {
        List { prefix: prefix.to_owned(), delimiter: delimiter.map(str::to_owned), limit, ..List::default() }
    }

    fn page(objects: &[&str], prefixes: &[&str]) -> (Vec<String>, Vec<String>) {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        (owned(objects), owned(prefixes))
    }

    const KEYS: &[&str] = &["a", "a/b", "a/c/d", "b/", "b/x", "c"];

    #[test]
    fn keys_behind_a_delimiter_are_told_by_their_prefix() {
        assert_eq!(pages(KEYS, &list("", Some("/"), None)), [page(&["a", "c"], &["a/", "b/"])]);
        assert_eq!(pages(KEYS, &list("a/", Some("/"), None)), [page(&["a/b"], &["a/c/"])]);
        assert_eq!(pages(KEYS, &list("b/", Some("/"), None)), [page(&["b/", "b/x"], &[])]);
        assert_eq!(pages(KEYS, &list("", Some(""), None)), [page(KEYS, &[])]);
        assert_eq!(pages(KEYS, &list("z", Some("/"), None)), [page(&[], &[])]);
    }

    #[test]
    fn prefixes_count_and_are_told_once() {
        assert_eq!(
            pages(KEYS, &list("", Some("/"), Some(2))),
            [page(&["a"], &["a/"]), page(&["c"], &["b/"])]
        );
        assert_eq!(
            pages(KEYS, &list("", Some("/"), Some(1))),
            [page(&["a"], &[]), page(&[], &["a/"]), page(&[], &["b/"]), page(&["c"], &[])]
        );
    }

    #[test]
    fn the_further_of_a_cursor_and_a_start_counts() {
        let cursor = BASE64_URL_SAFE_NO_PAD.encode("b");
        let after = |cursor: Option<&str>, start: Option<&str>| {
            let list = List {
                cursor: cursor.map(str::to_owned),
                start_after: start.map(str::to_owned),
                ..List::default()
            };
            Page::new(&list).map(|(_, after)| after).map_err(|error| error.code())
        };
        assert_eq!(after(Some(&cursor), Some("a")), Ok(Some("b".to_owned())));
        assert_eq!(after(Some(&cursor), Some("c")), Ok(Some("c".to_owned())));
        assert_eq!(after(None, None), Ok(None));
        assert_eq!(after(Some("!"), None), Err(10_029));
    }

    #[test]
    fn a_limit_is_of_1_to_1000() {
        for (limit, is_allowed) in [(0, false), (-1, false), (1, true), (1_000, true), (1_001, false)] {
            assert_eq!(Page::new(&list("", None, Some(limit))).is_ok(), is_allowed, "{limit}");
        }
    }

    proptest! {
        #[test]
        fn pages_of_any_length_tell_the_same(
            keys in prop::collection::btree_set("[ab/\u{10ffff}]{0,4}", 0..12),
            prefix in "[a/]{0,2}",
            delimiter in prop::option::of("[ab/]{1,2}"),
            limit in 1..4i64,
        ) {
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            // A key behind the last one of a prefix would need another letter after U+10FFFF.
            prop_assume!(!keys.iter().any(|key| key.contains("\u{10ffff}")) || delimiter.is_none());
            let whole = pages(&keys, &list(&prefix, delimiter.as_deref(), None));
            let cut = pages(&keys, &list(&prefix, delimiter.as_deref(), Some(limit)));
            let (mut objects, mut prefixes) = (Vec::new(), Vec::new());
            for (some, others) in cut {
                prop_assert!(some.len() + others.len() <= usize::try_from(limit).unwrap());
                objects.extend(some);
                prefixes.extend(others);
            }
            prop_assert_eq!((objects, prefixes), whole.into_iter().next().unwrap());
        }
    }
}
