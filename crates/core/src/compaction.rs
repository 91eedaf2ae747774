//! When a cell's chain is shortened (design 4.3): level-1 compactions of its level-0 objects, and snapshots of the whole
//! database. Both are additive: a failure costs nothing but a longer restore.

use alloc::collections::VecDeque;

use holdfast_types::{Millis, Txid};

/// Level-0 objects that are told apart. Beyond it as many as one compaction merges are remembered as one.
const OBJECTS_MAX: usize = 512;

/// Bounds that start the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionTriggers {
    /// Level-0 objects since the last compaction.
    pub files_max: u64,
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
            files_max: 64,
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
    /// A level-0 object is in the bucket; it follows the one before.
    Uploaded {
        /// Its last transaction.
        txid: Txid,
        /// Its length in bytes.
        len: u64,
        /// The database's length in bytes.
        database_len: u64,
    },
    /// What a restore would read was looked up: the chain may be longer or shorter than was known.
    ChainSeen {
        /// All of it.
        chain: ChainSize,
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

/// A level-0 object that no compaction has merged, or several of a long backlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Object {
    max: Txid,
    files: u64,
    bytes: u64,
}

/// Decides for one cell in one epoch. At most one piece of work is under way.
#[derive(Clone, Debug)]
pub struct Compaction {
    triggers: CompactionTriggers,
    /// The last transaction that level 1 or a snapshot covers.
    compacted: Txid,
    uploaded: Txid,
    /// Level 0 beyond `compacted`, oldest first.
    objects: VecDeque<Object>,
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
            objects: VecDeque::new(),
            chain,
            database_len: 0,
            running: None,
            failures: 0,
            not_before: Millis::ZERO,
        }
    }

    /// What a restore would read.
    #[must_use]
    pub const fn chain(&self) -> ChainSize {
        self.chain
    }

    /// Whether work is under way.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Whether a snapshot is being made.
    #[must_use]
    pub const fn is_snapshotting(&self) -> bool {
        matches!(self.running, Some(CompactionWork::Snapshot { .. }))
    }

    /// Takes an event and says what to start, if anything. `now` is monotonic.
    pub fn on(&mut self, event: CompactionEvent, now: Millis) -> Option<CompactionWork> {
        match event {
            CompactionEvent::Uploaded { txid, len, database_len } => {
                if txid > self.uploaded {
                    self.uploaded = txid;
                    self.remember(Object { max: txid, files: 1, bytes: len });
                }
                self.database_len = database_len;
            }
            CompactionEvent::ChainSeen { chain } => {
                let ChainSize { files, bytes } = self.level_zero();
                self.chain = ChainSize { files: chain.files.max(files), bytes: chain.bytes.max(bytes) };
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

    fn remember(&mut self, object: Object) {
        self.chain.files += object.files;
        self.chain.bytes += object.bytes;
        let is_backlog = self.objects.len() >= OBJECTS_MAX;
        match self.objects.back_mut() {
            Some(last) if is_backlog && last.files + object.files <= self.triggers.files_max => {
                last.max = object.max;
                last.files += object.files;
                last.bytes += object.bytes;
            }
            _ => self.objects.push_back(object),
        }
    }

    fn on_done(&mut self, len: u64, max: Txid) {
        let Some(work) = self.running.take() else { return };
        self.failures = 0;
        self.compacted = max;
        self.uploaded = self.uploaded.max(max);
        let mut merged = ChainSize::default();
        while let Some(object) = self.objects.pop_front_if(|object| object.max <= max) {
            merged.files += object.files;
            merged.bytes += object.bytes;
        }
        match work {
            CompactionWork::Compact { .. } => {
                self.chain.files = (self.chain.files + 1).saturating_sub(merged.files);
                self.chain.bytes = (self.chain.bytes + len).saturating_sub(merged.bytes);
            }
            // The next compaction begins where the snapshot ends, so that a restore reads whole files only.
            CompactionWork::Snapshot { .. } => {
                let ChainSize { files, bytes } = self.level_zero();
                self.chain = ChainSize { files: 1 + files, bytes: len + bytes };
            }
        }
    }

    /// What no compaction has merged.
    fn level_zero(&self) -> ChainSize {
        let files = self.objects.iter().map(|object| object.files).sum();
        ChainSize { files, bytes: self.objects.iter().map(|object| object.bytes).sum() }
    }

    fn start(&mut self, now: Millis) -> Option<CompactionWork> {
        if self.running.is_some() || now < self.not_before || self.objects.is_empty() {
            return None;
        }
        let triggers = self.triggers;
        let level_zero = self.level_zero();
        let long = self.chain.files.saturating_sub(level_zero.files) > triggers.chain_files_max;
        let heavy = self.chain.bytes > triggers.chain_bytes_min
            && self.chain.bytes > self.database_len.saturating_mul(triggers.chain_factor);
        let work = if long || heavy {
            CompactionWork::Snapshot { at: self.uploaded }
        } else if level_zero.files >= triggers.files_max
            || (level_zero.files > 1 && level_zero.bytes >= triggers.bytes_max)
        {
            CompactionWork::Compact { min: self.compacted.next(), max: self.first_part() }
        } else {
            return None;
        };
        self.running = Some(work);
        Some(work)
    }

    /// The end of the part that is merged next: a backlog is worked off in pieces, each small enough to be held at once.
    fn first_part(&self) -> Txid {
        let (mut files, mut end) = (0, self.compacted);
        for object in &self.objects {
            files += object.files;
            if end > self.compacted && files > self.triggers.files_max {
                break;
            }
            end = object.max;
        }
        end
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
    fn objects_of_many_transactions_count_as_files() {
        let mut compaction = Compaction::new(CompactionTriggers::default(), Txid::ZERO, ChainSize::default());
        let mut work = None;
        for object in 1..=64 {
            assert_eq!(work, None, "before object {object}");
            work = upload(&mut compaction, object * 1_024, 300, 4 << 20);
        }
        let (min, max) = (Txid::new(1), Txid::new(64 * 1_024));
        assert_eq!(work, Some(CompactionWork::Compact { min, max }), "it ends where an object ends");
    }

    #[test]
    fn a_backlog_beyond_all_bounds_is_still_worked_off() {
        let mut compaction = Compaction::new(CompactionTriggers::default(), Txid::ZERO, ChainSize::default());
        let mut work = None;
        for txid in 1..=5_000 {
            work = work.or(upload(&mut compaction, txid, 100, 1 << 20));
            assert!(compaction.objects.len() <= OBJECTS_MAX + 5_000 / 64);
        }
        let mut covered = 0;
        while let Some(CompactionWork::Compact { min, max }) = work {
            assert_eq!(min.get(), covered + 1);
            assert!(max.get() - covered <= 64);
            covered = max.get();
            work = compaction.on(CompactionEvent::Done { len: 500, max }, Millis::ZERO);
        }
        assert!(matches!(work, Some(CompactionWork::Snapshot { .. })), "many level-1 files: {work:?}");
    }

    #[test]
    fn a_chain_that_turns_out_to_be_long_is_cut_by_the_next_write() {
        let mut compaction =
            Compaction::new(CompactionTriggers::default(), Txid::new(900), ChainSize::default());
        let chain = ChainSize { files: 200, bytes: 1 << 20 };
        assert_eq!(
            compaction.on(CompactionEvent::ChainSeen { chain }, Millis::ZERO),
            None,
            "nothing is written"
        );
        assert_eq!(
            upload(&mut compaction, 901, 10, 1 << 20),
            Some(CompactionWork::Snapshot { at: Txid::new(901) })
        );
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
