//! Prepared statements that are kept for their next run: those that a cell runs again and again. Few, small, and given back
//! when the cell is idle. Only statements that name tables and functions are kept, so that none leaves a setting, a
//! transaction or a flag behind that its preparation made; where the schema has changed, SQLite prepares them anew in
//! their first step, under the same policy.

use std::hash::{BuildHasher, RandomState};

use crate::ffi::Kept;

/// Statements of one engine.
const KEPT_MAX: usize = 4;
/// Heap bytes of one, as SQLite counts them.
const STATEMENT_BYTES_MAX: usize = 8 << 10;
/// Bytes of the text of one.
const TEXT_LEN_MAX: usize = 1 << 10;
/// Texts that are remembered: one that comes again within so many others is worth keeping.
const SEEN_MAX: usize = 8;

struct Entry {
    text: Box<str>,
    /// How much of the text the statement takes.
    used: usize,
    /// None while it runs.
    statement: Option<Kept>,
}

/// The statements, the last used first.
#[derive(Default)]
pub(super) struct KeptStatements {
    entries: Vec<Entry>,
    seen: [u64; SEEN_MAX],
    next_seen: usize,
    hasher: RandomState,
}

impl KeptStatements {
    /// The statement of a text, and how much of the text it takes. After its run it is to be put back.
    pub(super) fn take(&mut self, text: &str) -> Option<(Kept, usize)> {
        let at = self.entries.iter().position(|entry| *entry.text == *text)?;
        self.entries[..=at].rotate_right(1);
        let entry = &mut self.entries[0];
        let used = entry.used;
        let Some(statement) = entry.statement.take() else {
            // Its last run failed.
            self.entries.remove(0);
            return None;
        };
        Some((statement, used))
    }

    /// Puts the statement back that was taken last.
    pub(super) fn put_back(&mut self, text: &str, statement: Kept) {
        if let Some(entry) = self.entries.first_mut()
            && *entry.text == *text
            // SQLite may have prepared it anew, over a schema in which it is larger.
            && statement.memory() <= STATEMENT_BYTES_MAX
        {
            entry.statement = Some(statement);
        }
    }

    /// Whether a statement that has run is to be kept. Remembers the text.
    pub(super) fn is_worth_it(&mut self, text: &str) -> bool {
        if text.len() > TEXT_LEN_MAX {
            return false;
        }
        let hash = self.hasher.hash_one(text);
        if self.seen.contains(&hash) {
            return true;
        }
        self.seen[self.next_seen] = hash;
        self.next_seen = (self.next_seen + 1) % SEEN_MAX;
        false
    }

    /// Keeps a statement, unless it is large; the one that was not used for the longest time goes.
    pub(super) fn put(&mut self, text: &str, used: usize, statement: Kept) {
        if statement.memory() > STATEMENT_BYTES_MAX {
            return;
        }
        self.entries.truncate(KEPT_MAX - 1);
        self.entries.insert(0, Entry { text: text.into(), used, statement: Some(statement) });
    }

    /// Finalizes all.
    pub(super) fn clear(&mut self) {
        self.entries = Vec::new();
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.iter().filter(|entry| entry.statement.is_some()).count()
    }
}
