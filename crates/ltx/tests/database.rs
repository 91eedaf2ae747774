//! Real databases: each commit captured from the WAL and applied elsewhere gives the writer's database, byte for byte.
//! INV-CHAIN-1.
#![allow(clippy::unwrap_used)]

mod support;

use holdfast_ltx::{
    Applier, ApplyError, Check, Decoder, Durability, FrameSet, SnapshotSpec, WalError, collect_transaction,
    compact, encode_snapshot, encode_snapshot_with_wal,
};
use holdfast_types::{Millis, Txid};
use rusqlite::Connection;
use std::fs::File;
use std::path::Path;
use support::{Captured, Seeded, page_size, random_commit, restore};

const SETUPS: [&str; 2] = ["", "PRAGMA auto_vacuum=FULL;"];

fn new_file(path: &Path) -> File {
    File::options().create(true).truncate(true).read(true).write(true).open(path).unwrap()
}

/// Runs random commits and compares after each capture.
fn replicate_and_compare(bytes: u32, setup: &str, seed: u64, commits: u32) {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Seeded::new(seed);
    let mut captured = Captured::create(&folder.path().join("db"), bytes, setup);
    captured.connection.execute_batch("CREATE TABLE t(a INTEGER PRIMARY KEY, b)").unwrap();
    let copy = folder.path().join("copy");
    let mut applier = Applier::create(new_file(&copy)).unwrap();
    for commit in 0..commits {
        // A capture may join several commits.
        for _ in 0..=random.below(3) {
            random_commit(&captured.connection, &mut random);
        }
        let Some((_, file)) = captured.capture() else { continue };
        let decoded = applier.apply(Decoder::new(file.as_slice()).unwrap()).unwrap();
        assert_eq!(decoded.header.max, applier.position());
        assert!(
            std::fs::read(&copy).unwrap() == captured.plain(folder.path()),
            "page size {bytes}, seed {seed}, commit {commit}"
        );
        match random.below(8) {
            0 => captured.checkpoint("TRUNCATE"),
            1 => captured.checkpoint("RESTART"),
            2 => captured.checkpoint("PASSIVE"),
            _ => {}
        }
    }
    let applied = applier.finish(Durability::Synced).unwrap();
    assert_eq!(applied.page_size, Some(page_size(bytes)));
    let check: String =
        Connection::open(&copy).unwrap().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");

    // The whole chain as one file, and in two steps, is the same database.
    let end = std::fs::read(&copy).unwrap();
    let whole = compact_all(&captured.files);
    assert!(restore(&copy, [&whole]) == end, "compacted, page size {bytes}, seed {seed}");
    let middle = captured.files.len() / 2;
    let halves = [compact_all(&captured.files[..middle]), compact_all(&captured.files[middle..])];
    assert!(restore(&copy, &halves) == end, "in halves, page size {bytes}, seed {seed}");
}

fn compact_all(files: &[Vec<u8>]) -> Vec<u8> {
    let inputs = files.iter().map(|file| Decoder::new(file.as_slice()).unwrap()).collect();
    compact(inputs, Vec::new()).unwrap().0
}

#[test]
fn every_commit_is_the_same_database_elsewhere_with_small_pages() {
    for bytes in [512, 1024, 2048, 4096] {
        for (seed, setup) in (1..).zip(SETUPS) {
            replicate_and_compare(bytes, setup, u64::from(bytes) + seed, 18);
        }
    }
}

#[test]
fn every_commit_is_the_same_database_elsewhere_with_large_pages() {
    for bytes in [8192, 16_384, 32_768, 65_536] {
        for (seed, setup) in (1..).zip(SETUPS) {
            replicate_and_compare(bytes, setup, u64::from(bytes) + seed, 12);
        }
    }
}

fn grown(folder: &Path, commits: u32) -> Captured {
    let mut captured = Captured::create(&folder.join("db"), 1024, "");
    captured.connection.execute_batch("CREATE TABLE t(a INTEGER PRIMARY KEY, b)").unwrap();
    captured.capture().unwrap();
    for _ in 0..commits {
        captured.connection.execute_batch("INSERT INTO t(b) VALUES (randomblob(3000))").unwrap();
        captured.capture().unwrap();
    }
    captured
}

/// Snapshots of the database as it stands, from a plain copy and from under its WAL, both equal to the plain copy.
fn snapshots_equal_the_database(captured: &Captured, folder: &Path) {
    let plain = captured.plain(folder);
    let commit = u32::try_from(plain.len() / 1024).unwrap();
    let max = Txid::new(captured.files.len() as u64);
    let spec = SnapshotSpec { page_size: page_size(1024), commit, max, timestamp: Millis::new(9) };
    let (of_plain, encoded) = encode_snapshot(&plain, spec, Vec::new()).unwrap();
    assert_eq!((encoded.pages, encoded.header.max), (commit, max));

    let wal = captured.wal();
    let set = collect_transaction(&wal, 1, captured.captured, Check::Salts).unwrap();
    let database = File::open(&captured.path).unwrap();
    let database_pages = u32::try_from(database.metadata().unwrap().len() / 1024).unwrap();
    let (of_wal, _) =
        encode_snapshot_with_wal(&database, database_pages, &wal, &set, spec, Vec::new()).unwrap();

    let target = folder.join("target");
    assert!(restore(&target, [&of_plain]) == plain);
    assert!(restore(&target, [&of_wal]) == plain);
    assert!(restore(&target, &captured.files) == plain);
}

#[test]
fn a_snapshot_is_the_same_with_and_without_a_wal() {
    let folder = tempfile::tempdir().unwrap();
    let mut captured = grown(folder.path(), 5);
    captured.checkpoint("RESTART");
    // An update that leaves most pages to the database file, then growth, shrinking, and growth over the cut.
    for sql in [
        "UPDATE t SET b = randomblob(3000) WHERE a = 1",
        "INSERT INTO t(b) VALUES (randomblob(9000))",
        "DELETE FROM t WHERE a < 4; VACUUM",
        "INSERT INTO t(b) VALUES (randomblob(20000))",
    ] {
        captured.connection.execute_batch(sql).unwrap();
        captured.capture().unwrap();
        snapshots_equal_the_database(&captured, folder.path());
    }
}

#[test]
fn a_snapshot_of_a_short_database_is_refused() {
    let spec =
        SnapshotSpec { page_size: page_size(512), commit: 3, max: Txid::new(1), timestamp: Millis::ZERO };
    let error = encode_snapshot(&vec![0; 1024], spec, Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "the database file ends before page 3 of 3 does");
}

#[test]
fn a_file_that_does_not_follow_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let captured = grown(folder.path(), 3);
    let path = folder.path().join("copy");
    let mut applier = Applier::create(new_file(&path)).unwrap();
    let decoder = |at: usize| Decoder::new(captured.files[at].as_slice()).unwrap();
    let error = applier.apply(decoder(1)).unwrap_err();
    assert!(matches!(error, ApplyError::NotContiguous { .. }), "{error}");
    applier.apply(decoder(0)).unwrap();
    for wrong in [0, 2, 3] {
        assert!(matches!(applier.apply(decoder(wrong)), Err(ApplyError::NotContiguous { .. })), "{wrong}");
    }
    let other = support::encode(support::header(512, 1, 2, 2), &[(1, vec![7; 512])]);
    let error = applier.apply(Decoder::new(other.as_slice()).unwrap()).unwrap_err();
    assert!(matches!(error, ApplyError::PageSize { .. }), "{error}");
    for at in 1..=3 {
        applier.apply(decoder(at)).unwrap();
    }
    applier.finish(Durability::Unsynced).unwrap();
    assert!(std::fs::read(&path).unwrap() == captured.plain(folder.path()));
}

#[test]
fn a_damaged_file_poisons_the_applier() {
    let folder = tempfile::tempdir().unwrap();
    let captured = grown(folder.path(), 2);
    let mut applier = Applier::create(new_file(&folder.path().join("copy"))).unwrap();
    applier.apply(Decoder::new(captured.files[0].as_slice()).unwrap()).unwrap();
    let cut = &captured.files[1][..captured.files[1].len() - 1];
    let error = applier.apply(Decoder::new(cut).unwrap()).unwrap_err();
    assert!(matches!(error, ApplyError::Decode { .. }), "{error}");
    let again = applier.apply(Decoder::new(captured.files[1].as_slice()).unwrap());
    assert!(matches!(again, Err(ApplyError::Poisoned)));
    assert!(matches!(applier.finish(Durability::Unsynced), Err(ApplyError::Poisoned)));
}

#[test]
fn a_restore_resumes_where_a_database_stands() {
    let folder = tempfile::tempdir().unwrap();
    let captured = grown(folder.path(), 4);
    let path = folder.path().join("copy");
    restore(&path, &captured.files[..3]);
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let mut applier = Applier::resume(file, Txid::new(3), page_size(1024)).unwrap();
    for file in &captured.files[3..] {
        applier.apply(Decoder::new(file.as_slice()).unwrap()).unwrap();
    }
    let applied = applier.finish(Durability::Unsynced).unwrap();
    let plain = captured.plain(folder.path());
    assert_eq!((applied.position, applied.commit as usize * 1024), (Txid::new(5), plain.len()));
    assert!(std::fs::read(&path).unwrap() == plain);
}

#[test]
fn frames_of_a_restarted_wal_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut captured = grown(folder.path(), 6);
    let stale = captured.wal();
    let before = captured.captured;
    captured.checkpoint("RESTART");
    captured.connection.execute_batch("INSERT INTO t(b) VALUES (1)").unwrap();
    captured.capture().unwrap();
    assert!(captured.captured < before, "the WAL began anew over its old frames");
    // The old header over new frames, and the new header over the old frames that still lie behind.
    let error = collect_transaction(&stale, 1, captured.captured, Check::Salts).unwrap_err();
    assert!(matches!(error, WalError::Salts { frame: 1, .. }), "{error}");
    let error = collect_transaction(&captured.wal(), 1, before, Check::Salts).unwrap_err();
    assert!(matches!(error, WalError::Salts { frame, .. } if frame == captured.captured + 1), "{error}");
    assert_eq!(captured.wal().last_commit(before).unwrap(), captured.captured);
}

/// A database that SQLite believes to end right before the lock page of 64 KiB pages, as a sparse file.
fn sparse_database(path: &Path) -> u32 {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(
            "PRAGMA page_size=65536; PRAGMA journal_mode=WAL; CREATE TABLE t(a INTEGER PRIMARY KEY, b)",
        )
        .unwrap();
    connection.close().unwrap();
    let last = page_size(65_536).lock_page() - 1;
    let file = File::options().read(true).write(true).open(path).unwrap();
    file.set_len(u64::from(last) * 65_536).unwrap();
    // The database's size in pages stands at offset 28 of its header.
    std::os::unix::fs::FileExt::write_all_at(&file, &last.to_be_bytes(), 28).unwrap();
    last
}

#[test]
fn a_database_grows_over_the_lock_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let last = sparse_database(&path);
    let copy = folder.path().join("copy");
    let (source, target) = (File::open(&path).unwrap(), new_file(&copy));
    target.set_len(source.metadata().unwrap().len()).unwrap();
    let mut head = vec![0; 4 * 65_536];
    std::os::unix::fs::FileExt::read_exact_at(&source, &mut head, 0).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&target, &head, 0).unwrap();

    let mut captured = Captured::create(&path, 65_536, "");
    captured.files = vec![Vec::new(); 6];
    captured.connection.execute_batch("INSERT INTO t(b) VALUES (randomblob(200000))").unwrap();
    let (set, file): (FrameSet, _) = captured.capture().unwrap();
    assert!(set.commit > last + 1 && !set.pages.contains_key(&(last + 1)), "{:?}", set.pages.keys());
    let mut applier = Applier::resume(target, Txid::new(6), page_size(65_536)).unwrap();
    applier.apply(Decoder::new(file.as_slice()).unwrap()).unwrap();
    let applied = applier.finish(Durability::Unsynced).unwrap();
    assert_eq!(applied.commit, set.commit);
    let read = |connection: &Connection| -> Vec<u8> {
        connection.query_row("SELECT b FROM t", [], |row| row.get(0)).unwrap()
    };
    assert!(read(&Connection::open(&copy).unwrap()) == read(&captured.connection));
}
