//! The alarm of a serving cell, as the product's shell drives it: the core decides, this executes. A handler takes a while,
//! and ends well, badly, or with its process.

use holdfast_core::alarm::{
    Abandoned, Alarm, AlarmEffect, AlarmEvent, AlarmNow, Armed, HandlerEnd, Mark, Orphan,
};
use holdfast_core::gate::GateEvent;
use holdfast_core::store::Guard;
use holdfast_types::{AlarmId, AlarmTime, Millis, Txid};

use super::residency::Output;
use super::{Phase, Purpose, Residency, Step};
use crate::alarms::AlarmWrite;
use crate::bucket::{Body, Cell, Key, OpId, Operation, Reply};
use crate::event::{Stay, Timer};
use crate::violation::Violation;
use crate::world::World;

const PATIENCE_MS: u64 = 2_500;
const RETRY_PAUSE_MS: u64 = 100;
const OUTPUT_PATIENCE_MS: u64 = 8_000;
/// The wall clock is looked at again after this, as it may have been set anew.
const TIMER_MS_MAX: u64 = 5_000;

/// A cell's alarm in a residency.
#[derive(Debug)]
pub(crate) struct CellAlarm {
    machine: Alarm,
    running: Option<AlarmId>,
    /// What the next retired record says.
    mark: Option<Mark>,
    /// When the next timer comes.
    timer: Millis,
}

impl World {
    fn alarm_now(&self, index: usize) -> AlarmNow {
        let now = self.nodes[index].clock.read(self.now);
        let wall = AlarmTime::new(now.wall.get().try_into().expect("a time of this century"));
        AlarmNow { wall, monotonic: now.monotonic }
    }

    fn residency_of(&mut self, index: usize, cell: Cell, stay: Stay) -> Option<&mut Residency> {
        let slot = self.nodes[index].process.as_mut()?.cells.get_mut(&cell)?;
        match &mut slot.phase {
            Phase::Serving(residency) if slot.stay == stay => Some(residency),
            _ => None,
        }
    }

    /// A cell begins to serve: its alarm is taken up before anything leaves.
    pub(crate) fn start_alarm(&mut self, index: usize, cell: Cell, stay: Stay) -> Result<(), Violation> {
        if !self.plan.has_alarms {
            return Ok(());
        }
        let now = self.alarm_now(index);
        let Some(residency) = self.residency_of(index, cell, stay) else { return Ok(()) };
        let (epoch, ops, restored) = (residency.owner.epoch, residency.state.clone(), residency.captured);
        let orphan =
            self.nodes[index].process.as_ref().and_then(|process| process.orphans.get(&cell)).copied();
        let found = (self.alarm_writes.state(&ops), restored);
        let (machine, effects) = Alarm::start(epoch, found, orphan, now);
        let settles =
            |effect: &AlarmEffect| matches!(effect, AlarmEffect::Count(_) | AlarmEffect::Abandon { .. });
        if !effects.iter().any(settles) {
            self.settle_orphan(index, cell);
        }
        let residency = self.residency_of(index, cell, stay).expect("just seen");
        residency.alarm = Some(CellAlarm { machine, running: None, mark: None, timer: Millis::ZERO });
        self.execute_alarm(index, cell, stay, effects)?;
        self.alarm_event(index, cell, stay, AlarmEvent::Tick)
    }

    fn settle_orphan(&mut self, index: usize, cell: Cell) {
        if let Some(process) = self.nodes[index].process.as_mut() {
            process.orphans.remove(&cell);
        }
    }

    /// An output of the alarm was let go.
    pub(crate) fn alarm_proved(
        &mut self,
        index: usize,
        cell: Cell,
        stay: Stay,
        event: AlarmEvent,
    ) -> Result<(), Violation> {
        if matches!(event, AlarmEvent::Counted(_)) {
            self.settle_orphan(index, cell);
        }
        self.alarm_event(index, cell, stay, event)
    }

    /// An operation of a cell has been added to its list: tells the alarm, before any output of it is ready.
    pub(crate) fn alarm_committed(&mut self, index: usize, cell: Cell, stay: Stay) -> Result<(), Violation> {
        let Some(residency) = self.residency_of(index, cell, stay) else { return Ok(()) };
        let (ops, ticket) = (residency.state.clone(), residency.ticket());
        let state = self.alarm_writes.state(&ops);
        self.alarm_event(index, cell, stay, AlarmEvent::Committed { state, ticket })
    }

    /// What is armed, and when it is to run.
    pub(crate) fn armed(&mut self, index: usize, cell: Cell, stay: Stay) -> Option<(AlarmId, AlarmTime)> {
        let alarm = self.residency_of(index, cell, stay)?.alarm.as_ref()?;
        alarm.machine.armed().map(|armed| (armed.id, armed.due))
    }

    pub(crate) fn alarm_event(
        &mut self,
        index: usize,
        cell: Cell,
        stay: Stay,
        event: AlarmEvent,
    ) -> Result<(), Violation> {
        let now = self.alarm_now(index);
        let Some(alarm) = self.residency_of(index, cell, stay).and_then(|of| of.alarm.as_mut()) else {
            return Ok(());
        };
        let effects = alarm.machine.on(event, now);
        let due = alarm.machine.due().map(|due| {
            let span = u64::try_from(due.get() - now.wall.get()).unwrap_or(0);
            now.monotonic.plus(span.clamp(1, TIMER_MS_MAX))
        });
        let wake: Option<Millis> = [due, alarm.machine.next_tick()].into_iter().flatten().min();
        if let Some(at) = wake.filter(|at| *at < alarm.timer || alarm.timer <= now.monotonic) {
            alarm.timer = at;
            self.start_timer_at(index, at, Timer::Alarm(cell, stay));
        }
        self.execute_alarm(index, cell, stay, effects)
    }

    fn execute_alarm(
        &mut self,
        index: usize,
        cell: Cell,
        stay: Stay,
        effects: Vec<AlarmEffect>,
    ) -> Result<(), Violation> {
        for effect in effects {
            if self.residency_of(index, cell, stay).is_none() {
                return Ok(());
            }
            self.execute_alarm_effect(index, cell, stay, effect)?;
        }
        Ok(())
    }

    fn execute_alarm_effect(
        &mut self,
        index: usize,
        cell: Cell,
        stay: Stay,
        effect: AlarmEffect,
    ) -> Result<(), Violation> {
        let pause = |attempt: u32| RETRY_PAUSE_MS * u64::from(attempt.min(10));
        let call = |world: &mut Self, step, operation, attempt| {
            world.call(index, Purpose::Cell(cell, stay, step), operation, (pause(attempt), PATIENCE_MS))
        };
        match effect {
            AlarmEffect::Withhold { from } => self.tell_gate(index, cell, stay, GateEvent::Withhold { from }),
            AlarmEffect::Reveal { through, from } => {
                self.tell_gate(index, cell, stay, GateEvent::Revealed { through, from })
            }
            AlarmEffect::PutEntry { entry, deadline: _, attempt } => {
                let put = Operation::Put(Key::WakeEntry(cell, entry), Body::WakeEntry);
                call(self, Step::PutEntry(entry.id), put, attempt)
            }
            // Behind the requests that wait already.
            AlarmEffect::Start(armed) => {
                let wait = self.rng.below(30);
                self.start_timer(index, wait, Timer::AlarmRun(cell, stay, armed));
                Ok(())
            }
            AlarmEffect::Record(armed) => {
                self.write_alarm(index, cell, stay, AlarmWrite::Record(armed), Output::Settlement).map(drop)
            }
            AlarmEffect::Count(armed) => {
                self.tally.counted_first += 1;
                let process = self.nodes[index].process.as_mut().expect("it acts");
                process.orphans.insert(cell, Orphan { counted: Some(armed) });
                let output = |len| Output::Count(len, armed.id);
                self.write_alarm(index, cell, stay, AlarmWrite::Record(armed), output).map(drop)
            }
            AlarmEffect::Abandon { id, cause } => {
                self.trace.line(self.now, format_args!("n{index} gives up alarm {id} of {cell:?}: {cause}"));
                self.checkers.alarms.on_given_up(cell, id)?;
                self.tally.given_up += u64::from(matches!(cause, Abandoned::Unended(_)));
                let output = |len| Output::Count(len, id);
                self.write_alarm(index, cell, stay, AlarmWrite::Consume(id), output).map(drop)
            }
            AlarmEffect::Prove { ticket } => self.alarm_output(index, cell, stay, (ticket, Output::Prove)),
            AlarmEffect::WriteRetired { mark, attempt } => {
                let residency = self.residency_of(index, cell, stay).expect("just seen");
                residency.alarm.as_mut().expect("it acts").mark = Some(mark);
                call(self, Step::ReadRetired, Operation::Get(Key::WakeRetired(cell)), attempt)
            }
            AlarmEffect::DeleteEntries { entries, attempt } => {
                let keys = entries.into_iter().map(|entry| Key::WakeEntry(cell, entry)).collect();
                call(self, Step::DeleteEntries, Operation::Delete(keys), attempt)
            }
        }
    }

    fn tell_gate(&mut self, index: usize, cell: Cell, stay: Stay, event: GateEvent) -> Result<(), Violation> {
        let slot = self.take_slot(index, cell, stay).expect("just seen");
        self.gate_event(index, cell, slot, event)
    }

    /// Takes an output of the alarm to the gate, unless the cell is being given up.
    fn alarm_output(
        &mut self,
        index: usize,
        cell: Cell,
        stay: Stay,
        (ticket, output): (Txid, Output),
    ) -> Result<(), Violation> {
        let Some(residency) = self.residency_of(index, cell, stay).filter(|of| of.closing.is_none()) else {
            return Ok(());
        };
        let output = residency.new_output(output);
        let deadline = self.alarm_now(index).monotonic.plus(OUTPUT_PATIENCE_MS);
        self.start_timer_at(index, deadline, Timer::OutputDeadline(cell, stay));
        self.tell_gate(
            index,
            cell,
            stay,
            GateEvent::OutputReady { output, ticket, deadline, in_bucket: false },
        )
    }

    /// Adds an operation of a handler, or of the alarm itself, to the cell's list. Its settlement passes the gate.
    fn write_alarm(
        &mut self,
        index: usize,
        cell: Cell,
        stay: Stay,
        write: AlarmWrite,
        output: impl FnOnce(usize) -> Output,
    ) -> Result<OpId, Violation> {
        let op = self.new_op();
        self.alarm_writes.add(op, write);
        let residency = self.residency_of(index, cell, stay).expect("just seen");
        let (ops, epoch) = (residency.state.clone(), residency.owner.epoch);
        residency.state.push(op);
        self.alarm_writes.ran(op, &ops, epoch);
        self.checkers.purge.on_ran(op, epoch);
        self.alarm_committed(index, cell, stay)?;
        if let Some(residency) = self.residency_of(index, cell, stay) {
            let (ticket, len) = (residency.ticket(), residency.state.len());
            self.alarm_output(index, cell, stay, (ticket, output(len)))?;
        }
        Ok(op)
    }

    pub(crate) fn run_alarm(
        &mut self,
        index: usize,
        cell: Cell,
        stay: Stay,
        armed: &Armed,
    ) -> Result<(), Violation> {
        let now = self.alarm_now(index);
        let Some(residency) = self.residency_of(index, cell, stay) else { return Ok(()) };
        let machine = &residency.alarm.as_ref().expect("it has started").machine;
        if machine.running() != Some(armed.id) {
            return Ok(());
        }
        let may_begin = machine.may_begin(armed.id, now) && residency.closing.is_none();
        let is_held = self.log_of(index).is_some_and(|log| log.holds_writes());
        if !self.may_act(index) || is_held || !may_begin {
            let event = AlarmEvent::Ended(armed.id, HandlerEnd::NotBegun);
            return self.alarm_event(index, cell, stay, event);
        }
        let (session, now) = (self.nodes[index].session().expect("it acts"), self.alarm_now(index));
        self.checkers.fence.on_act(session, now.monotonic, "an alarm")?;
        let in_bounds = self.plan.clocks_in_bounds;
        let residency = self.residency_of(index, cell, stay).expect("just seen");
        let alarm = residency.alarm.as_mut().expect("it acts");
        let running = alarm.running.replace(armed.id);
        self.trace.line(self.now, format_args!("n{index} runs alarm {} of {cell:?}", armed.id));
        self.checkers.alarms.on_fired(cell, armed, (now.wall, running, in_bounds))?;
        let takes = self.rng.within(1, 1_500);
        self.start_timer(index, takes, Timer::AlarmEnd(cell, stay, armed.id));
        Ok(())
    }

    /// Whether the run that is under way ends its process.
    fn is_deadly(&mut self, index: usize, cell: Cell, stay: Stay, id: AlarmId) -> bool {
        let Some(residency) = self.residency_of(index, cell, stay) else { return false };
        let is_running = residency.alarm.as_ref().is_some_and(|alarm| alarm.running == Some(id));
        let ops = residency.state.clone();
        let deadly_from = self.alarm_writes.deadly_from(&ops, id).filter(|_| is_running);
        deadly_from.is_some_and(|from| self.checkers.alarms.starts(cell, id) >= from)
    }

    /// A handler comes to its end.
    pub(crate) fn on_alarm_end(
        &mut self,
        index: usize,
        cell: Cell,
        stay: Stay,
        id: AlarmId,
    ) -> Result<(), Violation> {
        let may_act = self.may_act(index);
        if self.is_deadly(index, cell, stay, id) {
            self.trace.line(self.now, format_args!("n{index} dies of alarm {id} of {cell:?}"));
            self.checkers.alarms.on_killed(cell, id)?;
            self.tally.killed += 1;
            self.crash(index);
            return Ok(());
        }
        let Some(residency) = self.residency_of(index, cell, stay) else { return Ok(()) };
        if !may_act || residency.closing.is_some() {
            return Ok(());
        }
        let alarm = residency.alarm.as_mut().expect("it ran");
        if alarm.running.take_if(|running| *running == id).is_none() {
            return Ok(());
        }
        let end = match self.rng.below(20) {
            0..4 => HandlerEnd::Failed,
            4 => HandlerEnd::BrokenOff,
            _ => HandlerEnd::Succeeded,
        };
        if self.rng.chance(300) {
            let deadline = AlarmTime::new(self.true_wall().get() + self.rng.below(4_000).cast_signed());
            self.write_alarm(index, cell, stay, AlarmWrite::Set(deadline), Output::Settlement)?;
        }
        if end == HandlerEnd::Succeeded && self.residency_of(index, cell, stay).is_some() {
            self.write_alarm(index, cell, stay, AlarmWrite::Consume(id), Output::Settlement)?;
        }
        self.alarm_event(index, cell, stay, AlarmEvent::Ended(id, end))
    }

    pub(crate) fn on_alarm_reply(
        &mut self,
        index: usize,
        (cell, stay): (Cell, Stay),
        step: &Step,
        reply: Reply,
    ) -> Result<(), Violation> {
        let is_done = matches!(reply, Reply::Done);
        let event = match step {
            Step::PutEntry(id) if is_done => AlarmEvent::Published(*id),
            Step::PutEntry(id) => AlarmEvent::PublishFailed(*id),
            Step::DeleteEntries if is_done => AlarmEvent::Deleted,
            Step::DeleteEntries => AlarmEvent::DeleteFailed,
            Step::WriteRetired => match reply {
                Reply::Applied(_) => AlarmEvent::RetiredWritten,
                _ => AlarmEvent::RetireFailed,
            },
            Step::ReadRetired => return self.on_retired_read(index, cell, stay, reply),
            _ => unreachable!("a step of an alarm"),
        };
        self.alarm_event(index, cell, stay, event)
    }

    fn on_retired_read(
        &mut self,
        index: usize,
        cell: Cell,
        stay: Stay,
        reply: Reply,
    ) -> Result<(), Violation> {
        let Some(alarm) = self.residency_of(index, cell, stay).and_then(|of| of.alarm.as_ref()) else {
            return Ok(());
        };
        let mark = alarm.mark.expect("it asked for a write");
        let guard = match reply {
            Reply::Object(None) => Guard::Absent,
            Reply::Object(Some((Body::WakeRetired(there), version))) => {
                if there.through.epoch > mark.through.epoch {
                    return self.alarm_event(index, cell, stay, AlarmEvent::RetiredByAnother);
                }
                if there.through > mark.through || there == mark {
                    return self.alarm_event(index, cell, stay, AlarmEvent::RetiredWritten);
                }
                Guard::Match(version)
            }
            _ => return self.alarm_event(index, cell, stay, AlarmEvent::RetireFailed),
        };
        let write = Operation::PutIf(Key::WakeRetired(cell), Body::WakeRetired(mark), guard);
        self.call(index, Purpose::Cell(cell, stay, Step::WriteRetired), write, (0, PATIENCE_MS))
    }
}
