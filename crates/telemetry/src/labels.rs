//! The values that attributes of hot instruments may take, as closed sets: what is closed can be bound beforehand, and
//! no metric grows without limit.

/// A closed set of values of one attribute.
pub trait Label: Copy + 'static {
    /// The attribute's name.
    const KEY: &'static str;
    /// Every value, in the order of [`Label::index`].
    const ALL: &'static [Self];
    /// The value as exported.
    fn as_str(self) -> &'static str;
    /// Its place in [`Label::ALL`].
    fn index(self) -> usize;
}

macro_rules! label {
    ($(#[$doc:meta])* $name:ident($key:literal) { $($(#[$value_doc:meta])* $value:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$value_doc])* $value,)* }
        impl Label for $name {
            const KEY: &'static str = $key;
            const ALL: &'static [Self] = &[$(Self::$value),*];
            fn as_str(self) -> &'static str {
                match self { $(Self::$value => $text),* }
            }
            fn index(self) -> usize {
                self as usize
            }
        }
    };
}

label! {
    /// The class of an HTTP status.
    StatusClass("status_class") {
        /// 100–199.
        Informational = "1xx",
        /// 200–299.
        Success = "2xx",
        /// 300–399.
        Redirection = "3xx",
        /// 400–499.
        ClientError = "4xx",
        /// 500 and above.
        ServerError = "5xx",
    }
}

label! {
    /// Which way a message of a WebSocket goes.
    SocketDirection("direction") {
        /// To the object.
        In = "in",
        /// From the object.
        Out = "out",
        /// Back, by the answer that the object has left.
        Automatic = "automatic",
    }
}

impl From<http::StatusCode> for StatusClass {
    fn from(status: http::StatusCode) -> Self {
        match status.as_u16() {
            100..=199 => Self::Informational,
            200..=299 => Self::Success,
            300..=399 => Self::Redirection,
            400..=499 => Self::ClientError,
            _ => Self::ServerError,
        }
    }
}

label! {
    /// What a caller may conclude from an answer.
    RequestOutcome("outcome") {
        /// The handler ran and its output was released.
        Answered = "answered",
        /// The handler did not run.
        Refused = "refused",
        /// The handler may have run; nobody knows whether its writes survive.
        Unknown = "unknown",
        /// The caller hung up first.
        Cancelled = "cancelled",
    }
}

label! {
    /// What came of an event of the Worker.
    WorkerOutcome("outcome") {
        /// Its handler answered.
        Answered = "answered",
        /// Its handler threw.
        Threw = "threw",
        /// Its isolate broke, or did not start.
        Broken = "broken",
        /// It ended before there was an answer: the caller left, or its time was over.
        Cancelled = "cancelled",
    }
}

label! {
    /// How a cell was resolved to its owner.
    LookupResult("result") {
        /// From the cache.
        Hit = "hit",
        /// From the bucket, owned.
        Miss = "miss",
        /// From the bucket, unowned: placed on a node.
        Placed = "placed",
        /// There was nobody to ask.
        Failed = "failed",
    }
}

label! {
    /// How an activation ended.
    ActivationOutcome("outcome") {
        /// The cell is resident.
        Resident = "resident",
        /// Another live session owns it.
        NotOwner = "not_owner",
        /// Something blocks it for now.
        Unavailable = "unavailable",
        /// It failed.
        Failed = "failed",
    }
}

label! {
    /// A stage of an activation.
    Stage("stage") {
        /// Reading and claiming the owner record.
        Claim = "claim",
        /// Recovering the dead session's log.
        Recover = "recover",
        /// Rebuilding the database.
        Restore = "restore",
        /// Writing the opener and opening SQLite.
        Open = "open",
    }
}

label! {
    /// How an attempt to recover a dead session's log ended.
    RecoveryResult("outcome") {
        /// Nothing is left to recover.
        Recovered = "recovered",
        /// Another process is at it.
        Busy = "busy",
        /// The followers that are needed do not answer.
        Blocked = "blocked",
        /// It failed for now.
        Failed = "failed",
    }
}

label! {
    /// The two kinds of durability proof.
    ProofKind("kind") {
        /// LTX objects in the bucket and one read of the owner record.
        Bucket = "bucket",
        /// An fsync of every follower.
        Ensemble = "ensemble",
    }
}

label! {
    /// How a proof ended.
    ProofOutcome("outcome") {
        /// It covers its position.
        Covered = "covered",
        /// The owner record names somebody else.
        Superseded = "superseded",
        /// The store failed, or there was no answer in time.
        Failed = "failed",
    }
}

label! {
    /// Done or not.
    Outcome("outcome") {
        /// Done.
        Ok = "ok",
        /// Not done.
        Failed = "failed",
    }
}

label! {
    /// How an attempt to renew the lease ended.
    RenewalOutcome("outcome") {
        /// Published.
        Applied = "applied",
        /// The record is not what this session published.
        Rejected = "rejected",
        /// The store did not say.
        Unknown = "unknown",
        /// Published at or after the prior expiry: a fence.
        Late = "late",
    }
}

label! {
    /// What came of a hint to look at an alarm.
    HintResult("outcome") {
        /// The alarm is armed, and its owner fires it.
        Armed = "armed",
        /// Another alarm is armed, or none: the entry is obsolete, or about to be.
        Other = "other",
        /// There is no such cell, or its class is not deployed.
        Missing = "missing",
        /// A node has enough.
        Overloaded = "overloaded",
        /// Nobody looked, or nobody knows.
        Failed = "failed",
    }
}

label! {
    /// What became of a cell that its owner gave to another node.
    HandoffOutcome("outcome") {
        /// The other has it.
        Taken = "taken",
        /// It was given up, and the other does not have it, or not yet.
        Left = "left",
        /// It could not be given up.
        Kept = "kept",
    }
}

label! {
    /// What came of asking for the recovery of a dead session's log.
    SweepResult("outcome") {
        /// It is recovered.
        Recovered = "recovered",
        /// It is not, and will be asked for again.
        NotYet = "not_yet",
        /// No cellnode is live.
        NoNode = "no_node",
    }
}

label! {
    /// How the write of an advisory lease ended.
    LeaseWriteOutcome("outcome") {
        /// Written.
        Applied = "applied",
        /// Another wrote it in between.
        Rejected = "rejected",
        /// The store did not say.
        Unknown = "unknown",
    }
}

label! {
    /// Where a restored database came from.
    RestoreSource("source") {
        /// The bucket's chain.
        Bucket = "bucket",
        /// Local files of the previous epoch.
        Local = "local",
        /// Nothing yet: a new cell.
        Empty = "empty",
        /// The bucket's chain, of which most is still there: a large cell.
        Paged = "paged",
    }
}

label! {
    /// What a page of a large cell was read for.
    PageUse("use") {
        /// A statement that waited for it, or one close to such a page.
        Demand = "demand",
        /// Filling the file in the background.
        Fill = "fill",
    }
}

label! {
    /// What a compaction makes.
    CompactionKind("kind") {
        /// A level-1 file.
        Compaction = "compaction",
        /// A level-9 snapshot.
        Snapshot = "snapshot",
    }
}

label! {
    /// A store operation: one method of the bucket trait.
    BucketOperation("operation") {
        /// Whole object.
        Get = "get",
        /// A range.
        GetRange = "get_range",
        /// An object in pieces.
        GetStream = "get_stream",
        /// Length and version.
        Head = "head",
        /// One page of a listing.
        List = "list",
        /// Write without a condition.
        Put = "put",
        /// Write of a large body.
        PutStream = "put_stream",
        /// Conditional write.
        PutIf = "put_if",
        /// Removal.
        Delete = "delete",
        /// Removal of many.
        DeleteMany = "delete_many",
    }
}

label! {
    /// How a store operation ended.
    BucketOutcome("outcome") {
        /// Done; for a conditional write: applied.
        Ok = "ok",
        /// The key is absent.
        Missing = "missing",
        /// The condition did not hold.
        Rejected = "rejected",
        /// A conditional write whose outcome is open.
        Unknown = "unknown",
        /// No answer in time, or a cut connection.
        NoAnswer = "no_answer",
        /// Conflict, throttling or a failing store.
        Unavailable = "unavailable",
        /// Anything that a retry does not cure.
        Failed = "failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_finds_its_value() {
        fn check<L: Label + PartialEq + std::fmt::Debug>() {
            for (index, value) in L::ALL.iter().enumerate() {
                assert_eq!(value.index(), index, "{value:?}");
            }
        }
        check::<StatusClass>();
        check::<BucketOperation>();
        check::<BucketOutcome>();
        check::<WorkerOutcome>();
        check::<HintResult>();
        check::<LeaseWriteOutcome>();
        check::<SweepResult>();
        check::<HandoffOutcome>();
    }

    #[test]
    fn every_status_has_a_class() {
        for (status, class) in
            [(101, "1xx"), (204, "2xx"), (304, "3xx"), (412, "4xx"), (503, "5xx"), (999, "5xx")]
        {
            assert_eq!(StatusClass::from(http::StatusCode::from_u16(status).unwrap()).as_str(), class);
        }
    }
}
