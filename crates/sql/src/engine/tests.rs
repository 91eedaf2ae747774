//! Tests of the engine: policy, capture, checkpoints, ends.

mod capturing;
mod kept;
mod object;
mod paged;
mod policy;
mod replacing;
mod resources;

use std::fs::File;
use std::path::{Path, PathBuf};

use holdfast_ltx::{Applier, Decoder, Durability};
use holdfast_types::{Millis, Txid};
use tempfile::TempDir;

use super::{Captured, CapturedBody, Engine};
use crate::engine::{Budget, Tail};
use crate::error::SqlFailure;
use crate::options::EngineOptions;

/// A cell's folder and its engine.
pub(super) struct Cell {
    pub(super) dir: TempDir,
    pub(super) engine: Engine,
}

pub(super) fn cell() -> Cell {
    cell_with(|_| {})
}

pub(super) fn cell_with(change: impl FnOnce(&mut EngineOptions)) -> Cell {
    let dir = tempfile::tempdir().unwrap();
    let mut options = EngineOptions::new(dir.path());
    change(&mut options);
    let engine = Engine::open(&dir.path().join("cell.db"), Txid::ZERO, &options).unwrap();
    Cell { dir, engine }
}

impl Cell {
    /// Runs statements as a user would.
    pub(super) fn run(&mut self, sql: &str) -> Result<(), SqlFailure> {
        run(&mut self.engine, sql)
    }

    pub(super) fn one<T: rusqlite::types::FromSql>(&self, sql: &str) -> T {
        self.engine.system(|connection| connection.query_row(sql, [], |row| row.get(0)).unwrap())
    }
}

pub(super) fn run(engine: &mut Engine, sql: &str) -> Result<(), SqlFailure> {
    let budget = Budget::start(engine, false);
    let mut rest = sql;
    while let Some((_, used)) = engine.execute(rest, Tail::Leave, &budget, |_| Ok(()), None)? {
        rest = &rest[used..];
    }
    Ok(())
}

/// A second database that only captures feed.
pub(super) struct Mirror {
    path: PathBuf,
    applier: Option<Applier>,
}

impl Mirror {
    pub(super) fn new(dir: &Path) -> Self {
        let path = dir.join("mirror.db");
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        Self { path, applier: Some(Applier::create(file).unwrap()) }
    }

    pub(super) fn apply(&mut self, captured: &Captured) {
        let bytes = match &captured.body {
            CapturedBody::Memory(bytes) => bytes.to_vec(),
            CapturedBody::File(path) => std::fs::read(path).unwrap(),
        };
        assert_eq!(bytes.len() as u64, captured.len);
        let applier = self.applier.as_mut().unwrap();
        let decoded = applier.apply(Decoder::new(&bytes[..]).unwrap()).unwrap();
        assert_eq!(decoded.pages, captured.pages);
        assert_eq!(decoded.header.commit, captured.commit_pages);
        assert_eq!(decoded.header.max, captured.txid);
    }

    /// Captures whatever is there and applies it.
    pub(super) fn follow(&mut self, engine: &mut Engine) {
        if let Some(captured) = engine.capture(Millis::new(1)).unwrap() {
            self.apply(&captured);
        }
    }

    pub(super) fn finish(mut self) -> (PathBuf, Txid) {
        let applied = self.applier.take().unwrap().finish(Durability::Unsynced).unwrap();
        (self.path.clone(), applied.position)
    }
}

/// Compares two database files page by page. Pages of the free list may differ: SQLite neither writes nor reads them.
pub(super) fn assert_same_database(left: &Path, right: &Path) {
    let (left, right) = (std::fs::read(left).unwrap(), std::fs::read(right).unwrap());
    assert_eq!(left.len(), right.len(), "length");
    let page_size = match u16::from_be_bytes([left[16], left[17]]) {
        1 => 65_536,
        bytes => usize::from(bytes),
    };
    let free = free_leaves(&left, page_size);
    for (index, (a, b)) in left.chunks(page_size).zip(right.chunks(page_size)).enumerate() {
        assert!(a == b || free.contains(&(index + 1)), "page {} differs", index + 1);
    }
}

fn free_leaves(file: &[u8], page_size: usize) -> std::collections::BTreeSet<usize> {
    let word = |at: usize| u32::from_be_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let mut leaves = std::collections::BTreeSet::new();
    let mut trunk = word(32);
    while trunk != 0 {
        let at = (trunk - 1) * page_size;
        leaves.extend((0..word(at + 4)).map(|leaf| word(at + 8 + leaf * 4)));
        trunk = word(at);
    }
    leaves
}

pub(super) fn integrity(path: &Path) -> String {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap()
}
