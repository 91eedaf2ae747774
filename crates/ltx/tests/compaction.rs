//! Compaction has exactly the effect of its inputs in turn, whatever grew, shrank and was left unwritten.
#![allow(clippy::unwrap_used)]

mod support;

use holdfast_ltx::{Applier, CompactError, Decoder, Durability, compact};
use holdfast_types::Txid;
use proptest::prelude::*;
use std::fs::File;
use support::{encode, header, page_size};

const PAGE: u32 = 512;
const PAGES_MAX: u32 = 10;

fn page(tag: u8) -> Vec<u8> {
    vec![tag; PAGE as usize]
}

/// A chain of files: sizes, and for each page a tag or none.
fn any_chain() -> impl Strategy<Value = Vec<(u32, Vec<Option<u8>>)>> {
    let pages = proptest::collection::vec(proptest::option::of(1_u8..), PAGES_MAX as usize);
    proptest::collection::vec((1..=PAGES_MAX, pages), 1..8)
}

fn files_of(chain: &[(u32, Vec<Option<u8>>)], first: u64) -> Vec<Vec<u8>> {
    (first..)
        .zip(chain)
        .map(|(txid, (commit, tags))| {
            let is_snapshot = txid == 1;
            let pages: Vec<_> = (1..=*commit)
                .zip(tags)
                .filter_map(|(pgno, tag)| tag.or(is_snapshot.then_some(0)).map(|tag| (pgno, page(tag))))
                .collect();
            encode(header(PAGE, *commit, txid, txid), &pages)
        })
        .collect()
}

fn merge(files: &[Vec<u8>]) -> Vec<u8> {
    let inputs = files.iter().map(|file| Decoder::new(file.as_slice()).unwrap()).collect();
    let (file, encoded) = compact(inputs, Vec::new()).unwrap();
    assert_eq!(holdfast_ltx::merge(files).unwrap(), file);
    assert_eq!(Decoder::new(file.as_slice()).unwrap().finish().unwrap().file_checksum, encoded.file_checksum);
    file
}

/// Applies to a database of `base` pages that stands right before `first`.
fn apply(base: u32, first: u64, files: &[Vec<u8>]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    std::fs::write(&path, vec![0xbb; (base * PAGE) as usize]).unwrap();
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let mut applier = if first == 1 {
        Applier::create(file).unwrap()
    } else {
        Applier::resume(file, Txid::new(first - 1), page_size(PAGE)).unwrap()
    };
    for file in files {
        applier.apply(Decoder::new(file.as_slice()).unwrap()).unwrap();
    }
    applier.finish(Durability::Unsynced).unwrap();
    std::fs::read(&path).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_merged_chain_has_the_effect_of_its_files(
        chain in any_chain(),
        first in 1_u64..3,
        base in 1..=PAGES_MAX,
        split in any::<prop::sample::Index>(),
    ) {
        let files = files_of(&chain, first);
        let in_turn = apply(base, first, &files);
        prop_assert!(in_turn == apply(base, first, &[merge(&files)]), "as one file");
        let split = split.index(files.len());
        if split > 0 {
            let halves = [merge(&files[..split]), merge(&files[split..])];
            prop_assert!(in_turn == apply(base, first, &halves), "in two files");
            prop_assert!(in_turn == apply(base, first, &[merge(&halves)]), "in two steps");
        }
    }

    #[test]
    fn overlapping_files_have_the_effect_of_their_transactions(
        chain in any_chain(),
        first in 1_u64..3,
        base in 1..=PAGES_MAX,
        (left_end, right_start) in any::<(prop::sample::Index, prop::sample::Index)>(),
    ) {
        let files = files_of(&chain, first);
        let in_turn = apply(base, first, &files);
        let left_end = 1 + left_end.index(files.len());
        let right_start = right_start.index(left_end.min(files.len() - 1) + 1);
        if left_end < files.len() {
            let halves = [merge(&files[..left_end]), merge(&files[right_start..])];
            prop_assert!(in_turn == apply(base, first, &halves), "in two files");
            prop_assert!(in_turn == apply(base, first, &[merge(&halves)]), "merged");
        }
    }

    #[test]
    fn a_damaged_input_fails_the_whole(
        chain in any_chain(),
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        bit in 0_u8..8,
    ) {
        let mut files = files_of(&chain, 1);
        let original = merge(&files);
        let which = which.index(files.len());
        let at = at.index(files[which].len());
        files[which][at] ^= 1 << bit;
        let inputs: Result<Vec<_>, _> = files.iter().map(|file| Decoder::new(file.as_slice())).collect();
        if let Ok((merged, _)) = inputs.map_err(|_| ()).and_then(|inputs| compact(inputs, Vec::new()).map_err(|_| ())) {
            prop_assert!(merged == original, "damage passed and changed the result");
        }
    }
}

#[test]
fn a_page_that_was_cut_away_and_grown_over_is_zero() {
    let files = [
        encode(header(PAGE, 3, 2, 2), &[(3, page(1))]),
        encode(header(PAGE, 1, 3, 3), &[(1, page(2))]),
        encode(header(PAGE, 4, 4, 4), &[(4, page(3))]),
    ];
    let pages = support::decode(&merge(&files)).unwrap().1;
    assert_eq!(pages, [(1, page(2)), (2, page(0)), (3, page(0)), (4, page(3))]);
}

#[test]
fn a_gap_is_named() {
    let files = [(1, 2), (3, 3), (5, 6)].map(|(min, max)| encode(header(PAGE, 1, min, max), &[(1, page(1))]));
    let inputs = files.iter().map(|file| Decoder::new(file.as_slice()).unwrap()).collect();
    let error = compact(inputs, Vec::new()).unwrap_err();
    assert!(matches!(error, CompactError::NotContiguous { .. }));
    let text = error.to_string();
    assert!(
        text.contains("ends at transaction 3") && text.contains("from 5") && text.contains("transaction 4"),
        "{text}"
    );
}

#[test]
fn inputs_that_do_not_fit_together_are_refused() {
    let merge = |files: &[Vec<u8>]| {
        let inputs = files.iter().map(|file| Decoder::new(file.as_slice()).unwrap()).collect();
        compact(inputs, Vec::new()).err().unwrap()
    };
    assert!(matches!(merge(&[]), CompactError::NoInputs));
    let first = encode(header(512, 1, 2, 2), &[(1, page(1))]);
    assert!(matches!(merge(&[first.clone(), first.clone()]), CompactError::NotContiguous { .. }), "overlap");
    let other = encode(header(1024, 1, 3, 3), &[(1, vec![0; 1024])]);
    assert!(matches!(merge(&[first, other]), CompactError::PageSize { .. }));
}
