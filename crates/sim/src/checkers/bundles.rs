//! What is true of bundles: which are in the bucket, and which of them a recovery would read, going by the log record. For
//! INV-LOG-3; nothing that a session believes of its bundles is in here.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_core::log_record::LogRecord;
use holdfast_types::{LogOffset, SessionId};

use crate::frame::FrameId;

/// A bundle: the frame after the last that it speaks of, and what it holds.
type Held = (LogOffset, Vec<FrameId>);

/// One session's.
#[derive(Clone, Debug, Default)]
struct SessionBundles {
    held: BTreeMap<LogOffset, Held>,
    /// As the record says.
    from: Option<LogOffset>,
    /// Followers were told to drop what is below.
    released_below: LogOffset,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct BundleFacts {
    sessions: BTreeMap<SessionId, SessionBundles>,
}

impl BundleFacts {
    /// The bucket holds a bundle.
    pub fn on_stored(&mut self, session: SessionId, first: LogOffset, held: Held) {
        self.sessions.entry(session).or_default().held.insert(first, held);
    }

    /// The bucket holds a bundle no more.
    pub fn on_deleted(&mut self, session: SessionId, first: LogOffset) {
        self.sessions.entry(session).or_default().held.remove(&first);
    }

    /// The bucket has this record now.
    pub fn on_record(&mut self, record: &LogRecord) {
        self.sessions.entry(record.session).or_default().from = record.bundles_from;
    }

    /// Followers were told to drop a session's frames below.
    pub fn on_released(&mut self, session: SessionId, below: LogOffset) {
        let facts = self.sessions.entry(session).or_default();
        facts.released_below = facts.released_below.max(below);
    }

    /// Followers were told to drop what is below.
    #[must_use]
    pub fn released_below(&self, session: SessionId) -> LogOffset {
        self.sessions.get(&session).map_or(LogOffset::ZERO, |facts| facts.released_below)
    }

    /// What a recovery finds in bundles: from the one that the record names on, without a gap.
    #[must_use]
    pub fn readable(&self, session: SessionId) -> BTreeSet<FrameId> {
        let Some(facts) = self.sessions.get(&session) else { return BTreeSet::new() };
        let mut next = facts.from;
        let mut frames = BTreeSet::new();
        while let Some((below, held)) = next.and_then(|first| facts.held.get(&first)) {
            frames.extend(held);
            next = Some(*below);
        }
        frames
    }
}
