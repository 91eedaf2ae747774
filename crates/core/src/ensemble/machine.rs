//! The machine of one session's node log: offsets, ensembles, and what they prove.

use alloc::vec::Vec;

use holdfast_types::{LogEpoch, LogOffset, Millis, WriteId};

use super::bundles::Bundles;
use super::health::{Health, STALL_MS, Sent, judge, note_durable};
use super::members::{Link, Member, Members};
use super::record::{RecordState, Step};
use super::recruit::{ENSEMBLE_LEN, Quarantine};
use super::suspicion::Suspicion;
use super::{EnsembleProof, FollowerView, MemberFailure, NodeLogConfig, NodeLogEffect, NodeLogEvent};
use crate::log_record::{LogRecord, MemberId};
use crate::mutant::{self, Mutant};

/// A member that has not adopted an epoch in this time is given up, in milliseconds.
const ADOPT_MS_MAX: u64 = 3_000;
/// How often the followers' leases are read, in milliseconds: a follower that drains is left within this time...
const READ_MS: u64 = 3_000;
/// ...and one that came is found within this time by a session that is short of members.
const READ_MS_WHEN_SHORT: u64 = 500;

/// The node log of one session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeLog<V> {
    pub(super) config: NodeLogConfig,
    /// The next frame's offset.
    pub(super) next: LogOffset,
    /// The first retained frame: everything below is stored in the bucket.
    pub(super) start: LogOffset,
    /// Everything below is in its cell's prefix.
    pub(super) covered_below: LogOffset,
    pub(super) bundles: Bundles,
    /// As last told: over how many rounds a cell's frames gather.
    pub(super) rounds: u32,
    /// Every frame below was proved by an ensemble.
    pub(super) proved_below: LogOffset,
    /// What the members of a new ensemble must have fsynced before it may become active.
    pub(super) target: LogOffset,
    /// What the members were last told to drop below.
    pub(super) released: LogOffset,
    pub(super) record: RecordState<V>,
    pub(super) members: Members,
    pub(super) followers: Vec<FollowerView>,
    pub(super) followers_read_at: Option<Millis>,
    pub(super) quarantine: Quarantine,
    pub(super) suspicion: Suspicion,
    pub(super) sent: Sent,
    pub(super) by_ensemble: bool,
    pub(super) is_closing: bool,
    pub(super) is_over: bool,
}

pub(super) type Effects<V> = Vec<NodeLogEffect<V>>;

impl<V: Clone + core::fmt::Debug> NodeLog<V> {
    /// The log of a session that just began: empty, without a record.
    #[must_use]
    pub fn new(config: NodeLogConfig) -> Self {
        Self {
            config,
            next: LogOffset::new(1),
            start: LogOffset::new(1),
            covered_below: LogOffset::new(1),
            bundles: Bundles::new(),
            rounds: 1,
            proved_below: LogOffset::new(1),
            target: LogOffset::new(1),
            released: LogOffset::new(1),
            record: RecordState::new(),
            members: Members::new(),
            followers: Vec::new(),
            followers_read_at: None,
            quarantine: Quarantine::default(),
            suspicion: Suspicion::default(),
            sent: Sent::default(),
            by_ensemble: false,
            is_closing: false,
            is_over: false,
        }
    }

    /// Whether frames may be appended: an ensemble proves, and does not stall.
    #[must_use]
    pub const fn is_by_ensemble(&self) -> bool {
        self.by_ensemble
    }

    /// The first frame that is retained.
    #[must_use]
    pub const fn start(&self) -> LogOffset {
        self.start
    }

    /// The next frame's offset.
    #[must_use]
    pub const fn next(&self) -> LogOffset {
        self.next
    }

    /// Every frame below was proved by an ensemble.
    #[must_use]
    pub const fn proved_below(&self) -> LogOffset {
        self.proved_below
    }

    /// The record as last confirmed.
    #[must_use]
    pub fn record(&self) -> Option<&LogRecord> {
        self.record.current()
    }

    /// Gives a frame its offset. None while no ensemble proves: the frame then goes to the bucket alone.
    pub fn append(&mut self, now: Millis) -> Option<LogOffset> {
        if !self.by_ensemble || self.is_closing || self.is_over {
            return None;
        }
        let offset = self.next;
        self.next = offset.next();
        self.sent.note(offset, now);
        Some(offset)
    }

    /// Takes an event. `now` is monotonic; `write_id` is fresh randomness.
    pub fn on(&mut self, event: NodeLogEvent<V>, now: Millis, write_id: WriteId) -> Effects<V> {
        let mut effects = Vec::new();
        if self.is_over {
            return effects;
        }
        let is_choice_open = event.may_change_choice();
        match event {
            NodeLogEvent::FollowersRead { followers, wall_now } => self.on_followers(followers, wall_now),
            NodeLogEvent::Adopted { member, log_epoch, next } => {
                self.on_adopted(&member, (log_epoch, next), now, &mut effects);
            }
            NodeLogEvent::Durable { member, offset } => {
                self.on_durable(&member, offset.next(), now, &mut effects);
            }
            NodeLogEvent::MemberFellBehind { member } => self.on_fell_behind(member, now, &mut effects),
            NodeLogEvent::MemberFailed { member, failure } => {
                self.on_failed(&member, failure, now, &mut effects);
            }
            NodeLogEvent::RecordAnswered { answer } => self.on_answer(answer, now, &mut effects),
            NodeLogEvent::RecordRead { record } => self.on_record(record, now, &mut effects),
            NodeLogEvent::RecordUnreadable => self.read_record(&mut effects),
            NodeLogEvent::Covered { below } => self.on_covered(below, &mut effects),
            NodeLogEvent::Round { cells } => self.on_round(cells, &mut effects),
            NodeLogEvent::Bundled { below } => self.on_bundled(below, &mut effects),
            NodeLogEvent::NothingToBundle => self.bundles.not_made(),
            NodeLogEvent::Tick => self.on_tick(now, &mut effects),
            NodeLogEvent::Closing => self.is_closing = true,
        }
        if !self.is_over {
            self.ask_outdated(now, &mut effects);
            self.prove(&mut effects);
            let is_member_lost = effects.iter().any(|effect| matches!(effect, NodeLogEffect::Evicted { .. }));
            self.change_record(is_choice_open || is_member_lost, now, write_id, &mut effects);
            self.tell_durability(now, &mut effects);
            self.tell_rounds(&mut effects);
        }
        effects
    }

    fn on_followers(&mut self, mut followers: Vec<FollowerView>, wall_now: Millis) {
        let skew = self.config.clock_skew_max_ms;
        followers.retain(|follower| follower.expires_ms.plus(skew) > wall_now);
        let was_there = |member| self.followers.iter().any(|before| &before.member == member);
        for follower in followers.iter().filter(|follower| !was_there(&follower.member)) {
            self.quarantine.came_back(&follower.member);
        }
        self.followers = followers;
    }

    fn on_adopted(
        &mut self,
        id: &MemberId,
        (log_epoch, next): (LogEpoch, LogOffset),
        now: Millis,
        effects: &mut Effects<V>,
    ) {
        let Some(member) = self.members.get_mut(id) else { return };
        if !matches!(member.link, Link::Adopting { log_epoch: asked, .. } if asked == log_epoch) {
            return; // the answer to an earlier question
        }
        if next > self.next || next < member.durable_below {
            // Frames that this session never made, or less than it said that it has.
            return self.on_failed(id, MemberFailure::Damaged, now, effects);
        }
        if next < self.start {
            // What it lacks went to the bucket meanwhile.
            return self.adopt(id.clone(), log_epoch, now, effects);
        }
        member.link = Link::Streaming { log_epoch };
        member.streaming_since = now;
        member.durable_below = next;
        effects.push(NodeLogEffect::Stream { member: id.clone(), log_epoch, from: next });
    }

    fn on_durable(&mut self, id: &MemberId, below: LogOffset, now: Millis, effects: &mut Effects<V>) {
        if below > self.next {
            return self.on_failed(id, MemberFailure::Damaged, now, effects);
        }
        if let Some(member) = self.members.get_mut(id) {
            note_durable(member, below, &self.sent, self.next, now);
        }
    }

    /// Coverage alone proves nothing to a session that may be dead: the member must say that it is not sealed, after the
    /// frames that it will never get were in the bucket. Adopting once more says so.
    fn on_fell_behind(&mut self, id: MemberId, now: Millis, effects: &mut Effects<V>) {
        if let Some(Link::Streaming { log_epoch }) = self.members.get(&id).map(|member| member.link) {
            self.adopt(id, log_epoch, now, effects);
        }
    }

    pub(super) fn on_failed(
        &mut self,
        id: &MemberId,
        failure: MemberFailure,
        now: Millis,
        effects: &mut Effects<V>,
    ) {
        if let MemberFailure::StaleEpoch { found } = failure {
            return self.on_outdated(id, found, now, effects);
        }
        if self.members.remove(id).is_none() {
            return;
        }
        match failure {
            MemberFailure::Slow => self.quarantine.add_slow(id, now),
            _ => self.quarantine.add(id, now),
        }
        effects.push(NodeLogEffect::Close { member: id.clone() });
        effects.push(NodeLogEffect::Evicted { member: id.clone(), failure });
        self.reconsider_leaving(id);
        if failure == MemberFailure::Sealed && self.record.step == Step::Idle {
            // Only a recovery seals: the record tells whether this session counts as dead.
            self.read_record(effects);
        }
    }

    fn on_tick(&mut self, now: Millis, effects: &mut Effects<V>) {
        let late: Vec<MemberId> = self
            .members
            .iter()
            .filter(|(_, member)| {
                let (Link::Adopting { since, .. } | Link::Outdated { since, .. }) = member.link else {
                    return false;
                };
                now.since(since) >= ADOPT_MS_MAX
            })
            .map(|(id, _)| id.clone())
            .collect();
        for id in late {
            self.on_failed(&id, MemberFailure::Unreachable, now, effects);
        }
        if let Some(record) = self.record.current() {
            let ensemble = record.ensemble.members.clone();
            let Health { slow, worst_of_all } =
                judge(&mut self.members, &ensemble, (&self.sent, self.next), now);
            for id in slow {
                self.on_failed(&id, MemberFailure::Slow, now, effects);
            }
            if self.suspicion.tick(worst_of_all.is_some(), now)
                && let Some(worst) = worst_of_all
            {
                self.replace(worst, now);
            }
        }
        let every = if self.members.len() < ENSEMBLE_LEN { READ_MS_WHEN_SHORT } else { READ_MS };
        if !self.is_closing && self.followers_read_at.is_none_or(|at| now.since(at) >= every) {
            self.followers_read_at = Some(now);
            effects.push(NodeLogEffect::ReadFollowers);
        }
        let releasable = if mutant::is(Mutant::ReleaseUncovered) { self.proved_below } else { self.start };
        if releasable > self.released {
            self.released = releasable;
            effects.push(NodeLogEffect::Release { start: releasable });
        }
    }

    /// The first frame that some ensemble which a recovery might ask has not fsynced whole.
    fn provable_below(&self) -> Option<LogOffset> {
        let mut below = None;
        for witnesses in self.record.possible_witnesses() {
            let members = &witnesses?.members;
            let durable = |id| self.members.get(id).map(|member: &Member| member.durable_below);
            let of_ensemble = if mutant::is(Mutant::ProveByOneMember) {
                members.iter().filter_map(durable).max()?
            } else {
                members.iter().map(durable).min()??
            };
            below = Some(below.map_or(of_ensemble, |below: LogOffset| below.min(of_ensemble)));
            if mutant::is(Mutant::ProveByOldEnsemble) {
                break;
            }
        }
        below
    }

    fn prove(&mut self, effects: &mut Effects<V>) {
        let Some(below) = self.provable_below() else { return };
        if below > self.proved_below {
            // INV-LOG-1, INV-LOG-3.
            assert!(below <= self.next, "only what was appended is proved");
            self.proved_below = below;
            effects.push(NodeLogEffect::Proved(EnsembleProof::new(self.record.newest_epoch(), below)));
        }
    }

    fn tell_durability(&mut self, now: Millis, effects: &mut Effects<V>) {
        let proves = !self.is_closing && self.provable_below().is_some() && !self.is_stalled(now);
        if proves != self.by_ensemble {
            self.by_ensemble = proves;
            effects.push(NodeLogEffect::Durability { by_ensemble: proves });
        }
    }

    fn is_stalled(&self, now: Millis) -> bool {
        let mut asked = self.record.possible_witnesses().flatten().flat_map(|ensemble| &ensemble.members);
        asked.any(|id| {
            let member = self.members.get(id);
            member.is_none_or(|member| self.sent.outstanding_ms(member, self.next, now) >= STALL_MS)
        })
    }
}
