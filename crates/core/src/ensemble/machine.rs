//! The machine of one session's node log: offsets, ensembles, and what they prove.

use alloc::vec::Vec;

use holdfast_types::{LogEpoch, LogOffset, Millis, WriteId};

use super::bundles::Bundles;
use super::health::{STALL_MS, Sent, note_durable, slow_members};
use super::members::{Link, Member, Members};
use super::record::{RecordState, Step};
use super::recruit::{ENSEMBLE_LEN, Quarantine, choose};
use super::storing::delete;
use super::{EnsembleProof, FollowerView, MemberFailure, NodeLogConfig, NodeLogEffect, NodeLogEvent};
use crate::log_record::{Ensemble, LogRecord, LogState, MemberId};
use crate::mutant::{self, Mutant};
use crate::store::Answer;

/// A member that has not adopted an epoch in this time is given up, in milliseconds.
const ADOPT_MS_MAX: u64 = 3_000;
/// How often the followers' leases are read, in milliseconds: a follower that drains is left within this time...
const READ_MS: u64 = 3_000;
/// ...and one that came is found within this time by a session that is short of members.
const READ_MS_WHEN_SHORT: u64 = 500;

/// The node log of one session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeLog<V> {
    config: NodeLogConfig,
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
    target: LogOffset,
    /// What the members were last told to drop below.
    released: LogOffset,
    pub(super) record: RecordState<V>,
    members: Members,
    followers: Vec<FollowerView>,
    followers_read_at: Option<Millis>,
    quarantine: Quarantine,
    pub(super) sent: Sent,
    pub(super) by_ensemble: bool,
    pub(super) is_closing: bool,
    is_over: bool,
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
            self.prove(&mut effects);
            self.change_record(now, write_id, &mut effects);
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

    fn on_failed(&mut self, id: &MemberId, failure: MemberFailure, now: Millis, effects: &mut Effects<V>) {
        if self.members.remove(id).is_none() {
            return;
        }
        match failure {
            MemberFailure::Slow => self.quarantine.add_slow(id, now),
            _ => self.quarantine.add(id, now),
        }
        effects.push(NodeLogEffect::Close { member: id.clone() });
        effects.push(NodeLogEffect::Evicted { member: id.clone(), failure });
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
                matches!(member.link, Link::Adopting { since, .. } if now.since(since) >= ADOPT_MS_MAX)
            })
            .map(|(id, _)| id.clone())
            .collect();
        for id in late {
            self.on_failed(&id, MemberFailure::Unreachable, now, effects);
        }
        if let Some(record) = self.record.current() {
            let ensemble = record.ensemble.members.clone();
            let log = (&self.sent, self.next);
            for id in slow_members(&mut self.members, &ensemble, log, now) {
                self.on_failed(&id, MemberFailure::Slow, now, effects);
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

    /// Writes the record where it should say something else.
    fn change_record(&mut self, now: Millis, write_id: WriteId, effects: &mut Effects<V>) {
        if self.record.step != Step::Idle {
            return;
        }
        let record = match self.record.current() {
            None if self.is_closing && self.record.attempts.is_empty() => {
                self.is_over = true;
                effects.push(NodeLogEffect::Closed);
                return;
            }
            _ if self.is_closing => self.sealed(),
            Some(current) if self.may_activate(current) => {
                Some(LogRecord { active: true, prior: None, ..current.clone() })
            }
            _ => self.reconfigured(now).or_else(|| self.marked()),
        };
        if let Some(record) = record {
            let record = LogRecord { write_id, bundles_from: self.bundles.from(), ..record };
            let guard = self.record.guard();
            self.record.attempts.push(record.clone());
            self.record.step = Step::Writing;
            let attempt = self.record.failures;
            effects.push(NodeLogEffect::WriteRecord { record, guard, attempt });
        }
    }

    fn blank(&self) -> LogRecord {
        LogRecord {
            write_id: WriteId::from_bits(0),
            node: self.config.node.clone(),
            session: self.config.session,
            state: LogState::Open,
            ensemble: Ensemble { log_epoch: self.record.newest_epoch().next(), members: Vec::new() },
            active: false,
            prior: None,
            recovery: None,
            loss_declared: false,
            bundles_from: None,
        }
    }

    /// In order, with everything in the cells' prefixes (INV-REC-2).
    fn sealed(&self) -> Option<LogRecord> {
        (self.covered_below == self.next).then(|| LogRecord { state: LogState::Sealed, ..self.blank() })
    }

    /// Whether every member of a new ensemble holds all that was proved and is not in the bucket.
    fn may_activate(&self, current: &LogRecord) -> bool {
        let Ensemble { log_epoch, members } = &current.ensemble;
        let is_ready = |id: &MemberId| {
            self.members.get(id).is_some_and(|member| {
                let holds = member.durable_below >= self.target && member.durable_below >= self.proved_below;
                member.is_streaming(*log_epoch) && (holds || mutant::is(Mutant::ActivateBeforeCopy))
            })
        };
        !current.active && !members.is_empty() && members.iter().all(is_ready)
    }

    /// The record of a new ensemble, where another one is wanted.
    fn reconfigured(&self, now: Millis) -> Option<LogRecord> {
        let current = self.record.current();
        let members = current.map_or(&[][..], |record| &record.ensemble.members);
        let kept = members.iter().filter(|id| self.is_kept(id)).cloned().collect();
        let barred = |id: &MemberId| self.quarantine.holds(id, now);
        let wanted = choose(&self.config, &self.followers, kept, barred);
        let is_linked = |id| self.members.contains_key(id) && members.contains(id);
        let is_same = wanted.len() == members.len() && wanted.iter().all(is_linked);
        // The frames that only an ensemble holds; none once the bucket holds all that was proved.
        let prior = match current {
            Some(record) if self.proved_below > self.start => record.witnesses().cloned(),
            _ => None,
        };
        let prior = if mutant::is(Mutant::ForgetPriorEnsemble) { None } else { prior };
        if wanted.is_empty() {
            // Nobody to append to. Once the bucket holds everything, no follower need be asked any more.
            let has_witnesses = current.is_some_and(|record| record.witnesses().is_some());
            return (has_witnesses && prior.is_none()).then(|| self.blank());
        }
        if is_same {
            return None;
        }
        let ensemble = Ensemble { log_epoch: self.record.newest_epoch().next(), members: wanted };
        Some(LogRecord { ensemble, prior, ..self.blank() })
    }

    /// A member of the newest ensemble stays while its link does and it does not want to leave.
    fn is_kept(&self, id: &MemberId) -> bool {
        let is_draining = self.followers.iter().any(|follower| &follower.member == id && follower.draining);
        self.members.contains_key(id) && !is_draining
    }

    fn on_answer(&mut self, answer: Answer<V>, now: Millis, effects: &mut Effects<V>) {
        assert_eq!(self.record.step, Step::Writing, "a write was asked for");
        match answer {
            Answer::Applied(version) => {
                let record = self.record.attempts.last().expect("a write was attempted").clone();
                self.confirmed(record, version, now, effects);
            }
            Answer::Rejected | Answer::Unknown => self.read_record(effects),
        }
    }

    fn read_record(&mut self, effects: &mut Effects<V>) {
        let attempt = self.record.failures;
        self.record.failures = attempt.saturating_add(1);
        self.record.step = Step::Reading;
        effects.push(NodeLogEffect::ReadRecord { attempt });
    }

    fn on_record(&mut self, record: Option<(LogRecord, V)>, now: Millis, effects: &mut Effects<V>) {
        if self.record.step != Step::Reading {
            return;
        }
        let is_confirmed = |record: &LogRecord| {
            self.record.current().is_some_and(|current| current.write_id == record.write_id)
        };
        match record {
            Some((record, version)) => {
                if self.record.attempts.iter().any(|mine| mine.write_id == record.write_id) {
                    self.confirmed(record, version, now, effects);
                } else if is_confirmed(&record) {
                    // No attempt has landed; each may yet, until another write of ours has.
                    self.record.step = Step::Idle;
                } else {
                    self.fence(effects);
                }
            }
            None if self.record.current().is_none() => self.record.step = Step::Idle,
            None => self.fence(effects),
        }
    }

    /// Another writer means that this session counts as dead; a record that is gone protects nobody.
    fn fence(&mut self, effects: &mut Effects<V>) {
        self.is_over = true;
        effects.push(NodeLogEffect::Fence);
    }

    fn confirmed(&mut self, record: LogRecord, version: V, now: Millis, effects: &mut Effects<V>) {
        let Ensemble { log_epoch, members } = record.ensemble.clone();
        if record.state == LogState::Sealed {
            self.is_over = true;
            delete(self.bundles.all(), effects);
            effects.push(NodeLogEffect::Closed);
            return;
        }
        delete(self.bundles.confirmed(record.bundles_from), effects);
        let was_active = self
            .record
            .current()
            .is_some_and(|before| before.active && record.active && before.ensemble.log_epoch == log_epoch);
        let witnesses = record.witnesses().map_or_else(Vec::new, |ensemble| ensemble.members.clone());
        let is_active = record.active;
        self.record.confirm(record, version);
        let unused: Vec<MemberId> = self
            .members
            .keys()
            .filter(|id| !members.contains(id) && !witnesses.contains(id))
            .cloned()
            .collect();
        for id in unused {
            self.members.remove(&id);
            effects.push(NodeLogEffect::Close { member: id });
        }
        if was_active {
            // Only what it says of bundles has changed.
        } else if is_active {
            for id in &members {
                self.quarantine.forgive(id);
            }
            effects.push(NodeLogEffect::Active { log_epoch, members });
        } else {
            self.target = self.next;
            for id in members {
                self.adopt(id, log_epoch, now, effects);
            }
        }
    }

    fn adopt(&mut self, id: MemberId, log_epoch: LogEpoch, now: Millis, effects: &mut Effects<V>) {
        let link = Link::Adopting { log_epoch, since: now };
        // What a linked member has fsynced stays fsynced.
        self.members.entry(id.clone()).or_insert_with(|| Member::new(link)).link = link;
        effects.push(NodeLogEffect::Adopt { member: id, log_epoch, start: self.start });
    }
}
