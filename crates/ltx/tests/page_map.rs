//! A page map leads to the pages that a whole restore would make, for any chain; what cannot be mapped is refused.
#![allow(clippy::unwrap_used)]

mod support;

use holdfast_ltx::{
    Header, INDEX_TAIL_LEN, IndexError, MapError, PageMap, PageMapBuilder, WalSpan, compact, decode_frame,
    index_range,
};
use holdfast_types::{Millis, Txid};
use proptest::prelude::{ProptestConfig, any, prop, prop_assert_eq, proptest};
use support::{Captured, Seeded, encode, header, page_size, random_commit, restore};

const PAGES_MAX: u32 = 1 << 20;

fn header_of(file: &[u8]) -> Header {
    Header::from_bytes(file[..100].try_into().unwrap()).unwrap()
}

fn add(builder: &mut PageMapBuilder, file: &[u8], piece_len: usize) -> Result<(), MapError> {
    let tail = file[file.len() - INDEX_TAIL_LEN..].try_into().unwrap();
    let index = index_range(tail, file.len() as u64)?;
    builder.begin(header_of(file), &index)?;
    for piece in file[index.start as usize..index.end as usize].chunks(piece_len) {
        builder.feed(piece)?;
    }
    builder.end()
}

fn map_of<F: AsRef<[u8]>>(files: &[F]) -> Result<PageMap, MapError> {
    let mut builder = PageMapBuilder::new(PAGES_MAX);
    for file in files {
        add(&mut builder, file.as_ref(), 64)?;
    }
    builder.finish()
}

/// The database that the map leads to.
fn read_by_map(map: &PageMap, files: &[Vec<u8>]) -> Vec<u8> {
    let page_len = map.page_size().bytes();
    let mut database = vec![0; map.pages() as usize * page_len];
    for (index, page) in database.chunks_mut(page_len).enumerate() {
        let pgno = u32::try_from(index).unwrap() + 1;
        if let Some(place) = map.place(pgno) {
            let (from, len) = (usize::try_from(place.offset).unwrap(), place.len as usize);
            decode_frame(map.page_size(), pgno, &files[place.file][from..from + len], page).unwrap();
        }
    }
    database
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// Commits of a real SQLite (growth, deletes, VACUUM), parts of them merged: every page is the whole restore's.
    #[test]
    fn every_page_is_that_of_a_whole_restore(
        seed in any::<u64>(),
        page_size in prop::sample::select(vec![512_u32, 1024, 4096, 8192, 65_536]),
        commits in 1_usize..20,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut random = Seeded::new(seed);
        let mut captured = Captured::create(&dir.path().join("db"), page_size, "");
        captured.connection.execute_batch("CREATE TABLE t(a INTEGER PRIMARY KEY, b)").unwrap();
        captured.capture().unwrap();
        for _ in 0..commits {
            random_commit(&captured.connection, &mut random);
            captured.capture();
        }
        // The chain as compaction may have left it: a snapshot or not, and merged stretches.
        let mut files: Vec<Vec<u8>> = Vec::new();
        let mut rest = captured.files.as_slice();
        while !rest.is_empty() {
            let count = 1 + random.below(rest.len() as u64) as usize;
            let decoders = rest[..count].iter().map(|f| holdfast_ltx::Decoder::new(f.as_slice()).unwrap());
            files.push(compact(decoders.collect(), Vec::new()).unwrap().0);
            rest = &rest[count..];
        }
        let whole = restore(&dir.path().join("restored"), &files);
        let map = map_of(&files).unwrap();
        prop_assert_eq!(&read_by_map(&map, &files), &whole);
        let owned: u32 = map.pages_by_file().iter().sum();
        prop_assert_eq!(owned as usize, (1..=map.pages()).filter(|p| map.place(*p).is_some()).count());
    }

    /// A damaged index is refused, or leads to a frame that is refused, or to the right page: never to a wrong one.
    #[test]
    fn a_damaged_index_never_leads_to_a_wrong_page(at in any::<prop::sample::Index>(), flip in 1_u8..) {
        let page = |n: u8| (0..512_u32).map(|i| (i.wrapping_mul(u32::from(n) + 7) >> 3) as u8).collect::<Vec<_>>();
        let pages: Vec<_> = (1..=40_u8).map(|n| (u32::from(n), page(n))).collect();
        let file = encode(header(512, 40, 1, 1), &pages);
        let tail = file[file.len() - INDEX_TAIL_LEN..].try_into().unwrap();
        let index = index_range(tail, file.len() as u64).unwrap();
        let mut damaged = file.clone();
        let span = damaged.len() - 16 - index.start as usize;
        damaged[index.start as usize + at.index(span)] ^= flip;
        if let Ok(map) = map_of(std::slice::from_ref(&damaged)) {
            let mut found = vec![0; 512];
            for (pgno, page) in &pages {
                let place = map.place(*pgno).unwrap();
                let (from, len) = (place.offset as usize, place.len as usize);
                if decode_frame(page_size(512), *pgno, &damaged[from..from + len], &mut found).is_ok() {
                    prop_assert_eq!(&found, page);
                }
            }
        }
    }
}

#[test]
fn an_index_may_arrive_in_any_pieces() {
    let pages: Vec<_> = (1..=300_u32).map(|n| (n, vec![n as u8; 512])).collect();
    let file = encode(header(512, 300, 1, 9), &pages);
    let whole = read_by_map(&map_of(std::slice::from_ref(&file)).unwrap(), std::slice::from_ref(&file));
    for piece_len in [1, 2, 7, 1_000_000] {
        let mut builder = PageMapBuilder::new(300);
        add(&mut builder, &file, piece_len).unwrap();
        let map = builder.finish().unwrap();
        assert_eq!(read_by_map(&map, std::slice::from_ref(&file)), whole);
    }
}

#[test]
fn pages_that_were_cut_away_are_gone_and_zero_where_the_database_grew_again() {
    let page = |n: u8| vec![n; 512];
    let files = vec![
        encode(header(512, 5, 1, 1), &[(1, page(1)), (2, page(2)), (3, page(3)), (4, page(4)), (5, page(5))]),
        encode(header(512, 2, 2, 2), &[(1, page(11))]),
        encode(header(512, 4, 3, 3), &[(4, page(44))]),
    ];
    let map = map_of(&files).unwrap();
    assert_eq!(map.pages(), 4);
    let places: Vec<_> = (0..=5).map(|pgno| map.place(pgno).map(|place| place.file)).collect();
    assert_eq!(places, [None, Some(1), Some(0), None, Some(2), None]);
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(read_by_map(&map, &files), restore(&dir.path().join("db"), &files));
}

#[test]
fn the_lock_page_is_in_no_file_and_those_around_it_are() {
    // Pages of 64 KiB: the lock page is 16,385.
    let commit = 16_387;
    let pages: Vec<_> = (1..=commit).filter(|n| *n != 16_385).map(|n| (n, vec![n as u8; 65_536])).collect();
    let file = encode(header(65_536, commit, 1, 1), &pages);
    drop(pages);
    let map = map_of(std::slice::from_ref(&file)).unwrap();
    assert_eq!(map.pages(), commit);
    assert_eq!(map.place(16_385), None);
    assert!(map.memory_bytes() <= commit as usize * 8 + 1024, "{}", map.memory_bytes());
    let mut page = vec![0; 65_536];
    for pgno in [1, 16_384, 16_386, 16_387] {
        let place = map.place(pgno).unwrap();
        let frame = &file[place.offset as usize..][..place.len as usize];
        decode_frame(page_size(65_536), pgno, frame, &mut page).unwrap();
        assert_eq!(page, vec![pgno as u8; 65_536]);
    }
    // A run ends where the lock page would be... unless the frames go on: then the page is not in between.
    let run = map.run(16_383, 1 << 20, |_| true).unwrap();
    assert_eq!((run.first, run.last), (16_383, 16_384));
}

#[test]
fn a_run_takes_what_follows_up_to_its_bound_and_what_is_wanted() {
    let pages: Vec<_> = (1..=100_u32).map(|n| (n, vec![n as u8; 512])).collect();
    let newer = vec![(50, vec![9; 512])];
    let files = vec![encode(header(512, 100, 1, 1), &pages), encode(header(512, 100, 2, 2), &newer)];
    let map = map_of(&files).unwrap();
    let frame = u64::from(map.place(1).unwrap().len);
    let run = map.run(1, u64::MAX, |_| true).unwrap();
    assert_eq!((run.first, run.last, run.file, run.offset), (1, 49, 0, 100), "page 50 is in another file");
    assert_eq!(map.run(1, frame * 3, |_| true).unwrap().last, 3);
    assert_eq!(map.run(1, 0, |_| true).unwrap().last, 1, "the page itself in any case");
    assert_eq!(map.run(1, u64::MAX, |pgno| pgno < 10).unwrap().last, 9);
    assert_eq!(map.run(50, u64::MAX, |_| true).unwrap(), {
        let place = map.place(50).unwrap();
        holdfast_ltx::PageRun { first: 50, last: 50, file: 1, offset: 100, len: u64::from(place.len) }
    });
    assert_eq!(map.run(101, u64::MAX, |_| true), None);
}

#[test]
fn what_cannot_be_mapped_is_refused() {
    let one = |commit, min, max| encode(header(512, commit, min, max), &[(1, vec![1; 512])]);
    let snapshot = one(1, 1, 1);
    let refused = |files: &[&Vec<u8>]| map_of(files).unwrap_err();
    assert!(matches!(refused(&[&one(1, 2, 2)]), MapError::NotContiguous { .. }));
    assert!(matches!(refused(&[&snapshot, &one(1, 3, 3)]), MapError::NotContiguous { .. }));
    assert!(matches!(refused(&[&snapshot, &snapshot]), MapError::NotContiguous { .. }));
    assert_eq!(refused(&[]), MapError::Empty);
    let large = one(PAGES_MAX + 1, 2, 2);
    let error = refused(&[&snapshot, &large]);
    assert_eq!(error, MapError::TooManyPages { pages: PAGES_MAX + 1, pages_max: PAGES_MAX });
    let other_size = encode(header(1024, 1, 2, 2), &[(1, vec![1; 1024])]);
    assert!(matches!(refused(&[&snapshot, &other_size]), MapError::PageSize { .. }));
    let mut no_index = snapshot.clone();
    let at = no_index.len() - INDEX_TAIL_LEN;
    no_index[at..at + 8].copy_from_slice(&u64::MAX.to_be_bytes());
    assert!(matches!(refused(&[&no_index]), MapError::Index(IndexError::Len { .. })));
    // An index that is cut, and one with something behind its end.
    let tail = snapshot[at..].try_into().unwrap();
    let index = index_range(tail, snapshot.len() as u64).unwrap();
    let bytes = &snapshot[index.start as usize..index.end as usize];
    let mut builder = PageMapBuilder::new(9);
    builder.begin(header_of(&snapshot), &index).unwrap();
    builder.feed(&bytes[..bytes.len() - 1]).unwrap();
    assert_eq!(builder.end(), Err(MapError::Index(IndexError::End)));
    let mut builder = PageMapBuilder::new(9);
    builder.begin(header_of(&snapshot), &index).unwrap();
    assert_eq!(builder.feed(&[bytes, b"x"].concat()), Err(MapError::Index(IndexError::End)));
    // Files beyond what an entry can name.
    let header = Header { timestamp: Millis::ZERO, wal: WalSpan::default(), ..header(512, 1, 1, 1) };
    let mut builder = PageMapBuilder::new(9);
    for txid in 1..=2_047 {
        let txid = Txid::new(txid);
        builder.begin(Header { min: txid, max: txid, ..header }, &index).unwrap();
        builder.feed(bytes).unwrap();
        builder.end().unwrap();
    }
    let txid = Txid::new(2_048);
    assert_eq!(builder.begin(Header { min: txid, max: txid, ..header }, &index), Err(MapError::TooManyFiles));
}
