//! Web-platform-tests on an isolate: every `.any.js` below `tests/wpt/files`, with the suite's own harness. `known.json`
//! there has each subtest that fails, and why; a failure that is not known, or one that is no more, fails the test.
//! `docs/web-platform.md` is made from the same run (`HOLDFAST_BLESS=1` writes it).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

mod known;
mod report;
mod run;

/// A subtest's name, and what it says where it fails.
#[derive(Debug, PartialEq, Eq)]
struct Subtest {
    name: String,
    failure: Option<String>,
}

/// Subtests by the file's path below `files`.
type Results = BTreeMap<String, Vec<Subtest>>;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/wpt")
}

/// The paths of the tests below `files`: all of them, or those that `HOLDFAST_WPT` is a part of.
fn tests() -> Vec<String> {
    let root = folder().join("files");
    let wanted = std::env::var("HOLDFAST_WPT").unwrap_or_default();
    let (mut folders, mut found) = (vec![root.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            if [".any.js", ".window.js"].iter().any(|end| name.ends_with(end)) && name.contains(&wanted) {
                found.push(name);
            }
        }
    }
    found.sort();
    found
}

/// Runs the tests on as many threads as there are processors.
fn run_all(tests: &[String]) -> Results {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Results::new()));
    let work = || {
        while let Some(test) = tests.get(next.fetch_add(1, Ordering::Relaxed)) {
            let subtests = run::file(&folder().join("files"), test);
            results.lock().unwrap().insert(test.clone(), subtests);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    results.into_inner().unwrap()
}

#[test]
fn what_passes_of_the_web_platform_tests_is_what_is_written_down() {
    let tests = tests();
    let known = known::Known::read(&folder().join("known.json"));
    let results = run_all(&tests);
    let wrong = known.differences(&results);
    assert!(wrong.is_empty(), "{} differences from tests/wpt/known.json:\n{}", wrong.len(), wrong.join("\n"));
    if std::env::var_os("HOLDFAST_WPT").is_some() {
        return;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/web-platform.md");
    let made = report::page(&results, &known);
    if std::env::var_os("HOLDFAST_BLESS").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(written, made, "docs/web-platform.md is not what this run made: HOLDFAST_BLESS=1 writes it");
}
