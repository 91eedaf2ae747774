//! What an ensemble proves: a value that only this machine makes.

use holdfast_types::{LogEpoch, LogOffset};

/// Shows that every member of each ensemble that a recovery might ask has fsynced all frames below a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EnsembleProof {
    log_epoch: LogEpoch,
    below: LogOffset,
}

impl EnsembleProof {
    pub(super) const fn new(log_epoch: LogEpoch, below: LogOffset) -> Self {
        Self { log_epoch, below }
    }

    /// A proof of nothing, for the tests of its users.
    #[cfg(test)]
    pub(crate) const fn new_for_tests(log_epoch: LogEpoch, below: LogOffset) -> Self {
        Self::new(log_epoch, below)
    }

    /// The newest log epoch that it speaks of.
    #[must_use]
    pub const fn log_epoch(&self) -> LogEpoch {
        self.log_epoch
    }

    /// The first frame that is not proved.
    #[must_use]
    pub const fn below(&self) -> LogOffset {
        self.below
    }

    /// Whether it covers a frame.
    #[must_use]
    pub fn covers(&self, offset: LogOffset) -> bool {
        offset < self.below
    }
}
