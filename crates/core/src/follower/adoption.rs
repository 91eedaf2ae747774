//! Adoption of a log epoch: only after the log record named this follower's disk as a member of it, and only while
//! nothing is sealed or damaged (INV-LOG-1, INV-LOG-2).

use alloc::vec::Vec;

use holdfast_types::{LogEpoch, LogOffset};

use super::machine::{Attachment, Milestone, Pending, Seal};
use super::{FollowerEffect, LogEntry, Refusal, SessionLog, StreamId};
use crate::log_record::{Ensemble, LogRecord, LogState};
use crate::mutant::{self, Mutant};

impl SessionLog {
    pub(super) fn on_adopt(
        &mut self,
        stream: StreamId,
        log_epoch: LogEpoch,
        start: LogOffset,
        is_draining: bool,
        effects: &mut Vec<FollowerEffect>,
    ) {
        if self.newest.is_some_and(|newest| stream < newest) {
            return;
        }
        if self.newest != Some(stream) {
            self.newest = Some(stream);
            self.announced = None;
        }
        self.attachment = Attachment::Detached;
        if let Some(refusal) = self.bars_adoption(log_epoch) {
            self.refuse(stream, refusal, effects);
        } else if log_epoch == self.accepted.log_epoch && self.is_record_known {
            // A new stream of an adopted epoch: the record was read for it, and since then only a seal can end it. After a
            // restart that is not so: while this follower was away a person may have declared it lost.
            self.attach(stream, log_epoch, start, effects);
        } else if is_draining {
            self.refuse(stream, Refusal::Draining, effects);
        } else if mutant::is(Mutant::AdoptWithoutRecord) {
            self.attach(stream, log_epoch, start, effects);
        } else {
            self.attachment = Attachment::Checking { log_epoch, start };
            effects.push(FollowerEffect::ReadRecord { stream });
        }
    }

    pub(super) fn on_record(
        &mut self,
        stream: StreamId,
        record: Option<&LogRecord>,
        effects: &mut Vec<FollowerEffect>,
    ) {
        let (true, Attachment::Checking { log_epoch, start }) = (self.is_current(stream), self.attachment)
        else {
            return;
        };
        // Again: a seal may have come while the record was read.
        let refusal = self.bars_adoption(log_epoch).or_else(|| self.record_bars(record, log_epoch));
        match refusal {
            Some(refusal) => self.refuse(stream, refusal, effects),
            None => self.attach(stream, log_epoch, start, effects),
        }
    }

    pub(super) fn on_unreadable(&mut self, stream: StreamId, effects: &mut Vec<FollowerEffect>) {
        if self.is_current(stream) && matches!(self.attachment, Attachment::Checking { .. }) {
            self.refuse(stream, Refusal::RecordUnreadable, effects);
        }
    }

    fn bars_adoption(&self, log_epoch: LogEpoch) -> Option<Refusal> {
        if self.seal != Seal::Open && !mutant::is(Mutant::AppendPastSeal) {
            Some(Refusal::Sealed)
        } else if self.is_damaged {
            Some(Refusal::Damaged)
        } else if log_epoch < self.accepted.log_epoch || log_epoch == LogEpoch::ZERO {
            Some(Refusal::NotAMember)
        } else {
            None
        }
    }

    fn record_bars(&self, record: Option<&LogRecord>, log_epoch: LogEpoch) -> Option<Refusal> {
        let Some(record) = record else { return Some(Refusal::NotAMember) };
        let found = record.ensemble.log_epoch;
        if record.state != LogState::Open || found < log_epoch || !self.is_member_of(&record.ensemble) {
            return Some(Refusal::NotAMember);
        }
        if found > log_epoch {
            return Some(Refusal::StaleEpoch { found });
        }
        // An ensemble becomes active only after each member has adopted it. A member that does not know has lost what it
        // knew, and frames that it acknowledged with it.
        let has_lost = record.witnesses().is_some_and(|ensemble| {
            self.is_member_of(ensemble) && self.accepted.log_epoch < ensemble.log_epoch
        });
        (has_lost && !mutant::is(Mutant::IgnoreIncarnation)).then_some(Refusal::Damaged)
    }

    fn is_member_of(&self, ensemble: &Ensemble) -> bool {
        ensemble.members.iter().any(|member| {
            member.follower == self.me.follower
                && (member.incarnation == self.me.incarnation || mutant::is(Mutant::IgnoreIncarnation))
        })
    }

    /// The answer waits until the adoption, and all that was accepted before it, is fsynced.
    fn attach(
        &mut self,
        stream: StreamId,
        log_epoch: LogEpoch,
        start: LogOffset,
        effects: &mut Vec<FollowerEffect>,
    ) {
        self.attachment = Attachment::Attached;
        self.is_record_known = true;
        let before = self.accepted;
        self.accepted.adopt(log_epoch, start);
        if self.accepted != before {
            effects.push(FollowerEffect::DropBelow { start: self.accepted.start });
            self.persist(LogEntry::Adopt { log_epoch, start }, Milestone::Adopted { stream }, true, effects);
        } else if self.pending.is_empty() {
            self.answer_adopted(stream, self.accepted, effects);
        } else {
            let milestone = Milestone::Adopted { stream };
            self.pending.push_back(Pending { ticket: self.issued, holdings: self.accepted, milestone });
        }
    }
}
