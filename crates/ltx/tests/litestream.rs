//! A real Litestream on the other side: its restore reads our files, and we read what it replicates. Ignored unless asked
//! for; `HOLDFAST_LITESTREAM_BIN` names the binary, which `tests/peers/install.sh` installs.
#![allow(clippy::unwrap_used)]

mod support;

use holdfast_ltx::{Decoder, PlannedFile, SnapshotSpec, compact, encode_snapshot, plan_epoch};
use holdfast_types::{Millis, Txid};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Captured, Seeded, page_size, random_commit, restore};

/// Runs it; its output and whether it succeeded.
fn run(arguments: &[&str]) -> (bool, String) {
    let binary = std::env::var_os("HOLDFAST_LITESTREAM_BIN").expect(
        "HOLDFAST_LITESTREAM_BIN names a litestream 0.5 binary; tests/peers/install.sh prints its path",
    );
    let output = Command::new(binary).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.success(), text(output.stdout) + &text(output.stderr))
}

fn litestream(arguments: &[&str]) -> String {
    let (succeeded, output) = run(arguments);
    assert!(succeeded, "litestream {arguments:?}: {output}");
    output
}

fn url(folder: &Path) -> String {
    format!("file://{}", folder.display())
}

/// Puts a file where a file replica of Litestream looks for it.
fn put(replica: &Path, level: u8, min: u64, max: u64, file: &[u8]) {
    let folder = replica.join(format!("ltx/{level}"));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("{min:016x}-{max:016x}.ltx")), file).unwrap();
}

fn merged(files: &[Vec<u8>]) -> Vec<u8> {
    let inputs = files.iter().map(|file| Decoder::new(file.as_slice()).unwrap()).collect();
    compact(inputs, Vec::new()).unwrap().0
}

/// What Litestream makes of a replica.
fn restored(folder: &Path, replica: &Path, more: &[&str]) -> Vec<u8> {
    let out = folder.join("restored.db");
    let url = url(replica);
    let arguments = [&["restore", "-force", "-o", out.to_str().unwrap()], more, &[&url]].concat();
    litestream(&arguments);
    let check: String =
        Connection::open(&out).unwrap().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
    std::fs::read(&out).unwrap()
}

/// Commits and captures; the plain database after each transaction.
fn history(folder: &Path, bytes: u32, commits: usize) -> (Captured, Vec<Vec<u8>>) {
    let mut random = Seeded::new(u64::from(bytes));
    let mut captured = Captured::create(&folder.join("db"), bytes, "");
    captured.connection.execute_batch("CREATE TABLE t(a INTEGER PRIMARY KEY, b)").unwrap();
    captured.capture().unwrap();
    let mut states = vec![captured.plain(folder)];
    while states.len() < commits {
        random_commit(&captured.connection, &mut random);
        if captured.capture().is_some() {
            states.push(captured.plain(folder));
        }
    }
    (captured, states)
}

#[test]
#[ignore = "needs a litestream binary: set HOLDFAST_LITESTREAM_BIN"]
fn litestream_restores_our_level_0_at_every_page_size() {
    for bytes in [512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536] {
        let folder = tempfile::tempdir().unwrap();
        let replica = folder.path().join("replica");
        let (captured, states) = history(folder.path(), bytes, 10);
        for (txid, file) in (1..).zip(&captured.files) {
            put(&replica, 0, txid, txid, file);
        }
        let listed = litestream(&["ltx", "-level", "all", &url(&replica)]);
        assert_eq!(listed.lines().count(), 1 + captured.files.len(), "{listed}");
        assert!(restored(folder.path(), &replica, &[]) == states[9], "page size {bytes}");
        let at_4 = restored(folder.path(), &replica, &["-txid", "0000000000000004"]);
        assert!(at_4 == states[3], "page size {bytes}, transaction 4");
    }
}

#[test]
#[ignore = "needs a litestream binary: set HOLDFAST_LITESTREAM_BIN"]
fn litestream_restores_our_level_0_of_several_transactions_a_file() {
    for bytes in [512, 4096, 65_536] {
        let folder = tempfile::tempdir().unwrap();
        let (captured, states) = history(folder.path(), bytes, 12);
        let files = &captured.files;
        let replica = folder.path().join("blocks");
        for (min, max) in [(1, 4), (5, 8), (9, 10), (11, 11), (12, 12)] {
            put(&replica, 0, min as u64, max as u64, &merged(&files[min - 1..max]));
        }
        assert!(restored(folder.path(), &replica, &[]) == states[11], "page size {bytes}");
        let at_8 = restored(folder.path(), &replica, &["-txid", "0000000000000008"]);
        assert!(at_8 == states[7], "page size {bytes}, transaction 8");
        // What a recoverer cut differently lies beside it.
        put(&replica, 0, 7, 8, &merged(&files[6..8]));
        put(&replica, 0, 9, 12, &merged(&files[8..12]));
        assert!(restored(folder.path(), &replica, &[]) == states[11], "cut twice, page size {bytes}");
    }
}

#[test]
#[ignore = "needs a litestream binary: set HOLDFAST_LITESTREAM_BIN"]
fn litestream_restores_our_compactions_and_snapshots() {
    for bytes in [512, 4096, 65_536] {
        let folder = tempfile::tempdir().unwrap();
        let (captured, states) = history(folder.path(), bytes, 12);
        let files = &captured.files;
        let spec = |txid: usize| SnapshotSpec {
            page_size: page_size(bytes),
            commit: u32::try_from(states[txid - 1].len()).unwrap() / bytes,
            max: Txid::new(txid as u64),
            timestamp: Millis::new(1_700_000_000_000 + txid as u64),
        };
        // Level 1 alone, but for the tail.
        let replica = folder.path().join("compacted");
        put(&replica, 1, 1, 4, &merged(&files[..4]));
        put(&replica, 1, 5, 10, &merged(&files[4..10]));
        put(&replica, 0, 11, 11, &files[10]);
        put(&replica, 0, 12, 12, &files[11]);
        assert!(restored(folder.path(), &replica, &[]) == states[11], "compacted, page size {bytes}");
        // A snapshot in the middle, with level 1 and level 0 behind it.
        let replica = folder.path().join("snapshot");
        put(&replica, 9, 1, 6, &encode_snapshot(&states[5], spec(6), Vec::new()).unwrap().0);
        put(&replica, 1, 7, 10, &merged(&files[6..10]));
        put(&replica, 0, 11, 11, &files[10]);
        put(&replica, 0, 12, 12, &files[11]);
        assert!(restored(folder.path(), &replica, &[]) == states[11], "from a snapshot, page size {bytes}");
        // A snapshot alone.
        let replica = folder.path().join("alone");
        put(&replica, 9, 1, 12, &encode_snapshot(&states[11], spec(12), Vec::new()).unwrap().0);
        assert!(restored(folder.path(), &replica, &[]) == states[11], "a snapshot alone, page size {bytes}");
        // An epoch's prefix has no folder `ltx` inside; a link makes it a replica.
        let linked = folder.path().join("linked");
        std::fs::create_dir(&linked).unwrap();
        std::os::unix::fs::symlink(replica.join("ltx"), linked.join("ltx")).unwrap();
        assert!(restored(folder.path(), &linked, &[]) == states[11], "through a link, page size {bytes}");
    }
}

#[test]
#[ignore = "needs a litestream binary: set HOLDFAST_LITESTREAM_BIN"]
fn litestream_refuses_our_files_when_damaged() {
    // The control for the tests above: Litestream does verify what it restores.
    let folder = tempfile::tempdir().unwrap();
    let replica = folder.path().join("replica");
    let (captured, _) = history(folder.path(), 4096, 2);
    put(&replica, 0, 1, 1, &captured.files[0]);
    for from_end in [1, 20, 30, 500] {
        let mut damaged = captured.files[1].clone();
        let at = damaged.len() - from_end;
        damaged[at] ^= 1;
        put(&replica, 0, 2, 2, &damaged);
        let out = folder.path().join("restored.db");
        let (succeeded, output) = run(&["restore", "-force", "-o", out.to_str().unwrap(), &url(&replica)]);
        assert!(!succeeded, "{from_end} bytes from the end: {output}");
    }
}

/// All files of a replica, as a listing and with their content.
fn listing(replica: &Path) -> Vec<(PlannedFile, PathBuf)> {
    let mut files = Vec::new();
    for level in 0..=9 {
        let Ok(folder) = std::fs::read_dir(replica.join(format!("ltx/{level}"))) else { continue };
        for entry in folder {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            let (min, max) = name.split_once('-').unwrap();
            let (min, max) = (Txid::from_hex(min).unwrap(), Txid::from_hex(max).unwrap());
            let len = path.metadata().unwrap().len();
            files.push((PlannedFile { level, min, max, len }, path));
        }
    }
    files
}

#[test]
#[ignore = "needs a litestream binary: set HOLDFAST_LITESTREAM_BIN"]
fn we_restore_what_litestream_replicates() {
    for bytes in [512, 4096, 65_536] {
        let folder = tempfile::tempdir().unwrap();
        let (path, replica) = (folder.path().join("source.db"), folder.path().join("replica"));
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch(&format!(
                "PRAGMA page_size={bytes}; PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;
                 CREATE TABLE t(a INTEGER PRIMARY KEY, b)"
            ))
            .unwrap();
        let mut random = Seeded::new(u64::from(bytes + 7_u32));
        for round in 0..8 {
            random_commit(&connection, &mut random);
            let mut arguments = vec!["replicate", "-once"];
            if round == 4 {
                arguments.push("-force-snapshot");
            }
            let (path, url) = (path.to_str().unwrap().to_owned(), url(&replica));
            arguments.extend([path.as_str(), url.as_str()]);
            litestream(&arguments);
        }
        let theirs = restored(folder.path(), &replica, &[]);
        let files = listing(&replica);
        let planned: Vec<_> = files.iter().map(|(file, _)| *file).collect();
        let read = |wanted: &PlannedFile| {
            let (_, path) = files.iter().find(|(file, _)| file == wanted).unwrap();
            std::fs::read(path).unwrap()
        };
        let plan = plan_epoch(&planned, Txid::ZERO, None).unwrap();
        assert!(plan.files[0].level == 9, "the snapshot is taken: {:?}", plan.files);
        let ours = folder.path().join("ours.db");
        assert!(
            restore(&ours, &plan.files.iter().map(read).collect::<Vec<_>>()) == theirs,
            "page size {bytes}"
        );
        let level_0: Vec<_> = planned.iter().filter(|file| file.level == 0).copied().collect();
        let plan = plan_epoch(&level_0, Txid::ZERO, None).unwrap();
        assert!(plan.files.len() >= 8);
        assert!(
            restore(&ours, &plan.files.iter().map(read).collect::<Vec<_>>()) == theirs,
            "page size {bytes}"
        );
    }
}
