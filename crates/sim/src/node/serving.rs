//! A cell serves: events run one at a time, and each output leaves when the core's gate lets it.

use std::collections::VecDeque;

use holdfast_core::alarm::{AlarmEvent, Armed};
use holdfast_core::compaction::{CompactionEvent, CompactionWork};
use holdfast_core::gate::{GateEffect, GateEvent};
use holdfast_types::{Epoch, LogOffset, Millis, Position, Txid};

use super::residency::Output;
use super::{Closing, Phase, Purpose, Residency, Slot, Step};
use crate::bucket::{Body, Cell, Key, Level, Operation, Reply};
use crate::event::{Ask, Outcome, Request, Stay, Timer};
use crate::violation::Violation;
use crate::world::World;

const UPLOAD_PATIENCE_MS: u64 = 2_500;
const READ_PATIENCE_MS: u64 = 1_500;
const RETRY_PAUSE_MS: u64 = 100;
const RETRY_PAUSE_MS_MAX: u64 = 1_000;
/// One of so many writes is followed by a bookmark.
const BOOKMARK_EVERY: u32 = 5;

/// How a stay ends by a gate's event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Not.
    None,
    /// The bucket has all of it.
    Closed,
    /// It is given up, and not settled yet.
    Discarded,
    /// It is given up and settled.
    Settled,
}

/// Time that an output is given, in milliseconds.
const OUTPUT_PATIENCE_MS: (u64, u64) = (3_000, 8_000);

impl World {
    /// Runs one event of a serving cell.
    pub(crate) fn run_request(
        &mut self,
        index: usize,
        cell: Cell,
        mut slot: Slot,
        request: Request,
    ) -> Result<(), Violation> {
        if !self.may_act(index) {
            self.respond(request, Outcome::Refused);
            self.put_slot(index, cell, slot);
            return Ok(());
        }
        let session = self.nodes[index].session().expect("checked");
        let now = self.nodes[index].clock.read(self.now).monotonic;
        self.checkers.fence.on_act(session, now, "an event")?;
        let Phase::Serving(residency) = &mut slot.phase else { unreachable!("the cell serves") };
        match request.ask {
            Ask::Write(op) => {
                self.alarm_writes.ran(op, &residency.state, residency.owner.epoch);
                residency.state.push(op);
                self.checkers.purge.on_ran(op, residency.owner.epoch);
            }
            Ask::Touch => residency.is_touched = true,
            Ask::Read | Ask::Purge | Ask::LetGo => {}
            Ask::Hint(entry) => {
                let stay = slot.stay;
                let epoch = residency.owner.epoch;
                self.put_slot(index, cell, slot);
                self.alarm_event(index, cell, stay, AlarmEvent::Hinted(entry))?;
                let armed = self.armed(index, cell, stay);
                self.respond(request, Outcome::Looked { session, epoch, armed });
                return Ok(());
            }
        }
        if let Ask::Write(op) = request.ask
            && self.alarm_writes.concerns(op)
        {
            let stay = slot.stay;
            self.put_slot(index, cell, slot);
            self.alarm_committed(index, cell, stay)?;
            match self.take_slot(index, cell, stay) {
                Some(same) => slot = same,
                None => {
                    self.respond(request, Outcome::Unknown);
                    return Ok(());
                }
            }
        }
        let Phase::Serving(residency) = &mut slot.phase else {
            self.respond(request, Outcome::Unknown);
            self.put_slot(index, cell, slot);
            return Ok(());
        };
        // Where history goes at once, so do bookmarks; and the uploads that they hurry leave writers little to be superseded in.
        let takes_bookmark =
            !self.plan.retires_at_once && matches!(request.ask, Ask::Write(op) if op.0 % BOOKMARK_EVERY == 0);
        let cut = takes_bookmark.then(|| residency.cut());
        let ticket = residency.ticket();
        let output = residency.new_output(Output::Response(request, residency.state.len()));
        let (low, high) = OUTPUT_PATIENCE_MS;
        let deadline = now.plus(self.rng.within(low, high));
        let stay = slot.stay;
        self.start_timer_at(index, deadline, Timer::OutputDeadline(cell, stay));
        let ready = GateEvent::OutputReady { output, ticket, deadline, in_bucket: false };
        self.gate_event(index, cell, slot, ready)?;
        match cut.and_then(|at| Some((at, self.take_slot(index, cell, stay)?))) {
            Some((at, slot)) => self.gate_event(index, cell, slot, GateEvent::Cut { at }),
            None => Ok(()),
        }
    }

    pub(crate) fn on_output_deadline(
        &mut self,
        index: usize,
        cell: Cell,
        slot: Slot,
    ) -> Result<(), Violation> {
        if matches!(slot.phase, Phase::Serving(_) | Phase::Settling(_)) {
            return self.gate_event(index, cell, slot, GateEvent::Tick);
        }
        self.put_slot(index, cell, slot);
        Ok(())
    }

    pub(crate) fn on_upload_reply(
        &mut self,
        index: usize,
        cell: Cell,
        mut slot: Slot,
        txid: Txid,
        reply: &Reply,
    ) -> Result<(), Violation> {
        let is_done = matches!(reply, Reply::Done);
        if let (true, Phase::Serving(residency)) = (is_done, &mut slot.phase) {
            let event = CompactionEvent::Uploaded { txid, len: 100, database_len: 1 << 20 };
            let now = self.nodes[index].clock.read(self.now).monotonic;
            let work = residency.compaction.on(event, now);
            self.start_compaction(index, cell, (slot.stay, residency), work)?;
        }
        let event =
            if is_done { GateEvent::Uploaded { last: txid } } else { GateEvent::UploadFailed { last: txid } };
        self.gate_event(index, cell, slot, event)
    }

    pub(crate) fn on_proof_reply(
        &mut self,
        index: usize,
        cell: Cell,
        slot: Slot,
        reply: Reply,
    ) -> Result<(), Violation> {
        let event = match reply {
            Reply::Object(Some((Body::Owner(owner), _))) => GateEvent::OwnerRead { owner: Some(owner) },
            Reply::Object(_) => GateEvent::OwnerRead { owner: None },
            _ => GateEvent::OwnerUnreadable,
        };
        self.gate_event(index, cell, slot, event)
    }

    /// Gives the gate an event and does what it asks. The process may be gone afterwards.
    pub(crate) fn gate_event(
        &mut self,
        index: usize,
        cell: Cell,
        mut slot: Slot,
        event: GateEvent,
    ) -> Result<(), Violation> {
        let (Phase::Serving(residency) | Phase::Settling(residency)) = &mut slot.phase else {
            // A late answer to a gate that is gone.
            self.put_slot(index, cell, slot);
            return Ok(());
        };
        let now = self.nodes[index].clock.read(self.now).monotonic;
        let authority_until = self.nodes[index].process.as_ref().expect("checked").authority_until;
        let uploaded_before = residency.gate.uploaded();
        let mut effects: VecDeque<GateEffect> = residency.gate.on(event, now, authority_until).into();
        let mut end = End::None;
        let mut proved = Vec::new();
        while let Some(effect) = effects.pop_front() {
            match effect {
                GateEffect::Capture => {
                    let captured = self.capture(index, (cell, slot.stay), residency)?;
                    let event = GateEvent::Captured { captured, len: 1 };
                    effects.extend(residency.gate.on(event, now, authority_until));
                }
                GateEffect::Discard { cause } => {
                    self.trace.line(self.now, format_args!("n{index} discards {cell:?}: {}", cause.name()));
                    end = End::Discarded;
                }
                GateEffect::Release { output, .. } => {
                    match residency.outputs.remove(&output).expect("an output leaves once") {
                        Output::Response(request, len) => {
                            self.let_out(index, cell, (residency, now), (request, len))?;
                        }
                        Output::Closing => end = End::Closed,
                        Output::Settlement(len) => self.settle_alarm(cell, residency, len)?,
                        Output::Count(len, id) => {
                            self.settle_alarm(cell, residency, len)?;
                            proved.push(AlarmEvent::Counted(id));
                        }
                        Output::Prove => {
                            self.note_alarm_proved(cell, residency);
                            proved.push(AlarmEvent::Proved);
                        }
                    }
                }
                GateEffect::WakeAt(at) => {
                    self.start_timer_at(index, at, Timer::OutputDeadline(cell, slot.stay));
                }
                GateEffect::Settled => end = End::Settled,
                GateEffect::Fail { .. } => self.fail_outputs(residency, &[effect]),
                GateEffect::Upload { .. } | GateEffect::ReadOwner { .. } => {
                    self.call_for_gate(index, cell, (slot.stay, residency), &effect)?;
                }
            }
        }
        let uploaded = residency.gate.uploaded();
        let (stay, epoch) = (slot.stay, residency.owner.epoch);
        while let Some(txid) = residency.take_bookmark() {
            self.checkers.past.on_bookmark(&self.bucket, cell, Position { epoch, txid })?;
        }
        self.end_of_gate_event(index, cell, slot, (end, epoch))?;
        for event in proved {
            self.alarm_proved(index, cell, stay, event)?;
        }
        if uploaded > uploaded_before { self.note_covered(index, stay, uploaded) } else { Ok(()) }
    }

    fn end_of_gate_event(
        &mut self,
        index: usize,
        cell: Cell,
        mut slot: Slot,
        (end, epoch): (End, Epoch),
    ) -> Result<(), Violation> {
        match end {
            End::None => {
                self.put_slot(index, cell, slot);
                Ok(())
            }
            End::Closed => self.finish_closing(index, cell, slot),
            End::Discarded => {
                let Phase::Serving(residency) = slot.phase else { unreachable!("only once") };
                self.answer_purge(&residency);
                slot.phase = Phase::Settling(residency);
                self.put_slot(index, cell, slot);
                Ok(())
            }
            End::Settled => {
                let session = self.nodes[index].session().expect("checked");
                self.checkers.coverage.on_settled(&self.checkers.facts, session, cell, epoch)?;
                if let Phase::Serving(residency) = &slot.phase {
                    self.answer_purge(residency);
                }
                self.drop_slot(index, slot, &Outcome::Refused)
            }
        }
    }

    /// A purge that waited for a cell which could not be given up in order.
    fn answer_purge(&mut self, residency: &Residency) {
        if let Some(Closing::Purge(request)) = residency.closing {
            self.respond(request, Outcome::Refused);
        }
    }

    fn capture(
        &mut self,
        index: usize,
        (cell, stay): (Cell, Stay),
        residency: &mut Residency,
    ) -> Result<Option<(Txid, Option<LogOffset>)>, Violation> {
        let Some(txid) = residency.capture() else { return Ok(None) };
        let epoch = residency.owner.epoch;
        let at = Position { epoch, txid };
        self.checkers.chain.on_captured(cell, at, &residency.state[..residency.captured_len])?;
        self.checkers.past.on_captured(cell, at, self.now);
        let offset = self.append(index, (cell, stay), (epoch, txid), residency.ops_of(txid))?;
        Ok(Some((txid, offset)))
    }

    fn call_for_gate(
        &mut self,
        index: usize,
        cell: Cell,
        (stay, residency): (Stay, &Residency),
        effect: &GateEffect,
    ) -> Result<(), Violation> {
        let pause = |attempt: u32| match attempt.checked_sub(1) {
            None => 0,
            Some(failures) => (RETRY_PAUSE_MS << failures.min(8)).min(RETRY_PAUSE_MS_MAX),
        };
        match *effect {
            GateEffect::Upload { first, last, attempt } => {
                let (key, body) = residency.file(cell, Level::Zero, (first, last));
                let purpose = Purpose::Cell(cell, stay, Step::Upload(last));
                self.call(index, purpose, Operation::Put(key, body), (pause(attempt), UPLOAD_PATIENCE_MS))
            }
            GateEffect::ReadOwner { attempt } => {
                let purpose = Purpose::Cell(cell, stay, Step::ProofOwner);
                let read = Operation::Get(Key::Owner(cell));
                self.call(index, purpose, read, (pause(attempt), READ_PATIENCE_MS))?;
                if self.nodes[index].is_pause_armed {
                    self.pause_now(index);
                }
                Ok(())
            }
            _ => unreachable!("not a call"),
        }
    }

    fn let_out(
        &mut self,
        index: usize,
        cell: Cell,
        (residency, now): (&Residency, Millis),
        (request, revealed_len): (Request, usize),
    ) -> Result<(), Violation> {
        let session = self.nodes[index].session().expect("checked");
        self.checkers.fence.on_act(session, now, "an output")?;
        let epoch = residency.owner.epoch;
        let state = &residency.state[..revealed_len];
        let transactions = residency.transactions_of(revealed_len);
        let facts = &self.checkers.facts;
        let is_proved = |txid| facts.is_proved(&(cell, epoch, txid));
        self.checkers.durability.on_revealed(cell, epoch, state, transactions, is_proved)?;
        self.checkers.purge.on_seen(cell, epoch, state)?;
        self.checkers.purge.on_revealed(cell, epoch, self.plan.clocks_in_bounds)?;
        self.respond(request, Outcome::Ran(epoch, state.to_vec()));
        self.settle_alarm(cell, residency, revealed_len)
    }

    /// A proof covers what it covers: what that shows of the alarm.
    fn note_alarm_proved(&mut self, cell: Cell, residency: &Residency) {
        let proved = self.alarm_writes.state(&residency.state[..residency.covered_len()]);
        self.checkers.alarms.on_proved(cell, residency.owner.epoch, &proved);
    }

    /// An output that reveals so many operations has left: what it shows of the alarm.
    fn settle_alarm(
        &mut self,
        cell: Cell,
        residency: &Residency,
        revealed_len: usize,
    ) -> Result<(), Violation> {
        if !self.plan.has_alarms {
            return Ok(());
        }
        self.note_alarm_proved(cell, residency);
        let state = self.alarm_writes.state(&residency.state[..revealed_len]);
        let has_entry = |armed: &Armed| self.bucket.peek(&Key::WakeEntry(cell, armed.entry())).is_some();
        self.checkers.alarms.on_revealed(cell, &state, has_entry)?;
        (self.tally.alarm_runs, self.tally.entries_deleted) = self.checkers.alarms.counts();
        Ok(())
    }

    /// Tells the callers of failed outputs that the outcome is unknown.
    pub(crate) fn fail_outputs(&mut self, residency: &mut Residency, effects: &[GateEffect]) {
        for effect in effects {
            if let GateEffect::Fail { output, .. } = effect {
                match residency.outputs.remove(output).expect("an output fails once") {
                    Output::Response(request, _) => self.respond(request, Outcome::Unknown),
                    Output::Closing | Output::Settlement(_) | Output::Count(..) | Output::Prove => {}
                }
            }
        }
    }

    fn start_compaction(
        &mut self,
        index: usize,
        cell: Cell,
        (stay, residency): (Stay, &Residency),
        work: Option<CompactionWork>,
    ) -> Result<(), Violation> {
        let (level, min, max) = match work {
            None => return Ok(()),
            Some(CompactionWork::Compact { min, max }) => (Level::One, min, max),
            // A snapshot is of the database as it is, which may be ahead of what is uploaded.
            Some(CompactionWork::Snapshot { .. }) => {
                (Level::Snapshot, residency.captured, residency.captured)
            }
        };
        let (key, body) = residency.file(cell, level, (min, max));
        let purpose = Purpose::Cell(cell, stay, Step::Compaction(max));
        let pause = self.rng.below(400);
        self.call(index, purpose, Operation::Put(key, body), (pause, UPLOAD_PATIENCE_MS))
    }

    pub(crate) fn on_compaction_reply(
        &mut self,
        index: usize,
        cell: Cell,
        mut slot: Slot,
        max: Txid,
        reply: &Reply,
    ) -> Result<(), Violation> {
        if let Phase::Serving(residency) = &mut slot.phase {
            let is_done = matches!(reply, Reply::Done);
            let event =
                if is_done { CompactionEvent::Done { len: 200, max } } else { CompactionEvent::Failed };
            let now = self.nodes[index].clock.read(self.now).monotonic;
            let is_snapshot = residency.compaction.is_snapshotting();
            let work = residency.compaction.on(event, now);
            let stay = slot.stay;
            if is_done && is_snapshot {
                residency.snapshot = Some(max);
            }
            self.start_compaction(index, cell, (slot.stay, residency), work)?;
            if is_done && is_snapshot {
                self.retire_soon(index, cell, stay);
            }
        }
        self.put_slot(index, cell, slot);
        Ok(())
    }
}
