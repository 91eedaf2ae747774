//! Which of an epoch's files a restore reads, from a listing that may be stale: level-0 keys are known in advance, so
//! what the listing lacks is asked for by name. And what the files make of a database.

use std::collections::BTreeSet;
use std::rc::Rc;

use holdfast_core::lineage::{Segment, SegmentStart};
use holdfast_core::pieces::pieces_holding;
use holdfast_core::retire::SnapshotAt;
use holdfast_types::{Epoch, Txid};

use super::LocalFile;
use crate::bucket::{Body, Bucket, Cell, Key, Level, OpId};

/// One epoch's files, in order.
#[derive(Clone, Debug)]
pub(crate) struct EpochPlan {
    pub(crate) epoch: Epoch,
    after: Txid,
    pub(crate) start: SegmentStart,
    pub(crate) files: Vec<Key>,
    pub(crate) end: Txid,
}

/// An epoch's listing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listed {
    /// Files of levels 0 and 1.
    files: BTreeSet<(Txid, Txid, Level)>,
    snapshots: BTreeSet<Txid>,
}

impl Listed {
    pub(crate) fn new(keys: &[Key]) -> Self {
        let mut listed = Self::default();
        for key in keys {
            match key {
                Key::File(_, _, Level::Snapshot, _, at) => {
                    listed.snapshots.insert(*at);
                }
                Key::File(_, _, level, min, max) => {
                    listed.files.insert((*min, *max, *level));
                }
                _ => {}
            }
        }
        listed
    }

    /// What is left where restores begin with this snapshot: it is there whatever the listing says.
    pub(crate) fn starting_with(mut self, start: Option<SnapshotAt>) -> Self {
        if let Some(SnapshotAt { txid, .. }) = start {
            self.files.retain(|(_, max, _)| *max > txid);
            self.snapshots = self.snapshots.split_off(&txid);
            self.snapshots.insert(txid);
        }
        self
    }

    /// The file that leads furthest from a position without reaching beyond the clip.
    pub(crate) fn furthest_from(&self, end: Txid, clip: Option<Txid>) -> Option<(Level, Txid, Txid)> {
        let leads =
            |min: Txid, max: Txid| min <= end.next() && max > end && clip.is_none_or(|clip| max <= clip);
        let leading = self.files.iter().filter(|(min, max, _)| leads(*min, *max));
        leading.max_by_key(|(_, max, level)| (*max, *level)).map(|(min, max, level)| (*level, *min, *max))
    }

    fn newest(&self) -> Txid {
        let files = self.files.iter().map(|(_, max, _)| *max).max();
        files.max(self.snapshots.last().copied()).unwrap_or_default()
    }
}

/// The level-0 objects that can lead on from a position without reaching beyond the clip, longest first.
pub(crate) fn keys_after(cell: Cell, segment: &Segment, end: Txid) -> Vec<Key> {
    let held = pieces_holding(end.next()).into_iter();
    let held = held.filter(|(_, max)| segment.clip.is_none_or(|clip| *max <= clip));
    held.map(|(min, max)| Key::File(cell, segment.epoch, Level::Zero, min, max)).collect()
}

impl EpochPlan {
    /// Begins at the local file where the epoch is known to have reached it, else at the newest usable snapshot, else at
    /// the epoch's base.
    pub(crate) fn start(cell: Cell, segment: &Segment, listed: &Listed) -> Self {
        let usable = |at: &Txid| segment.clip.is_none_or(|clip| *at <= clip);
        let snapshot = listed.snapshots.iter().copied().rfind(usable);
        let reached = listed.newest().max(segment.clip.unwrap_or_default()).max(segment.after);
        let local = segment.local.filter(|local| *local <= reached);
        let (start, end) = match (local, snapshot) {
            (Some(local), snapshot) if snapshot.is_none_or(|at| at <= local) => (SegmentStart::Local, local),
            (_, Some(at)) => (SegmentStart::Snapshot(Some((at, 0))), at),
            (_, None) => (SegmentStart::Base, segment.after),
        };
        let mut plan = Self { epoch: segment.epoch, after: segment.after, start, files: Vec::new(), end };
        if matches!(start, SegmentStart::Snapshot(_)) {
            plan.files.push(Key::File(cell, segment.epoch, Level::Snapshot, Txid::new(1), end));
        }
        plan
    }

    /// What leads to a segment's clip, or as far as it goes where it has none, by all that is there; none where it does not
    /// reach the clip.
    pub(crate) fn whole(bucket: &Bucket, cell: Cell, segment: &Segment) -> Option<Self> {
        let listed = Listed::new(&bucket.listing(cell, segment.epoch)).starting_with(segment.snapshot);
        let mut plan = Self::start(cell, segment, &listed);
        while segment.clip != Some(plan.end) {
            let Some((level, min, max)) = listed.furthest_from(plan.end, segment.clip) else { break };
            plan.push(Key::File(cell, segment.epoch, level, min, max));
        }
        segment.clip.is_none_or(|clip| clip == plan.end).then_some(plan)
    }

    /// The state that plans lead to, the newest of them first; or which file is not there.
    pub(crate) fn apply_all(newest_first: &[Self], bucket: &Bucket) -> Result<Vec<OpId>, Key> {
        let mut state = Vec::new();
        for plan in newest_first.iter().rev() {
            let mut bodies = plan.files.iter().map(|key| bucket.peek(key).cloned());
            plan.apply(&mut state, None, &mut bodies)?;
        }
        Ok(state)
    }

    pub(crate) fn push(&mut self, file: Key) {
        let Key::File(_, _, _, _, max) = file else { unreachable!("a plan is of files") };
        self.end = max;
        self.files.push(file);
    }

    /// Applies the epoch's files to the state at its start.
    pub(crate) fn apply(
        &self,
        state: &mut Vec<OpId>,
        local: Option<&LocalFile>,
        bodies: &mut impl Iterator<Item = Option<Body>>,
    ) -> Result<(), Key> {
        let mut at = self.after;
        if self.start == SegmentStart::Local {
            let local = local.expect("a plan that starts locally has a local file");
            *state = local.state.clone();
            at = local.position.txid;
        }
        for key in &self.files {
            match bodies.next().expect("an answer for each key").ok_or_else(|| key.clone())? {
                Body::Snapshot(all) => {
                    *state = all.to_vec();
                    let Key::File(_, _, _, _, max) = key else { unreachable!("a file's key") };
                    at = *max;
                }
                Body::Transactions(transactions) => apply_transactions(state, &mut at, &transactions),
                other => unreachable!("not a file: {other:?}"),
            }
        }
        Ok(())
    }
}

fn apply_transactions(state: &mut Vec<OpId>, at: &mut Txid, transactions: &Rc<[(Txid, Vec<OpId>)]>) {
    let from = *at;
    for (txid, ops) in transactions.iter().filter(|(txid, _)| *txid > from) {
        assert_eq!(*txid, at.next(), "a plan has no gap");
        state.extend(ops);
        *at = *txid;
    }
}
