//! What several tests need: small databases whose WAL is captured, and files in memory.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use holdfast_ltx::{
    Applier, Check, DecodeError, Decoder, Durability, Encoder, FrameSet, Header, PageSize, WalReader,
    WalSpan, collect_transaction, encode_transaction,
};
use holdfast_types::{Millis, Txid};
use rusqlite::Connection;
use std::fs::File;
use std::path::{Path, PathBuf};

pub fn page_size(bytes: u32) -> PageSize {
    PageSize::new(bytes).unwrap()
}

pub fn header(bytes: u32, commit: u32, min: u64, max: u64) -> Header {
    Header {
        page_size: page_size(bytes),
        commit,
        min: Txid::new(min),
        max: Txid::new(max),
        timestamp: Millis::new(1_700_000_000_000 + max),
        wal: WalSpan::default(),
        node_id: 0,
    }
}

pub fn encode(header: Header, pages: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut encoder = Encoder::new(Vec::new(), header).unwrap();
    for (pgno, page) in pages {
        encoder.page(*pgno, page).unwrap();
    }
    let (file, encoded) = encoder.finish().unwrap();
    assert_eq!(encoded.len, file.len() as u64);
    file
}

pub type Pages = Vec<(u32, Vec<u8>)>;

pub fn decode(file: &[u8]) -> Result<(Header, Pages), DecodeError> {
    let mut decoder = Decoder::new(file)?;
    let header = *decoder.header();
    let mut page = vec![0; header.page_size.bytes()];
    let mut pages = Vec::new();
    while let Some(pgno) = decoder.next_page(&mut page)? {
        pages.push((pgno, page.clone()));
    }
    let decoded = decoder.finish()?;
    assert_eq!((decoded.len, decoded.pages as usize), (file.len() as u64, pages.len()));
    Ok((header, pages))
}

/// Applies files to a new database at `path`.
pub fn restore<'a>(path: &Path, files: impl IntoIterator<Item = &'a Vec<u8>>) -> Vec<u8> {
    let file = File::options().create(true).truncate(true).read(true).write(true).open(path).unwrap();
    let mut applier = Applier::create(file).unwrap();
    for file in files {
        applier.apply(Decoder::new(file.as_slice()).unwrap()).unwrap();
    }
    applier.finish(Durability::Unsynced).unwrap();
    std::fs::read(path).unwrap()
}

/// A database whose owner captures each commit, as the engine does: WAL, exclusive, no checkpoint but its own.
pub struct Captured {
    pub connection: Connection,
    pub path: PathBuf,
    pub files: Vec<Vec<u8>>,
    pub captured: u32,
    salts: [u32; 2],
    page_size: u32,
}

impl Captured {
    pub fn create(path: &Path, page_size: u32, setup: &str) -> Self {
        let connection = Connection::open(path).unwrap();
        connection
            .execute_batch(&format!(
                "PRAGMA page_size={page_size}; {setup} PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL;
                 PRAGMA wal_autocheckpoint=0; PRAGMA synchronous=OFF;"
            ))
            .unwrap();
        Self { connection, path: path.into(), files: Vec::new(), captured: 0, salts: [0; 2], page_size }
    }

    pub fn wal_path(&self) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push("-wal");
        path.into()
    }

    pub fn wal(&self) -> WalReader<File> {
        WalReader::open(File::open(self.wal_path()).unwrap()).unwrap()
    }

    pub fn frames_max(&self) -> u32 {
        let len = std::fs::metadata(self.wal_path()).unwrap().len();
        u32::try_from(len.saturating_sub(32) / (24 + u64::from(self.page_size))).unwrap()
    }

    /// Captures what was committed since, as one transaction. `None` when nothing was.
    pub fn capture(&mut self) -> Option<(FrameSet, Vec<u8>)> {
        if self.frames_max() == 0 {
            return None;
        }
        let wal = self.wal();
        if wal.header().salts != self.salts {
            (self.captured, self.salts) = (0, wal.header().salts);
        }
        let last = wal.last_commit(self.frames_max()).unwrap();
        if last <= self.captured {
            return None;
        }
        let set = collect_transaction(&wal, self.captured + 1, last, Check::Checksums).unwrap();
        assert_eq!(set, collect_transaction(&wal, self.captured + 1, last, Check::Salts).unwrap());
        let txid = Txid::new(self.files.len() as u64 + 1);
        let header = set.header(&wal, txid, Millis::new(1_700_000_000_000 + txid.get()));
        let (file, _) = encode_transaction(&wal, &set, header, Vec::new()).unwrap();
        self.captured = last;
        self.files.push(file.clone());
        Some((set, file))
    }

    /// Checkpoints all captured frames, so that the WAL starts anew with the next commit.
    pub fn checkpoint(&mut self, mode: &str) {
        let pragma = format!("PRAGMA wal_checkpoint({mode})");
        let busy: i64 = self.connection.query_row(&pragma, [], |row| row.get(0)).unwrap();
        assert_eq!(busy, 0);
    }

    /// The database as a plain file, made by SQLite from copies of database and WAL.
    pub fn plain(&self, folder: &Path) -> Vec<u8> {
        let copy = folder.join("plain.db");
        let copy_wal = folder.join("plain.db-wal");
        std::fs::copy(&self.path, &copy).unwrap();
        std::fs::copy(self.wal_path(), &copy_wal).unwrap();
        let connection = Connection::open(&copy).unwrap();
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        drop(connection);
        let plain = std::fs::read(&copy).unwrap();
        std::fs::remove_file(&copy).unwrap();
        plain
    }
}

/// A small generator, so that a seed names a run.
pub struct Seeded(u64);

impl Seeded {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % bound
    }
}

/// One random commit: growth, shrinking, schema changes, `VACUUM`.
pub fn random_commit(connection: &Connection, random: &mut Seeded) {
    let rows = 1 + random.below(8);
    let bytes = random.below(6000);
    let sql = match random.below(12) {
        0..=4 => format!(
            "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
             INSERT INTO t(b) SELECT randomblob({bytes}) FROM n"
        ),
        5 => format!("INSERT INTO t(b) VALUES (zeroblob({}))", bytes * 8),
        6..=7 => format!("DELETE FROM t WHERE a % {} = 0", 2 + random.below(4)),
        8 => format!("UPDATE t SET b = randomblob({bytes}) WHERE a % 3 = 1"),
        9 => "VACUUM".into(),
        10 => "DELETE FROM t".into(),
        _ => {
            let name = random.below(4);
            format!(
                "BEGIN; DROP TABLE IF EXISTS u{name}; CREATE TABLE u{name}(a, b); CREATE INDEX i{name} ON u{name}(b);
                 INSERT INTO u{name} SELECT a, b FROM t; COMMIT"
            )
        }
    };
    connection.execute_batch(&sql).unwrap();
}
