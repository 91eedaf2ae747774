//! A conditional write's condition and its three answers.

use holdfast_core::store;

use crate::{BucketError, Version};

/// What must hold for a conditional write to be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// The key does not exist.
    Absent,
    /// The key exists at this version.
    Match(Version),
}

impl From<store::Guard<Version>> for Guard {
    fn from(guard: store::Guard<Version>) -> Self {
        match guard {
            store::Guard::Absent => Self::Absent,
            store::Guard::Match(version) => Self::Match(version),
        }
    }
}

/// The answer to a conditional write.
#[derive(Clone, Debug)]
pub enum Commit {
    /// Written; this is the new version.
    Applied(Version),
    /// The store said that the condition did not hold (412; 304; 404 on a match).
    Rejected,
    /// Anything else: the write may or may not have landed, now or later. Read back.
    Unknown(BucketError),
}

impl Commit {
    /// Whether the write is known to be applied.
    #[must_use]
    pub fn is_applied(&self) -> bool {
        matches!(self, Self::Applied(_))
    }
}
