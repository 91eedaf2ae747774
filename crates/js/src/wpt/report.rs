//! The page of pass rates.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::known::Known;
use super::{Results, Subtest};

/// Parts of the suite with rows of their own, and what they are about. The first that a file's path begins with counts.
const GROUPS: &[(&str, &str)] = &[
    ("FileAPI/", "`Blob`, `File`"),
    ("WebCryptoAPI/", "Web Crypto"),
    ("compression/", "`CompressionStream`, `DecompressionStream`"),
    ("dom/abort/", "`AbortSignal`, `AbortController`"),
    ("dom/events/", "`Event`, `EventTarget`"),
    ("encoding/streams/", "`TextEncoderStream`, `TextDecoderStream`"),
    ("encoding/", "`TextEncoder`, `TextDecoder`"),
    ("fetch/api/body/", "bodies of `Request` and `Response`"),
    ("fetch/api/headers/", "`Headers`"),
    ("fetch/api/request/", "`Request`"),
    ("fetch/api/response/", "`Response`"),
    ("html/webappapis/atob/", "`atob`, `btoa`"),
    ("html/webappapis/microtask-queuing/", "`queueMicrotask`"),
    ("html/webappapis/structured-clone/", "`structuredClone`"),
    ("html/webappapis/timers/", "timers"),
    ("streams/piping/", "streams: pipes"),
    ("streams/readable-byte-streams/", "readable byte streams"),
    ("streams/readable-streams/", "readable streams"),
    ("streams/transform-streams/", "transform streams"),
    ("streams/writable-streams/", "writable streams"),
    ("streams/", "streams: the rest"),
    ("url/", "`URL`, `URLSearchParams`"),
];

/// Counts of one row.
#[derive(Default)]
struct Row {
    files: usize,
    passed: usize,
    all: usize,
}

impl Row {
    fn add(&mut self, subtests: &[Subtest]) {
        self.files += 1;
        self.all += subtests.len();
        self.passed += subtests.iter().filter(|subtest| subtest.failure.is_none()).count();
    }

    fn cells(&self) -> String {
        // Rounded down: what is not all is never written as 100.0 %.
        let permille = self.passed * 1000 / self.all.max(1);
        format!("{} | {} | {} | {}.{} %", self.files, self.all, self.passed, permille / 10, permille % 10)
    }
}

fn group_of(file: &str) -> usize {
    GROUPS
        .iter()
        .position(|(prefix, _)| file.starts_with(prefix))
        .unwrap_or_else(|| panic!("{file} is of no group"))
}

/// The whole page.
pub(super) fn page(results: &Results, known: &Known) -> String {
    let mut text = String::from(
        "# Web-platform-tests\n\nMade by the test `wpt` of `crates/js` (`HOLDFAST_BLESS=1` writes it): files of the \
         Web-platform-tests, unchanged, in\n`tests/wpt/files`, each in an isolate of its own, with the suite's own \
         harness. A subtest that fails and is not in\n`tests/wpt/known.json`, or is there and passes, fails the test. \
         What is left out, and why, is in `tests/wpt/README.md`.\n\n\
         | of the suite | what | files | subtests | pass | rate |\n|---|---|---|---|---|---|\n",
    );
    let (mut rows, mut together) = (BTreeMap::<usize, Row>::new(), Row::default());
    for (file, subtests) in results {
        rows.entry(group_of(file)).or_default().add(subtests);
        together.add(subtests);
    }
    for (group, row) in &rows {
        let (prefix, what) = GROUPS[*group];
        writeln!(text, "| `{}` | {what} | {} |", prefix.trim_end_matches('/'), row.cells()).unwrap();
    }
    writeln!(text, "| together | | {} |", together.cells()).unwrap();
    text.push_str("\n## What fails\n\n| subtests | of | why |\n|---|---|---|\n");
    for (number, reason) in known.0.iter().enumerate() {
        writeln!(text, "{}", reason_row(results, known, number, &reason.reason)).unwrap();
    }
    text
}

fn reason_row(results: &Results, known: &Known, number: usize, reason: &str) -> String {
    let (mut count, mut groups) = (0, BTreeMap::new());
    for (file, subtests) in results {
        let failed =
            subtests.iter().filter(|subtest| known.reason_of(file, &subtest.name) == Some(number)).count();
        if failed > 0 {
            count += failed;
            groups.insert(group_of(file), ());
        }
    }
    let groups: Vec<String> =
        groups.keys().map(|group| format!("`{}`", GROUPS[*group].0.trim_end_matches('/'))).collect();
    format!("| {count} | {} | {reason} |", groups.join(", "))
}
