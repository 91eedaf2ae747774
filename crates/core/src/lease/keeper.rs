//! The machine that acquires and keeps one session's lease.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use holdfast_types::{Incarnation, Millis, SessionId, WriteId};

use super::{FenceCause, LeaseEffect, LeaseEvent, LeaseRecord, LeaseTiming, Now};
use crate::mutant::{self, Mutant};
use crate::store::{Answer, Guard};

/// Writes remembered since the last confirmed one. At one retry per 100 ms and a TTL of 10 s there are 100; an older one
/// than these cannot be the record any more without its session having expired.
const ATTEMPTS_MAX: usize = 128;

/// A write that may have landed.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    write_id: WriteId,
    authority_until: Millis,
}

/// Acquires and keeps a lease.
#[derive(Clone, Debug)]
pub struct LeaseKeeper<V> {
    timing: LeaseTiming,
    session: SessionId,
    incarnation: Incarnation,
    /// What the last confirmed write made, and until when it gives authority; none before acquisition.
    held: Option<Held<V>>,
    attempts: VecDeque<Attempt>,
    failures: u32,
    step: Step,
}

#[derive(Clone, Debug)]
struct Held<V> {
    write_id: WriteId,
    version: V,
    authority_until: Millis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Reading,
    Writing,
    /// `read_first`: the record must be read before the next write.
    Resting {
        read_first: bool,
    },
    Fenced,
}

impl<V: Clone + core::fmt::Debug> LeaseKeeper<V> {
    /// Begins to acquire the lease for `session` on the data directory `incarnation`.
    #[must_use]
    pub fn start(
        timing: LeaseTiming,
        session: SessionId,
        incarnation: Incarnation,
    ) -> (Self, Vec<LeaseEffect<V>>) {
        let keeper = Self {
            timing,
            session,
            incarnation,
            held: None,
            attempts: VecDeque::new(),
            failures: 0,
            step: Step::Reading,
        };
        (keeper, vec![LeaseEffect::Read])
    }

    /// Whether the lease was acquired and is not fenced.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.held.is_some() && self.step != Step::Fenced
    }

    /// The version of the last confirmed record: the guard of a final write that gives the lease up.
    #[must_use]
    pub fn version(&self) -> Option<&V> {
        self.held.as_ref().map(|held| &held.version)
    }

    /// Takes an event and says what is next. After `Fence` every event is ignored.
    pub fn on(&mut self, event: LeaseEvent<V>) -> Vec<LeaseEffect<V>> {
        if self.step == Step::Fenced {
            return Vec::new();
        }
        let now = match &event {
            LeaseEvent::Woke { now, .. }
            | LeaseEvent::Read { now, .. }
            | LeaseEvent::ReadFailed { now, .. }
            | LeaseEvent::Written { now, .. } => *now,
        };
        if self.has_expired(now) {
            return self.fence(FenceCause::Expired);
        }
        match event {
            LeaseEvent::Woke { now, write_id } => self.on_woke(now, write_id),
            LeaseEvent::Read { record, now, write_id } => self.on_read(record, now, write_id),
            LeaseEvent::ReadFailed { now, jitter } => self.rest(now, jitter, true),
            LeaseEvent::Written { answer, now, jitter } => self.on_written(answer, now, jitter),
        }
    }

    /// A renewal that lands at or after the prior end is a fence, not a success: a reader may have taken over.
    fn has_expired(&self, now: Now) -> bool {
        let expired = self.held.as_ref().is_some_and(|held| now.monotonic >= held.authority_until);
        expired && !mutant::is(Mutant::LateRenewalIsSuccess)
    }

    fn on_woke(&mut self, now: Now, write_id: WriteId) -> Vec<LeaseEffect<V>> {
        match (self.step, &self.held) {
            (Step::Resting { read_first: false }, Some(held)) => {
                let guard = Guard::Match(held.version.clone());
                vec![self.write(now, write_id, guard)]
            }
            (Step::Resting { .. }, _) => {
                self.step = Step::Reading;
                vec![LeaseEffect::Read]
            }
            // A timer that was overtaken by an answer.
            (Step::Reading | Step::Writing | Step::Fenced, _) => Vec::new(),
        }
    }

    fn on_read(
        &mut self,
        record: Option<(LeaseRecord, V)>,
        now: Now,
        write_id: WriteId,
    ) -> Vec<LeaseEffect<V>> {
        let is_mine =
            |record: &LeaseRecord| record.session == self.session && record.incarnation == self.incarnation;
        let landed = record.as_ref().filter(|(record, _)| is_mine(record)).and_then(|(record, _)| {
            self.attempts.iter().find(|attempt| attempt.write_id == record.write_id).copied()
        });
        match (record, landed, &self.held) {
            (Some((_, version)), Some(attempt), _) => self.confirm(attempt, version, now),
            (Some((record, version)), None, Some(held))
                if record.write_id == held.write_id && is_mine(&record) =>
            {
                vec![self.write(now, write_id, Guard::Match(version))]
            }
            (Some(_), None, Some(_)) => self.fence(FenceCause::RecordMismatch),
            (None, _, Some(_)) => self.fence(FenceCause::RecordMissing),
            (None, _, None) => vec![self.write(now, write_id, Guard::Absent)],
            (Some((record, version)), None, None) => self.on_foreign(&record, version, now, write_id),
        }
    }

    /// Before acquisition: somebody's record is there.
    fn on_foreign(
        &mut self,
        record: &LeaseRecord,
        version: V,
        now: Now,
        write_id: WriteId,
    ) -> Vec<LeaseEffect<V>> {
        let dead_at = record.expires_ms.plus(self.timing.clock_skew_max_ms);
        if record.incarnation == self.incarnation || dead_at <= now.wall {
            return vec![self.write(now, write_id, Guard::Match(version))];
        }
        self.step = Step::Resting { read_first: true };
        // Looked at again at least once a TTL: the holder may give up early.
        let pause = dead_at.since(now.wall).min(self.timing.ttl_ms);
        vec![
            LeaseEffect::Waiting { holder: record.session, until_wall: dead_at },
            LeaseEffect::WakeAt(now.monotonic.plus(pause)),
        ]
    }

    fn write(&mut self, now: Now, write_id: WriteId, guard: Guard<V>) -> LeaseEffect<V> {
        if self.attempts.len() == ATTEMPTS_MAX {
            self.attempts.pop_front();
        }
        let authority_until = now.monotonic.plus(self.timing.ttl_ms);
        self.attempts.push_back(Attempt { write_id, authority_until });
        self.step = Step::Writing;
        let patience = self.timing.renew_every_ms();
        let remaining = self.held.as_ref().map_or(patience, |held| held.authority_until.since(now.monotonic));
        LeaseEffect::Write {
            write_id,
            expires_ms: now.wall.plus(self.timing.ttl_ms),
            guard,
            deadline_ms: patience.min(remaining).max(1),
        }
    }

    fn on_written(&mut self, answer: Answer<V>, now: Now, jitter: u8) -> Vec<LeaseEffect<V>> {
        match answer {
            Answer::Applied(version) => {
                let attempt = *self.attempts.back().expect("a write was attempted");
                self.confirm(attempt, version, now)
            }
            Answer::Rejected => {
                self.step = Step::Reading;
                vec![LeaseEffect::Read]
            }
            Answer::Unknown if mutant::is(Mutant::UnknownIsRejected) && self.held.is_some() => {
                self.fence(FenceCause::RecordMismatch)
            }
            Answer::Unknown => self.rest(now, jitter, true),
        }
    }

    fn confirm(&mut self, attempt: Attempt, version: V, now: Now) -> Vec<LeaseEffect<V>> {
        if attempt.authority_until <= now.monotonic && !mutant::is(Mutant::LateRenewalIsSuccess) {
            // Landed, but what it published has ended by now: before acquisition try again, afterwards it is over.
            if self.held.is_some() {
                return self.fence(FenceCause::Expired);
            }
            // The record that is read next must count as foreign, or it would be confirmed as ended for ever.
            self.attempts.clear();
            self.step = Step::Resting { read_first: true };
            return vec![LeaseEffect::WakeAt(now.monotonic)];
        }
        self.held =
            Some(Held { write_id: attempt.write_id, version, authority_until: attempt.authority_until });
        self.attempts.clear();
        self.failures = 0;
        self.step = Step::Resting { read_first: false };
        let anchor = attempt.authority_until.minus(self.timing.ttl_ms);
        let next = anchor.plus(self.timing.renew_every_ms()).max(now.monotonic);
        vec![LeaseEffect::Authority { until: attempt.authority_until }, LeaseEffect::WakeAt(next)]
    }

    /// Pauses after a failure: doubling, with jitter of up to a half, never past the end of authority.
    fn rest(&mut self, now: Now, jitter: u8, read_first: bool) -> Vec<LeaseEffect<V>> {
        let doubled = self.timing.retry_ms_min << self.failures.min(10);
        let pause = doubled.min(self.timing.retry_ms_max);
        let pause = pause - pause * u64::from(jitter) / 512;
        self.failures += 1;
        self.step = Step::Resting { read_first };
        let at = now.monotonic.plus(pause);
        let at = self.held.as_ref().map_or(at, |held| at.min(held.authority_until));
        vec![LeaseEffect::WakeAt(at)]
    }

    fn fence(&mut self, cause: FenceCause) -> Vec<LeaseEffect<V>> {
        self.step = Step::Fenced;
        vec![LeaseEffect::Fence(cause)]
    }
}
