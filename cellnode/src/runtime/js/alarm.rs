//! Runs of an object's `alarm` handler. One at a time, as an event of the isolate; how it ended is told once.

use holdfast_js::{EventCall as JsCall, EventId as JsEvent, JsError};
use holdfast_types::{AlarmTime, Millis};

use super::object::JsObject;
use crate::runtime::{AlarmBegun, AlarmEnd, Effect, EventId, Turn};

/// Longest run of a handler, in milliseconds: 15 minutes, as on Cloudflare.
const RUN_MS_MAX: u64 = 15 * 60_000;

/// The run that is under way.
#[derive(Debug)]
pub(super) struct RunningAlarm {
    event: EventId,
    pub(super) until: Millis,
}

impl JsObject {
    pub(super) fn begin_alarm(
        &mut self,
        event: EventId,
        (scheduled, retry_count): (AlarmTime, u32),
        turn: &mut Turn,
    ) -> AlarmBegun {
        match self.prepare(turn) {
            Ok(true) => {}
            Ok(false) => return AlarmBegun::NotNow,
            Err(error) => {
                tracing::warn!(cell = %self.cell, %error, "an alarm cannot run; it is tried again");
                return AlarmBegun::NotNow;
            }
        }
        self.alarm = Some(RunningAlarm { event, until: turn.now.plus(RUN_MS_MAX) });
        self.enter(turn, |live, now| {
            live.events.insert(event, false);
            live.isolate.dispatch(now, JsEvent::new(event.0), JsCall::Alarm { scheduled, retry_count })
        });
        AlarmBegun::Open
    }

    pub(super) fn is_alarm(&self, event: EventId) -> bool {
        self.alarm.as_ref().is_some_and(|alarm| alarm.event == event)
    }

    /// Tells how the run that is under way ended, if one is.
    pub(super) fn end_alarm(&mut self, end: AlarmEnd, turn: &mut Turn) {
        if self.alarm.take().is_some() {
            turn.effects.push(Effect::AlarmEnded { end });
        }
    }

    /// The run takes too long.
    pub(super) fn break_off_alarm(&mut self, turn: &mut Turn) {
        let error = JsError::new("Alarm exceeded its allowed execution time");
        tracing::warn!(cell = %self.cell, "an alarm handler ran for 15 minutes: its isolate is reset");
        self.break_off(&error, turn);
    }
}
