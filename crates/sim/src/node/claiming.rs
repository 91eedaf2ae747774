//! A claim of a cell, step by step, as the core's machine asks.

use holdfast_core::alarm::Orphan;
use holdfast_core::ownership::LeaseView;
use holdfast_core::ownership::{Claim, ClaimEffect, ClaimEvent, ClaimOutcome, Claimant, Intent};
use holdfast_types::{Millis, WriteId};

use super::{Asleep, PROTOCOL, Phase, Purpose, Settle, Slot, Step};
use crate::bucket::{Body, Cell, Key, Operation, Reply};
use crate::event::{Outcome, Request, Stay};
use crate::scenario::CLOCK_SKEW_MAX_MS;
use crate::violation::Violation;
use crate::world::World;

const READ_PATIENCE_MS: u64 = 2_000;
const WRITE_PATIENCE_MS: u64 = 6_000;

/// A claim under way.
#[derive(Debug)]
pub(crate) struct Claiming {
    claim: Claim<u64>,
    intent: Intent,
    asleep: Option<Box<Asleep>>,
    settle: Option<Settle>,
    /// The wall clock before the read of a lease began: a later one would take a lease for dead that was renewed while
    /// the answer was on its way.
    asked_at: Millis,
}

impl World {
    pub(crate) fn start_claim(
        &mut self,
        index: usize,
        intent: Intent,
        request: Request,
    ) -> Result<(), Violation> {
        let node = &self.nodes[index];
        let me = Claimant {
            node: node.name.clone(),
            session: node.session().expect("checked"),
            protocol: PROTOCOL,
            clock_skew_max_ms: CLOCK_SKEW_MAX_MS,
        };
        let write_id = WriteId::from_bits(self.rng.wide_bits());
        let process = self.nodes[index].process.as_mut().expect("checked");
        let asleep = process.asleep.remove(&request.cell).filter(|_| intent == Intent::Own).map(Box::new);
        let (claim, effect) = match &asleep {
            Some(asleep) => Claim::wake(me, write_id, asleep.record.clone()),
            None => Claim::start(me, intent, write_id),
        };
        let claiming = Claiming { claim, intent, asleep, settle: None, asked_at: Millis::ZERO };
        let stay = Stay(self.name());
        let slot = Slot { stay, phase: Phase::Claiming(claiming), queue: vec![request] };
        self.run_claim_effect(index, request.cell, slot, effect)
    }

    pub(crate) fn on_claim_reply(
        &mut self,
        index: usize,
        cell: Cell,
        slot: Slot,
        reply: Reply,
    ) -> Result<(), Violation> {
        let Phase::Claiming(claiming) = &slot.phase else { unreachable!("a claim's reply") };
        let event = match reply {
            Reply::Object(None) if claiming.asked_at == Millis::ZERO => ClaimEvent::OwnerRead { owner: None },
            Reply::Object(Some((Body::Owner(owner), version))) => {
                ClaimEvent::OwnerRead { owner: Some((owner, version)) }
            }
            Reply::Object(None) => ClaimEvent::LeaseRead { lease: None, wall_now: claiming.asked_at },
            Reply::Object(Some((Body::Lease(lease, protocol), _))) => {
                let lease = LeaseView { session: lease.session, expires_ms: lease.expires_ms, protocol };
                ClaimEvent::LeaseRead { lease: Some(lease), wall_now: claiming.asked_at }
            }
            _ => ClaimEvent::ReadFailed,
        };
        self.claim_event(index, cell, slot, event)
    }

    /// Goes on with the owner record's conditional write of a claim or a release.
    pub(crate) fn on_owner_settle(
        &mut self,
        index: usize,
        cell: Cell,
        mut slot: Slot,
        reply: Reply,
    ) -> Result<(), Violation> {
        let settle = match &mut slot.phase {
            Phase::Claiming(claiming) => claiming.settle.take(),
            Phase::Releasing(releasing) => releasing.settle.take(),
            other => unreachable!("no write of the owner record in {other:?}"),
        };
        let mut settle = settle.expect("a write is under way");
        let purpose = Purpose::Cell(cell, slot.stay, Step::Settle);
        let answer = self.go_on_settling(index, &mut settle, purpose, reply)?;
        match (answer, &mut slot.phase) {
            (Some(answer), Phase::Claiming(_)) => {
                self.claim_event(index, cell, slot, ClaimEvent::ClaimAnswered(answer))
            }
            (Some(answer), _) => self.on_release_answered(index, cell, slot, answer),
            (None, Phase::Claiming(claiming)) => {
                claiming.settle = Some(settle);
                self.put_slot(index, cell, slot);
                Ok(())
            }
            (None, Phase::Releasing(releasing)) => {
                releasing.settle = Some(settle);
                self.put_slot(index, cell, slot);
                Ok(())
            }
            (None, other) => unreachable!("no write of the owner record in {other:?}"),
        }
    }

    pub(super) fn claim_event(
        &mut self,
        index: usize,
        cell: Cell,
        mut slot: Slot,
        event: ClaimEvent<u64>,
    ) -> Result<(), Violation> {
        if !self.may_act(index) {
            return self.drop_slot(index, slot, &Outcome::Refused);
        }
        let Phase::Claiming(claiming) = &mut slot.phase else { unreachable!("a claim's event") };
        claiming.asked_at = Millis::ZERO;
        let effect = claiming.claim.on(event);
        self.run_claim_effect(index, cell, slot, effect)
    }

    fn run_claim_effect(
        &mut self,
        index: usize,
        cell: Cell,
        mut slot: Slot,
        effect: ClaimEffect<u64>,
    ) -> Result<(), Violation> {
        let Phase::Claiming(claiming) = &mut slot.phase else { unreachable!("a claim's effect") };
        match effect {
            ClaimEffect::ReadOwner => {
                let purpose = Purpose::Cell(cell, slot.stay, Step::ClaimOwner);
                self.call(index, purpose, Operation::Get(Key::Owner(cell)), (0, READ_PATIENCE_MS))?;
            }
            ClaimEffect::ReadLease { node } => {
                claiming.asked_at = self.nodes[index].clock.read(self.now).wall;
                let purpose = Purpose::Cell(cell, slot.stay, Step::ClaimLease);
                self.call(index, purpose, Operation::Get(Key::Lease(node)), (0, READ_PATIENCE_MS))?;
                if self.nodes[index].is_pause_armed {
                    self.pause_now(index);
                }
            }
            ClaimEffect::LookForHistory => {
                let is_there = self.newest_of_history(cell).is_some();
                let event = ClaimEvent::HistoryLookedFor { is_there };
                return self.claim_event(index, cell, slot, event);
            }
            ClaimEffect::RecoverLog { node, session } => {
                return self.recover_for_claim(index, (cell, slot), (node, session));
            }
            ClaimEffect::WriteOwner { owner, guard } => {
                let purpose = Purpose::Cell(cell, slot.stay, Step::Settle);
                let write = (Key::Owner(cell), Body::Owner(owner), guard);
                claiming.settle = Some(self.start_settle(index, purpose, write, (0, WRITE_PATIENCE_MS))?);
            }
            ClaimEffect::Finish(outcome) => return self.on_claim_over(index, cell, slot, outcome),
        }
        self.put_slot(index, cell, slot);
        Ok(())
    }

    fn on_claim_over(
        &mut self,
        index: usize,
        cell: Cell,
        slot: Slot,
        outcome: ClaimOutcome<u64>,
    ) -> Result<(), Violation> {
        self.trace.line(self.now, format_args!("n{index} claim of {cell:?}: {outcome:?}"));
        let Phase::Claiming(Claiming { intent, asleep, .. }) = &slot.phase else {
            unreachable!("a claim's end")
        };
        let (intent, asleep) = (*intent, asleep.clone());
        let process = self.nodes[index].process.as_mut().expect("it claimed");
        let is_orphan = match &outcome {
            ClaimOutcome::Claimed { previous, .. } => previous.is_orphan(),
            ClaimOutcome::NotOwner { .. } => Some(false),
            _ => None,
        };
        match is_orphan {
            Some(true) => drop(process.orphans.insert(cell, Orphan::default())),
            Some(false) => drop(process.orphans.remove(&cell)),
            None => {}
        }
        match outcome {
            ClaimOutcome::Claimed { owner, version, previous } => {
                self.checkers.ownership.on_claimed(cell, &owner)?;
                match intent {
                    Intent::Own => {
                        self.start_restore(index, cell, slot, (owner, version, previous), asleep.as_deref())
                    }
                    Intent::Purge => self.start_purging(index, cell, slot, owner.epoch),
                }
            }
            ClaimOutcome::NotOwner { node, .. } => self.drop_slot(index, slot, &Outcome::NotOwner(node)),
            ClaimOutcome::NothingToPurge => self.drop_slot(index, slot, &Outcome::Purged),
            ClaimOutcome::Incompatible { .. } => unreachable!("every session speaks the same"),
            ClaimOutcome::Failed(_) => self.drop_slot(index, slot, &Outcome::Refused),
        }
    }
}
