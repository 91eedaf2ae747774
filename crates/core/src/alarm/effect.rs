//! What the shell must do for a cell's alarm.

use alloc::vec::Vec;

use holdfast_types::{AlarmId, AlarmTime, Txid};

use super::{Armed, EntryName, Mark};

/// An effect of an alarm. Those for the gate are executed before any output of the turn is ready.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AlarmEffect {
    /// For the gate: outputs with tickets from here on may reveal an installation without a confirmed entry.
    Withhold {
        /// The first such ticket.
        from: Txid,
    },
    /// For the gate: outputs up to a ticket may leave once that ticket is proved.
    Reveal {
        /// The ticket of an installation that is published, or of a state without one.
        through: Txid,
        /// From where on outputs are still withheld.
        from: Option<Txid>,
    },
    /// Put the wake entry of an installation.
    PutEntry {
        /// Its name.
        entry: EntryName,
        /// Its deadline.
        deadline: AlarmTime,
        /// 0 for the first try; later ones pause before.
        attempt: u32,
    },
    /// Run the handler.
    Start(Armed),
    /// Commit, in a transaction of its own, that a run of this installation did not succeed.
    Record(Armed),
    /// Commit, in a transaction of its own, that a run of this installation is counted before it begins, and tell once that
    /// is proved.
    Count(Armed),
    /// Commit that the installation is not armed any more, and say so loudly.
    Abandon {
        /// Which.
        id: AlarmId,
        /// Why.
        cause: Abandoned,
    },
    /// Take an output without a content to the gate, and tell when it was let go.
    Prove {
        /// Its ticket.
        ticket: Txid,
    },
    /// Move the retired record forward to this mark, by compare-and-swap. One that is further on stays.
    WriteRetired {
        /// The mark.
        mark: Mark,
        /// 0 for the first try; later ones pause before.
        attempt: u32,
    },
    /// Delete these entries, all of which the retired record proves obsolete.
    DeleteEntries {
        /// Their names.
        entries: Vec<EntryName>,
        /// 0 for the first try; later ones pause before.
        attempt: u32,
    },
}

/// Why an alarm is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Abandoned {
    /// Too many of its runs failed.
    #[error("its handler failed {0} times")]
    Failures(u32),
    /// So many of its runs were counted, and the owner of the cell has ended once more while it was due.
    #[error(
        "{0} of its runs failed or did not end, and the cell's owner has ended again while it was due: their process probably died of them"
    )]
    Unended(u32),
    /// The class has no handler for alarms.
    #[error("its class does not export an alarm() handler any more")]
    NoHandler,
}
