//! Engines over files with holes.

use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use super::*;
use crate::{OpenError, PageFailure, PageSource};

const READ: &str = "SELECT count(*), sum(a), max(length(hex(b))) FROM t";

/// A file that is filled from an image, page by page.
#[derive(Debug)]
struct Sparse {
    file: File,
    image: Vec<u8>,
    page_len: usize,
    missing: Mutex<Vec<bool>>,
    fetched: AtomicU32,
    /// Fetches that are refused from now on.
    refused: AtomicU32,
    is_lost: bool,
    closed: AtomicU32,
}

impl Sparse {
    fn new(path: &Path, image: Vec<u8>, page_len: usize, is_lost: bool) -> Arc<Self> {
        let file = File::options().read(true).write(true).create_new(true).open(path).unwrap();
        file.set_len(image.len() as u64).unwrap();
        let missing = Mutex::new(vec![true; image.len() / page_len]);
        let zero = AtomicU32::new(0);
        let (fetched, refused, closed) = (zero, AtomicU32::new(0), AtomicU32::new(0));
        Arc::new(Self { file, image, page_len, missing, fetched, refused, is_lost, closed })
    }

    fn pages(&self, offset: u64, len: u64) -> std::ops::Range<usize> {
        let page_len = self.page_len as u64;
        (offset / page_len) as usize..(offset + len).div_ceil(page_len) as usize
    }

    fn fill(&self) {
        let pages = self.missing.lock().unwrap().len();
        self.need(0, (pages * self.page_len) as u64, Duration::ZERO).unwrap();
    }
}

impl PageSource for Sparse {
    fn need(&self, offset: u64, len: u64, _: Duration) -> Result<(), PageFailure> {
        let mut missing = self.missing.lock().unwrap();
        for page in self.pages(offset, len) {
            if !missing.get(page).copied().unwrap_or(false) {
                continue;
            }
            if self.refused.load(Relaxed) > 0 {
                self.refused.fetch_sub(1, Relaxed);
                let message = format!("page {} is far away; try again", page + 1);
                return Err(PageFailure { message, is_lost: self.is_lost });
            }
            let at = page * self.page_len;
            self.file.write_all_at(&self.image[at..at + self.page_len], at as u64).unwrap();
            missing[page] = false;
            self.fetched.fetch_add(1, Relaxed);
        }
        Ok(())
    }

    fn write(&self, offset: u64, len: u64, write: &mut dyn FnMut() -> bool) -> Result<(), PageFailure> {
        assert!(offset.is_multiple_of(self.page_len as u64) && len == self.page_len as u64, "whole pages");
        let mut missing = self.missing.lock().unwrap();
        if write() {
            for page in self.pages(offset, len) {
                if let Some(missing) = missing.get_mut(page) {
                    *missing = false;
                }
            }
        }
        Ok(())
    }

    fn truncate(&self, len: u64, truncate: &mut dyn FnMut() -> bool) {
        let mut missing = self.missing.lock().unwrap();
        if truncate() {
            missing.truncate(len.div_ceil(self.page_len as u64) as usize);
        }
    }

    fn closed(&self) {
        self.closed.fetch_add(1, Relaxed);
    }
}

/// A closed database of 2,000 rows, and how long its pages are.
fn image(page_size: u32) -> (TempDir, Vec<u8>, Txid) {
    let mut cell = cell();
    cell.run(&format!("PRAGMA page_size={page_size}")).unwrap();
    cell.run("CREATE TABLE t(a INTEGER PRIMARY KEY, b); CREATE INDEX i ON t(length(b));").unwrap();
    cell.run(
        "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
         INSERT INTO t SELECT i, zeroblob(i % 900) FROM n",
    )
    .unwrap();
    cell.engine.capture(Millis::ZERO).unwrap();
    let Cell { dir, engine } = cell;
    let closed = engine.close().unwrap();
    let image = std::fs::read(dir.path().join("cell.db")).unwrap();
    (dir, image, closed.txid)
}

struct Paged {
    source: Arc<Sparse>,
    engine: Engine,
    path: PathBuf,
    dir: TempDir,
}

fn paged(page_size: u32, is_lost: bool) -> Paged {
    let (dir, image, txid) = image(page_size);
    let path = dir.path().join("sparse.db");
    let source = Sparse::new(&path, image, page_size as usize, is_lost);
    let pages = Arc::clone(&source) as Arc<dyn PageSource>;
    let engine = Engine::open_paged(&path, txid, &EngineOptions::new(dir.path()), pages).unwrap();
    Paged { source, engine, path, dir }
}

fn numbers(engine: &Engine, sql: &str) -> Vec<i64> {
    engine.system(|connection| {
        let row = |row: &rusqlite::Row<'_>| (0..3).map(|at| row.get(at)).collect::<rusqlite::Result<_>>();
        connection.query_row(sql, [], row).unwrap()
    })
}

#[test]
fn only_what_is_read_is_fetched() {
    let Paged { source, mut engine, dir: _dir, .. } = paged(4096, false);
    let pages = source.missing.lock().unwrap().len();
    assert!(pages > 100 && source.fetched.load(Relaxed) < 5, "{}", source.fetched.load(Relaxed));
    run(&mut engine, "SELECT b FROM t WHERE a = 1234").unwrap();
    assert!(source.fetched.load(Relaxed) < 10, "{}", source.fetched.load(Relaxed));
    assert_eq!(numbers(&engine, READ), [2_000, 2_001_000, 1_798]);
    assert!(source.fetched.load(Relaxed) as usize > pages / 2);
    engine.close().unwrap();
    assert_eq!(source.closed.load(Relaxed), 1);
}

#[test]
fn what_is_written_over_holes_is_what_a_whole_file_would_have() {
    for page_size in [512, 1_024, 4_096, 65_536] {
        let Paged { source, mut engine, path, dir } = paged(page_size, false);
        let whole_path = dir.path().join("cell.db");
        let options = EngineOptions::new(dir.path());
        let mut whole = Engine::open(&whole_path, engine.position(), &options).unwrap();
        for (step, sql) in [
            // Into the middle, over pages that nobody has read; growth; a shrink; growth again.
            "UPDATE t SET b = zeroblob(300) WHERE a BETWEEN 900 AND 950",
            "INSERT INTO t SELECT a + 5000, zeroblob(700) FROM t WHERE a < 500",
            "DELETE FROM t WHERE a > 300",
            "VACUUM",
            "INSERT INTO t SELECT a + 9000, zeroblob(3000) FROM t",
            "DROP INDEX i",
        ]
        .into_iter()
        .enumerate()
        {
            for engine in [&mut engine, &mut whole] {
                run(engine, sql).unwrap();
                let captured = engine.capture(Millis::new(7)).unwrap();
                assert!(captured.is_some() && engine.checkpoint().unwrap(), "{sql}");
            }
            if step == 0 {
                assert!(source.missing.lock().unwrap().contains(&true), "{page_size}: still sparse");
            }
            assert_eq!(numbers(&engine, READ), numbers(&whole, READ), "{page_size} {sql}");
            assert_eq!(engine.size_bytes(), whole.size_bytes(), "{page_size} {sql}");
        }
        let check: String = engine
            .system(|connection| connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)))
            .unwrap();
        assert_eq!(check, "ok");
        source.fill();
        engine.close().unwrap();
        whole.close().unwrap();
        assert!(std::fs::read(&path).unwrap() == std::fs::read(&whole_path).unwrap(), "{page_size}");
    }
}

#[test]
fn a_page_that_cannot_be_had_fails_its_statement_and_nothing_else() {
    let Paged { source, mut engine, dir: _dir, .. } = paged(4096, false);
    source.refused.store(1, Relaxed);
    let failure = run(&mut engine, "SELECT sum(length(b)) FROM t").unwrap_err();
    assert_eq!((failure.code, failure.status()), ("SQLITE_IOERR", 503));
    assert!(failure.message.contains("is far away; try again"), "{failure}");
    assert_eq!((engine.fault(), engine.is_dirty()), (None, false));
    // The next one tries anew.
    run(&mut engine, "SELECT sum(length(b)) FROM t WHERE a < 100").unwrap();

    // Within a transaction: what was written is undone, and said to be.
    run(&mut engine, "BEGIN; INSERT INTO t VALUES (-1, 'x')").unwrap();
    source.refused.store(1, Relaxed);
    let failure = run(&mut engine, "UPDATE t SET b = 'y' WHERE a > 100").unwrap_err();
    assert!(failure.message.contains("the transaction was rolled back"), "{failure}");
    assert!(!engine.in_transaction() && !engine.is_dirty() && engine.fault().is_none());
    assert_eq!(numbers(&engine, READ), [2_000, 2_001_000, 1_798]);

    // And of a Durable Object's storage.
    source.missing.lock().unwrap().fill(true);
    engine.trim();
    source.refused.store(1, Relaxed);
    let failure = engine.alarm_state().unwrap_err();
    assert!(failure.message.contains("is far away; try again"), "{failure}");
    assert!(engine.fault().is_none() && engine.alarm_state().is_ok());
}

#[test]
fn pages_that_are_lost_put_the_engine_in_doubt() {
    let Paged { source, mut engine, dir, .. } = paged(4096, true);
    source.refused.store(1, Relaxed);
    let failure = run(&mut engine, READ).unwrap_err();
    assert!(failure.message.contains("is far away"), "{failure}");
    assert_eq!(engine.fault(), Some(crate::ffi::IOERR_PAGE));
    drop(engine);
    assert_eq!(source.closed.load(Relaxed), 1);

    let path = dir.path().join("another.db");
    let source = Sparse::new(&path, source.image.clone(), 4096, false);
    source.refused.store(1, Relaxed);
    let pages = Arc::clone(&source) as Arc<dyn PageSource>;
    let error =
        Engine::open_paged(&path, Txid::new(1), &EngineOptions::new(dir.path()), pages).err().unwrap();
    assert!(matches!(&error, OpenError::Page { reason, .. } if reason.contains("far away")), "{error}");
    assert_eq!(source.closed.load(Relaxed), 1);
}
