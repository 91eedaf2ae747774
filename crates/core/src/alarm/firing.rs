//! Runs of the handler: when one is due, what becomes of one that did not succeed, and when the alarm is given up.

use alloc::vec::Vec;

use holdfast_types::{AlarmId, AlarmTime, Millis};

use super::counting::Count;
use super::{Abandoned, AlarmEffect, AlarmNow, AlarmState, HandlerEnd};
use crate::mutant::{self, Mutant};

/// Counted failures after which an alarm is given up: the first run and six retries, as on Cloudflare.
pub const FAILURES_MAX: u32 = 7;
/// Before the first retry, in milliseconds. As on Cloudflare.
const RETRY_MS_MIN: u64 = 2_000;
/// How often it doubles: up to 128 s.
const RETRY_DOUBLINGS_MAX: u32 = 6;
/// Before a run that could not begin is tried again, in milliseconds.
const HOLD_MS: u64 = 1_000;

/// How late the mutant [`Mutant::SkipOverdueAlarm`] takes an alarm for missed, in milliseconds.
const SKIPPED_MS: u64 = 1_000;

/// Milliseconds before the retry that follows so many runs without success.
#[must_use]
pub const fn retry_delay_ms(attempts: u32) -> u64 {
    let doublings = attempts.saturating_sub(1);
    RETRY_MS_MIN << if doublings < RETRY_DOUBLINGS_MAX { doublings } else { RETRY_DOUBLINGS_MAX }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Firing {
    pub(super) running: Option<AlarmId>,
    /// What the last run came to is being committed.
    is_recording: bool,
    /// A run could not begin: not again before this time.
    held_until: Option<Millis>,
    /// The run of what is armed was counted before it begins.
    pub(super) count: Option<Count>,
    is_stopped: bool,
}

impl Firing {
    /// Whether a run may begin as soon as one is due.
    pub(super) fn is_free(&self) -> bool {
        let is_busy = self.running.is_some() && !mutant::is(Mutant::OverlapHandlers);
        let awaits_proof = self.count.is_some_and(|count| !count.is_proved);
        !(is_busy || self.is_recording || awaits_proof || self.is_stopped || self.held_until.is_some())
    }

    pub(super) fn held_until(&self) -> Option<Millis> {
        self.held_until.filter(|_| !self.is_stopped)
    }

    pub(super) fn stop(&mut self) {
        self.is_stopped = true;
    }

    pub(super) fn committed(&mut self) {
        self.is_recording = false;
    }

    pub(super) fn start_due(&mut self, state: &AlarmState, now: AlarmNow, effects: &mut Vec<AlarmEffect>) {
        self.held_until.take_if(|until| *until <= now.monotonic);
        let Some(armed) = state.armed.filter(|_| self.is_free()) else { return };
        if mutant::is(Mutant::SkipOverdueAlarm) && later(armed.due, SKIPPED_MS) < now.wall {
            return;
        }
        if armed.due <= now.wall || mutant::is(Mutant::FireEarly) {
            if self.running == Some(armed.id) {
                return;
            }
            self.running = Some(armed.id);
            effects.push(AlarmEffect::Start(armed));
        }
    }

    pub(super) fn ended(
        &mut self,
        id: AlarmId,
        end: HandlerEnd,
        (state, now): (&AlarmState, AlarmNow),
        effects: &mut Vec<AlarmEffect>,
    ) {
        if self.running.take_if(|running| *running == id).is_none() {
            return;
        }
        // One that was replaced or deleted meanwhile is not retried.
        let Some(mut armed) = state.armed.filter(|armed| armed.id == id) else { return };
        let was_counted = self.count.is_some_and(|count| count.id == id) || armed.is_counted();
        let counts = match end {
            HandlerEnd::NotBegun => {
                self.held_until = Some(now.monotonic.plus(HOLD_MS));
                return;
            }
            HandlerEnd::NoHandler => return self.abandon(id, Abandoned::NoHandler, effects),
            HandlerEnd::BrokenOff => 0,
            // It says that it went well, and its last commit did not consume it: it did not go well.
            HandlerEnd::Failed | HandlerEnd::Succeeded => u32::from(!was_counted),
        };
        self.count = None;
        armed.failures += counts;
        armed.attempts = armed.attempts.saturating_add(1).max(armed.failures);
        if armed.failures >= FAILURES_MAX {
            return self.abandon(id, Abandoned::Failures(armed.failures), effects);
        }
        armed.due = later(now.wall, retry_delay_ms(armed.attempts));
        self.is_recording = true;
        effects.push(AlarmEffect::Record(armed));
    }

    pub(super) fn abandon(&mut self, id: AlarmId, cause: Abandoned, effects: &mut Vec<AlarmEffect>) {
        self.is_recording = true;
        effects.push(AlarmEffect::Abandon { id, cause });
    }
}

pub(super) fn later(time: AlarmTime, span_ms: u64) -> AlarmTime {
    AlarmTime::new(time.get().saturating_add_unsigned(span_ms))
}
