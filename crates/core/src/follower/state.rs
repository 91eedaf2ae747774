//! What a follower holds of a session, what it writes down about it, and what it answers.

use holdfast_types::{LogEpoch, LogOffset};

/// The number of an entry among those of its session. The first is 1; a missing number is a lost entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

impl Ticket {
    /// The one after.
    ///
    /// # Panics
    /// At `u64::MAX`, which no counter of this product reaches.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.checked_add(1).expect("a counter never reaches u64::MAX"))
    }
}

/// A window of a session's log: `start <= offset < next`, adopted up to `log_epoch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Holdings {
    /// The newest adopted log epoch; zero before the first.
    pub log_epoch: LogEpoch,
    /// The first retained offset: everything below is in the bucket.
    pub start: LogOffset,
    /// The offset after the last.
    pub next: LogOffset,
}

impl Holdings {
    /// Of a session never seen.
    pub const NONE: Self =
        Self { log_epoch: LogEpoch::ZERO, start: LogOffset::new(1), next: LogOffset::new(1) };

    /// Adopts an epoch whose owner retains from `start` on: what lies before it is dropped, and a log that ends before
    /// it goes on there, empty.
    pub(super) fn adopt(&mut self, log_epoch: LogEpoch, start: LogOffset) {
        self.log_epoch = log_epoch;
        self.start = self.start.max(start);
        self.next = self.next.max(self.start);
    }

    /// Drops what lies before `start`, as far as it is there.
    pub(super) fn release(&mut self, start: LogOffset) {
        self.start = self.start.max(start.min(self.next));
    }
}

/// A change of a session's log as the journal keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogEntry {
    /// A log epoch was adopted.
    Adopt {
        /// The epoch.
        log_epoch: LogEpoch,
        /// The first offset that its owner retains.
        start: LogOffset,
    },
    /// Frames, both ends included.
    Frames {
        /// The first.
        first: LogOffset,
        /// The last.
        last: LogOffset,
    },
    /// Everything below is in the bucket.
    Release {
        /// The first offset still retained.
        start: LogOffset,
    },
    /// Appends are refused for ever.
    Seal,
    /// Frames that were fsynced may be missing, for ever.
    Damage,
    /// Nothing of the session is needed any more: its record says `sealed`.
    Forget,
    /// All that the entries before it said, so that the place where they stand can be given up.
    Carried {
        /// The window.
        holdings: Holdings,
        /// Whether it is sealed.
        is_sealed: bool,
        /// Whether frames may be missing.
        is_damaged: bool,
    },
}

/// What a follower answers about a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeldLog {
    /// The newest log epoch whose adoption is fsynced; zero when there is none.
    pub log_epoch: LogEpoch,
    /// The first retained frame.
    pub start: LogOffset,
    /// After the last fsynced frame.
    pub end: LogOffset,
    /// False when frames that were fsynced may be missing. True makes it a conclusive witness of `log_epoch`.
    pub is_complete: bool,
    /// Whether the seal is fsynced.
    pub is_sealed: bool,
}
