//! WALs made by hand: both byte orders, and everything that must be refused.
#![allow(clippy::unwrap_used)]

mod support;

use holdfast_ltx::{Check, TransactionError, WalError, WalReader, collect_transaction, encode_transaction};
use holdfast_types::{Millis, Txid};

const SALTS: [u32; 2] = [0x1234_5678, 0x9abc_def0];

fn sum(mut sums: [u32; 2], bytes: &[u8], is_big_endian: bool) -> [u32; 2] {
    for pair in bytes.chunks(8) {
        for half in 0..2 {
            let word = pair[half * 4..half * 4 + 4].try_into().unwrap();
            let word = if is_big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) };
            sums[half] = sums[half].wrapping_add(word).wrapping_add(sums[1 - half]);
        }
    }
    sums
}

/// A WAL of 512-byte pages with frames (page, commit); each page is filled with its frame's number.
fn wal(is_big_endian: bool, frames: &[(u32, u32)]) -> Vec<u8> {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>();
    let mut bytes = words(&[0x377f_0682 | u32::from(is_big_endian), 3_007_000, 512, 7, SALTS[0], SALTS[1]]);
    let mut sums = sum([0, 0], &bytes, is_big_endian);
    bytes.extend(words(&sums));
    for (number, &(pgno, commit)) in (1_u8..).zip(frames) {
        let head = words(&[pgno, commit]);
        let page = [number; 512];
        sums = sum(sum(sums, &head, is_big_endian), &page, is_big_endian);
        bytes.extend(head);
        bytes.extend(words(&[SALTS[0], SALTS[1], sums[0], sums[1]]));
        bytes.extend(page);
    }
    bytes
}

const FRAMES: [(u32, u32); 6] = [(1, 0), (5, 5), (1, 0), (2, 0), (4, 4), (9, 0)];

#[test]
fn both_byte_orders_are_read_and_the_last_version_of_a_page_counts() {
    for is_big_endian in [false, true] {
        let wal = WalReader::open(wal(is_big_endian, &FRAMES)).unwrap();
        assert_eq!((wal.header().salts, wal.header().checkpoint_seq), (SALTS, 7));
        assert_eq!(wal.last_commit(6).unwrap(), 5);
        for check in [Check::Salts, Check::Checksums] {
            let set = collect_transaction(&wal, 1, 5, check).unwrap();
            assert_eq!(set.commit, 4);
            assert_eq!(
                set.pages.into_iter().collect::<Vec<_>>(),
                [(1, 3), (2, 4), (4, 5)],
                "page 5 was cut away"
            );
            let tail = collect_transaction(&wal, 3, 5, check).unwrap();
            assert_eq!(tail.pages.len(), 3);
            assert_eq!((tail.from, tail.to), (3, 5));
        }
    }
}

#[test]
fn a_first_transaction_fills_unwritten_pages_with_zeros() {
    let wal = WalReader::open(wal(false, &FRAMES)).unwrap();
    let set = collect_transaction(&wal, 1, 5, Check::Salts).unwrap();
    let header = set.header(&wal, Txid::new(1), Millis::new(5));
    assert_eq!((header.wal.offset, header.wal.len), (32, 5 * 536));
    let (file, _) = encode_transaction(&wal, &set, header, Vec::new()).unwrap();
    let pages = support::decode(&file).unwrap().1;
    assert_eq!(
        pages.iter().map(|(pgno, page)| (*pgno, page[0])).collect::<Vec<_>>(),
        [(1, 3), (2, 4), (3, 0), (4, 5)]
    );
    // Later ones hold what was written, and nothing else.
    let header = set.header(&wal, Txid::new(2), Millis::new(5));
    let (file, _) = encode_transaction(&wal, &set, header, Vec::new()).unwrap();
    assert_eq!(support::decode(&file).unwrap().1.len(), 3);
}

#[test]
fn a_header_of_another_size_is_refused() {
    let wal = WalReader::open(wal(false, &FRAMES)).unwrap();
    let set = collect_transaction(&wal, 1, 5, Check::Salts).unwrap();
    let mut header = set.header(&wal, Txid::new(2), Millis::new(5));
    header.commit += 1;
    let error = encode_transaction(&wal, &set, header, Vec::new()).unwrap_err();
    assert!(matches!(error, TransactionError::Header { .. }), "{error}");
}

#[test]
fn a_range_that_ends_inside_a_transaction_is_refused() {
    let wal = WalReader::open(wal(false, &FRAMES)).unwrap();
    for (from, to) in [(1, 1), (1, 4), (3, 6)] {
        let error = collect_transaction(&wal, from, to, Check::Salts).unwrap_err();
        assert!(matches!(error, WalError::NoCommit(at) if at == to), "{error}");
    }
    for (from, to) in [(0, 2), (3, 2)] {
        assert!(matches!(collect_transaction(&wal, from, to, Check::Salts), Err(WalError::Range { .. })));
    }
    assert!(matches!(collect_transaction(&wal, 1, 7, Check::Salts), Err(WalError::Truncated(7))));
}

#[test]
fn a_changed_byte_fails_the_checksum_from_its_frame_on() {
    let whole = wal(false, &FRAMES);
    for at in [32, 36, 48, 60, 32 + 535] {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x40;
        let wal = WalReader::open(damaged).unwrap();
        let error = collect_transaction(&wal, 1, 5, Check::Checksums).unwrap_err();
        assert!(matches!(error, WalError::Checksum(1)), "byte {at}: {error}");
        assert_eq!(wal.last_commit(6).unwrap(), 0);
        // Checked from the stored sum of the frame before, a later range does not see an earlier page's damage.
        let later = collect_transaction(&wal, 3, 5, Check::Checksums);
        assert!(later.is_ok(), "byte {at}");
    }
    let mut damaged = whole;
    damaged[40] ^= 1;
    let wal = WalReader::open(damaged).unwrap();
    assert!(matches!(collect_transaction(&wal, 1, 5, Check::Salts), Err(WalError::Salts { frame: 1, .. })));
}

#[test]
fn a_bad_header_is_refused_with_its_reason() {
    let whole = wal(true, &FRAMES);
    let opened = |change: fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        WalReader::open(bytes).err().unwrap()
    };
    assert!(matches!(opened(Vec::clear), WalError::NoHeader));
    assert!(matches!(opened(|bytes| bytes.truncate(31)), WalError::NoHeader));
    assert!(matches!(opened(|bytes| bytes[0] = 0), WalError::Magic(_)));
    for at in 4..32 {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        assert!(matches!(WalReader::open(bytes), Err(WalError::HeaderChecksum)), "byte {at}");
    }
}
