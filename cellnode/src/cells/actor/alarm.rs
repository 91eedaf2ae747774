//! A cell's alarm on its thread. The core's alarm decides; here its effects are executed: runs of the handler as events of
//! the cell, commits of what became of them, and what the gate holds back meanwhile. A cell that never had an alarm has
//! none of this in memory.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::alarm::{
    Abandoned, Alarm, AlarmEffect, AlarmEvent, AlarmNow, AlarmState, Armed, EntryName, HandlerEnd, Orphan,
};
use holdfast_core::gate::GateEvent;
use holdfast_telemetry::metrics;
use holdfast_telemetry::names::span;
use holdfast_types::{AlarmTime, CellName, Millis, Txid};
use tokio::sync::oneshot;

use super::super::worker::Job;
use super::Actor;
use crate::runtime::{AlarmBegun, AlarmEnd, EventId};
use crate::{alarm_index, clock};

/// Longest span of a timer, in milliseconds: the wall clock may be set anew meanwhile, and is looked at again.
const TIMER_MS_MAX: u64 = 60_000;

/// What a cell's alarm is told from outside of the cell's thread.
#[derive(Debug)]
pub(crate) enum AlarmInput {
    /// A run is due.
    Run(Armed),
    /// A write has been answered, or an output was let go.
    Event(AlarmEvent),
    /// Somebody saw this entry, and wants to know what is armed.
    Hint {
        /// The entry.
        entry: EntryName,
        /// What is armed.
        armed: oneshot::Sender<Option<Armed>>,
    },
}

struct Run {
    event: EventId,
    armed: Armed,
    /// A trace of its own: what set the alarm may be long gone.
    span: tracing::Span,
}

/// A cell's alarm, from the first installation or hint of the epoch on.
pub(super) struct CellAlarm {
    machine: Alarm,
    run: Option<Run>,
    /// What is to be committed once no transaction is open.
    deferred: VecDeque<AlarmEffect>,
    /// When the machine wants to know the time.
    wake: Option<Millis>,
    /// What of it the gauges count: armed, and waiting for a retry.
    counted: (bool, bool),
}

impl CellAlarm {
    fn count(&mut self, (is_armed, is_retrying): (bool, bool)) {
        let before = std::mem::replace(&mut self.counted, (is_armed, is_retrying));
        if before.0 != is_armed {
            metrics().alarms_armed_changed(if is_armed { 1 } else { -1 });
        }
        if before.1 != is_retrying {
            metrics().alarms_retrying_changed(if is_retrying { 1 } else { -1 });
        }
    }

    fn look(&mut self, now: AlarmNow) {
        let due = self.machine.due().map(|due| {
            let span = due.get().saturating_sub(now.wall.get());
            now.monotonic.plus(u64::try_from(span).unwrap_or(0).clamp(1, TIMER_MS_MAX))
        });
        self.wake = [due, self.machine.next_tick()].into_iter().flatten().min();
        let armed = self.machine.armed();
        let counted = (armed.is_some(), armed.is_some_and(|armed| armed.failures.max(armed.attempts) > 0));
        self.count(counted);
    }
}

impl Drop for CellAlarm {
    fn drop(&mut self) {
        self.count((false, false));
    }
}

fn alarm_now() -> AlarmNow {
    AlarmNow { wall: clock::wall_time_in(0), monotonic: clock::monotonic() }
}

impl Actor {
    /// Takes up the alarm of a cell that was just opened, before anything leaves it.
    pub(super) fn start_alarm(&mut self, state: AlarmState) {
        let orphan = self.node.orphans.of(&self.resident.cell);
        if state != AlarmState::default() {
            self.create_alarm(state, orphan);
        }
        let is_settled = self.alarm.as_ref().is_none_or(|alarm| alarm.deferred.is_empty());
        if orphan.is_some() && is_settled {
            self.node.orphans.forget(&self.resident.cell);
        }
    }

    fn create_alarm(&mut self, state: AlarmState, orphan: Option<Orphan>) {
        let now = alarm_now();
        let (machine, effects) = Alarm::start(self.resident.epoch, (state, self.restored), orphan, now);
        let mut alarm =
            CellAlarm { machine, run: None, deferred: VecDeque::new(), wake: None, counted: (false, false) };
        alarm.look(now);
        self.resident.note_alarm(alarm.machine.armed().map(|armed| armed.due));
        self.alarm = Some(Box::new(alarm));
        self.execute_alarm(effects);
    }

    /// When the alarm wants to know the time.
    pub(super) fn alarm_wake(&self) -> Option<Millis> {
        self.alarm.as_ref().and_then(|alarm| alarm.wake)
    }

    pub(super) fn wake_alarm(&mut self, now: Millis) {
        if self.alarm_wake().is_some_and(|at| at <= now) {
            self.alarm_event(AlarmEvent::Tick);
        }
        self.settle_runs();
    }

    pub(super) fn on_alarm(&mut self, input: AlarmInput) {
        match input {
            AlarmInput::Run(armed) => self.run_alarm(armed),
            AlarmInput::Event(event) => self.alarm_event(event),
            AlarmInput::Hint { entry, armed: answer } => {
                if self.alarm.is_none() {
                    self.create_alarm(AlarmState::default(), None);
                }
                self.alarm_event(AlarmEvent::Hinted(entry));
                let armed = self.alarm.as_ref().and_then(|alarm| alarm.machine.armed().copied());
                // Whoever asked may have gone.
                let _ = answer.send(armed);
            }
        }
        self.settle_runs();
    }

    /// No run begins any more.
    pub(super) fn stop_alarm(&mut self) {
        if self.alarm.is_some() {
            self.alarm_event(AlarmEvent::Stopped);
        }
    }

    /// Tells of a commit that changed the alarm. Before any output behind `ticket` is ready.
    pub(super) fn note_alarm(&mut self, ticket: Txid) {
        let change = self.engine.borrow_mut().take_alarm_change();
        match change {
            Ok(None) => {}
            Ok(Some(state)) => {
                if self.alarm.is_none() {
                    self.create_alarm(AlarmState::default(), None);
                }
                self.alarm_event(AlarmEvent::Committed { state, ticket });
            }
            Err(failure) => {
                tracing::error!(cell = %self.resident.cell, %failure, "the alarm cannot be read");
                self.resident.on(GateEvent::DatabaseFailed);
            }
        }
    }

    fn alarm_event(&mut self, event: AlarmEvent) {
        let Some(alarm) = &mut self.alarm else { return };
        let now = alarm_now();
        let effects = alarm.machine.on(event, now);
        alarm.look(now);
        self.resident.note_alarm(alarm.machine.armed().map(|armed| armed.due));
        self.execute_alarm(effects);
    }

    fn execute_alarm(&mut self, effects: Vec<AlarmEffect>) {
        let (node, resident) = (Arc::clone(&self.node), Arc::clone(&self.resident));
        for effect in effects {
            match effect {
                AlarmEffect::Withhold { from } => resident.on(GateEvent::Withhold { from }),
                AlarmEffect::Reveal { through, from } => resident.on(GateEvent::Revealed { through, from }),
                AlarmEffect::PutEntry { entry, deadline, attempt } => {
                    alarm_index::put_entry(&node, &resident, (entry.id, deadline), attempt);
                }
                // By the queue, as any other event.
                AlarmEffect::Start(armed) => {
                    resident.send(Job::Alarm(Arc::clone(&resident), AlarmInput::Run(armed)));
                }
                effect @ (AlarmEffect::Record(_) | AlarmEffect::Count(_) | AlarmEffect::Abandon { .. }) => {
                    if let Some(alarm) = &mut self.alarm {
                        alarm.deferred.push_back(effect);
                    }
                }
                // The output of a cell's end is its last.
                AlarmEffect::Prove { .. } if self.leaving.is_stopped() => {}
                AlarmEffect::Prove { ticket } => {
                    let cell = Arc::clone(&resident);
                    resident.output(ticket, node.proof_deadline(), move |outcome| {
                        if outcome.is_ok() {
                            let proved = AlarmInput::Event(AlarmEvent::Proved);
                            cell.send(Job::Alarm(Arc::clone(&cell), proved));
                        }
                    });
                }
                AlarmEffect::WriteRetired { mark, attempt } => {
                    alarm_index::write_retired(&node, &resident, mark, attempt);
                }
                AlarmEffect::DeleteEntries { entries, attempt } => {
                    alarm_index::delete_entries(&node, &resident, entries, attempt);
                }
            }
        }
    }

    fn run_alarm(&mut self, armed: Armed) {
        let is_wanted = |alarm: &CellAlarm| alarm.machine.running() == Some(armed.id) && alarm.run.is_none();
        if !self.alarm.as_deref().is_some_and(is_wanted) {
            return;
        }
        let is_still_due =
            self.alarm.as_deref().is_some_and(|alarm| alarm.machine.may_begin(armed.id, alarm_now()));
        if !is_still_due || !self.may_turn() || self.may_begin().is_err() || self.must_hold() {
            return self.alarm_event(AlarmEvent::Ended(armed.id, HandlerEnd::NotBegun));
        }
        let event = self.open.next_name();
        let cell = &self.resident.cell;
        let span = tracing::info_span!(parent: None, span::ALARM, %cell, alarm = %armed.id, attempts = armed.attempts);
        self.turn.now = clock::monotonic();
        self.last_event = self.turn.now;
        self.idle_check.get_or_insert(self.last_event.plus(super::IDLE_MS));
        self.resident.touched(self.last_event);
        self.engine.borrow_mut().set_alarm_running(Some(armed.id));
        let asked = (armed.deadline, armed.attempts);
        let begun = span.in_scope(|| self.runtime.alarm(event, asked, &mut self.turn));
        let end = match begun {
            AlarmBegun::Open => {
                metrics().alarm_begun(lateness(armed.due));
                self.open.insert_alarm(event);
                if let Some(alarm) = &mut self.alarm {
                    alarm.run = Some(Run { event, armed, span });
                }
                return self.end_turn();
            }
            AlarmBegun::NotNow => HandlerEnd::NotBegun,
            AlarmBegun::NoHandler => HandlerEnd::NoHandler,
        };
        self.engine.borrow_mut().set_alarm_running(None);
        self.alarm_event(AlarmEvent::Ended(armed.id, end));
    }

    /// The run has ended; what it committed was told.
    pub(super) fn alarm_ended(&mut self, end: AlarmEnd) {
        let Some(Run { event, armed, span }) = self.alarm.as_mut().and_then(|alarm| alarm.run.take()) else {
            return;
        };
        self.engine.borrow_mut().set_alarm_running(None);
        let (end, outcome) = match end {
            AlarmEnd::Succeeded => (HandlerEnd::Succeeded, "succeeded"),
            AlarmEnd::Failed => (HandlerEnd::Failed, "failed"),
            AlarmEnd::BrokenOff => (HandlerEnd::BrokenOff, "broken_off"),
            AlarmEnd::NoHandler => (HandlerEnd::NoHandler, "no_handler"),
        };
        metrics().alarm_run(outcome);
        span.in_scope(|| {
            tracing::debug!(cell = %self.resident.cell, alarm = %armed.id, event = event.0, outcome, "an alarm ran");
        });
        self.alarm_event(AlarmEvent::Ended(armed.id, end));
    }

    /// Commits what became of runs, unless a transaction is open: it waits for the end of that.
    pub(super) fn settle_runs(&mut self) {
        while !self.is_settled
            && !self.engine.borrow().in_transaction()
            && let Some(effect) = self.alarm.as_mut().and_then(|alarm| alarm.deferred.pop_front())
        {
            if !self.commit_run(&effect) {
                return;
            }
        }
    }

    fn commit_run(&mut self, effect: &AlarmEffect) -> bool {
        let mut engine = self.engine.borrow_mut();
        let committed = match effect {
            AlarmEffect::Record(armed) => engine.alarm_record(armed),
            AlarmEffect::Count(armed) => {
                log_count(&self.resident.cell, armed);
                self.node.orphans.counted(&self.resident.cell, *armed);
                engine.alarm_record(armed)
            }
            AlarmEffect::Abandon { id, cause } => {
                tracing::error!(cell = %self.resident.cell, alarm = %id, "an alarm is given up: {cause}");
                let name = match cause {
                    Abandoned::Failures(_) => "failures",
                    Abandoned::Unended(_) => "unended",
                    Abandoned::NoHandler => "no_handler",
                };
                metrics().alarm_abandoned(name);
                engine.alarm_abandon(*id)
            }
            _ => unreachable!("only what is to be committed is deferred"),
        };
        drop(engine);
        if let Err(failure) = committed {
            tracing::error!(cell = %self.resident.cell, %failure, "what became of an alarm cannot be committed");
            self.resident.on(GateEvent::DatabaseFailed);
            return false;
        }
        let ticket = self.after_turn();
        // Where nobody waits for it, it is captured and proved all the same.
        let (node, resident) = (Arc::clone(&self.node), Arc::clone(&self.resident));
        let waits = match effect {
            AlarmEffect::Count(armed) => Some(armed.id),
            AlarmEffect::Abandon { id, cause: Abandoned::Unended(_) } => Some(*id),
            _ => None,
        };
        self.resident.output(ticket, self.node.proof_deadline(), move |outcome| {
            if let (Ok(()), Some(id)) = (outcome, waits) {
                node.orphans.forget(&resident.cell);
                let counted = AlarmInput::Event(AlarmEvent::Counted(id));
                resident.send(Job::Alarm(Arc::clone(&resident), counted));
            }
        });
        true
    }
}

/// An alarm that was due for an owner that died is the rule after a death, and no cause for alarm; one that was so before is.
fn log_count(cell: &CellName, armed: &Armed) {
    const TEXT: &str = "the cell's last owner ended without a release while this alarm was due: its run is counted before it begins";
    let Armed { id, deadline, due, attempts: _, failures } = armed;
    if *failures == 1 {
        tracing::info!(%cell, alarm = %id, %deadline, %due, failures, "{TEXT}");
    } else {
        tracing::warn!(%cell, alarm = %id, %deadline, %due, failures, "{TEXT}");
    }
}

fn lateness(due: AlarmTime) -> Duration {
    let late = alarm_now().wall.get().saturating_sub(due.get());
    Duration::from_millis(u64::try_from(late).unwrap_or(0))
}
