//! Frames and releases of the session's stream. Frames that are there already are skipped; what is acknowledged is what is
//! fsynced, also when nothing of a message was new (INV-LOG-1).

use alloc::vec::Vec;

use holdfast_types::{LogEpoch, LogOffset};

use super::machine::{Attachment, Milestone, Seal};
use super::{FollowerEffect, FramesCheck, LogEntry, Refusal, SessionLog, StreamId};
use crate::mutant::{self, Mutant};

impl SessionLog {
    pub(super) fn admit(
        &self,
        log_epoch: LogEpoch,
        first: LogOffset,
        check: FramesCheck,
        last: LogOffset,
        has_room: bool,
    ) -> Result<(), Refusal> {
        let is_new = last >= self.accepted.next;
        if self.seal != Seal::Open && !mutant::is(Mutant::AppendPastSeal) {
            Err(Refusal::Sealed)
        } else if self.is_damaged {
            Err(Refusal::Damaged)
        } else if self.attachment != Attachment::Attached || log_epoch != self.accepted.log_epoch {
            Err(Refusal::NotAMember)
        } else if check == FramesCheck::Corrupt {
            Err(Refusal::Corrupt)
        } else if check == FramesCheck::Scattered || first > self.accepted.next || first > last {
            Err(Refusal::Gap)
        } else if is_new && !has_room {
            Err(Refusal::Full)
        } else {
            Ok(())
        }
    }

    pub(super) fn append(
        &mut self,
        stream: StreamId,
        first: LogOffset,
        last: LogOffset,
        effects: &mut Vec<FollowerEffect>,
    ) {
        let log_epoch = self.accepted.log_epoch;
        let is_new = last >= self.accepted.next;
        if is_new {
            let first = first.max(self.accepted.next);
            self.accepted.next = last.next();
            self.persist(LogEntry::Frames { first, last }, Milestone::Appended, true, effects);
        }
        let durable = if mutant::is(Mutant::AckBeforeFsync) { self.accepted.next } else { self.durable.next };
        // What is not fsynced yet is answered when it is, whether this message brought it or an earlier one.
        if let (true, true, Some(offset)) =
            (last < durable, self.announced == Some(stream), durable.previous())
        {
            effects.push(FollowerEffect::AnswerDurable { stream, log_epoch, offset });
        }
    }

    pub(super) fn on_release(
        &mut self,
        stream: StreamId,
        start: LogOffset,
        effects: &mut Vec<FollowerEffect>,
    ) {
        if !self.is_current(stream) || self.attachment != Attachment::Attached {
            return;
        }
        let before = self.accepted.start;
        self.accepted.release(start);
        let start = self.accepted.start;
        if start > before {
            effects.push(FollowerEffect::DropBelow { start });
            self.persist(LogEntry::Release { start }, Milestone::Noted, false, effects);
        }
    }
}
