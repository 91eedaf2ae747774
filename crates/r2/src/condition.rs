//! Whether a conditional operation may go on, by RFC 9110, section 13, as R2 reads it.

use serde::Deserialize;

/// Conditions on the object that is there. Absent ones hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct Condition {
    /// `If-Match`
    pub(crate) etag_matches: Option<Vec<EtagMatch>>,
    /// `If-None-Match`
    pub(crate) etag_does_not_match: Option<Vec<EtagMatch>>,
    /// `If-Unmodified-Since`, in milliseconds since 1970.
    pub(crate) uploaded_before: Option<i64>,
    /// `If-Modified-Since`, in milliseconds since 1970.
    pub(crate) uploaded_after: Option<i64>,
    /// Whether times are compared by whole seconds.
    pub(crate) seconds_granularity: bool,
}

/// One entry of a list of etags.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "camelCase")]
pub(crate) enum EtagMatch {
    /// `*`
    Wildcard,
    /// `"…"`
    Strong(String),
    /// `W/"…"`
    Weak(String),
}

impl EtagMatch {
    fn is_of(&self, etag: &str, is_weak_enough: bool) -> bool {
        match self {
            Self::Wildcard => true,
            Self::Strong(value) => value == etag,
            Self::Weak(value) => is_weak_enough && value == etag,
        }
    }
}

impl Condition {
    /// Whether it holds for an object with this etag, put at this time in milliseconds since 1970; or for none.
    pub(crate) fn holds(&self, object: Option<(&str, u64)>) -> bool {
        let Self { etag_matches, etag_does_not_match, uploaded_before, uploaded_after, seconds_granularity } =
            self;
        let Some((etag, uploaded)) = object else {
            return etag_matches.is_none() && uploaded_after.is_none();
        };
        let unit = if *seconds_granularity { 1_000 } else { 1 };
        let uploaded = i64::try_from(uploaded).unwrap_or(i64::MAX).div_euclid(unit);
        let any = |list: &Vec<EtagMatch>, is_weak| list.iter().any(|one| one.is_of(etag, is_weak));
        let is_match = etag_matches.as_ref().is_none_or(|list| any(list, false));
        let is_none_match = etag_does_not_match.as_ref().is_none_or(|list| !any(list, true));
        // A list of etags that decided takes the place of the time beside it.
        let is_after = uploaded_after.is_none_or(|time| time.div_euclid(unit) < uploaded)
            || (etag_does_not_match.is_some() && is_none_match);
        let is_before = uploaded_before.is_none_or(|time| uploaded < time.div_euclid(unit))
            || (etag_matches.is_some() && is_match);
        is_match && is_none_match && is_after && is_before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(json: &str) -> Condition {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn etags_are_compared_strongly_for_a_match_and_weakly_for_none() {
        let object = Some(("a", 1_000));
        for (json, there, absent) in [
            ("{}", true, true),
            (r#"{"etagMatches":[{"type":"strong","value":"a"}]}"#, true, false),
            (r#"{"etagMatches":[{"type":"weak","value":"a"}]}"#, false, false),
            (r#"{"etagMatches":[{"type":"strong","value":"b"},{"type":"strong","value":"a"}]}"#, true, false),
            (r#"{"etagMatches":[{"type":"wildcard"}]}"#, true, false),
            (r#"{"etagMatches":[]}"#, false, false),
            (r#"{"etagDoesNotMatch":[{"type":"strong","value":"a"}]}"#, false, true),
            (r#"{"etagDoesNotMatch":[{"type":"weak","value":"a"}]}"#, false, true),
            (r#"{"etagDoesNotMatch":[{"type":"strong","value":"b"}]}"#, true, true),
            (r#"{"etagDoesNotMatch":[{"type":"wildcard"}]}"#, false, true),
        ] {
            assert_eq!(condition(json).holds(object), there, "{json}");
            assert_eq!(condition(json).holds(None), absent, "{json}");
        }
    }

    #[test]
    fn times_are_exclusive_and_may_be_cut_to_seconds() {
        for (json, uploaded, expected) in [
            (r#"{"uploadedBefore":1500}"#, 1_499, true),
            (r#"{"uploadedBefore":1500}"#, 1_500, false),
            (r#"{"uploadedAfter":1500}"#, 1_500, false),
            (r#"{"uploadedAfter":1500}"#, 1_501, true),
            (r#"{"uploadedAfter":1500,"secondsGranularity":true}"#, 1_999, false),
            (r#"{"uploadedAfter":1500,"secondsGranularity":true}"#, 2_000, true),
            (r#"{"uploadedBefore":1500,"secondsGranularity":true}"#, 1_000, false),
            (r#"{"uploadedBefore":2000,"secondsGranularity":true}"#, 1_999, true),
        ] {
            assert_eq!(condition(json).holds(Some(("a", uploaded))), expected, "{json} {uploaded}");
        }
        assert!(condition(r#"{"uploadedBefore":1500}"#).holds(None));
        assert!(!condition(r#"{"uploadedAfter":1500}"#).holds(None));
    }

    #[test]
    fn an_etag_that_decided_hides_the_time_beside_it() {
        let a = r#"[{"type":"strong","value":"a"}]"#;
        let both = condition(&format!(r#"{{"etagMatches":{a},"uploadedBefore":500}}"#));
        assert!(both.holds(Some(("a", 1_000))));
        assert!(!both.holds(Some(("b", 100))));
        let both = condition(&format!(r#"{{"etagDoesNotMatch":{a},"uploadedAfter":5000}}"#));
        assert!(both.holds(Some(("b", 1_000))));
        assert!(!both.holds(Some(("a", 9_000))));
    }
}
