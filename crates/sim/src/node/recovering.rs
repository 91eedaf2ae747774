//! Recovery of dead sessions: the core's machine against followers and bucket, on behalf of the claims that wait for it
//! and of the sweep.

use std::collections::BTreeMap;

use holdfast_core::log_record::{LogRecord, LogState, MemberId};
use holdfast_core::ownership::{ClaimEvent, LeaseView, is_session_dead};
use holdfast_core::recovery::{Recoverer, Recovery, RecoveryEffect, RecoveryEvent, RecoveryOutcome};
use holdfast_types::{LogOffset, Millis, NodeName, SessionId, WriteId};

use super::gathering::Gathering;
use super::{Phase, Purpose, Settle, Slot};
use crate::bucket::{Body, Cell, Key, Operation, Reply};
use crate::event::{Event, NodeEvent, Stay, Timer};
use crate::follower::{Ask, Asked, Told};
use crate::scenario::CLOCK_SKEW_MAX_MS;
use crate::violation::Violation;
use crate::world::World;

const READ_PATIENCE_MS: u64 = 1_500;
const WRITE_PATIENCE_MS: u64 = 4_000;
const ASK_PATIENCE_MS: u64 = 1_800;

/// A recovery under way.
#[derive(Debug)]
pub(crate) struct Recovering {
    machine: Recovery<u64>,
    /// Told from a later run for the same session.
    pub(super) run: u64,
    pub(super) node: NodeName,
    settle: Option<Settle>,
    /// The wall clock before what is outstanding at the record began.
    asked_at: Millis,
    pub(super) gathering: Option<Gathering>,
    /// Claims that wait.
    waiting: Vec<(Cell, Stay)>,
    members: Vec<MemberId>,
    /// The bundles that were read.
    pub(super) bundles: Vec<LogOffset>,
}

/// A question to a follower that has not been answered.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    pub(super) about: SessionId,
    pub(super) run: u64,
    member: MemberId,
    pub(super) asked_at: Millis,
    is_seal: bool,
}

/// What a recovery's call to the store is for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RecoveryStep {
    Read,
    Write,
    Loss,
    /// The lease of another recoverer's node.
    Lease,
    /// The next bundle.
    Bundle,
    /// A piece of what is gathered.
    Piece(u64),
}

impl World {
    /// Has a dead session's log recovered, and the claim told.
    pub(crate) fn recover_for_claim(
        &mut self,
        index: usize,
        (cell, slot): (Cell, Slot),
        dead: (NodeName, SessionId),
    ) -> Result<(), Violation> {
        let waiting = (cell, slot.stay);
        self.put_slot(index, cell, slot);
        let process = self.nodes[index].process.as_mut().expect("checked");
        if let Some(recovering) = process.recoveries.get_mut(&dead.1) {
            recovering.waiting.push(waiting);
            return Ok(());
        }
        self.start_recovery(index, dead, vec![waiting])
    }

    fn start_recovery(
        &mut self,
        index: usize,
        (node, session): (NodeName, SessionId),
        waiting: Vec<(Cell, Stay)>,
    ) -> Result<(), Violation> {
        let claimant = self.nodes[index].session().expect("checked");
        // The dead session may not be dead at all.
        if let Some(zombie) = self.nodes.iter().position(|node| node.session() == Some(session)) {
            self.provoke(zombie);
        }
        let write_id = WriteId::from_bits(self.rng.wide_bits());
        let run = self.name();
        self.trace.line(self.now, format_args!("n{index} recovers {session}"));
        let me = Recoverer {
            claimant,
            claimant_node: Some(self.nodes[index].name.clone()),
            node: node.clone(),
            session,
            clock_skew_max_ms: CLOCK_SKEW_MAX_MS,
        };
        let (machine, effect) = Recovery::start(me, write_id);
        let recovering = Recovering {
            machine,
            run,
            node,
            settle: None,
            asked_at: Millis::ZERO,
            gathering: None,
            waiting,
            members: Vec::new(),
            bundles: Vec::new(),
        };
        self.nodes[index].process.as_mut().expect("checked").recoveries.insert(session, recovering);
        self.run_recovery_effect(index, session, effect)
    }

    pub(super) fn recovering(&mut self, index: usize, session: SessionId) -> Option<&mut Recovering> {
        self.nodes[index].process.as_mut()?.recoveries.get_mut(&session)
    }

    pub(super) fn recovery_event(
        &mut self,
        index: usize,
        session: SessionId,
        event: RecoveryEvent<u64>,
        wall_before: Millis,
    ) -> Result<(), Violation> {
        let Some(recovering) = self.recovering(index, session) else { return Ok(()) };
        match recovering.machine.on(event, wall_before) {
            Some(effect) => self.run_recovery_effect(index, session, effect),
            None => Ok(()),
        }
    }

    fn run_recovery_effect(
        &mut self,
        index: usize,
        session: SessionId,
        effect: RecoveryEffect<u64>,
    ) -> Result<(), Violation> {
        let wall = self.nodes[index].clock.read(self.now).wall;
        let recovering = self.recovering(index, session).expect("a recovery acts");
        let (run, key) = (recovering.run, Key::Log(recovering.node.clone(), session));
        let purpose = |step| Purpose::Recovery(session, run, step);
        match effect {
            RecoveryEffect::ReadRecord => {
                recovering.asked_at = wall;
                self.call(index, purpose(RecoveryStep::Read), Operation::Get(key), (0, READ_PATIENCE_MS))
            }
            RecoveryEffect::WriteRecord { record, guard, .. } => {
                recovering.asked_at = wall;
                let write = (key, Body::Log(record), guard);
                let patience = (0, WRITE_PATIENCE_MS);
                let settle = self.start_settle(index, purpose(RecoveryStep::Write), write, patience)?;
                self.recovering(index, session).expect("a recovery acts").settle = Some(settle);
                Ok(())
            }
            RecoveryEffect::SealMembers { members } => {
                recovering.members.clone_from(&members);
                for member in members {
                    self.ask_member(index, session, member, Ask::Seal);
                }
                Ok(())
            }
            RecoveryEffect::Gather { member, start, end, is_whole } => {
                self.start_gathering(index, session, member, (start, end, is_whole))
            }
            RecoveryEffect::GatherBundles { from, is_whole } => {
                self.start_gathering_bundles(index, session, from, is_whole)
            }
            RecoveryEffect::LookForLoss => {
                recovering.asked_at = wall;
                let read = Operation::Get(Key::Loss(session));
                self.call(index, purpose(RecoveryStep::Loss), read, (0, READ_PATIENCE_MS))
            }
            RecoveryEffect::ReadClaimantLease { node } => {
                recovering.asked_at = wall;
                let read = Operation::Get(Key::Lease(node));
                self.call(index, purpose(RecoveryStep::Lease), read, (0, READ_PATIENCE_MS))
            }
            RecoveryEffect::Finish(outcome) => self.on_recovery_over(index, session, &outcome),
        }
    }

    pub(super) fn ask_member(&mut self, index: usize, about: SessionId, member: MemberId, ask: Ask) {
        let rpc = self.name();
        let asker = (index, self.nodes[index].session().expect("checked"));
        let asked_at = self.nodes[index].clock.read(self.now).wall;
        let follower = self.followers.iter().position(|follower| follower.name == member.follower);
        let recovering = self.recovering(index, about).expect("a recovery asks");
        let (run, node) = (recovering.run, recovering.node.clone());
        let asking = Asking { about, run, member, asked_at, is_seal: matches!(ask, Ask::Seal) };
        self.nodes[index].process.as_mut().expect("checked").asking.insert(rpc, asking);
        if let Some(follower) = follower {
            self.ask_follower(follower, Asked { asker, rpc, about: (node, about), ask });
        }
        self.after(ASK_PATIENCE_MS, Event::Node(index, Some(asker.1), NodeEvent::AskGiveUp(rpc)));
    }

    pub(crate) fn on_told(&mut self, index: usize, rpc: u64, told: Told) -> Result<(), Violation> {
        let process = self.nodes[index].process.as_mut().expect("checked");
        let Some(asking) = process.asking.remove(&rpc) else { return Ok(()) };
        let Asking { about, run, member, asked_at, is_seal } = asking;
        if self.recovering(index, about).is_none_or(|recovering| recovering.run != run) {
            return Ok(());
        }
        match told {
            Told::Sealed(holdings) => {
                let event = RecoveryEvent::MemberSealed { member, holdings };
                self.recovery_event(index, about, event, asked_at)
            }
            Told::Unreachable if is_seal => {
                let event = RecoveryEvent::MemberUnreachable { member, reason: "no answer".to_owned() };
                self.recovery_event(index, about, event, asked_at)
            }
            Told::Tail(frames) => self.on_tail(index, about, Some(frames)),
            Told::Unreachable => self.on_tail(index, about, None),
        }
    }

    pub(crate) fn on_recovery_reply(
        &mut self,
        index: usize,
        (session, run, step): (SessionId, u64, RecoveryStep),
        reply: Reply,
    ) -> Result<(), Violation> {
        let Some(recovering) = self.recovering(index, session) else { return Ok(()) };
        if recovering.run != run {
            return Ok(());
        }
        let asked_at = recovering.asked_at;
        let event = match (step, reply) {
            (RecoveryStep::Bundle, reply) => return self.on_bundle_read(index, session, reply),
            (RecoveryStep::Piece(id), reply) => return self.on_piece(index, session, id, &reply),
            (RecoveryStep::Write, reply) => {
                let mut settle = recovering.settle.take().expect("a write of the log record is under way");
                let purpose = Purpose::Recovery(session, run, RecoveryStep::Write);
                match self.go_on_settling(index, &mut settle, purpose, reply)? {
                    Some(answer) => RecoveryEvent::RecordAnswered(answer),
                    None => {
                        self.recovering(index, session).expect("checked").settle = Some(settle);
                        return Ok(());
                    }
                }
            }
            (RecoveryStep::Read, Reply::Object(Some((Body::Log(record), version)))) => {
                RecoveryEvent::RecordRead { record: Some((record, version)) }
            }
            (RecoveryStep::Read, Reply::Object(_)) => RecoveryEvent::RecordRead { record: None },
            (RecoveryStep::Loss, Reply::Object(found)) => {
                RecoveryEvent::LossLookedFor { is_declared: found.is_some() }
            }
            (RecoveryStep::Lease, Reply::Object(found)) => {
                RecoveryEvent::ClaimantLeaseRead { lease: lease_of(found) }
            }
            _ => RecoveryEvent::ReadFailed,
        };
        self.recovery_event(index, session, event, asked_at)
    }

    fn on_recovery_over(
        &mut self,
        index: usize,
        session: SessionId,
        outcome: &RecoveryOutcome,
    ) -> Result<(), Violation> {
        self.trace.line(self.now, format_args!("n{index} recovery of {session}: {outcome:?}"));
        let process = self.nodes[index].process.as_mut().expect("checked");
        let over = process.recoveries.remove(&session).expect("a recovery ends once");
        let is_recovered = matches!(outcome, RecoveryOutcome::Recovered { .. });
        if is_recovered {
            self.tally.recovered += 1;
            let debris = over.bundles.iter().map(|first| Key::Bundle(session, *first)).collect();
            let delete = Operation::Delete(debris);
            self.call(index, Purpose::Nobody, delete, (0, WRITE_PATIENCE_MS))?;
            self.tell_to_forget(index, session, &over);
        }
        for (cell, stay) in over.waiting {
            let Some(slot) = self.take_slot(index, cell, stay) else { continue };
            if !matches!(slot.phase, Phase::Claiming(_)) {
                self.put_slot(index, cell, slot);
                continue;
            }
            let event = if is_recovered { ClaimEvent::LogRecovered } else { ClaimEvent::LogBlocked };
            self.claim_event(index, cell, slot, event)?;
        }
        Ok(())
    }

    fn tell_to_forget(&mut self, index: usize, session: SessionId, over: &Recovering) {
        let asker = (index, self.nodes[index].session().expect("checked"));
        for member in &over.members {
            let Some(follower) = self.followers.iter().position(|f| f.name == member.follower) else {
                continue;
            };
            let about = (over.node.clone(), session);
            let rpc = self.name();
            self.ask_follower(follower, Asked { asker, rpc, about, ask: Ask::Forget });
        }
    }

    pub(crate) fn on_sweep(&mut self, index: usize) -> Result<(), Violation> {
        let next = self.rng.within(self.plan.sweep_every_ms / 2, self.plan.sweep_every_ms);
        self.start_timer(index, next, Timer::Sweep);
        if !self.may_act(index) {
            return Ok(());
        }
        self.call(index, Purpose::SweepLogs, Operation::ReadLogs, (0, READ_PATIENCE_MS))
    }

    pub(crate) fn on_swept(&mut self, index: usize, reply: Reply) -> Result<(), Violation> {
        let Reply::Objects(logs) = reply else { return Ok(()) };
        let mine = self.nodes[index].session();
        let unsealed = logs.into_iter().filter_map(|body| match body {
            Some(Body::Log(LogRecord { state, node, session, .. })) if state != LogState::Sealed => {
                Some((node, session))
            }
            _ => None,
        });
        let unsealed: BTreeMap<SessionId, NodeName> =
            unsealed.map(|(node, session)| (session, node)).collect();
        let wall = self.nodes[index].clock.read(self.now).wall;
        for (session, node) in unsealed.into_iter().filter(|(session, _)| Some(*session) != mine) {
            let purpose = Purpose::SweepLease(node.clone(), session, wall);
            self.call(index, purpose, Operation::Get(Key::Lease(node)), (0, READ_PATIENCE_MS))?;
        }
        Ok(())
    }

    pub(crate) fn on_swept_lease(
        &mut self,
        index: usize,
        (node, session, asked_at): (NodeName, SessionId, Millis),
        reply: Reply,
    ) -> Result<(), Violation> {
        let Reply::Object(found) = reply else { return Ok(()) };
        let lease = lease_of(found);
        let is_dead = is_session_dead(lease.as_ref(), session, asked_at, CLOCK_SKEW_MAX_MS);
        if is_dead && self.recovering(index, session).is_none() && self.may_act(index) {
            return self.start_recovery(index, (node, session), Vec::new());
        }
        Ok(())
    }
}

/// What a read of a lease found.
fn lease_of(found: Option<(Body, u64)>) -> Option<LeaseView> {
    match found {
        Some((Body::Lease(lease, protocol), _)) => {
            Some(LeaseView { session: lease.session, expires_ms: lease.expires_ms, protocol })
        }
        _ => None,
    }
}
