//! A conditional write as the machines see it. `V` is the store's version of a record: an etag in the shells, a number
//! in the simulator.

/// What must hold for a write to be applied.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Guard<V> {
    /// The record does not exist.
    Absent,
    /// The record is at this version.
    Match(V),
}

/// The settled answer to a conditional write: what is still `Unknown` here could not be read back either.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer<V> {
    /// Written, at this version.
    Applied(V),
    /// Not written: the condition did not hold.
    Rejected,
    /// May have been written, or may still be.
    Unknown,
}
