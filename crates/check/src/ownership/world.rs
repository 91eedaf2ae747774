//! The bucket and the sessions, and the way a step changes them.

use holdfast_core::gate::GateEvent;
use holdfast_core::ownership::{ClaimEvent, OwnerView};
use holdfast_core::store::Answer;
use holdfast_types::Txid;

use super::process::{Ask, Phase, Process};
use super::{Bounds, Seen, Step};
use crate::register::{Read, Register, Write};

/// The world.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub(super) claims: u8,
    pub(super) releases: u8,
    pub(super) lost_answers: u8,
    pub(super) restarts: u8,
    pub(super) record: Register<OwnerView>,
    /// Epochs whose write is in the bucket, a bit each.
    pub(super) objects: u32,
    /// Those whose write may land yet although nobody waits for it.
    pub(super) late_objects: u32,
    /// One for each node.
    pub(super) processes: Vec<Process>,
    pub(super) seen: Seen,
}

impl World {
    pub(super) fn begin(bounds: &Bounds) -> Self {
        Self {
            claims: bounds.claims,
            releases: bounds.releases,
            lost_answers: bounds.lost_answers,
            restarts: bounds.restarts,
            record: Register::absent(),
            objects: 0,
            late_objects: 0,
            processes: (0..bounds.nodes).map(|node| Process::new(node, 0)).collect(),
            seen: Seen::default(),
        }
    }

    pub(super) fn take(&mut self, step: Step) {
        match step {
            Step::Claim(who) => {
                self.claims -= 1;
                self.processes[who].claim();
            }
            Step::Release(who) => {
                self.releases -= 1;
                self.processes[who].release();
            }
            Step::Sleep(who) => self.processes[who].phase = Phase::Idle,
            Step::Serve(who) => {
                let Some(Ask::Owner(read)) = self.processes[who].ask_mut() else {
                    unreachable!("a read is under way")
                };
                read.serve(&self.record);
            }
            Step::Deliver(who) => self.deliver_owner(who),
            Step::Land(who) => self.land(who),
            Step::Answer(who) => {
                let Some(Ask::Record(Write::Answered(answer))) = self.processes[who].ask() else {
                    unreachable!("the write has landed")
                };
                let answer = answer.clone();
                self.answer_write(who, answer);
            }
            Step::LoseAnswer(who) => {
                self.lost_answers -= 1;
                let Some(Ask::Record(write)) = self.processes[who].ask().cloned() else {
                    unreachable!("a write is under way")
                };
                write.lose(&mut self.record);
                self.answer_write(who, Answer::Unknown);
            }
            Step::LandFloating(at) => {
                let (owner, guard) = self.record.floating.remove(at);
                self.apply(&owner, &guard);
                self.record.forget_stale();
            }
            Step::LookForHistory(who) => {
                let is_there = self.objects != 0;
                self.claim_event(who, ClaimEvent::HistoryLookedFor { is_there });
            }
            Step::ReadLease(who, looks_dead) => self.read_lease(who, looks_dead),
            Step::Recover(who) => {
                let Some(Ask::Log(session)) = self.processes[who].ask() else {
                    unreachable!("a log was asked for")
                };
                let session = *session;
                self.seen.recovered.push(session);
                self.seen.recovered.sort();
                self.seen.recovered.dedup();
                self.claim_event(who, ClaimEvent::LogRecovered);
            }
            Step::Restore(who) => self.restore(who),
            Step::Write(who) => self.write(who),
            Step::LandUpload(who) => self.land_upload(who),
            Step::AnswerUpload(who) => {
                self.serving(who).upload = None;
                self.gate_event(who, GateEvent::Uploaded { last: Txid::new(1) });
            }
            Step::FailUpload(who) => {
                self.lost_answers -= 1;
                self.fail_upload(who);
            }
            Step::LandLateObject(epoch) => {
                self.late_objects &= !super::seen::bit(epoch);
                self.objects |= super::seen::bit(epoch);
                self.seen.note_stored(epoch);
            }
            Step::ServeProof(who) => {
                let register = self.record.clone();
                self.serving(who).owner_read.as_mut().expect("a read is under way").serve(&register);
            }
            Step::DeliverProof(who) => self.deliver_proof(who),
            Step::EndLease(who) => self.processes[who].has_ended = true,
            Step::Restart(who) => self.restart(who),
        }
    }

    fn land(&mut self, who: usize) {
        let Some(Ask::Record(Write::Sent(owner, guard))) = self.processes[who].ask().cloned() else {
            unreachable!("a write is under way")
        };
        let answer = self.apply(&owner, &guard);
        let Some(ask) = self.processes[who].ask_mut() else { unreachable!("as above") };
        *ask = Ask::Record(Write::Answered(answer));
        self.record.forget_stale();
    }

    fn apply(&mut self, owner: &OwnerView, guard: &holdfast_core::store::Guard<u64>) -> Answer<u64> {
        let before = self.record.record().cloned();
        let answer = self.record.apply(owner, guard);
        if matches!(answer, Answer::Applied(_)) {
            let was_live = before.as_ref().is_some_and(|before| {
                let (node, life, has_ended) = self.lease_of(&before.node);
                super::process::session(node, life) == before.session && !has_ended
            });
            self.seen.note_record(before.as_ref(), owner, was_live);
        }
        answer
    }

    /// The process is killed: what it sent may land, what it was to hear is lost. A new session takes its lease's place.
    fn restart(&mut self, who: usize) {
        self.restarts -= 1;
        let process = &self.processes[who];
        let next = Process::new(process.node, process.life + 1);
        let process = core::mem::replace(&mut self.processes[who], next);
        match process.phase {
            Phase::Claiming { ask: Ask::Record(write), .. }
            | Phase::Releasing { ask: Ask::Record(write), .. } => {
                write.lose(&mut self.record);
            }
            Phase::Serving(serving) if serving.upload == Some(super::process::Upload::Sent) => {
                self.late_objects |= super::seen::bit(serving.owner.epoch);
            }
            _ => {}
        }
    }

    pub(super) const fn is_served(read: &Read<OwnerView>) -> bool {
        matches!(read, Read::Served(_))
    }
}
