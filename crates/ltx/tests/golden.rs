//! Files that a real Litestream wrote: read, written again, compacted, applied; the end is the database that Litestream's
//! own restore makes. `golden/README.md` says how they were made.
#![allow(clippy::unwrap_used)]

mod support;

use holdfast_ltx::{Decoder, compact};
use std::path::PathBuf;
use support::{decode, encode, restore};

fn golden(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn ltx(level: u8, min: u64, max: u64) -> Vec<u8> {
    golden(&format!("{level}/{min:016x}-{max:016x}.ltx"))
}

fn level_0() -> Vec<Vec<u8>> {
    (1..=6).map(|txid| ltx(0, txid, txid)).collect()
}

#[test]
fn each_file_is_read_and_written_again_with_the_same_content() {
    let names = [(1, 1, 1), (1, 2, 4), (9, 1, 2), (9, 1, 6)];
    for file in level_0().into_iter().chain(names.map(|(level, min, max)| ltx(level, min, max))) {
        let (header, pages) = decode(&file).unwrap();
        assert!(!pages.is_empty());
        let again = encode(header, &pages);
        assert_eq!(again[..100], file[..100], "the header is the same, byte for byte");
        assert_eq!(decode(&again).unwrap(), (header, pages));
    }
}

#[test]
fn each_way_through_the_levels_ends_in_the_same_database() {
    let end = golden("end.db");
    let folder = tempfile::tempdir().unwrap();
    let level_0 = level_0();
    let chains = [
        level_0.clone(),
        vec![ltx(1, 1, 1), ltx(1, 2, 4), level_0[4].clone(), level_0[5].clone()],
        [vec![ltx(9, 1, 2)], level_0[2..].to_vec()].concat(),
        vec![ltx(9, 1, 6)],
    ];
    for chain in &chains {
        assert!(restore(&folder.path().join("db"), chain) == end);
    }
}

#[test]
fn our_compaction_equals_theirs() {
    for (from, to, theirs) in [(2, 4, ltx(1, 2, 4)), (1, 2, ltx(9, 1, 2)), (1, 6, ltx(9, 1, 6))] {
        let files: Vec<_> = (from..=to).map(|txid| ltx(0, txid, txid)).collect();
        let inputs = files.iter().map(|file| Decoder::new(file.as_slice()).unwrap()).collect();
        let (ours, _) = compact(inputs, Vec::new()).unwrap();
        let (our_header, our_pages) = decode(&ours).unwrap();
        let (their_header, their_pages) = decode(&theirs).unwrap();
        assert_eq!(our_pages, their_pages);
        assert_eq!((our_header.min, our_header.max), (their_header.min, their_header.max));
        assert_eq!(our_header.commit, their_header.commit);
        if from == 2 {
            // Level 9 is made from the live database at another time; level 1 is a compaction like ours.
            assert_eq!(our_header, their_header);
        }
    }
}
