//! What an idle engine costs.

use holdfast_types::{Millis, Txid};

use super::run;
use crate::engine::Engine;
use crate::options::EngineOptions;

/// Resident bytes of this process that no file backs.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

fn open_files(dir: &std::path::Path) -> usize {
    std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter(|target| target.starts_with(dir))
        .count()
}

#[test]
fn an_idle_engine_is_small() {
    const ENGINES: u64 = 250;
    let dir = tempfile::tempdir().unwrap();
    let options = EngineOptions::new(dir.path());
    let open = |name: &str| {
        let mut engine = Engine::open(&dir.path().join(name), Txid::ZERO, &options).unwrap();
        run(&mut engine, "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, at INTEGER)").unwrap();
        run(&mut engine, "CREATE INDEX i ON t(name); INSERT INTO t VALUES(1, 'a', 2)").unwrap();
        engine.capture(Millis::new(1)).unwrap().unwrap();
        engine
    };
    let first = open("first.db");
    assert_eq!(open_files(dir.path()), 3, "database, WAL, WAL for reading");
    let before = resident_bytes();
    let mut engines: Vec<Engine> = (0..ENGINES).map(|n| open(&format!("{n}.db"))).collect();
    let warm = resident_bytes().saturating_sub(before) / ENGINES;
    let cache = engines[0].memory().page_cache_bytes;
    engines.iter_mut().for_each(Engine::trim);
    assert_eq!(open_files(dir.path()), 1 + 2 + 2 * engines.len());
    let beyond_cache = warm.saturating_sub(cache);
    println!(
        "an idle engine: {warm} bytes, of which page cache {cache}; beyond it {beyond_cache}; {:?}",
        first.memory()
    );
    assert!(beyond_cache < 64 << 10, "{beyond_cache} bytes beyond the page cache");
}

#[test]
fn a_cell_may_move_to_another_thread() {
    fn moves<T: Send>() {}
    moves::<Engine>();
    moves::<crate::SqlRuntime>();
}
