//! What is known to fail. A `*` in the name of a file or a subtest stands for any text.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::{Results, Subtest};

/// Subtests that fail for one reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reason {
    /// Why, in a sentence of the docs.
    pub(super) reason: String,
    /// Subtests by file.
    fails: BTreeMap<String, Vec<String>>,
}

/// All reasons.
#[derive(Debug)]
pub(super) struct Known(pub(super) Vec<Reason>);

impl Known {
    pub(super) fn read(path: &Path) -> Self {
        Self(serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap())
    }

    /// The number of the reason for which a subtest fails.
    pub(super) fn reason_of(&self, file: &str, subtest: &str) -> Option<usize> {
        self.0.iter().position(|reason| {
            let of_file = reason.fails.iter().filter(|(pattern, _)| matches(pattern, file));
            of_file.flat_map(|(_, subtests)| subtests).any(|pattern| matches(pattern, subtest))
        })
    }

    /// A line for each subtest that fails and is not known, or is known and passes, and for each pattern that names
    /// nothing that ran.
    pub(super) fn differences(&self, results: &Results) -> Vec<String> {
        let mut wrong = Vec::new();
        for (file, subtests) in results {
            if subtests.is_empty() {
                wrong.push(format!("has no subtest: {file}"));
            }
            for Subtest { name, failure } in subtests {
                match (failure, self.reason_of(file, name)) {
                    (Some(failure), None) => wrong.push(format!("fails: {file}: {name}: {failure}")),
                    (None, Some(_)) => wrong.push(format!("passes: {file}: {name}")),
                    _ => {}
                }
            }
        }
        if std::env::var_os("HOLDFAST_WPT").is_none() {
            wrong.extend(self.idle_patterns(results));
        }
        wrong
    }

    fn idle_patterns(&self, results: &Results) -> Vec<String> {
        let patterns = self.0.iter().flat_map(|reason| &reason.fails);
        let each = patterns.flat_map(|(file, subtests)| subtests.iter().map(move |subtest| (file, subtest)));
        let names_none = |(file, subtest): &(&String, &String)| {
            let mut of_file = results.iter().filter(|(name, _)| matches(file, name));
            !of_file.any(|(_, subtests)| subtests.iter().any(|ran| matches(subtest, &ran.name)))
        };
        each.filter(names_none).map(|(file, subtest)| format!("is not there: {file}: {subtest}")).collect()
    }
}

/// Whether `text` is `pattern`, whose `*` stand for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut left) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

#[test]
fn a_star_stands_for_any_text() {
    for (pattern, text, is_match) in [
        ("a", "a", true),
        ("a", "ab", false),
        ("a*", "ab", true),
        ("*b", "ab", true),
        ("a*b*c", "a.b.b.c", true),
        ("a*b*c", "a.c.b", false),
        ("ab*ba", "aba", false),
        ("*", "", true),
    ] {
        assert_eq!(matches(pattern, text), is_match, "{pattern} {text}");
    }
}
