//! Files written are read back, and no damaged file is taken for another.
#![allow(clippy::unwrap_used)]

mod support;

use holdfast_ltx::{DecodeError, Decoder, EncodeError, Encoder, HeaderError, PageOrderError};
use proptest::prelude::*;
use support::{decode, encode, header};

fn page(bytes: u32, seed: u8) -> Vec<u8> {
    (0..bytes)
        .map(|at| if at % 7 == 0 { seed.wrapping_mul(31).wrapping_add(at as u8) } else { seed })
        .collect()
}

fn small_file() -> Vec<u8> {
    encode(header(512, 9, 5, 6), &[(1, page(512, 1)), (4, page(512, 2)), (9, page(512, 3))])
}

#[test]
fn every_truncation_is_refused() {
    let file = small_file();
    for len in 0..file.len() {
        let error = decode(&file[..len]).unwrap_err();
        assert!(matches!(error, DecodeError::Truncated { .. }), "{len}: {error}");
    }
}

#[test]
fn a_flipped_bit_is_an_error_or_changes_nothing() {
    let file = small_file();
    let original = decode(&file).unwrap();
    let mut harmless = 0;
    for bit in 0..file.len() * 8 {
        let mut damaged = file.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        if let Ok(read) = decode(&damaged) {
            assert!(read == original, "bit {bit} gave other data");
            harmless += 1;
        }
    }
    assert!(harmless < 200, "{harmless} of {} flips passed", file.len() * 8);
}

#[test]
fn a_file_up_to_the_last_number_of_all_is_refused_when_read() {
    let mut file = small_file();
    file[24..32].fill(0xff);
    assert!(matches!(decode(&file), Err(DecodeError::Header(HeaderError::Range { .. }))));
}

#[test]
fn bytes_after_the_end_are_refused() {
    let mut file = small_file();
    file.push(0);
    assert!(matches!(decode(&file), Err(DecodeError::TrailingBytes(_))));
}

#[test]
fn an_index_of_other_pages_is_refused() {
    let file = small_file();
    let size_at = file.len() - 24;
    let size = u64::from_be_bytes(file[size_at..size_at + 8].try_into().unwrap());
    let index_at = size_at - usize::try_from(size).unwrap();
    // The index: three varints per page and a zero.
    assert_eq!((file[index_at], file[index_at + 1], file[size_at - 1]), (1, 100, 0));
    for at in index_at..size_at + 8 {
        let mut damaged = file.clone();
        damaged[at] ^= 1;
        assert!(matches!(decode(&damaged), Err(DecodeError::Index)), "byte {at}");
    }
}

#[test]
fn a_claimed_size_allocates_nothing() {
    let mut file = small_file();
    file[106..110].copy_from_slice(&u32::MAX.to_be_bytes());
    assert!(matches!(decode(&file), Err(DecodeError::BlockLen { pgno: 1, len: u32::MAX, .. })));
    file[106..110].copy_from_slice(&0_u32.to_be_bytes());
    assert!(matches!(decode(&file), Err(DecodeError::BlockLen { len: 0, .. })));
}

#[test]
fn a_page_of_early_ltx_is_refused_by_name() {
    let mut file = small_file();
    file[105] = 0;
    assert!(matches!(decode(&file), Err(DecodeError::LegacyPage { pgno: 1 })));
    file[105] = 2;
    assert!(matches!(decode(&file), Err(DecodeError::PageFlags { pgno: 1, flags: 2 })));
}

#[test]
fn a_header_that_readers_would_refuse_is_not_written() {
    let refused = |change: fn(&mut holdfast_ltx::Header)| {
        let mut bad = header(4096, 3, 2, 2);
        change(&mut bad);
        match Encoder::new(Vec::new(), bad) {
            Err(EncodeError::Header(error)) => error,
            _ => panic!("{bad:?} was accepted"),
        }
    };
    assert_eq!(refused(|h| h.commit = 0), HeaderError::NoPages);
    assert!(matches!(refused(|h| h.max = 1.into_txid()), HeaderError::Range { .. }));
    assert!(matches!(refused(|h| h.min = 0.into_txid()), HeaderError::Range { .. }));
    assert!(matches!(refused(|h| h.max = u64::MAX.into_txid()), HeaderError::Range { .. }));
    assert_eq!(refused(|h| h.wal.salt1 = 1), HeaderError::Field("wal offset"));
    assert_eq!(refused(|h| h.wal.len = 1), HeaderError::Field("wal offset"));
    assert_eq!(
        refused(|h| h.timestamp = holdfast_types::Millis::new(1 << 63)),
        HeaderError::Field("timestamp")
    );
    assert_eq!(refused(|h| h.commit = u32::MAX), HeaderError::Field("commit"));
}

trait IntoTxid {
    fn into_txid(self) -> holdfast_types::Txid;
}

impl IntoTxid for u64 {
    fn into_txid(self) -> holdfast_types::Txid {
        holdfast_types::Txid::new(self)
    }
}

#[test]
fn pages_out_of_place_are_refused_and_leave_the_file_whole() {
    let mut encoder = Encoder::new(Vec::new(), header(512, 9, 2, 2)).unwrap();
    let mut refused = |pgno| match encoder.page(pgno, &page(512, 0)) {
        Err(EncodeError::Order(error)) => Some(error),
        Ok(()) => None,
        Err(other) => panic!("{other}"),
    };
    assert_eq!(refused(0), Some(PageOrderError::Zero));
    assert_eq!(refused(10), Some(PageOrderError::BeyondCommit { pgno: 10, commit: 9 }));
    assert_eq!(refused(4), None);
    assert_eq!(refused(4), Some(PageOrderError::OutOfOrder { last: 4, pgno: 4 }));
    assert_eq!(refused(3), Some(PageOrderError::OutOfOrder { last: 4, pgno: 3 }));
    assert!(matches!(encoder.page(5, &[0; 511]), Err(EncodeError::PageLen { len: 511, .. })));
    let (file, _) = encoder.finish().unwrap();
    assert_eq!(decode(&file).unwrap().1, [(4, page(512, 0))]);
}

#[test]
fn a_snapshot_with_a_hole_is_neither_written_nor_read() {
    let mut encoder = Encoder::new(Vec::new(), header(512, 3, 1, 7)).unwrap();
    encoder.page(1, &page(512, 0)).unwrap();
    assert!(matches!(
        encoder.page(3, &page(512, 0)),
        Err(EncodeError::Order(PageOrderError::SnapshotLacks { missing: 2, commit: 3 }))
    ));
    encoder.page(2, &page(512, 0)).unwrap();
    assert!(matches!(
        encoder.finish(),
        Err(EncodeError::Order(PageOrderError::SnapshotLacks { missing: 3, commit: 3 }))
    ));
    // As an increment it is fine; made a snapshot by its header, it is refused.
    let mut file = encode(header(512, 3, 2, 7), &[(1, page(512, 0)), (3, page(512, 0))]);
    file[16..24].copy_from_slice(&1_u64.to_be_bytes());
    assert!(matches!(
        decode(&file),
        Err(DecodeError::Order(PageOrderError::SnapshotLacks { missing: 2, commit: 3 }))
    ));
}

#[test]
fn a_failed_write_tears_the_file_for_good() {
    struct Full(usize);
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let len = bytes.len().min(self.0);
            self.0 -= len;
            if len == 0 { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(len) }
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut encoder = Encoder::new(Full(120), header(512, 9, 2, 2)).unwrap();
    assert!(matches!(encoder.page(1, &page(512, 0)), Err(EncodeError::Io(_))));
    assert!(matches!(encoder.page(2, &page(512, 0)), Err(EncodeError::Torn)));
    assert!(matches!(encoder.finish(), Err(EncodeError::Torn)));
}

#[test]
fn the_lock_page_is_in_no_file() {
    // Page 16,385 of a database of 64 KiB pages holds byte 2^30.
    let mut encoder = Encoder::new(Vec::new(), header(65_536, 16_387, 2, 2)).unwrap();
    encoder.page(16_384, &page(65_536, 1)).unwrap();
    assert!(matches!(
        encoder.page(16_385, &page(65_536, 1)),
        Err(EncodeError::Order(PageOrderError::LockPage(16_385)))
    ));
    encoder.page(16_386, &page(65_536, 2)).unwrap();
    let (file, encoded) = encoder.finish().unwrap();
    assert_eq!(encoded.pages, 2);
    assert_eq!(decode(&file).unwrap().1.len(), 2);
}

/// A file made without the encoder: each frame's page number, block, and the page that its checksum is to cover.
fn by_hand(header: holdfast_ltx::Header, frames: &[(u32, &[u8], &[u8])]) -> Vec<u8> {
    let mut checksum = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc64GoIso);
    let mut file = header.to_bytes().to_vec();
    let mut index = Vec::new();
    checksum.update(&file);
    for (pgno, block, page) in frames {
        let at = file.len();
        file.extend(pgno.to_be_bytes());
        file.extend([0, 1]);
        file.extend(u32::try_from(block.len()).unwrap().to_be_bytes());
        checksum.update(&file[at..]);
        checksum.update(page);
        file.extend(*block);
        for number in [*pgno as usize, at, file.len() - at] {
            // Varints of one or two bytes.
            match number {
                0..0x80 => index.push(number as u8),
                _ => index.extend([(number & 0x7f) as u8 | 0x80, u8::try_from(number >> 7).unwrap()]),
            }
        }
    }
    index.push(0);
    let tail = [&[0; 6], index.as_slice(), &(index.len() as u64).to_be_bytes(), &[0; 8]].concat();
    checksum.update(&tail);
    file.extend(tail);
    file.extend((checksum.finalize() | 1 << 63).to_be_bytes());
    file
}

/// An LZ4 block of literals alone.
fn literals(bytes: &[u8]) -> Vec<u8> {
    let mut block = vec![0xf0];
    let mut left = bytes.len() - 15;
    while left >= 255 {
        block.push(255);
        left -= 255;
    }
    block.push(left as u8);
    block.extend(bytes);
    block
}

#[test]
fn a_file_made_by_hand_is_read() {
    let pages = [page(512, 4), page(512, 5)];
    let blocks = [literals(&pages[0]), literals(&pages[1])];
    let file = by_hand(header(512, 9, 3, 3), &[(2, &blocks[0], &pages[0]), (7, &blocks[1], &pages[1])]);
    assert_eq!(decode(&file).unwrap().1, [(2, page(512, 4)), (7, page(512, 5))]);
}

#[test]
fn a_block_of_another_length_is_refused_even_with_a_right_checksum() {
    let short = [page(511, 4), vec![0]].concat();
    let file = by_hand(header(512, 9, 3, 3), &[(2, &literals(&short[..511]), &short)]);
    assert!(matches!(decode(&file), Err(DecodeError::Block { pgno: 2 })));
    let long = page(513, 4);
    let file = by_hand(header(512, 9, 3, 3), &[(2, &literals(&long), &long[..512])]);
    assert!(matches!(decode(&file), Err(DecodeError::Block { pgno: 2 })));
}

#[test]
fn a_snapshot_that_ends_early_is_refused_even_with_a_right_checksum() {
    let (first, second) = (page(512, 4), page(512, 5));
    let frames = [(1, literals(&first), first), (2, literals(&second), second)];
    let frames: Vec<_> = frames.iter().map(|(pgno, block, page)| (*pgno, &block[..], &page[..])).collect();
    assert!(decode(&by_hand(header(512, 2, 1, 3), &frames)).is_ok());
    assert!(matches!(
        decode(&by_hand(header(512, 3, 1, 3), &frames)),
        Err(DecodeError::Order(PageOrderError::SnapshotLacks { missing: 3, commit: 3 }))
    ));
}

fn any_pages() -> impl Strategy<Value = (u32, u32, Vec<(u32, Vec<u8>)>)> {
    (9_u32..=16, 1_u32..40).prop_flat_map(|(shift, commit)| {
        let bytes = 1_u32 << shift;
        let content = prop_oneof![
            any::<u8>().prop_map(move |seed| page(bytes, seed)),
            any::<u64>().prop_map(move |seed| noise(bytes, seed)),
            Just(vec![0; bytes as usize]),
        ];
        let pages = proptest::collection::btree_map(1..=commit, content, 0..12);
        (Just(bytes), Just(commit), pages.prop_map(|pages| pages.into_iter().collect()))
    })
}

/// Bytes that do not compress.
fn noise(bytes: u32, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn what_was_written_is_read((bytes, commit, pages) in any_pages(), min in 2_u64..1000, more in 0_u64..9) {
        let header = header(bytes, commit, min, min + more);
        let file = encode(header, &pages);
        prop_assert_eq!(decode(&file).unwrap(), (header, pages));
    }

    #[test]
    fn damage_is_never_other_data(
        (bytes, commit, pages) in any_pages(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let file = encode(header(bytes, commit, 2, 2), &pages);
        let mut damaged = file.clone();
        for (at, byte) in damage {
            let at = at.index(damaged.len());
            damaged[at] = byte;
        }
        if let Some(cut) = cut {
            damaged.truncate(cut.index(damaged.len()));
        }
        if let Ok((_, read)) = decode(&damaged) {
            prop_assert_eq!(read, pages);
        }
    }

    #[test]
    fn noise_is_never_a_file(noise in proptest::collection::vec(any::<u8>(), 0..400), with_magic in any::<bool>()) {
        let mut noise = noise;
        if with_magic && noise.len() > 12 {
            noise[..12].copy_from_slice(b"LTX1\0\0\0\x02\0\0\x02\0");
        }
        prop_assert!(Decoder::new(noise.as_slice()).and_then(Decoder::finish).is_err());
    }
}
