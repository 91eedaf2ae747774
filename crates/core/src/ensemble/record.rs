//! The session's log record as the session knows it: what is confirmed, and which writes may have landed besides.

use alloc::vec::Vec;

use holdfast_types::LogEpoch;

use crate::log_record::{Ensemble, LogRecord};
use crate::store::Guard;

/// What the machine waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    Idle,
    Writing,
    Reading,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct RecordState<V> {
    pub(super) confirmed: Option<(LogRecord, V)>,
    /// Writes under the confirmed version of which any one may have landed, or may yet.
    pub(super) attempts: Vec<LogRecord>,
    pub(super) step: Step,
    /// Reads and writes in a row without a conclusive answer.
    pub(super) failures: u32,
}

impl<V: Clone> RecordState<V> {
    pub(super) const fn new() -> Self {
        Self { confirmed: None, attempts: Vec::new(), step: Step::Idle, failures: 0 }
    }

    pub(super) fn current(&self) -> Option<&LogRecord> {
        self.confirmed.as_ref().map(|(record, _)| record)
    }

    pub(super) fn guard(&self) -> Guard<V> {
        match &self.confirmed {
            None => Guard::Absent,
            Some((_, version)) => Guard::Match(version.clone()),
        }
    }

    /// For each record that a recovery might find: the ensemble that it would ask.
    pub(super) fn possible_witnesses(&self) -> impl Iterator<Item = Option<&Ensemble>> {
        let confirmed = core::iter::once(self.current().and_then(LogRecord::witnesses));
        confirmed.chain(self.attempts.iter().map(LogRecord::witnesses))
    }

    /// The newest epoch that any record or attempt names.
    pub(super) fn newest_epoch(&self) -> LogEpoch {
        let epochs = self.current().into_iter().chain(&self.attempts).map(|record| record.ensemble.log_epoch);
        epochs.max().unwrap_or(LogEpoch::ZERO)
    }

    /// A write of this session is the record now. Writes under the version before it can land no more.
    pub(super) fn confirm(&mut self, record: LogRecord, version: V) {
        self.confirmed = Some((record, version));
        self.attempts.clear();
        self.step = Step::Idle;
        self.failures = 0;
    }
}
