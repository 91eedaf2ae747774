//! One conditional write with its read-backs, as the core's settler asks for them.

use holdfast_core::commit::{CommitEffect, CommitEvent, CommitSettler, Seen, Settlement};
use holdfast_core::store::{Answer, Guard};

use super::Purpose;
use crate::bucket::{Body, Key, Operation, Reply};
use crate::violation::Violation;
use crate::world::World;

/// Longest wait for one call of a conditional write.
const CALL_PATIENCE_MS: u64 = 2_000;

/// A conditional write under way.
#[derive(Clone, Debug)]
pub(crate) struct Settle {
    settler: CommitSettler,
    key: Key,
    body: Body,
    guard: Guard<u64>,
    /// When the caller's patience is over, true time.
    until_ms: u64,
    is_reading: bool,
}

impl World {
    /// Sends a conditional write.
    pub(crate) fn start_settle(
        &mut self,
        index: usize,
        purpose: Purpose,
        (key, body, guard): (Key, Body, Guard<u64>),
        (pause_ms, patience_ms): (u64, u64),
    ) -> Result<Settle, Violation> {
        let (settler, effect) = CommitSettler::start();
        assert_eq!(effect, CommitEffect::Send, "a write begins by sending it");
        let settle = Settle {
            settler,
            key,
            body,
            guard,
            until_ms: self.now + pause_ms + patience_ms,
            is_reading: false,
        };
        self.send_write(index, &settle, purpose, pause_ms)?;
        Ok(settle)
    }

    fn send_write(
        &mut self,
        index: usize,
        settle: &Settle,
        purpose: Purpose,
        pause_ms: u64,
    ) -> Result<(), Violation> {
        let write = Operation::PutIf(settle.key.clone(), settle.body.clone(), settle.guard.clone());
        self.call(index, purpose, write, (pause_ms, settle.patience(self.now)))
    }

    /// Takes the reply to the last call of the write; the answer once it is settled.
    pub(crate) fn go_on_settling(
        &mut self,
        index: usize,
        settle: &mut Settle,
        purpose: Purpose,
        reply: Reply,
    ) -> Result<Option<Answer<u64>>, Violation> {
        let (event, version) = settle.event(reply, self.now);
        match settle.settler.on(event) {
            CommitEffect::Send => {
                settle.is_reading = false;
                self.send_write(index, settle, purpose, 0)?;
            }
            CommitEffect::ReadBack { pause_ms } => {
                settle.is_reading = true;
                let read = Operation::Get(settle.key.clone());
                self.call(index, purpose, read, (pause_ms, settle.patience(self.now)))?;
            }
            CommitEffect::Settle(settlement) => {
                let version = || version.expect("applied at a version");
                return Ok(Some(match settlement {
                    Settlement::Applied | Settlement::AppliedAsRead => Answer::Applied(version()),
                    Settlement::Rejected | Settlement::RejectedAsRead => Answer::Rejected,
                    Settlement::Unknown => Answer::Unknown,
                }));
            }
        }
        Ok(None)
    }
}

impl Settle {
    fn patience(&self, now: u64) -> u64 {
        self.until_ms.saturating_sub(now).clamp(1, CALL_PATIENCE_MS)
    }

    /// What a reply means, and the version that it shows.
    fn event(&self, reply: Reply, now: u64) -> (CommitEvent, Option<u64>) {
        match reply {
            Reply::Applied(version) => (CommitEvent::AnsweredApplied, Some(version)),
            Reply::Rejected => (CommitEvent::AnsweredRejected, None),
            Reply::Object(found) => {
                let version = found.as_ref().map(|(_, version)| *version);
                (CommitEvent::ReadBack(self.seen(found)), version)
            }
            _ if now >= self.until_ms => (CommitEvent::DeadlinePassed, None),
            _ if self.is_reading => (CommitEvent::ReadBackFailed, None),
            _ => (CommitEvent::AnsweredUnknown, None),
        }
    }

    fn seen(&self, found: Option<(Body, u64)>) -> Seen {
        match (found, &self.guard) {
            (Some((body, _)), _) if body.write_id() == self.body.write_id() => Seen::Mine,
            (Some((_, version)), Guard::Match(expected)) if version == *expected => Seen::Unchanged,
            (None, Guard::Absent) => Seen::Unchanged,
            _ => Seen::Other,
        }
    }
}
