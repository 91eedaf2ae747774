//! Versions as etags and back, without loss: what a client sends back names exactly the version that it got.

use holdfast_bucket::Version;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use s3s::dto::{ETag, ETagCondition};

/// What may not stand inside an etag's quotes, and the escape itself.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%');

/// The etag of a version: the version in quotes.
pub(crate) fn of(version: &Version) -> ETag {
    ETag::Strong(utf8_percent_encode(version.as_str(), ESCAPED).to_string())
}

/// The version of an etag; `None` for what this server never gave out.
pub(crate) fn version(etag: &ETag) -> Option<Version> {
    let text = percent_decode_str(etag.as_strong()?).decode_utf8().ok()?;
    Some(Version::new(text))
}

/// Whether a condition names this version.
pub(crate) fn holds(condition: &ETagCondition, current: &Version) -> bool {
    match condition {
        ETagCondition::Any => true,
        ETagCondition::ETag(etag) => version(etag).is_some_and(|version| version == *current),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_survive_the_way_there_and_back() {
        for text in ["d41d8cd98f00b204e9800998ecf8427e", "\"quoted\"", "100%", "a b", "gén", ""] {
            let version = Version::new(text);
            let header = of(&version).to_http_header().unwrap();
            let read = ETag::parse_http_header(header.as_bytes()).unwrap();
            assert_eq!(super::version(&read), Some(version), "{text}");
        }
        assert_eq!(of(&Version::new("abc")), ETag::Strong("abc".into()));
    }

    #[test]
    fn a_weak_etag_names_nothing() {
        assert!(!holds(&ETagCondition::ETag(ETag::Weak("abc".into())), &Version::new("abc")));
        assert!(holds(&ETagCondition::Any, &Version::new("abc")));
    }
}
