//! What the shell must do for a conditional write.

/// An effect of a conditional write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitEffect {
    /// Send the write: the same bytes under the same condition each time.
    Send,
    /// Read the record, after this pause.
    ReadBack {
        /// How long to wait first.
        pause_ms: u64,
    },
    /// Done.
    Settle(Settlement),
}

/// How a conditional write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// Applied by the store's answer.
    Applied,
    /// Applied: the record read last is this write.
    AppliedAsRead,
    /// Refused by the store's answer; nothing was read.
    Rejected,
    /// Refused: the record read last is another's. The write cannot become the record any more; it may have been, if the
    /// other's came on top of it.
    RejectedAsRead,
    /// May have been applied, or may still be.
    Unknown,
}
