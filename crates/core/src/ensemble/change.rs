//! The step that changes the record: which ensemble it should name, when that one is active, and what follows once a write is
//! the record or somebody else has written it.

use alloc::vec::Vec;

use holdfast_types::{LogEpoch, Millis, WriteId};

use super::machine::{Effects, NodeLog};
use super::members::{Link, Member};
use super::record::Step;
use super::recruit::choose;
use super::storing::delete;
use super::{MemberFailure, NodeLogEffect};
use crate::log_record::{Ensemble, LogRecord, LogState, MemberId};
use crate::mutant::{self, Mutant};
use crate::store::Answer;

impl<V: Clone + core::fmt::Debug> NodeLog<V> {
    /// Writes the record where it should say something else. Whom the session wants is looked at only where that is open: an
    /// acknowledgement, which is on the path of every write, costs no more than a look at each member.
    pub(super) fn change_record(
        &mut self,
        is_choice_open: bool,
        now: Millis,
        write_id: WriteId,
        effects: &mut Effects<V>,
    ) {
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
            _ if is_choice_open => self.reconfigured(now).or_else(|| self.marked()),
            _ => None,
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
        let mut wanted = self.wanted(members, self.suspicion.leaving(), now);
        if wanted.len() < members.len() {
            // The follower that was to take its place is there no more: a slow member is better than none.
            wanted = self.wanted(members, None, now);
        }
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

    /// Whom the session wants, with those of `members` that stay; `leaving` is not among them.
    fn wanted(&self, members: &[MemberId], leaving: Option<&MemberId>, now: Millis) -> Vec<MemberId> {
        let stays = |id: &&MemberId| self.is_kept(id) && Some(*id) != leaving;
        let kept = members.iter().filter(stays).cloned().collect();
        let is_barred = |id: &MemberId| self.quarantine.holds(id, now) || Some(id) == leaving;
        choose(&self.config, &self.followers, kept, is_barred)
    }

    /// All members are slow, and it is not the owner: the worst makes room, where a follower is there to take its place.
    pub(super) fn replace(&mut self, worst: MemberId, now: Millis) {
        let Some(record) = self.record.current() else { return };
        let members = &record.ensemble.members;
        let is_free = self.record.step == Step::Idle && !self.is_closing;
        if is_free && self.wanted(members, Some(&worst), now).len() >= members.len() {
            self.quarantine.add_slow(&worst, now);
            self.suspicion.replace(worst);
        }
    }

    /// A member is lost. If it was to take the place of a slow one, that one stays.
    pub(super) fn reconsider_leaving(&mut self, lost: &MemberId) {
        let Some(leaving) = self.suspicion.leaving() else { return };
        if leaving == lost {
            self.suspicion.settle();
            return;
        }
        let is_substitute = |record: &LogRecord| !record.active && record.ensemble.members.contains(lost);
        if self.record.current().is_some_and(is_substitute)
            && let Some(stays) = self.suspicion.settle()
        {
            self.quarantine.forgive(&stays);
        }
    }

    /// A member of the newest ensemble stays while its link does and it does not want to leave.
    fn is_kept(&self, id: &MemberId) -> bool {
        let is_draining = self.followers.iter().any(|follower| &follower.member == id && follower.draining);
        self.members.contains_key(id) && !is_draining
    }

    pub(super) fn on_answer(&mut self, answer: Answer<V>, now: Millis, effects: &mut Effects<V>) {
        assert_eq!(self.record.step, Step::Writing, "a write was asked for");
        match answer {
            Answer::Applied(version) => {
                let record = self.record.attempts.last().expect("a write was attempted").clone();
                self.confirmed(record, version, now, effects);
            }
            Answer::Rejected | Answer::Unknown => self.read_record(effects),
        }
    }

    pub(super) fn read_record(&mut self, effects: &mut Effects<V>) {
        let attempt = self.record.failures;
        self.record.failures = attempt.saturating_add(1);
        self.record.step = Step::Reading;
        effects.push(NodeLogEffect::ReadRecord { attempt });
    }

    pub(super) fn on_record(
        &mut self,
        record: Option<(LogRecord, V)>,
        now: Millis,
        effects: &mut Effects<V>,
    ) {
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
            // But for one that was given up while the record was on its way.
            for id in members.iter().filter(|id| self.members.contains_key(id)) {
                self.quarantine.forgive(id);
            }
            if let Some(left) = self.suspicion.settle().filter(|left| !members.contains(left)) {
                effects.push(NodeLogEffect::Evicted { member: left, failure: MemberFailure::Slow });
            }
            effects.push(NodeLogEffect::Active { log_epoch, members });
        } else {
            self.target = self.next;
            for id in members {
                // One that was given up while the record was on its way is not asked: another ensemble follows at once.
                if !self.quarantine.holds(&id, now) {
                    self.adopt(id, log_epoch, now, effects);
                }
            }
        }
    }

    pub(super) fn adopt(&mut self, id: MemberId, log_epoch: LogEpoch, now: Millis, effects: &mut Effects<V>) {
        let link = Link::Adopting { log_epoch, since: now };
        // What a linked member has fsynced stays fsynced.
        self.members.entry(id.clone()).or_insert_with(|| Member::new(link)).link = link;
        effects.push(NodeLogEffect::Adopt { member: id, log_epoch, start: self.start });
    }
}
