//! What has happened.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use holdfast_types::{AlarmId, AlarmTime, CellName, Epoch, SessionId, WakeMinute};

use super::Retirement;

/// One wake entry, as its key says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueEntry {
    /// Where it stands.
    pub minute: WakeMinute,
    /// The cell.
    pub cell: CellName,
    /// The installation.
    pub id: AlarmId,
}

/// A past fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WakerEvent {
    /// It is time to look at the index again.
    Tick,
    /// Time has passed: what waits may be due.
    TimeReached,
    /// A page of the index, in the order of its keys; keys that are no entries are left out.
    Listed {
        /// The entries.
        entries: Vec<DueEntry>,
        /// Where more remains.
        next: Option<String>,
    },
    /// The page could not be read.
    ListFailed,
    /// What was retired of a cell; `None` when the bucket did not say.
    RetirementRead {
        /// The cell.
        cell: CellName,
        /// What the bucket says. The default where there is no record.
        retirement: Option<Retirement>,
    },
    /// The entries of a cell that were to be deleted are gone, or some may be there yet.
    Deleted {
        /// The cell.
        cell: CellName,
        /// All are gone.
        all: bool,
    },
    /// What came of a hint.
    Hinted {
        /// The cell.
        cell: CellName,
        /// What came of it.
        outcome: HintOutcome,
    },
    /// The sessions of cellnodes whose leases stand.
    SessionsRead(BTreeSet<SessionId>),
    /// The shards that this waker looks after from now on.
    ShardsHeld(BTreeSet<u16>),
}

/// What came of a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintOutcome {
    /// An owner looked.
    Looked {
        /// Who.
        session: SessionId,
        /// In this epoch.
        epoch: Epoch,
        /// The alarm that is armed, and when it is to run.
        armed: Option<(AlarmId, AlarmTime)>,
    },
    /// There is no such cell, or its class is not deployed.
    Missing,
    /// A node has enough.
    Overloaded {
        /// When to come again.
        retry_after_ms: u64,
    },
    /// Nobody looked, or nobody knows.
    Failed,
}
