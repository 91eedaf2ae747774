//! The machine: what is accepted, what of it is fsynced, and who waits for it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use holdfast_types::{LogEpoch, LogOffset};

use super::{CallId, FollowerEffect, FollowerEvent, HeldLog, Holdings, LogEntry, Refusal, StreamId, Ticket};
use crate::log_record::MemberId;

/// The log of one session at one follower.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionLog {
    pub(super) me: MemberId,
    /// With every entry that was handed out.
    pub(super) accepted: Holdings,
    /// With every entry that is fsynced.
    pub(super) durable: Holdings,
    /// The last entry handed out.
    pub(super) issued: Ticket,
    /// The last entry fsynced.
    pub(super) persisted: Ticket,
    pub(super) pending: VecDeque<Pending>,
    pub(super) seal: Seal,
    pub(super) is_damaged: bool,
    /// Whether an entry says so; until then a restart has to find it out again.
    pub(super) is_damage_written: bool,
    /// The newest stream; older ones are not listened to.
    pub(super) newest: Option<StreamId>,
    pub(super) attachment: Attachment,
    /// The record was read for the adopted epoch in this process's life.
    pub(super) is_record_known: bool,
    /// The stream that was told of an adoption: others hear of no frames yet.
    pub(super) announced: Option<StreamId>,
}

/// What waits for an entry to be fsynced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pending {
    pub(super) ticket: Ticket,
    /// The window once the entry is fsynced.
    pub(super) holdings: Holdings,
    pub(super) milestone: Milestone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Milestone {
    Adopted { stream: StreamId },
    Appended,
    Sealed,
    Noted,
    Forgotten,
}

/// Whether appends are refused for ever.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Seal {
    Open,
    /// Refused already; the calls hear of it once it is fsynced.
    Sealing {
        calls: Vec<CallId>,
    },
    Sealed,
}

/// What the newest stream may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Attachment {
    /// There is none, or it has adopted nothing.
    Detached,
    /// Its adoption waits for the log record.
    Checking { log_epoch: LogEpoch, start: LogOffset },
    /// It may append at the adopted epoch.
    Attached,
}

impl SessionLog {
    /// The log of a session never seen, at the follower `me`.
    #[must_use]
    pub fn new(me: MemberId) -> Self {
        Self {
            me,
            accepted: Holdings::NONE,
            durable: Holdings::NONE,
            issued: Ticket::default(),
            persisted: Ticket::default(),
            pending: VecDeque::new(),
            seal: Seal::Open,
            is_damaged: false,
            is_damage_written: false,
            newest: None,
            attachment: Attachment::Detached,
            is_record_known: false,
            announced: None,
        }
    }

    /// What may be told of the log: fsynced state only.
    #[must_use]
    pub fn state(&self) -> HeldLog {
        HeldLog {
            log_epoch: self.durable.log_epoch,
            start: self.accepted.start,
            end: self.durable.next.max(self.accepted.start),
            is_complete: !self.is_damaged,
            is_sealed: self.seal == Seal::Sealed,
        }
    }

    /// The window with everything accepted, fsynced or not.
    #[must_use]
    pub fn accepted(&self) -> Holdings {
        self.accepted
    }

    /// The last entry handed out.
    #[must_use]
    pub fn issued(&self) -> Ticket {
        self.issued
    }

    /// Whether a stream appends now, or is about to.
    #[must_use]
    pub fn has_stream(&self) -> bool {
        self.attachment != Attachment::Detached
    }

    /// Takes an event and says what is to do.
    pub fn on(&mut self, event: FollowerEvent) -> Vec<FollowerEffect> {
        let mut effects = Vec::new();
        match event {
            FollowerEvent::AdoptAsked { stream, log_epoch, start, is_draining } => {
                self.on_adopt(stream, log_epoch, start, is_draining, &mut effects);
            }
            FollowerEvent::RecordRead { stream, record } => {
                self.on_record(stream, record.as_ref(), &mut effects);
            }
            FollowerEvent::RecordUnreadable { stream } => self.on_unreadable(stream, &mut effects),
            FollowerEvent::FramesArrived { stream, log_epoch, first, last, check, has_room } => {
                if self.is_current(stream) {
                    match self.admit(log_epoch, first, check, last, has_room) {
                        Ok(()) => self.append(stream, first, last, &mut effects),
                        Err(refusal) => self.refuse(stream, refusal, &mut effects),
                    }
                }
            }
            FollowerEvent::ReleaseAsked { stream, start } => self.on_release(stream, start, &mut effects),
            FollowerEvent::StreamEnded { stream } => {
                if self.is_current(stream) {
                    self.detach();
                }
            }
            FollowerEvent::SealAsked { call } => self.on_seal(call, &mut effects),
            FollowerEvent::Persisted { upto } => self.on_persisted(upto, &mut effects),
            FollowerEvent::DamageFound => self.on_damage(&mut effects),
            FollowerEvent::RecordSealed => self.on_record_sealed(&mut effects),
        }
        effects
    }

    pub(super) fn is_current(&self, stream: StreamId) -> bool {
        self.newest == Some(stream)
    }

    pub(super) fn persist(
        &mut self,
        entry: LogEntry,
        milestone: Milestone,
        is_awaited: bool,
        effects: &mut Vec<FollowerEffect>,
    ) {
        self.issued = self.issued.next();
        self.pending.push_back(Pending { ticket: self.issued, holdings: self.accepted, milestone });
        effects.push(FollowerEffect::Persist { ticket: self.issued, entry, is_awaited });
    }

    fn detach(&mut self) {
        self.attachment = Attachment::Detached;
        self.announced = None;
    }

    pub(super) fn refuse(&mut self, stream: StreamId, refusal: Refusal, effects: &mut Vec<FollowerEffect>) {
        self.detach();
        effects.push(FollowerEffect::Refuse { stream, refusal });
    }

    fn on_persisted(&mut self, upto: Ticket, effects: &mut Vec<FollowerEffect>) {
        assert!(upto <= self.issued, "only what was handed out can be fsynced");
        self.persisted = self.persisted.max(upto);
        let mut acknowledged = None;
        while let Some(pending) = self.pending.pop_front_if(|pending| pending.ticket <= upto) {
            self.durable = pending.holdings;
            match pending.milestone {
                Milestone::Appended => {
                    acknowledged =
                        pending.holdings.next.previous().map(|last| (pending.holdings.log_epoch, last));
                }
                Milestone::Adopted { stream } => {
                    self.acknowledge(acknowledged.take(), effects);
                    self.answer_adopted(stream, pending.holdings, effects);
                }
                Milestone::Sealed => {
                    self.acknowledge(acknowledged.take(), effects);
                    self.answer_sealed(effects);
                }
                Milestone::Forgotten => {
                    self.answer_sealed(effects);
                    effects.push(FollowerEffect::Forgotten);
                }
                Milestone::Noted => {}
            }
        }
        self.acknowledge(acknowledged, effects);
    }

    /// One answer for all frames that became durable together, to the stream that is there now.
    fn acknowledge(&self, upto: Option<(LogEpoch, LogOffset)>, effects: &mut Vec<FollowerEffect>) {
        if let (Some((log_epoch, offset)), Some(stream)) = (upto, self.announced) {
            effects.push(FollowerEffect::AnswerDurable { stream, log_epoch, offset });
        }
    }

    pub(super) fn answer_adopted(
        &mut self,
        stream: StreamId,
        holdings: Holdings,
        effects: &mut Vec<FollowerEffect>,
    ) {
        if self.is_current(stream) && self.attachment == Attachment::Attached {
            self.announced = Some(stream);
            let Holdings { log_epoch, next, start: _ } = holdings;
            effects.push(FollowerEffect::AnswerAdopted { stream, log_epoch, next });
        }
    }

    fn on_damage(&mut self, effects: &mut Vec<FollowerEffect>) {
        self.is_damaged = true;
        if !self.is_damage_written {
            self.is_damage_written = true;
            self.persist(LogEntry::Damage, Milestone::Noted, false, effects);
        }
        if let (Some(stream), true) = (self.newest, self.has_stream()) {
            self.refuse(stream, Refusal::Damaged, effects);
        }
    }

    /// The record's last state: the session can never adopt again, because an adoption reads the record. So not even the
    /// seal is needed any more. A stream that still hangs on is left alone until it ends.
    fn on_record_sealed(&mut self, effects: &mut Vec<FollowerEffect>) {
        let is_forgotten = self.pending.iter().any(|p| matches!(p.milestone, Milestone::Forgotten));
        if self.has_stream() || is_forgotten {
            return;
        }
        effects.push(FollowerEffect::DropBelow { start: self.accepted.next });
        self.accepted.start = self.accepted.next;
        if self.seal == Seal::Open {
            // Until it is gone it must not come back to life at its adopted epoch.
            self.seal = Seal::Sealing { calls: Vec::new() };
        }
        self.persist(LogEntry::Forget, Milestone::Forgotten, false, effects);
    }
}
