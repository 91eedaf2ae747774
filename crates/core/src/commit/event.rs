//! What happened to a conditional write.

/// An event of a conditional write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitEvent {
    /// The store says that it is applied.
    AnsweredApplied,
    /// The store says cleanly that the condition did not hold.
    AnsweredRejected,
    /// Any other answer, or none: it may have been applied, now or later.
    AnsweredUnknown,
    /// The record was read back.
    ReadBack(Seen),
    /// The record could not be read back.
    ReadBackFailed,
    /// The caller's patience is over.
    DeadlinePassed,
}

/// What a read showed of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It carries the write's own id.
    Mine,
    /// It is still what the condition asks for: the write has not been applied, or not yet.
    Unchanged,
    /// Neither.
    Other,
}
