//! Whether and how long an answer is kept, as Cloudflare documents it for `cache.put`.

use std::time::Duration;

/// Longest time, so that no sum overflows: a year.
const LIFETIME_MAX: u64 = 365 * 24 * 3_600;

/// For how long an answer is kept, and the fields that are kept with it; none: it is not kept.
pub(super) fn lifetime(
    status: u16,
    mut headers: Vec<(String, String)>,
    expires_in: Option<i64>,
) -> Option<(Duration, Vec<(String, String)>)> {
    let control = all(&headers, "cache-control").join(",");
    let directives: Vec<(String, Option<String>)> = directives(&control);
    let has = |name: &str| directives.iter().any(|(directive, value)| directive == name && value.is_none());
    // `private=Set-Cookie`: what is private is that field, and not the answer.
    let hides_cookies = directives.iter().any(|(directive, value)| {
        directive == "private"
            && value.as_deref().is_some_and(|fields| {
                fields.split(',').any(|field| field.trim().eq_ignore_ascii_case("set-cookie"))
            })
    });
    if has("no-store") || has("no-cache") || has("private") {
        return None;
    }
    if hides_cookies {
        headers.retain(|(name, _)| !name.eq_ignore_ascii_case("set-cookie"));
    } else if !all(&headers, "set-cookie").is_empty() {
        return None;
    }
    let seconds = |name: &str| {
        let (_, value) = directives.iter().find(|(directive, _)| directive == name)?;
        // What is no number is as good as expired.
        Some(value.as_deref().and_then(|value| value.parse().ok()).unwrap_or(0))
    };
    let seconds: u64 = seconds("s-maxage")
        .or_else(|| seconds("max-age"))
        .or_else(|| expires_in.map(|ms| u64::try_from(ms / 1_000).unwrap_or(0)))
        .unwrap_or_else(|| of_status(status));
    (seconds > 0).then(|| (Duration::from_secs(seconds.min(LIFETIME_MAX)), headers))
}

/// How long an answer is kept that does not say so itself.
const fn of_status(status: u16) -> u64 {
    match status {
        200 | 301 => 7_200,
        302 | 303 => 1_200,
        404 | 410 => 180,
        _ => 0,
    }
}

/// The values of a field.
pub(super) fn all<'h>(headers: &'h [(String, String)], name: &str) -> Vec<&'h str> {
    let is_it = |(of, _): &&(String, String)| of.eq_ignore_ascii_case(name);
    headers.iter().filter(is_it).map(|(_, value)| value.as_str()).collect()
}

/// Names in lower case, with what stands behind `=`; commas within quotes do not separate.
fn directives(control: &str) -> Vec<(String, Option<String>)> {
    let mut is_quoted = false;
    let parts = control.split(|c| {
        is_quoted ^= c == '"';
        c == ',' && !is_quoted
    });
    let read = |part: &str| {
        let (name, value) = match part.split_once('=') {
            Some((name, value)) => (name, Some(value.trim().trim_matches('"').to_owned())),
            None => (part, None),
        };
        (name.trim().to_ascii_lowercase(), value)
    };
    parts.map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds.
    fn kept(status: u16, headers: &[(&str, &str)], expires_in: Option<i64>) -> Option<u64> {
        let owned = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        lifetime(status, owned.collect(), expires_in).map(|(lifetime, _)| lifetime.as_secs())
    }

    #[test]
    fn cache_control_comes_before_expires_and_both_before_the_status() {
        let control = |value: &str| kept(200, &[("Cache-Control", value)], Some(9_999));
        assert_eq!(control("max-age=60"), Some(60));
        assert_eq!(control("public, MAX-AGE=\"60\", s-maxage=5"), Some(5));
        assert_eq!(control("must-revalidate"), Some(9));
        assert_eq!(control("max-age=99999999999"), Some(LIFETIME_MAX));
        for never in
            ["max-age=0", "s-maxage=0, max-age=9", "max-age=x", "no-store", "max-age=9, no-cache", "Private"]
        {
            assert_eq!(control(never), None, "{never}");
        }
        assert_eq!(kept(200, &[("cache-control", "public"), ("cache-control", "no-store")], None), None);
        assert_eq!(kept(200, &[], Some(-1)), None);
        assert_eq!(kept(200, &[], Some(0)), None);
        for (status, seconds) in [(200, Some(7_200)), (302, Some(1_200)), (404, Some(180)), (500, None)] {
            assert_eq!(kept(status, &[], None), seconds, "{status}");
            assert_eq!(kept(status, &[("Cache-Control", "max-age=7")], None), Some(7));
        }
    }

    #[test]
    fn an_answer_that_sets_cookies_is_kept_without_them_or_not_at_all() {
        let cookie = ("Set-Cookie", "a=1");
        assert_eq!(kept(200, &[cookie], None), None);
        assert_eq!(kept(200, &[cookie, ("Cache-Control", "max-age=9")], None), None);
        assert_eq!(kept(200, &[cookie, ("Cache-Control", "private=\"x, y\", max-age=9")], None), None);
        for control in ["private=Set-Cookie, max-age=9", "max-age=9, private=\"x, set-cookie\""] {
            let headers = [("Set-Cookie", "a=1"), ("Cache-Control", control), ("X", "y")];
            let owned = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let (lifetime, headers) = lifetime(200, owned.to_vec(), None).unwrap();
            assert_eq!((lifetime.as_secs(), headers.len()), (9, 2), "{headers:?}");
        }
    }
}
