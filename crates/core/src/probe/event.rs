//! The steps of a probe, and how a store can answer one.

/// A step. Each attempt takes all, in this order, on objects of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbeStep {
    /// Create an object that does not exist.
    Create,
    /// Create it again: must be refused.
    RejectCreate,
    /// Overwrite it at the version that the create answered.
    Update,
    /// Overwrite it at that version again, which is stale now: must be refused.
    RejectStale,
    /// Overwrite an object that does not exist: must be refused.
    RejectMissing,
    /// Read the first object: must be what the update wrote.
    Read,
    /// Write a second object for the ranges.
    Prepare,
    /// Read a range inside the second object.
    Range,
    /// Read the end of the second object.
    Suffix,
}

impl ProbeStep {
    /// All, in order.
    pub const ALL: [Self; 9] = [
        Self::Create,
        Self::RejectCreate,
        Self::Update,
        Self::RejectStale,
        Self::RejectMissing,
        Self::Read,
        Self::Prepare,
        Self::Range,
        Self::Suffix,
    ];

    /// The step's name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::RejectCreate => "reject-create",
            Self::Update => "update",
            Self::RejectStale => "reject-stale",
            Self::RejectMissing => "reject-missing",
            Self::Read => "read",
            Self::Prepare => "second-object",
            Self::Range => "range",
            Self::Suffix => "suffix-range",
        }
    }
}

/// How the store answered a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeAnswer {
    /// A write was applied.
    Applied,
    /// A write was refused because its condition did not hold.
    Rejected,
    /// A read returned exactly the bytes asked for.
    Exact,
    /// A ranged read returned the whole object.
    Whole,
    /// A read returned other bytes.
    WrongBytes,
    /// A read did not find an object that was written before.
    Missing,
    /// The store does not know the operation or the header.
    Unsupported,
    /// The store will not let us: credentials, permissions, no such bucket, this machine's clock.
    Refused,
    /// Anything that another time may go otherwise.
    Failed,
}
