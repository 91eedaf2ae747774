//! The programs' logs: one file per life of a process, and what in them nobody expected.

use std::path::{Path, PathBuf};

/// How many unexpected lines are shown.
const SHOWN_MAX: usize = 20;

/// The log of one life.
pub(super) fn path(dir: &Path, name: &str, life: u32) -> PathBuf {
    dir.join(format!("{name}.{life}.log"))
}

/// All lives of one program.
pub(super) fn read_all(dir: &Path, name: &str) -> String {
    (0..).map(|life| path(dir, name, life)).take_while(|path| path.exists()).map(|path| read(&path)).collect()
}

/// The log's text; bytes that are no UTF-8 are shown as such.
pub(super) fn read(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}

/// Panics always; lines at level ERROR unless they contain an allowed text.
pub(super) fn unexpected(dir: &Path, allowed: &[String]) -> Vec<String> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .collect();
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for line in read(&path).lines() {
            if is_unexpected(line, allowed) {
                found.push(format!("{name}: {line}"));
            }
        }
    }
    found.truncate(SHOWN_MAX);
    found
}

fn is_unexpected(line: &str, allowed: &[String]) -> bool {
    if line.contains("panicked at") {
        return true;
    }
    let is_error =
        line.contains(" ERROR ") || line.contains("\"level\":\"ERROR\"") || line.starts_with("error:");
    is_error && !allowed.iter().any(|text| line.contains(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_and_errors_are_unexpected_unless_allowed() {
        let allowed = ["SELF-FENCE".to_owned(), "panicked".to_owned()];
        for (line, expected) in [
            ("thread 'main' (7) panicked at src/x.rs:1:2:", true),
            ("2026-01-01T00:00:00Z ERROR holdfast: disk gone", true),
            ("{\"level\":\"ERROR\",\"message\":\"disk gone\"}", true),
            ("2026-01-01T00:00:00Z ERROR holdfast: SELF-FENCE: lease_expired", false),
            ("2026-01-01T00:00:00Z  WARN holdfast: the word ERRORS", false),
        ] {
            assert_eq!(is_unexpected(line, &allowed), expected, "{line}");
        }
    }
}
