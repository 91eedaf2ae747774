//! What is kept: answers by cache and URL, in the order of their use, and how many bytes they have with those that are coming.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use holdfast_telemetry::metrics;
use serde::Deserialize;

/// Bytes that an answer takes beside its body and its fields: tables, counters.
const OVERHEAD: u64 = 512;
/// Most pieces of a body: smaller ones are joined.
const PIECE_LEN_MIN: usize = 16 << 10;

/// Where an answer is kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
pub(super) struct Name {
    /// The name of the cache; none: `caches.default`.
    pub(super) cache: Option<String>,
    /// The URL of the request.
    pub(super) url: String,
}

/// All of an answer but its body.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) status: u16,
    pub(super) status_text: String,
    pub(super) headers: Vec<(String, String)>,
    /// In milliseconds since 1970.
    pub(super) last_modified: Option<i64>,
    pub(super) stored: Instant,
    pub(super) lifetime: Duration,
}

impl Kept {
    fn is_fresh(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.stored) < self.lifetime
    }

    fn len(&self) -> u64 {
        let fields: usize = self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        (fields + self.status_text.len()) as u64
    }
}

#[derive(Debug)]
struct Entry {
    kept: Kept,
    pieces: Arc<[Bytes]>,
    bytes: u64,
    /// Its place in the order of use.
    used: u64,
}

#[derive(Debug, Default)]
struct Table {
    by_name: HashMap<Name, Entry>,
    by_use: BTreeMap<u64, Name>,
    uses: u64,
    /// Bytes of what is here.
    bytes: u64,
    /// Bytes of what is coming.
    coming: u64,
}

impl Table {
    fn remove(&mut self, name: &Name) -> Option<Entry> {
        let entry = self.by_name.remove(name)?;
        self.by_use.remove(&entry.used);
        self.bytes -= entry.bytes;
        metrics().cache_bytes_changed(-signed(entry.bytes));
        Some(entry)
    }

    /// Lets answers go until so many bytes more have room. False where not all of them together would do.
    fn make_room(&mut self, bytes: u64, bytes_max: u64) -> bool {
        let Some(room) = bytes_max.checked_sub(self.coming.saturating_add(bytes)) else { return false };
        while self.bytes > room {
            let (_, name) = self.by_use.first_key_value().expect("what has bytes has a place");
            let name = name.clone();
            self.remove(&name);
        }
        true
    }
}

/// The answers that are kept, and their bound.
#[derive(Debug)]
pub(super) struct Entries {
    table: Mutex<Table>,
    bytes_max: u64,
}

impl Entries {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self { table: Mutex::default(), bytes_max }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An answer whose body is coming.
    pub(super) fn begin(self: &Arc<Self>) -> Filling {
        Filling { entries: Arc::clone(self), pieces: Vec::new(), last: Vec::new(), bytes: 0 }
    }

    /// A fresh answer.
    pub(super) fn find(&self, name: &Name, now: Instant) -> Option<(Kept, Arc<[Bytes]>)> {
        let mut table = self.table();
        if !table.by_name.get(name)?.kept.is_fresh(now) {
            table.remove(name);
            return None;
        }
        table.uses += 1;
        let used = table.uses;
        let entry = table.by_name.get_mut(name)?;
        let before = std::mem::replace(&mut entry.used, used);
        let found = (entry.kept.clone(), Arc::clone(&entry.pieces));
        table.by_use.remove(&before);
        table.by_use.insert(used, name.clone());
        Some(found)
    }

    /// Forgets an answer. Tells whether there was a fresh one.
    pub(super) fn remove(&self, name: &Name, now: Instant) -> bool {
        self.table().remove(name).is_some_and(|entry| entry.kept.is_fresh(now))
    }
}

/// An answer whose body is coming: what has come counts until it is kept or given up.
pub(super) struct Filling {
    entries: Arc<Entries>,
    pieces: Vec<Bytes>,
    /// Small pieces, joined.
    last: Vec<u8>,
    bytes: u64,
}

impl Filling {
    /// Takes a piece. False where there is no room for it, which there will not be for the rest either.
    pub(super) fn add(&mut self, piece: Bytes) -> bool {
        let len = piece.len() as u64;
        let mut table = self.entries.table();
        if !table.make_room(len, self.entries.bytes_max) {
            return false;
        }
        table.coming += len;
        drop(table);
        self.bytes += len;
        // A copy: a piece may be a small part of a large buffer.
        if piece.len() < PIECE_LEN_MIN {
            self.last.extend_from_slice(&piece);
        } else {
            self.end_last();
            self.pieces.push(Bytes::copy_from_slice(&piece));
        }
        if self.last.len() >= PIECE_LEN_MIN {
            self.end_last();
        }
        true
    }

    fn end_last(&mut self) {
        if !self.last.is_empty() {
            self.pieces.push(std::mem::take(&mut self.last).into());
        }
    }

    /// Keeps it, in place of what was there. False where there is no room.
    pub(super) fn keep(mut self, name: Name, kept: Kept) -> bool {
        self.end_last();
        let names = name.url.len() + name.cache.as_ref().map_or(0, String::len);
        // The name is there twice.
        let beside = OVERHEAD + kept.len() + 2 * names as u64;
        let pieces = std::mem::take(&mut self.pieces);
        let mut table = self.entries.table();
        table.remove(&name);
        if !table.make_room(beside, self.entries.bytes_max) {
            return false;
        }
        table.coming -= self.bytes;
        let bytes = std::mem::take(&mut self.bytes) + beside;
        table.bytes += bytes;
        metrics().cache_bytes_changed(signed(bytes));
        table.uses += 1;
        let used = table.uses;
        table.by_use.insert(used, name.clone());
        table.by_name.insert(name, Entry { kept, pieces: pieces.into(), bytes, used });
        true
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.entries.table().coming -= self.bytes;
        }
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
