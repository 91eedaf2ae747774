//! The files `_headers` and `_redirects`, as on Cloudflare.

use std::collections::HashMap;

use http::header::{CONNECTION, CONTENT_LENGTH, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::pattern::{Matched, Pattern};

/// Rules of `_headers`.
const HEADER_RULES_MAX: usize = 100;
/// Rules of `_redirects` that are a path each, and those with a placeholder.
const STATIC_MAX: usize = 2_000;
const DYNAMIC_MAX: usize = 100;
/// Longest line, in bytes.
const LINE_LEN_MAX: usize = 2_000;

/// Fields that are the server's own.
const FRAMING: [HeaderName; 6] = [CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION, UPGRADE, TRAILER, TE];

/// A line that says nothing that can be done. Disposition: reject.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct RuleError {
    /// From 1.
    pub line: usize,
    /// What is wrong, and what to do.
    pub problem: String,
}

fn fault(line: usize, problem: impl Into<String>) -> RuleError {
    RuleError { line, problem: problem.into() }
}

/// The lines that say something, without what surrounds them, by their number.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

#[derive(Debug)]
enum HeaderChange {
    Add(HeaderName, String),
    /// Not even what stands there without a rule.
    Remove(HeaderName),
}

/// The file `_headers`: fields of answers with a file, by path.
#[derive(Debug, Default)]
pub struct Headers(Vec<(Pattern, Vec<HeaderChange>)>);

impl Headers {
    /// Reads the file.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let mut rules: Vec<(Pattern, Vec<HeaderChange>)> = Vec::new();
        for (number, line) in lines(text) {
            if line.len() > LINE_LEN_MAX {
                return Err(fault(number, format!("is longer than {LINE_LEN_MAX} bytes")));
            }
            if line.starts_with('/') || line.starts_with("https://") {
                if rules.len() == HEADER_RULES_MAX {
                    return Err(fault(
                        number,
                        format!("is one more than the {HEADER_RULES_MAX} rules that there may be"),
                    ));
                }
                let pattern =
                    Pattern::parse(line).map_err(|problem| fault(number, format!("`{line}` {problem}")))?;
                rules.push((pattern, Vec::new()));
                continue;
            }
            let Some((_, changes)) = rules.last_mut() else {
                return Err(fault(
                    number,
                    "a field before the first path: write a path above it, such as `/*`",
                ));
            };
            changes.push(change(line).map_err(|problem| fault(number, problem))?);
        }
        Ok(Self(rules))
    }

    /// Applies the rules of a path to an answer's fields. A field of several rules has their values in turn.
    pub(crate) fn apply(&self, host: &str, path: &str, headers: &mut HeaderMap) {
        let mut set: Vec<&HeaderName> = Vec::new();
        for (pattern, changes) in &self.0 {
            let Some(matched) = pattern.matched(host, path) else { continue };
            for change in changes {
                match change {
                    HeaderChange::Remove(name) => drop(headers.remove(name)),
                    HeaderChange::Add(name, value) => add(headers, &mut set, name, &matched.fill(value)),
                }
            }
        }
    }
}

/// The first rule of a field replaces what stands there; later ones add to it.
fn add<'r>(headers: &mut HeaderMap, set: &mut Vec<&'r HeaderName>, name: &'r HeaderName, value: &str) {
    let is_first = !set.contains(&name);
    let before = headers.get(name).filter(|_| !is_first).and_then(|value| value.to_str().ok());
    let whole = before.map_or_else(|| value.to_owned(), |before| format!("{before}, {value}"));
    // A placeholder may have stood for what no field can hold.
    if let Ok(value) = HeaderValue::from_str(&whole) {
        headers.insert(name, value);
        if is_first {
            set.push(name);
        }
    }
}

fn change(line: &str) -> Result<HeaderChange, String> {
    if let Some(name) = line.strip_prefix('!') {
        return Ok(HeaderChange::Remove(header_name(name.trim())?));
    }
    let (name, value) =
        line.split_once(':').ok_or_else(|| format!("`{line}` is no field: write `Name: value`"))?;
    let (name, value) = (header_name(name.trim())?, value.trim());
    if value.is_empty() {
        return Err(format!("`{name}` has no value; to remove a field write `! {name}`"));
    }
    HeaderValue::from_str(value).map_err(|_| format!("the value of `{name}` cannot stand in a field"))?;
    if FRAMING.contains(&name) {
        return Err(format!(
            "`{name}` is not for `_headers`: it says how long an answer is, or belongs to one connection"
        ));
    }
    Ok(HeaderChange::Add(name, value.to_owned()))
}

fn header_name(name: &str) -> Result<HeaderName, String> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("`{name}` is no name of a field"))
}

/// Where a path leads instead of to its own file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Redirected {
    /// The client is to go there.
    To(StatusCode, String),
    /// As if this path had been asked for.
    As(String),
}

#[derive(Debug)]
struct Redirect {
    from: Pattern,
    /// As it was written.
    path: String,
    to: String,
    /// None: the answer is that of another path.
    status: Option<StatusCode>,
}

/// The file `_redirects`: paths that lead elsewhere.
#[derive(Debug, Default)]
pub struct Redirects {
    /// Those of one path that stand before the first with a placeholder, by that path.
    exact: HashMap<String, Redirect>,
    /// The others, in order.
    others: Vec<Redirect>,
}

impl Redirects {
    /// Reads the file.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let mut redirects = Self::default();
        for (number, line) in lines(text) {
            let redirect = redirect(line).map_err(|problem| fault(number, problem))?;
            let is_exact = redirect.from.is_exact() && redirects.others.is_empty();
            let (len, max) = if is_exact {
                (redirects.exact.len(), STATIC_MAX)
            } else {
                (redirects.others.len(), DYNAMIC_MAX)
            };
            if len == max {
                return Err(fault(
                    number,
                    format!("is one more than the {max} rules of its kind that there may be"),
                ));
            }
            if is_exact {
                redirects.exact.entry(redirect.path.clone()).or_insert(redirect);
            } else {
                redirects.others.push(redirect);
            }
        }
        Ok(redirects)
    }

    /// Where a path leads. The first rule counts.
    pub(crate) fn of(&self, host: &str, path: &str, query: Option<&str>) -> Option<Redirected> {
        let rules = self.exact.get(path).into_iter().chain(&self.others);
        let (rule, matched) = rules
            .filter_map(|rule| Some((rule, rule.from.matched(host, path)?)))
            .find(|(rule, matched)| !rule.is_to(matched, path))?;
        let to = on_this_host(matched.fill(&rule.to));
        let Some(status) = rule.status else { return Some(Redirected::As(to)) };
        let to = match query {
            // A target's own query counts.
            Some(query) if !to.contains('?') => match to.split_once('#') {
                Some((to, fragment)) => format!("{to}?{query}#{fragment}"),
                None => format!("{to}?{query}"),
            },
            _ => to,
        };
        Some(Redirected::To(status, to))
    }
}

impl Redirect {
    /// Whether it leads to where it was: it would never end.
    fn is_to(&self, matched: &Matched, path: &str) -> bool {
        matched.fill(&self.to) == path
    }
}

fn redirect(line: &str) -> Result<Redirect, String> {
    if line.len() > LINE_LEN_MAX {
        return Err(format!("is longer than {LINE_LEN_MAX} bytes"));
    }
    let words: Vec<&str> = line.split_whitespace().take_while(|word| !word.starts_with('#')).collect();
    let (from, to, status) = match words.as_slice() {
        [from, to] => (*from, *to, "302"),
        [from, to, status] => (*from, *to, *status),
        _ => return Err(format!("`{line}` is no redirect: write `/from /to` and, if not 302, the status")),
    };
    let pattern = Pattern::parse(from).map_err(|problem| format!("`{from}` {problem}"))?;
    let status = match status {
        "200" if to.starts_with('/') => None,
        "200" => return Err(format!("`{to}`: with 200 the target is a path of this application")),
        "301" | "302" | "303" | "307" | "308" => {
            Some(StatusCode::from_bytes(status.as_bytes()).expect("one of five numbers"))
        }
        _ => return Err(format!("`{status}` is none of 200, 301, 302, 303, 307 and 308")),
    };
    if !["/", "https://", "http://"].iter().any(|start| to.starts_with(start)) {
        return Err(format!("`{to}` is neither a path nor an address"));
    }
    HeaderValue::from_str(to).map_err(|_| format!("`{to}` cannot stand in a field: percent-encode it"))?;
    Ok(Redirect { from: pattern, path: from.to_owned(), to: to.to_owned(), status })
}

/// What begins with `/` stays on this host, whatever a placeholder stood for: `//` and `/\\` name another one.
fn on_this_host(to: String) -> String {
    if !to.starts_with('/') {
        return to;
    }
    let rest = to.trim_start_matches(['/', '\\']);
    format!("/{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_of_the_paths_that_they_stand_below() {
        let text = "
# all
/*
  X-Frame-Options: DENY
  Cache-Control: no-cache
/static/*
  ! Cache-Control
  X-Robots-Tag: none
  X-Robots-Tag: noai
/p/:name
  Link: </:name.css>; rel=preload
https://x.example.com/*
  X-Host: yes
";
        let rules = Headers::parse(text).unwrap();
        let of = |host, path| {
            let mut headers = HeaderMap::new();
            headers.insert("cache-control", HeaderValue::from_static("public"));
            rules.apply(host, path, &mut headers);
            let mut flat: Vec<_> =
                headers.iter().map(|(name, value)| format!("{name}={}", value.to_str().unwrap())).collect();
            flat.sort();
            flat.join("|")
        };
        assert_eq!(of("h", "/a"), "cache-control=no-cache|x-frame-options=DENY");
        assert_eq!(of("h", "/static/a.js"), "x-frame-options=DENY|x-robots-tag=none, noai");
        assert_eq!(of("h", "/p/a"), "cache-control=no-cache|link=</a.css>; rel=preload|x-frame-options=DENY");
        assert_eq!(of("x.example.com", "/"), "cache-control=no-cache|x-frame-options=DENY|x-host=yes");
    }

    #[test]
    fn a_line_of_headers_that_is_wrong_is_named() {
        for (text, line, problem) in [
            ("X: y", 1, "before the first path"),
            ("/a\n\n  nothing", 3, "`nothing` is no field"),
            ("/a\n  b c: d", 2, "`b c` is no name"),
            ("/a\n  x:", 2, "`x` has no value"),
            ("/*/*", 1, "more than one"),
            ("/a\n  Content-Length: 3", 2, "`content-length` is not for `_headers`"),
            (&"/a\n".repeat(101), 101, "the 100 rules"),
        ] {
            let error = Headers::parse(text).unwrap_err();
            assert!(error.line == line && error.problem.contains(problem), "{error}");
        }
    }

    #[test]
    fn a_path_leads_where_the_first_rule_says() {
        let text = "
/a /b
/blog/* https://blog.example.com/:splat 301
/app/* /app/index 200 # the page
/blog/x /x
/loop/* /loop/:splat
/f /g#there 308
/q /r?own=1 303
";
        let redirects = Redirects::parse(text).unwrap();
        let to = |path, query| redirects.of("h", path, query);
        let moved = |status, to: &str| Some(Redirected::To(StatusCode::from_u16(status).unwrap(), to.into()));
        assert_eq!(to("/a", None), moved(302, "/b"));
        assert_eq!(to("/a", Some("x=1")), moved(302, "/b?x=1"));
        assert_eq!(to("/blog/y", None), moved(301, "https://blog.example.com/y"));
        assert_eq!(to("/blog/x", None), moved(301, "https://blog.example.com/x"), "the first one counts");
        assert_eq!(to("/app/any/path", Some("x")), Some(Redirected::As("/app/index".into())));
        assert_eq!(to("/loop/a", None), None);
        assert_eq!(to("/f", Some("x")), moved(308, "/g?x#there"));
        assert_eq!(to("/q", Some("x")), moved(303, "/r?own=1"));
        assert_eq!(to("/other", None), None);
    }

    #[test]
    fn no_path_leads_to_a_host_that_the_rule_does_not_name() {
        let redirects = Redirects::parse("/en/* /:splat 301\n/as/* /:splat 200").unwrap();
        let to = |path| redirects.of("h", path, None);
        for path in ["/en//evil.example", "/en/\\evil.example", "/en///\\/evil.example"] {
            assert_eq!(
                to(path),
                Some(Redirected::To(StatusCode::MOVED_PERMANENTLY, "/evil.example".into())),
                "{path}"
            );
        }
        assert_eq!(to("/as//a"), Some(Redirected::As("/a".into())));
    }

    #[test]
    fn a_line_of_redirects_that_is_wrong_is_named() {
        for (text, line, problem) in [
            ("\n/a", 2, "is no redirect"),
            ("/a b", 1, "`b` is neither"),
            ("/a /b 404", 1, "`404` is none of"),
            ("/a https://x/ 200", 1, "a path of this application"),
            ("a /b", 1, "begins neither"),
            (&"/*/x /b\n".repeat(101), 101, "the 100 rules"),
        ] {
            let error = Redirects::parse(text).unwrap_err();
            assert!(error.line == line && error.problem.contains(problem), "{error}");
        }
    }
}
