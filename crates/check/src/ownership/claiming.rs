//! Claims and releases: the shell of both machines.

use holdfast_core::ownership::{
    ClaimEffect, ClaimEvent, ClaimOutcome, LeaseView, OwnerView, ReleaseEffect, ReleaseEvent,
};
use holdfast_core::store::Answer;
use holdfast_types::{Millis, NodeName};

use super::World;
use super::process::{Ask, PROTOCOL, Phase, session};
use crate::register::{Found, Read, Version, Write};

/// The end of every lease, and a reader's clock before and after it.
const EXPIRES: Millis = Millis::new(10);

impl World {
    pub(super) fn lease_of(&self, node: &NodeName) -> (u8, u8, bool) {
        let mut processes = self.processes.iter();
        let process =
            processes.find(|process| &super::process::name(process.node) == node).expect("a node of ours");
        (process.node, process.life, process.has_ended)
    }

    /// The lease of the node that a claim asked for is read, early or late by the reader's clock.
    pub(super) fn read_lease(&mut self, who: usize, looks_dead: bool) {
        let Some(Ask::Lease(node)) = self.processes[who].ask() else { unreachable!("a lease was asked for") };
        let (node, life, _) = self.lease_of(node);
        let lease = Some(LeaseView { session: session(node, life), expires_ms: EXPIRES, protocol: PROTOCOL });
        let wall_now = if looks_dead { EXPIRES } else { Millis::ZERO };
        self.claim_event(who, ClaimEvent::LeaseRead { lease, wall_now });
    }

    pub(super) fn deliver_owner(&mut self, who: usize) {
        let Some(Ask::Owner(Read::Served(owner))) = self.processes[who].ask() else {
            unreachable!("it was served")
        };
        let owner: Found<OwnerView> = owner.clone();
        match self.processes[who].phase {
            Phase::Claiming { .. } => self.claim_event(who, ClaimEvent::OwnerRead { owner }),
            _ => self.release_event(who, ReleaseEvent::OwnerRead { owner }),
        }
    }

    pub(super) fn answer_write(&mut self, who: usize, answer: Answer<Version>) {
        match self.processes[who].phase {
            Phase::Claiming { .. } => self.claim_event(who, ClaimEvent::ClaimAnswered(answer)),
            _ => self.release_event(who, ReleaseEvent::Answered(answer)),
        }
    }

    pub(super) fn claim_event(&mut self, who: usize, event: ClaimEvent<Version>) {
        let process = &mut self.processes[who];
        let Phase::Claiming { claim, ask } = &mut process.phase else { unreachable!("a claim is under way") };
        match claim.on(event) {
            ClaimEffect::ReadOwner => *ask = Ask::Owner(Read::Asked),
            ClaimEffect::ReadLease { node } => *ask = Ask::Lease(node),
            ClaimEffect::RecoverLog { node: _, session } => *ask = Ask::Log(session),
            ClaimEffect::LookForHistory => *ask = Ask::History,
            ClaimEffect::WriteOwner { owner, guard } => *ask = Ask::Record(Write::Sent(owner, guard)),
            ClaimEffect::Finish(ClaimOutcome::Claimed { owner, version, previous: _ }) => {
                self.seen.note_claimed(owner.epoch);
                process.phase = Phase::Restoring { owner, version };
            }
            ClaimEffect::Finish(_) => process.phase = Phase::Idle,
        }
    }

    fn release_event(&mut self, who: usize, event: ReleaseEvent<Version>) {
        let process = &mut self.processes[who];
        let Phase::Releasing { release, ask } = &mut process.phase else {
            unreachable!("a release is under way")
        };
        match release.on(event) {
            ReleaseEffect::ReadOwner => *ask = Ask::Owner(Read::Asked),
            ReleaseEffect::WriteOwner { owner, guard } => *ask = Ask::Record(Write::Sent(owner, guard)),
            ReleaseEffect::Finish(_) => process.phase = Phase::Idle,
        }
    }
}
