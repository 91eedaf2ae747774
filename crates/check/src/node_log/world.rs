//! The bucket, the followers, the session and the recoverers, and the way a step changes them.

use holdfast_core::ensemble::NodeLogEvent;
use holdfast_core::follower::{CallId, FollowerEvent};
use holdfast_core::log_record::{LogRecord, LogState};
use holdfast_core::recovery::{RECOVERY_SILENCE_MS, RecoveryEvent};
use holdfast_core::store::Answer;
use holdfast_types::{Millis, SessionId};

use super::Step;
use super::bounds::Bounds;
use super::bundle::Bundles;
use super::follower::{Follower, Sealed, bit};
use super::owner::Owner;
use super::recoverer::{Ended, Rescue, Seal, lease};
use super::step::Writer;
use crate::part::Part;
use crate::register::{Read, Register, Write};

/// What may still go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Budget {
    pub(super) deaths: u8,
    pub(super) lost_answers: u8,
    pub(super) crashes: u8,
    pub(super) broken_links: u8,
    pub(super) lost_disks: u8,
    pub(super) unanswered_seals: u8,
}

/// The world.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub(super) budget: Budget,
    pub(super) leaps: u8,
    pub(super) record: Part<Register<LogRecord>>,
    /// Frames in their cells' prefixes, a bit each.
    pub(super) covered: u32,
    pub(super) bundles: Part<Bundles>,
    pub(super) owner: Part<Owner>,
    pub(super) followers: Vec<Part<Follower>>,
    pub(super) rescues: Vec<Option<Part<Rescue>>>,
    /// A person declared the loss.
    pub(super) is_loss_declared: bool,
    /// A sealed record was written.
    pub(super) changed_the_final: bool,
    /// A recoverer took over from one that lives and had said so.
    pub(super) relieved_the_living: bool,
}

impl World {
    pub(super) fn begin(bounds: &Bounds) -> Self {
        Self {
            budget: Budget {
                deaths: bounds.deaths,
                lost_answers: bounds.lost_answers,
                crashes: bounds.crashes,
                broken_links: bounds.broken_links,
                lost_disks: bounds.lost_disks,
                unanswered_seals: bounds.unanswered_seals,
            },
            leaps: 0,
            record: Part::new(Register::absent()),
            covered: 0,
            bundles: Part::new(Bundles::default()),
            owner: Part::new(Owner::new(bounds)),
            followers: (0..bounds.followers).map(|at| Part::new(Follower::new(at, 0))).collect(),
            rescues: vec![None; usize::from(bounds.recoverers)],
            is_loss_declared: false,
            changed_the_final: false,
            relieved_the_living: false,
        }
    }

    pub(super) fn take(&mut self, bounds: &Bounds, step: Step) {
        let leaps = self.leaps;
        match step {
            Step::Look => self.owner.look(bounds, &mut self.followers, leaps),
            Step::Append => self.owner.append(&mut self.followers, leaps),
            Step::Tick => self.owner.on(NodeLogEvent::Tick, &mut self.followers, leaps),
            Step::Leap => self.leaps += 1,
            Step::Upload(offset) => {
                self.owner.uploaded |= bit(offset);
                self.covered |= bit(offset);
            }
            Step::TellCovered => {
                let below = self.owner.covered_below();
                self.owner.on(NodeLogEvent::Covered { below }, &mut self.followers, leaps);
            }
            Step::Round => self.owner.round(bounds, &mut self.followers, leaps),
            Step::LandBundle => {
                let bundling = self.owner.bundling.as_mut().expect("a bundle is on its way");
                bundling.is_stored = true;
                self.bundles.store(bundling.first, bundling.bundle);
            }
            Step::AnswerBundle => self.owner.stored_bundle(&mut self.followers, leaps),
            Step::LoseBundle => {
                self.budget.lost_answers -= 1;
                let bundling = self.owner.bundling.as_mut().expect("a bundle is on its way");
                if !core::mem::take(&mut bundling.is_stored) {
                    self.bundles.floating.push((bundling.first, bundling.bundle));
                }
            }
            Step::LandFloatingBundle(which) => {
                let (first, bundle) = self.bundles.floating.remove(usize::from(which));
                self.bundles.store(first, bundle);
            }
            Step::DeleteBundle(first) => {
                self.owner.deleting.remove(&first);
                self.bundles.delete(first, self.covered);
            }
            Step::Close => self.owner.close(&mut self.followers, leaps),
            Step::GiveUp(at) => {
                self.budget.broken_links -= 1;
                self.owner.give_up(at, &mut self.followers, leaps);
            }
            Step::Receive(at) => self.owner.receive(usize::from(at), &mut self.followers, leaps),
            Step::Deliver(at, wire) => {
                let sealed = self.followers[usize::from(at)].deliver(usize::from(wire));
                self.note_sealed(at, sealed);
            }
            Step::Fsync(at) => {
                let sealed = self.followers[usize::from(at)].fsync();
                self.note_sealed(at, sealed);
            }
            Step::ServeFollower(at) => {
                let (_, read) =
                    self.followers[usize::from(at)].record_read.as_mut().expect("a read is under way");
                read.serve(&self.record);
            }
            Step::DeliverFollower(at) => self.deliver_record(at),
            Step::Crash(at, kept) => {
                self.budget.crashes -= 1;
                let sealed = self.followers[usize::from(at)].crash(usize::from(kept));
                self.break_seals(at);
                self.note_sealed(at, sealed);
            }
            Step::LoseDisk(at) => {
                self.budget.lost_disks -= 1;
                self.followers[usize::from(at)].lose_disk();
                self.break_seals(at);
            }
            Step::DeclareLoss => self.is_loss_declared = true,
            Step::LandFloating(which) => {
                let before = self.record.current.clone();
                self.record.land_floating(usize::from(which));
                self.record.forget_stale();
                self.note_change(before.as_ref());
            }
            Step::Land(writer) => {
                let (before, current) = (self.claimant(), self.record.current.clone());
                let (write, record) = self.write_of(writer);
                write.as_mut().expect("a write is under way").land(record);
                self.note_relief(before);
                self.note_change(current.as_ref());
            }
            Step::Die(number) => {
                self.budget.deaths -= 1;
                let record = &mut self.record;
                self.rescues[usize::from(number)].as_mut().expect("it has started").die(record);
            }
            Step::ReadLease(number) => {
                let claimant = self.rescue(number).reads_lease_of.take().expect("a read is under way");
                let lease = (!self.is_dead(claimant)).then(|| lease(claimant));
                self.rescue(number).on(RecoveryEvent::ClaimantLeaseRead { lease }, leaps);
            }
            Step::Answer(writer) => {
                let Some(Write::Answered(answer)) = self.write_of(writer).0.take() else {
                    unreachable!("the write has landed")
                };
                self.answer(writer, answer);
            }
            Step::LoseAnswer(writer) => {
                self.budget.lost_answers -= 1;
                let (write, record) = self.write_of(writer);
                write.take().expect("a write is under way").lose(record);
                self.answer(writer, Answer::Unknown);
            }
            Step::Serve(writer) => {
                let register = self.record.clone();
                self.read_of(writer).as_mut().expect("a read is under way").serve(&register);
            }
            Step::DeliverRead(writer) => {
                let Some(Read::Served(record)) = self.read_of(writer).take() else {
                    unreachable!("it was served")
                };
                match writer {
                    Writer::Owner => {
                        self.owner.on(NodeLogEvent::RecordRead { record }, &mut self.followers, leaps)
                    }
                    Writer::Rescue(number) => {
                        self.rescue(number).on(RecoveryEvent::RecordRead { record }, leaps)
                    }
                }
            }
            Step::Start(number) => self.rescues[usize::from(number)] = Some(Part::new(Rescue::start(number))),
            Step::DeliverSeal(number, at) => self.deliver_seal(number, at),
            Step::AnswerSeal(number, at) => self.rescue(number).answer_seal(at, leaps),
            Step::LoseSeal(number, at) => {
                self.budget.unanswered_seals -= 1;
                self.rescue(number).seals.insert(at, Seal::Broken);
            }
            Step::Gather(number) => {
                let rescue = self.rescues[usize::from(number)].as_mut().expect("it has started");
                rescue.gather(&self.followers, &self.bundles, &mut self.covered, leaps);
            }
            Step::LookForLoss(number) => {
                let is_declared = self.is_loss_declared;
                let rescue = self.rescue(number);
                rescue.looks_for_loss = false;
                rescue.on(RecoveryEvent::LossLookedFor { is_declared }, leaps);
            }
        }
    }

    fn rescue(&mut self, number: u8) -> &mut Rescue {
        self.rescues[usize::from(number)].as_mut().expect("it has started")
    }

    /// Who recovers, as the record says, and when it said so; none where it is blocked.
    fn claimant(&self) -> Option<(SessionId, Millis)> {
        let mark = self.record.record()?.recovery.as_ref()?;
        (!mark.is_blocked).then_some((mark.claimant, mark.heartbeat_ms))
    }

    fn note_relief(&mut self, before: Option<(SessionId, Millis)>) {
        let (Some((before, said)), Some((after, now))) = (before, self.claimant()) else { return };
        let is_silent = now.since(said) >= RECOVERY_SILENCE_MS;
        self.relieved_the_living |= before != after && !is_silent && !self.is_dead(before);
    }

    fn note_change(&mut self, before: Option<&(LogRecord, u64)>) {
        let was_final = before.is_some_and(|(record, _)| record.state == LogState::Sealed);
        self.changed_the_final |= was_final && self.record.current.as_ref() != before;
    }

    fn is_dead(&self, claimant: SessionId) -> bool {
        let dead = self.rescues.iter().flatten().filter(|rescue| rescue.ended == Some(Ended::Died));
        dead.into_iter().any(|rescue| rescue.claimant == claimant)
    }

    fn write_of(&mut self, writer: Writer) -> (&mut Option<Write<LogRecord>>, &mut Register<LogRecord>) {
        let write = match writer {
            Writer::Owner => &mut self.owner.write,
            Writer::Rescue(number) => {
                &mut self.rescues[usize::from(number)].as_mut().expect("it has started").write
            }
        };
        (write, &mut self.record)
    }

    fn read_of(&mut self, writer: Writer) -> &mut Option<Read<LogRecord>> {
        match writer {
            Writer::Owner => &mut self.owner.read,
            Writer::Rescue(number) => &mut self.rescue(number).read,
        }
    }

    fn answer(&mut self, writer: Writer, answer: Answer<u64>) {
        let leaps = self.leaps;
        match writer {
            Writer::Owner => {
                self.owner.on(NodeLogEvent::RecordAnswered { answer }, &mut self.followers, leaps)
            }
            Writer::Rescue(number) => self.rescue(number).on(RecoveryEvent::RecordAnswered(answer), leaps),
        }
    }

    fn deliver_record(&mut self, at: u8) {
        let follower = &mut self.followers[usize::from(at)];
        let Some((stream, Read::Served(found))) = follower.record_read.take() else {
            unreachable!("it was served")
        };
        let record = found.map(|(record, _)| record);
        let sealed = follower.on(FollowerEvent::RecordRead { stream, record });
        self.note_sealed(at, sealed);
    }

    /// The call reaches whatever disk the follower has.
    fn deliver_seal(&mut self, number: u8, at: (u8, u8)) {
        self.rescue(number).seals.insert(at, Seal::Waiting);
        let sealed = self.followers[usize::from(at.0)]
            .on(FollowerEvent::SealAsked { call: CallId(u64::from(number)) });
        self.note_sealed(at.0, sealed);
    }

    fn note_sealed(&mut self, at: u8, sealed: Vec<Sealed>) {
        let disk = self.followers[usize::from(at)].disk;
        for (CallId(number), held) in sealed {
            let rescue =
                self.rescues[usize::try_from(number).expect("few")].as_mut().expect("it has started");
            let waiting =
                rescue.seals.iter_mut().filter(|((asked, _), seal)| *asked == at && **seal == Seal::Waiting);
            waiting.for_each(|(_, seal)| *seal = Seal::Answered(held, disk));
        }
    }

    fn break_seals(&mut self, at: u8) {
        for rescue in self.rescues.iter_mut().flatten() {
            if rescue.seals.is_empty() {
                continue;
            }
            let waiting =
                rescue.seals.iter_mut().filter(|((asked, _), seal)| *asked == at && **seal == Seal::Waiting);
            waiting.for_each(|(_, seal)| *seal = Seal::Broken);
        }
    }
}
