//! When a cell's chain is shortened (design 4.3): level-1 compactions of its level-0 objects, and snapshots of the whole
//! database. Both are additive: a failure costs nothing but a longer restore.

use holdfast_types::{Millis, Txid};

/// Bounds that start the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionTriggers {
    /// Level-0 transactions since the last compaction.
    pub txids_max: u64,
    /// Level-0 bytes since the last compaction.
    pub bytes_max: u64,
    /// A snapshot is due when the chain's bytes exceed the database's by this factor...
    pub chain_factor: u64,
    /// ...and are more than this, so that small databases are not written again and again...
    pub chain_bytes_min: u64,
    /// ...or when a restore would read more files than this.
    pub chain_files_max: u64,
    /// Pause after the first failure; doubles from there.
    pub retry_ms_min: u64,
    /// Longest pause after a failure.
    pub retry_ms_max: u64,
}

impl Default for CompactionTriggers {
    fn default() -> Self {
        Self {
            // A restore reads at most this many level-0 files, and as many of level 1: under 200 in all.
            txids_max: 64,
            bytes_max: 32 << 20,
            chain_factor: 4,
            chain_bytes_min: 1 << 20,
            chain_files_max: 64,
            retry_ms_min: 30_000,
            retry_ms_max: 300_000,
        }
    }
}

/// What a restore would read now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainSize {
    /// Files, openers included.
    pub files: u64,
    /// Bytes.
    pub bytes: u64,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionEvent {
    /// A level-0 object is in the bucket.
    Uploaded {
        /// Its transaction.
        txid: Txid,
        /// Its length in bytes.
        len: u64,
        /// The database's length in bytes.
        database_len: u64,
    },
    /// The work asked for is done.
    Done {
        /// Length of the file that was made, in bytes.
        len: u64,
        /// The last transaction in it; a snapshot may reach beyond what was asked for.
        max: Txid,
    },
    /// The work asked for failed.
    Failed,
}

/// Work to do, in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionWork {
    /// Merge the level-0 objects of this range, both ends included, into one of level 1.
    Compact {
        /// First transaction.
        min: Txid,
        /// Last transaction.
        max: Txid,
    },
    /// Write a snapshot at this transaction.
    Snapshot {
        /// The transaction.
        at: Txid,
    },
}

/// Decides for one cell in one epoch. At most one piece of work is under way.
#[derive(Clone, Debug)]
pub struct Compaction {
    triggers: CompactionTriggers,
    /// The last transaction that level 1 or a snapshot covers.
    compacted: Txid,
    uploaded: Txid,
    level_zero_bytes: u64,
    /// Bytes of level 0 beyond the work that is under way.
    level_zero_bytes_since_start: u64,
    chain: ChainSize,
    database_len: u64,
    running: Option<CompactionWork>,
    failures: u32,
    not_before: Millis,
}

impl Compaction {
    /// For an epoch that begins at `restored` on a chain of this size.
    #[must_use]
    pub fn new(triggers: CompactionTriggers, restored: Txid, chain: ChainSize) -> Self {
        Self {
            triggers,
            compacted: restored,
            uploaded: restored,
            level_zero_bytes: 0,
            level_zero_bytes_since_start: 0,
            chain,
            database_len: 0,
            running: None,
            failures: 0,
            not_before: Millis::ZERO,
        }
    }

    /// Takes an event and says what to start, if anything. `now` is monotonic.
    pub fn on(&mut self, event: CompactionEvent, now: Millis) -> Option<CompactionWork> {
        match event {
            CompactionEvent::Uploaded { txid, len, database_len } => {
                self.uploaded = self.uploaded.max(txid);
                self.level_zero_bytes += len;
                self.level_zero_bytes_since_start += len;
                self.chain.files += 1;
                self.chain.bytes += len;
                self.database_len = database_len;
            }
            CompactionEvent::Done { len, max } => self.on_done(len, max),
            CompactionEvent::Failed => {
                let pause = self.triggers.retry_ms_min << self.failures.min(8);
                self.failures += 1;
                self.not_before = now.plus(pause.min(self.triggers.retry_ms_max));
                self.running = None;
            }
        }
        self.start(now)
    }

    fn on_done(&mut self, len: u64, max: Txid) {
        let Some(work) = self.running.take() else { return };
        self.failures = 0;
        match work {
            CompactionWork::Compact { min, .. } => {
                self.compacted = max;
                let merged = max.get() - min.get() + 1;
                self.chain.files = (self.chain.files + 1).saturating_sub(merged);
                let merged_bytes = self.level_zero_bytes - self.level_zero_bytes_since_start;
                self.chain.bytes = (self.chain.bytes + len).saturating_sub(merged_bytes);
            }
            CompactionWork::Snapshot { .. } => {
                // The next compaction begins where the snapshot ends, so that a restore reads whole files only.
                self.compacted = max;
                self.uploaded = self.uploaded.max(max);
                self.chain.files = 1 + (self.uploaded.get() - max.get());
                self.chain.bytes = len + self.level_zero_bytes_since_start;
            }
        }
        self.level_zero_bytes = self.level_zero_bytes_since_start;
    }

    fn start(&mut self, now: Millis) -> Option<CompactionWork> {
        if self.running.is_some() || now < self.not_before {
            return None;
        }
        let triggers = self.triggers;
        let level_zero_files = self.uploaded.get() - self.compacted.get();
        let long = self.chain.files.saturating_sub(level_zero_files) > triggers.chain_files_max;
        let heavy = self.chain.bytes > triggers.chain_bytes_min
            && self.chain.bytes > self.database_len.saturating_mul(triggers.chain_factor);
        let work = if self.uploaded > self.compacted && (long || heavy) {
            CompactionWork::Snapshot { at: self.uploaded }
        } else if level_zero_files >= triggers.txids_max
            || (level_zero_files > 1 && self.level_zero_bytes >= triggers.bytes_max)
        {
            // A backlog is worked off in pieces, each small enough to be held at once.
            let files = level_zero_files.min(triggers.txids_max);
            let max = Txid::new(self.compacted.get() + files);
            CompactionWork::Compact { min: self.compacted.next(), max }
        } else {
            return None;
        };
        self.level_zero_bytes_since_start = match work {
            // Their share, as if all were equally long; the bound that it serves is a rough one.
            CompactionWork::Compact { max, .. } => {
                let left = u128::from(self.uploaded.get() - max.get());
                let share = u128::from(self.level_zero_bytes) * left / u128::from(level_zero_files);
                u64::try_from(share).unwrap_or(u64::MAX)
            }
            CompactionWork::Snapshot { .. } => 0,
        };
        self.running = Some(work);
        Some(work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upload(compaction: &mut Compaction, txid: u64, len: u64, database_len: u64) -> Option<CompactionWork> {
        let event = CompactionEvent::Uploaded { txid: Txid::new(txid), len, database_len };
        compaction.on(event, Millis::ZERO)
    }

    #[test]
    fn a_long_run_of_small_writes_keeps_the_chain_short() {
        let mut compaction = Compaction::new(CompactionTriggers::default(), Txid::ZERO, ChainSize::default());
        let mut restore_files_max = 0;
        for txid in 1..=40_000 {
            if let Some(work) = upload(&mut compaction, txid, 300, 4 << 20) {
                let (CompactionWork::Compact { max, .. } | CompactionWork::Snapshot { at: max }) = work;
                compaction.on(CompactionEvent::Done { len: 5_000, max }, Millis::ZERO);
            }
            restore_files_max = restore_files_max.max(compaction.chain.files);
        }
        assert!(restore_files_max < 140, "{restore_files_max}");
    }

    #[test]
    fn a_heavy_chain_is_replaced_by_a_snapshot() {
        let mut compaction = Compaction::new(CompactionTriggers::default(), Txid::ZERO, ChainSize::default());
        assert_eq!(upload(&mut compaction, 1, 1 << 20, 1 << 19), None);
        assert_eq!(
            upload(&mut compaction, 2, 2 << 20, 1 << 19),
            Some(CompactionWork::Snapshot { at: Txid::new(2) })
        );
        assert_eq!(upload(&mut compaction, 3, 100, 1 << 19), None, "one at a time");
        assert_eq!(
            compaction.on(CompactionEvent::Done { len: 1 << 19, max: Txid::new(2) }, Millis::ZERO),
            None
        );
        assert_eq!(compaction.chain, ChainSize { files: 2, bytes: (1 << 19) + 100 });
    }

    #[test]
    fn failures_pause_from_thirty_seconds_to_five_minutes() {
        let mut compaction = Compaction::new(CompactionTriggers::default(), Txid::ZERO, ChainSize::default());
        let mut now = Millis::ZERO;
        for txid in 1..=64 {
            upload(&mut compaction, txid, 1, 1 << 20);
        }
        for pause in [30_000, 60_000, 120_000, 240_000, 300_000, 300_000] {
            assert_eq!(compaction.on(CompactionEvent::Failed, now), None);
            let event = CompactionEvent::Uploaded { txid: Txid::new(64), len: 0, database_len: 1 << 20 };
            assert_eq!(compaction.on(event, now.plus(pause - 1)), None);
            now = now.plus(pause);
            assert!(compaction.on(event, now).is_some());
        }
    }

    #[test]
    fn a_backlog_is_worked_off_in_pieces() {
        let mut compaction = Compaction::new(CompactionTriggers::default(), Txid::ZERO, ChainSize::default());
        let mut work = None;
        for txid in 1..=200 {
            work = work.or(upload(&mut compaction, txid, 100, 1 << 20));
        }
        let mut pieces = alloc::vec::Vec::new();
        while let Some(CompactionWork::Compact { min, max }) = work {
            pieces.push((min.get(), max.get()));
            work = compaction.on(CompactionEvent::Done { len: 500, max }, Millis::ZERO);
        }
        assert_eq!(pieces, [(1, 64), (65, 128), (129, 192)]);
    }

    #[test]
    fn an_inherited_chain_of_many_files_is_cut_by_the_first_write() {
        let chain = ChainSize { files: 200, bytes: 1 << 20 };
        let mut compaction = Compaction::new(CompactionTriggers::default(), Txid::new(900), chain);
        assert_eq!(
            upload(&mut compaction, 901, 10, 1 << 20),
            Some(CompactionWork::Snapshot { at: Txid::new(901) })
        );
    }
}
