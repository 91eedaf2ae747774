//! What stands behind the scheme of a bucket URL: the bucket's name and a prefix that all keys get.

/// A bucket and the prefix inside it: empty, or ending in `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) bucket: String,
    pub(crate) prefix: String,
}

impl Location {
    /// Reads `//bucket[/prefix]`, the part of a URL after its scheme and colon.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub(crate) fn parse(rest: &str) -> Result<Self, String> {
        let rest = rest.strip_prefix("//").ok_or("two slashes must follow the scheme")?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.$".contains(c);
        if bucket.is_empty() || !bucket.chars().all(is_name) {
            return Err(format!("`{bucket}` is not a bucket name"));
        }
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        if prefix.is_empty() {
            return Ok(Self { bucket: bucket.to_owned(), prefix: String::new() });
        }
        if prefix.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(format!("the prefix `{prefix}` has an empty, `.` or `..` part"));
        }
        if prefix.chars().any(|c| c.is_control() || "?#%".contains(c)) {
            return Err(format!("the prefix `{prefix}` holds a control character, `?`, `#` or `%`"));
        }
        Ok(Self { bucket: bucket.to_owned(), prefix: format!("{prefix}/") })
    }

    /// The key in the store.
    pub(crate) fn full(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    /// The URL again.
    pub(crate) fn url(&self, scheme: &str) -> String {
        let slash = if self.prefix.is_empty() { "" } else { "/" };
        format!("{scheme}://{}{slash}{}", self.bucket, self.prefix.trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_always_ends_in_a_slash() {
        for (rest, bucket, prefix, url) in [
            ("//b", "b", "", "s3://b"),
            ("//b/", "b", "", "s3://b"),
            ("//b/p", "b", "p/", "s3://b/p"),
            ("//b.c-d/p/q/", "b.c-d", "p/q/", "s3://b.c-d/p/q"),
        ] {
            let location = Location::parse(rest).unwrap();
            assert_eq!((location.bucket.as_str(), location.prefix.as_str()), (bucket, prefix));
            assert_eq!(location.url("s3"), url);
        }
        assert_eq!(Location::parse("//b/p").unwrap().full("k"), "p/k");
    }

    #[test]
    fn what_is_no_location_is_refused() {
        for rest in
            ["", "b", "/b", "//", "///p", "//b//p", "//b/../p", "//user@b", "//b?x", "//b/p?x", "//b/%2e"]
        {
            assert!(Location::parse(rest).is_err(), "{rest}");
        }
    }
}
