//! Patterns of paths: `*` stands for anything, and `:name` for one part between slashes. What they stood for is put where
//! a text says `:splat` or `:name`.

use regex::{Captures, Regex};

/// Longest pattern, in bytes.
pub(crate) const PATTERN_LEN_MAX: usize = 1_000;

/// A pattern of a path, or of a host and a path.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// None: of any host.
    host: Option<Regex>,
    path: Regex,
    is_exact: bool,
}

/// What the placeholders of a match stood for.
#[derive(Debug, Default)]
pub(crate) struct Matched(Vec<(String, String)>);

impl Pattern {
    /// Reads `/path/*` or `https://host/path`.
    ///
    /// # Errors
    /// What is wrong, for people.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > PATTERN_LEN_MAX {
            return Err(format!("is longer than {PATTERN_LEN_MAX} bytes"));
        }
        let (host, path) = match text.strip_prefix("https://") {
            Some(rest) => {
                let at = rest.find('/').unwrap_or(rest.len());
                let (host, path) = rest.split_at(at);
                (Some(host), if path.is_empty() { "/" } else { path })
            }
            None if text.starts_with('/') => (None, text),
            None => return Err("begins neither with `/` nor with `https://`".into()),
        };
        if path.matches('*').count() > 1 {
            return Err("has more than one `*`".into());
        }
        let host = host.map(|host| compile(host, "[^/.]+")).transpose()?;
        let is_exact = host.is_none() && !path.contains(['*', ':']);
        Ok(Self { host, path: compile(path, "[^/]+")?, is_exact })
    }

    /// Whether it is a path and nothing else.
    pub(crate) fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// What it stands for in a path at a host, if it is one.
    pub(crate) fn matched(&self, host: &str, path: &str) -> Option<Matched> {
        let mut matched = Matched::default();
        if let Some(pattern) = &self.host {
            matched.take(pattern, &pattern.captures(host)?);
        }
        matched.take(&self.path, &self.path.captures(path)?);
        Some(matched)
    }
}

fn compile(text: &str, part: &str) -> Result<Regex, String> {
    let mut regex = String::from("^");
    let mut rest = text;
    while let Some(at) = rest.find(['*', ':']) {
        regex += &regex::escape(&rest[..at]);
        let is_splat = rest[at..].starts_with('*');
        rest = &rest[at + 1..];
        if is_splat {
            regex += "(?P<splat>.*)";
            continue;
        }
        let len = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, after) = rest.split_at(len);
        if name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            regex += &format!("(?P<{name}>{part})");
            rest = after;
        } else {
            // No name: a colon of the path itself.
            regex += ":";
        }
    }
    regex += &regex::escape(rest);
    regex.push('$');
    Regex::new(&regex).map_err(|_| "names a placeholder twice".to_owned())
}

impl Matched {
    fn take(&mut self, pattern: &Regex, captures: &Captures<'_>) {
        let names = pattern.capture_names().flatten();
        let found =
            names.filter_map(|name| Some((name.to_owned(), captures.name(name)?.as_str().to_owned())));
        self.0.extend(found);
        // The longest first: `:ab` is not `:a` and a `b`.
        self.0.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    }

    /// The text with its placeholders filled.
    pub(crate) fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(':') {
            filled += &rest[..at];
            rest = &rest[at + 1..];
            match self.0.iter().find(|(name, _)| rest.starts_with(name.as_str())) {
                Some((name, value)) => {
                    filled += value;
                    rest = &rest[name.len()..];
                }
                None => filled.push(':'),
            }
        }
        filled + rest
    }
}

/// A glob of `run_worker_first`: `*` stands for anything, any number of times.
#[derive(Debug)]
pub(crate) struct Glob(Regex);

impl Glob {
    /// # Errors
    /// What is wrong, for people.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if !text.starts_with('/') {
            return Err("does not begin with `/`".into());
        }
        if text.len() > PATTERN_LEN_MAX {
            return Err(format!("is longer than {PATTERN_LEN_MAX} bytes"));
        }
        let parts: Vec<String> = text.split('*').map(regex::escape).collect();
        let regex = Regex::new(&format!("^{}$", parts.join(".*")));
        regex.map(Self).map_err(|error| error.to_string())
    }

    pub(crate) fn is_match(&self, path: &str) -> bool {
        self.0.is_match(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(pattern: &str, (host, path): (&str, &str), text: &str) -> Option<String> {
        Pattern::parse(pattern).unwrap().matched(host, path).map(|matched| matched.fill(text))
    }

    #[test]
    fn what_stood_for_a_placeholder_is_put_in_its_place() {
        for (pattern, path, text, wanted) in [
            ("/a", "/a", "/b", Some("/b")),
            ("/a", "/a/", "/b", None),
            ("/blog/*", "/blog/2026/x", "/n/:splat", Some("/n/2026/x")),
            ("/blog/*", "/blog/", "/n/:splat", Some("/n/")),
            ("/:y/:m/:slug", "/2026/12/a-b", "/:slug?:y:m", Some("/a-b?202612")),
            ("/:y/:m", "/2026/12/a", "", None),
            ("/a.b", "/aXb", "", None),
            ("/t:1", "/t:1", "x", Some("x")),
            ("/:a/:ab", "/1/2", ":ab:a", Some("21")),
            ("/x", "/x", "https://h:8080/:splat", Some("https://h:8080/:splat")),
        ] {
            assert_eq!(fill(pattern, ("h", path), text).as_deref(), wanted, "{pattern} {path}");
        }
        assert_eq!(
            fill("https://:sub.example.com/*", ("a.example.com", "/x"), ":sub :splat").as_deref(),
            Some("a x")
        );
        assert_eq!(fill("https://example.com", ("example.org", "/"), ""), None);
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for (text, problem) in [
            ("a", "begins neither"),
            ("/*/*", "more than one"),
            ("/:a/:a", "twice"),
            (&format!("/{}", "x".repeat(PATTERN_LEN_MAX)), "longer"),
        ] {
            assert!(Pattern::parse(text).unwrap_err().contains(problem), "{text}");
        }
        assert!(Glob::parse("api/*").is_err());
        let glob = Glob::parse("/a*/b/*").unwrap();
        assert!(glob.is_match("/a/x/b/c") && glob.is_match("/a/b/") && !glob.is_match("/b"));
    }
}
