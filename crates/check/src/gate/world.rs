//! What the gate's shell, its node log and its bucket know, and what has left.

use holdfast_core::gate::{Gate, GateOwner};
use holdfast_core::ownership::{OwnerState, OwnerView};
use holdfast_types::{Epoch, LogOffset, Millis, NodeName, SessionId, Txid, WriteId};

use super::Bounds;

/// What the cell restored: one transaction with one write in it.
pub(super) const RESTORED: Txid = Txid::new(1);
/// Time between uploads of what an ensemble holds: more than no time, less than a phase.
const PACE_MS: u64 = 3;

/// Where time stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// At the beginning.
    Early,
    /// Outputs that were ready early are too late.
    Late,
    /// The lease has ended.
    Fenced,
}

impl Phase {
    pub(super) const fn now(self) -> Millis {
        Millis::new(match self {
            Self::Early => 0,
            Self::Late => 40_000,
            Self::Fenced => 80_000,
        })
    }

    pub(super) const fn next(self) -> Self {
        match self {
            Self::Early => Self::Late,
            Self::Late | Self::Fenced => Self::Fenced,
        }
    }
}

/// So long before a phase begins the patience of outputs ends that are too late in it: also those that wait for a capture are.
pub(super) const TOO_LATE_BY_MS: u64 = 30_000;
/// When the session's authority ends, and every output's patience with it.
pub(super) const AUTHORITY_UNTIL: Millis = Phase::Fenced.now();

/// A captured transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Captured {
    /// Writes in the database up to and with it.
    pub writes: u8,
    /// Where the node log took it.
    pub offset: Option<LogOffset>,
    /// Whether the bucket holds its object.
    pub landed: bool,
}

/// An output, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Output {
    /// Writes that it reveals.
    pub reveals: u8,
    /// Whether the bucket must hold them.
    pub in_bucket: bool,
}

/// An upload or an owner read under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call<T> {
    /// On its way to the bucket.
    Asked,
    /// On its way back.
    Done(T),
}

/// What happened that a property speaks of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seen {
    /// An output left that a later epoch does not know of.
    pub left_undurable: bool,
    /// An output left after the lease.
    pub left_fenced: bool,
    /// An output left before an earlier one.
    pub left_unordered: bool,
    /// A release left before the bucket had everything.
    pub closed_early: bool,
    /// The cell settled before the bucket had what was logged.
    pub settled_early: bool,
    /// A write left on an ensemble proof.
    pub left_by_ensemble: bool,
    /// A write left on a bucket proof.
    pub left_by_bucket: bool,
    /// A gate with logged transactions settled.
    pub settled_logged: bool,
}

/// The world.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub(super) gate: Gate,
    pub(super) phase: Phase,
    pub(super) faults: u8,
    /// Writes in the local database.
    pub(super) writes: u8,
    pub(super) reads: u8,
    pub(super) outputs: Vec<Output>,
    pub(super) left: u8,
    pub(super) closing: bool,
    pub(super) captured: Vec<Captured>,
    pub(super) capture: bool,
    /// Frames of the log that every follower has fsynced.
    pub(super) fsynced: u8,
    pub(super) proved: u8,
    pub(super) upload: Option<(Txid, Txid, Call<()>)>,
    /// The range of an upload that failed for its owner and may land yet.
    pub(super) late_upload: Option<(Txid, Txid)>,
    /// The answer says whether the record named the session.
    pub(super) owner_read: Option<Call<bool>>,
    pub(super) may_wait: bool,
    pub(super) discarded: bool,
    pub(super) settled: bool,
    /// The followers refuse the log: somebody recovers it.
    pub(super) sealed: bool,
    /// Writes in what the next epoch restored, once there is one.
    pub(super) succeeded: Option<u8>,
    pub(super) seen: Seen,
}

impl World {
    pub(super) fn begin(bounds: Bounds, is_superseded: bool) -> Self {
        Self {
            gate: Gate::new(owner(), RESTORED, PACE_MS),
            phase: Phase::Early,
            faults: bounds.faults,
            writes: 1,
            reads: 0,
            outputs: Vec::new(),
            left: 0,
            closing: false,
            captured: Vec::new(),
            capture: false,
            fsynced: 0,
            proved: 0,
            upload: None,
            late_upload: None,
            owner_read: None,
            may_wait: false,
            discarded: false,
            settled: false,
            sealed: is_superseded,
            // What was restored had not landed when the next epoch restored.
            succeeded: is_superseded.then_some(0),
            seen: Seen::default(),
        }
    }

    /// The last captured transaction.
    pub(super) fn last_captured(&self) -> Txid {
        Txid::new(RESTORED.get() + self.captured.len() as u64)
    }

    pub(super) fn captured_writes(&self) -> u8 {
        self.captured.last().map_or(1, |captured| captured.writes)
    }

    /// The highest transaction that an output may reveal now.
    pub(super) fn ticket(&self) -> Txid {
        let last = self.last_captured();
        if self.writes > self.captured_writes() { last.next() } else { last }
    }

    pub(super) fn at(&self, txid: Txid) -> usize {
        usize::try_from(txid.get() - RESTORED.get() - 1).expect("a small number")
    }

    pub(super) fn frames(&self) -> u8 {
        u8::try_from(self.captured.iter().filter(|captured| captured.offset.is_some()).count())
            .expect("few frames")
    }

    pub(super) fn is_fsynced(&self, captured: &Captured) -> bool {
        captured.offset.is_some_and(|offset| offset.get() <= u64::from(self.fsynced))
    }

    /// Writes that an epoch restores which is claimed now, after the log is recovered.
    pub(super) fn durable_writes(&self) -> u8 {
        let stored = self.captured.iter().take_while(|captured| captured.landed || self.is_fsynced(captured));
        stored.last().map_or(1, |captured| captured.writes)
    }

    /// Writes in the bucket.
    pub(super) fn landed_writes(&self) -> u8 {
        self.captured
            .iter()
            .take_while(|captured| captured.landed)
            .last()
            .map_or(1, |captured| captured.writes)
    }
}

fn owner() -> GateOwner {
    GateOwner {
        node: NodeName::parse("n").expect("a valid name"),
        session: SessionId::from_bits(1),
        epoch: Epoch::new(2),
    }
}

/// The owner record of this session, or of the one that superseded it.
pub(super) fn record(names_us: bool) -> OwnerView {
    let GateOwner { node, session, epoch } = owner();
    let (session, epoch) = if names_us { (session, epoch) } else { (SessionId::from_bits(2), epoch.next()) };
    let (floor, write_id) = (Epoch::ZERO, WriteId::from_bits(u128::from(epoch.get())));
    OwnerView { node, session, epoch, state: OwnerState::Owned, floor, write_id }
}
