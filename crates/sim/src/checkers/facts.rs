//! What is true of node logs: which frame is which transaction, what is fsynced where, what the bucket ever held. The
//! world writes it down; nothing that a node or a follower believes is in here.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_core::log_record::{Ensemble, MemberId};
use holdfast_types::{Epoch, LogOffset, SessionId, Txid};

use super::bundles::BundleFacts;
use crate::bucket::Cell;
use crate::frame::FrameId;

/// One session's log.
#[derive(Clone, Debug, Default)]
struct SessionFacts {
    frames: BTreeMap<LogOffset, FrameId>,
    /// Every frame below was in the bucket when it was last looked at.
    stored_below: LogOffset,
    /// Every frame below was called proved.
    proved_below: LogOffset,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct LogFacts {
    sessions: BTreeMap<SessionId, SessionFacts>,
    fsynced: BTreeMap<(MemberId, SessionId), BTreeSet<LogOffset>>,
    stored: BTreeSet<FrameId>,
    proved: BTreeSet<FrameId>,
    /// Sessions whose logs are sealed with a declared loss.
    lost: BTreeSet<SessionId>,
    /// The bundles in the bucket.
    pub bundles: BundleFacts,
}

impl LogFacts {
    /// A session gave a transaction its place in its log.
    pub fn on_appended(&mut self, session: SessionId, offset: LogOffset, frame: FrameId) {
        self.sessions.entry(session).or_default().frames.insert(offset, frame);
    }

    /// A disk has a frame for certain.
    pub fn on_fsynced(&mut self, member: &MemberId, session: SessionId, offset: LogOffset) {
        self.fsynced.entry((member.clone(), session)).or_default().insert(offset);
    }

    /// The bucket holds a transaction.
    pub fn on_stored(&mut self, cell: Cell, epoch: Epoch, txid: Txid) {
        self.stored.insert((cell, epoch, txid));
    }

    /// A session took all its frames below for durable.
    pub fn on_proved(&mut self, session: SessionId, below: LogOffset) {
        let facts = self.sessions.entry(session).or_default();
        let fresh = facts.frames.range(facts.proved_below..below.max(facts.proved_below));
        self.proved.extend(fresh.map(|(_, frame)| *frame));
        facts.proved_below = facts.proved_below.max(below);
    }

    /// Whether its session took a transaction for durable by its ensemble.
    #[must_use]
    pub fn is_proved(&self, frame: &FrameId) -> bool {
        self.proved.contains(frame)
    }

    /// Every frame of the session below was called proved.
    #[must_use]
    pub fn proved_below(&self, session: SessionId) -> LogOffset {
        self.sessions.get(&session).map_or(LogOffset::ZERO, |facts| facts.proved_below)
    }

    /// The first frame of a session below `below` that the bucket lacks.
    pub fn first_unstored(&mut self, session: SessionId, below: LogOffset) -> Option<(LogOffset, FrameId)> {
        let facts = self.sessions.get_mut(&session)?;
        let mut left = facts.frames.range(facts.stored_below..);
        let first = left.find(|(_, frame)| !self.stored.contains(*frame)).map(|(at, frame)| (*at, *frame));
        facts.stored_below = first.map_or(facts.stored_below, |(offset, _)| offset);
        first.filter(|(offset, _)| *offset < below)
    }

    /// The first frame of a session below `below` that neither its cell's prefix has nor a bundle that a recovery reads.
    pub fn first_unreadable(&mut self, session: SessionId, below: LogOffset) -> Option<(LogOffset, FrameId)> {
        let (from, _) = self.first_unstored(session, below)?;
        let bundled = self.bundles.readable(session);
        let frames = self.sessions.get(&session)?.frames.range(from..below);
        let mut lacking = frames.filter(|(_, id)| !self.stored.contains(*id) && !bundled.contains(*id));
        lacking.next().map(|(offset, frame)| (*offset, *frame))
    }

    /// The first frame of a session below `below` that neither the bucket has nor every member of the ensemble.
    pub fn first_unsafe(
        &mut self,
        session: SessionId,
        below: LogOffset,
        witnesses: Option<&Ensemble>,
    ) -> Option<(LogOffset, FrameId)> {
        let (from, _) = self.first_unreadable(session, below)?;
        let bundled = self.bundles.readable(session);
        let members = witnesses.map_or(&[][..], |ensemble| &ensemble.members);
        let is_held = |offset: &LogOffset| {
            let has = |member: &MemberId| {
                let held = self.fsynced.get(&(member.clone(), session));
                held.is_some_and(|held| held.contains(offset))
            };
            !members.is_empty() && members.iter().all(has)
        };
        let frames = &self.sessions.get(&session)?.frames;
        let is_stored = |frame: &FrameId| self.stored.contains(frame) || bundled.contains(frame);
        let mut doubtful = frames.range(from..below).filter(|(_, frame)| !is_stored(frame));
        doubtful.find(|(offset, _)| !is_held(offset)).map(|(offset, frame)| (*offset, *frame))
    }

    /// A session's log is sealed with a declared loss: what the bucket lacks of it now is owed to nobody.
    pub fn on_lost(&mut self, session: SessionId) {
        self.lost.insert(session);
    }

    /// Whether a session's log is sealed with a declared loss.
    #[must_use]
    pub fn is_lost(&self, session: SessionId) -> bool {
        self.lost.contains(&session)
    }

    /// Of each cell's epoch the first frame of a session that did not land.
    pub fn first_not_landed(
        &self,
        session: SessionId,
        has_landed: impl Fn(&FrameId) -> bool,
    ) -> BTreeMap<(Cell, Epoch), Txid> {
        let mut firsts = BTreeMap::new();
        let frames = self.sessions.get(&session).into_iter().flat_map(|facts| facts.frames.values());
        for (cell, epoch, txid) in frames.filter(|frame| !has_landed(frame)) {
            let first = firsts.entry((*cell, *epoch)).or_insert(*txid);
            *first = (*first).min(*txid);
        }
        firsts
    }

    /// Frames appended in all.
    #[must_use]
    pub fn frames_len(&self) -> u64 {
        self.sessions.values().map(|facts| facts.frames.len() as u64).sum()
    }

    /// The first frame of a cell's epoch that the bucket lacks.
    #[must_use]
    pub fn first_unstored_of(&self, session: SessionId, cell: Cell, epoch: Epoch) -> Option<FrameId> {
        let frames = self.sessions.get(&session)?.frames.values();
        let mut lacking = frames.filter(|frame| !self.stored.contains(*frame));
        lacking.find(|frame| frame.0 == cell && frame.1 == epoch).copied()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use holdfast_types::{FollowerName, Incarnation, LogEpoch};

    pub(crate) const ME: SessionId = SessionId::from_bits(1);

    pub(crate) fn member(number: u128) -> MemberId {
        let follower = FollowerName::parse(&format!("f{number}")).unwrap();
        MemberId { follower, incarnation: Incarnation::from_bits(number) }
    }

    pub(crate) fn ensemble(members: &[u128]) -> Ensemble {
        Ensemble { log_epoch: LogEpoch::new(1), members: members.iter().map(|id| member(*id)).collect() }
    }

    /// A log of `len` frames, each one transaction of one cell.
    pub(crate) fn log(len: u64) -> LogFacts {
        let mut facts = LogFacts::default();
        for at in 1..=len {
            facts.on_appended(ME, LogOffset::new(at), (Cell(0), Epoch::new(1), Txid::new(at)));
        }
        facts
    }

    pub(crate) fn fsync(facts: &mut LogFacts, id: u128, offset: u64) {
        facts.on_fsynced(&member(id), ME, LogOffset::new(offset));
    }

    pub(crate) fn store(facts: &mut LogFacts, txid: u64) {
        facts.on_stored(Cell(0), Epoch::new(1), Txid::new(txid));
    }

    #[test]
    fn a_frame_is_safe_in_the_bucket_or_on_every_member() {
        let mut facts = log(3);
        let unsafe_at = |facts: &mut LogFacts, members: &[u128]| {
            let below = LogOffset::new(4);
            facts.first_unsafe(ME, below, Some(&ensemble(members))).map(|(offset, _)| offset.get())
        };
        store(&mut facts, 1);
        fsync(&mut facts, 1, 2);
        fsync(&mut facts, 2, 2);
        fsync(&mut facts, 1, 3);
        assert_eq!(unsafe_at(&mut facts, &[1, 2]), Some(3));
        assert_eq!(unsafe_at(&mut facts, &[1]), None);
        assert_eq!(unsafe_at(&mut facts, &[]), Some(2));
        store(&mut facts, 2);
        store(&mut facts, 3);
        assert_eq!(unsafe_at(&mut facts, &[]), None);
    }
}
