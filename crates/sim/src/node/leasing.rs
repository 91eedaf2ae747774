//! The lease of a process: starts with it, and ends it.

use holdfast_core::gate::GateEvent;
use holdfast_core::lease::{FenceCause, LeaseEffect, LeaseEvent, LeaseKeeper, LeaseRecord, LeaseTiming};
use holdfast_core::log_record::LogState;
use holdfast_core::store::Answer;
use holdfast_types::{Millis, SessionId, WriteId};

use super::{PROTOCOL, Phase, Process, Purpose};
use crate::bucket::{Body, Key, Operation, Reply};
use crate::event::{Event, Outcome, Timer};
use crate::scenario::{CLOCK_SKEW_MAX_MS, Fault, TTL_MS};
use crate::violation::Violation;
use crate::world::World;

const READ_PATIENCE_MS: u64 = 2_000;

impl World {
    pub(crate) fn on_start(&mut self, index: usize) -> Result<(), Violation> {
        if self.nodes[index].process.is_some() {
            return Ok(());
        }
        let session = SessionId::from_bits(self.rng.wide_bits());
        self.trace.line(self.now, format_args!("n{index} starts as {session}"));
        let timing = LeaseTiming::with_ttl(TTL_MS, CLOCK_SKEW_MAX_MS);
        let (keeper, effects) = LeaseKeeper::start(timing, session, self.nodes[index].incarnation);
        self.nodes[index].process = Some(Process {
            session,
            keeper,
            lease_settle: None,
            authority_until: Millis::ZERO,
            cells: std::collections::BTreeMap::new(),
            asleep: std::collections::BTreeMap::new(),
            orphans: std::collections::BTreeMap::new(),
            is_draining: false,
            log: None,
            recoveries: std::collections::BTreeMap::new(),
            asking: std::collections::BTreeMap::new(),
        });
        self.run_lease_effects(index, effects)
    }

    pub(crate) fn wake_lease(&mut self, index: usize) -> Result<(), Violation> {
        let write_id = WriteId::from_bits(self.rng.wide_bits());
        let now = self.nodes[index].clock.read(self.now);
        self.lease_event(index, LeaseEvent::Woke { now, write_id })
    }

    pub(crate) fn on_lease_read(&mut self, index: usize, reply: Reply) -> Result<(), Violation> {
        let now = self.nodes[index].clock.read(self.now);
        let event = match reply {
            Reply::Object(found) => {
                let record = found.map(|(body, version)| match body {
                    Body::Lease(record, _) => (record, version),
                    other => unreachable!("not a lease: {other:?}"),
                });
                LeaseEvent::Read { record, now, write_id: WriteId::from_bits(self.rng.wide_bits()) }
            }
            _ => LeaseEvent::ReadFailed { now, jitter: self.rng.byte() },
        };
        self.lease_event(index, event)
    }

    pub(crate) fn on_lease_settle(&mut self, index: usize, reply: Reply) -> Result<(), Violation> {
        let process = self.nodes[index].process.as_mut().expect("checked");
        let mut settle = process.lease_settle.take().expect("a write of the lease is under way");
        let purpose = Purpose::LeaseSettle;
        match self.go_on_settling(index, &mut settle, purpose, reply)? {
            Some(answer) => self.on_lease_written(index, answer),
            None => {
                self.nodes[index].process.as_mut().expect("checked").lease_settle = Some(settle);
                Ok(())
            }
        }
    }

    fn on_lease_written(&mut self, index: usize, answer: Answer<u64>) -> Result<(), Violation> {
        let now = self.nodes[index].clock.read(self.now);
        let jitter = self.rng.byte();
        self.lease_event(index, LeaseEvent::Written { answer, now, jitter })
    }

    fn lease_event(&mut self, index: usize, event: LeaseEvent<u64>) -> Result<(), Violation> {
        let effects = self.nodes[index].process.as_mut().expect("checked").keeper.on(event);
        self.run_lease_effects(index, effects)
    }

    fn run_lease_effects(&mut self, index: usize, effects: Vec<LeaseEffect<u64>>) -> Result<(), Violation> {
        let name = self.nodes[index].name.clone();
        let session = self.nodes[index].session().expect("checked");
        for effect in effects {
            match effect {
                LeaseEffect::Read => {
                    let read = Operation::Get(Key::Lease(name.clone()));
                    self.call(index, Purpose::LeaseRead, read, (0, READ_PATIENCE_MS))?;
                }
                LeaseEffect::Write { write_id, expires_ms, guard, deadline_ms } => {
                    let incarnation = self.nodes[index].incarnation;
                    let record = LeaseRecord { write_id, session, incarnation, expires_ms };
                    let write = (Key::Lease(name.clone()), Body::Lease(record, PROTOCOL), guard);
                    let settle = self.start_settle(index, Purpose::LeaseSettle, write, (0, deadline_ms))?;
                    self.nodes[index].process.as_mut().expect("checked").lease_settle = Some(settle);
                }
                LeaseEffect::WakeAt(at) => self.start_timer_at(index, at, Timer::LeaseWake),
                LeaseEffect::Authority { until } => {
                    let now = self.nodes[index].clock.read(self.now).monotonic;
                    self.trace
                        .line(self.now, format_args!("n{index} has authority for {}", until.since(now)));
                    self.checkers.fence.on_authority(session, now, until)?;
                    self.nodes[index].process.as_mut().expect("checked").authority_until = until;
                    self.start_timer_at(index, until, Timer::AuthorityEnd);
                    if self.log_of(index).is_none() {
                        self.start_log(index);
                    }
                }
                LeaseEffect::Waiting { .. } => {}
                LeaseEffect::Fence(cause) => return self.fence(index, cause),
            }
        }
        Ok(())
    }

    /// The process stops by itself: open requests fail, nothing is written, and somebody starts it again.
    pub(crate) fn fence(&mut self, index: usize, cause: FenceCause) -> Result<(), Violation> {
        let node = &self.nodes[index];
        let (name, now) = (node.name.clone(), node.clock.read(self.now).monotonic);
        let session = node.session().expect("checked");
        self.trace.line(self.now, format_args!("n{index} fences itself: {}", cause.name()));
        let record = match self.bucket.peek(&Key::Lease(name)) {
            Some(Body::Lease(record, _)) => Some(record.session),
            _ => None,
        };
        // After an erasure a late landing of the session's own first write may be there, which is not what it published last.
        let is_erased = self.plan.faults.iter().any(|(fault, _)| *fault == Fault::EraseLease);
        let record = record.filter(|_| !(is_erased && cause == FenceCause::RecordMismatch));
        let may_expire = self.plan.may_fence;
        let log = self.log_record(&self.nodes[index].name.clone(), session);
        let is_log_taken = log.is_none_or(|log| log.state != LogState::Open);
        self.checkers.fence.on_fence(session, cause, now, (record, is_log_taken), may_expire)?;
        let cells = std::mem::take(&mut self.nodes[index].process.as_mut().expect("checked").cells);
        for (_, mut slot) in cells {
            if let Phase::Serving(residency) = &mut slot.phase {
                let effects = residency.gate.on(GateEvent::Fenced, now, Millis::ZERO);
                self.fail_outputs(residency, &effects);
            }
            for request in slot.queue {
                self.respond(request, Outcome::Refused);
            }
        }
        self.end_process(index);
        let delay = self.rng.within(200, 4_000);
        self.after(delay, Event::Start(index));
        Ok(())
    }
}
