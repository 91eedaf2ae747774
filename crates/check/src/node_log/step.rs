//! What may happen next.

use holdfast_types::LogOffset;

use super::World;
use super::bounds::{At, Bounds};
use super::bundle::Bundling;
use super::recoverer::{Rescue, Seal};
use crate::register::{Read, Write};

/// Who writes the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// The session.
    Owner,
    /// A recoverer.
    Rescue(u8),
}

/// A step. Followers are named by their place, disks by place and number, recoverers by their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The session sees the followers.
    Look,
    /// A frame is appended.
    Append,
    /// The session's clock is looked at.
    Tick,
    /// Time leaps.
    Leap,
    /// The session brings a frame into its cell's prefix.
    Upload(LogOffset),
    /// The session's log hears of it.
    TellCovered,
    /// A round of uploads begins.
    Round,
    /// The session's bundle lands.
    LandBundle,
    /// Its answer arrives.
    AnswerBundle,
    /// Its answer does not: it is put again.
    LoseBundle,
    /// A bundle lands of which nobody knows.
    LandFloatingBundle(u8),
    /// A bundle is deleted.
    DeleteBundle(LogOffset),
    /// The session ends in order.
    Close,
    /// The session gives a link up.
    GiveUp(At),
    /// A reply arrives at the session.
    Receive(At),
    /// A message arrives at a follower, by one of its connections.
    Deliver(At, u8),
    /// A follower fsyncs.
    Fsync(At),
    /// The bucket reads the record for a follower.
    ServeFollower(At),
    /// It arrives there.
    DeliverFollower(At),
    /// A follower crashes; so many entries that were not fsynced are there.
    Crash(At, u8),
    /// A follower's disk is lost.
    LoseDisk(At),
    /// A write lands of which nobody knows.
    LandFloating(u8),
    /// A write lands.
    Land(Writer),
    /// Its answer arrives.
    Answer(Writer),
    /// Its answer does not, nor can the writer find out.
    LoseAnswer(Writer),
    /// The bucket reads the record.
    Serve(Writer),
    /// It arrives.
    DeliverRead(Writer),
    /// A recoverer starts.
    Start(u8),
    /// A recoverer dies.
    Die(u8),
    /// A recoverer reads the lease of another.
    ReadLease(u8),
    /// A seal arrives at a follower.
    DeliverSeal(u8, (At, u8)),
    /// Its answer arrives.
    AnswerSeal(u8, (At, u8)),
    /// Its answer does not.
    LoseSeal(u8, (At, u8)),
    /// A frame goes from a witness, or those of a bundle go, into their cells' prefixes.
    Gather(u8),
    /// A recoverer looks whether somebody declared the loss.
    LookForLoss(u8),
    /// A person declares it.
    DeclareLoss,
}

impl World {
    pub(super) fn steps(&self, bounds: &Bounds, steps: &mut Vec<Step>) {
        self.steps_of_the_owner(bounds, steps);
        for at in 0..bounds.followers {
            self.steps_of_a_follower(at, steps);
        }
        for (number, rescue) in (0..).zip(&self.rescues) {
            match rescue {
                None => steps.push(Step::Start(number)),
                Some(rescue) => self.steps_of_a_rescue(number, rescue, steps),
            }
        }
        steps.extend((0..).take(self.record.floating.len()).map(Step::LandFloating));
        if bounds.declares_loss && !self.is_loss_declared && self.was_blocked() {
            steps.push(Step::DeclareLoss);
        }
        if self.leaps < bounds.leaps {
            steps.push(Step::Leap);
        }
    }

    fn steps_of_the_owner(&self, bounds: &Bounds, steps: &mut Vec<Step>) {
        let owner = &self.owner;
        if usize::from(owner.views) < bounds.views.len() || bounds.ticks || bounds.lost_disks > 0 {
            steps.push(Step::Look);
        }
        if owner.appended() < bounds.frames && owner.log.is_by_ensemble() {
            steps.push(Step::Append);
        }
        if bounds.uploads || bounds.ticks {
            steps.push(Step::Tick);
        }
        if bounds.uploads {
            steps.extend(owner.uploadable(bounds).into_iter().map(Step::Upload));
        }
        if owner.log.covered_below() < owner.covered_below() {
            steps.push(Step::TellCovered);
        }
        for (at, link) in (0..).zip(&owner.links) {
            if link.is_some() && self.budget.broken_links > 0 {
                steps.push(Step::GiveUp(at));
            }
        }
        self.steps_at_the_record(Writer::Owner, owner.write.as_ref(), owner.read.as_ref(), steps);
        self.steps_of_bundles(bounds, steps);
        if bounds.closes && !owner.is_closing {
            steps.push(Step::Close);
        }
    }

    fn steps_of_bundles(&self, bounds: &Bounds, steps: &mut Vec<Step>) {
        let owner = &self.owner;
        if owner.rounds < bounds.rounds.len() {
            steps.push(Step::Round);
        }
        if let Some(Bundling { is_stored, .. }) = owner.bundling {
            steps.push(if is_stored { Step::AnswerBundle } else { Step::LandBundle });
            if self.budget.lost_answers > 0 {
                steps.push(Step::LoseBundle);
            }
        }
        steps.extend((0..).take(self.bundles.floating.len()).map(Step::LandFloatingBundle));
        steps.extend(owner.deleting.iter().map(|first| Step::DeleteBundle(*first)));
    }

    fn steps_at_the_record<R>(
        &self,
        writer: Writer,
        write: Option<&Write<R>>,
        read: Option<&Read<R>>,
        steps: &mut Vec<Step>,
    ) {
        match write {
            Some(Write::Sent(..)) => steps.push(Step::Land(writer)),
            Some(Write::Answered(_)) => steps.push(Step::Answer(writer)),
            None => {}
        }
        if write.is_some() && self.budget.lost_answers > 0 {
            steps.push(Step::LoseAnswer(writer));
        }
        match read {
            Some(Read::Asked) => steps.push(Step::Serve(writer)),
            Some(Read::Served(_)) => steps.push(Step::DeliverRead(writer)),
            None => {}
        }
    }

    fn steps_of_a_follower(&self, at: At, steps: &mut Vec<Step>) {
        let follower = &self.followers[usize::from(at)];
        if !follower.replies.is_empty() {
            steps.push(Step::Receive(at));
        }
        for (wire, _) in (0..).zip(&follower.wires).filter(|(_, wire)| !wire.messages.is_empty()) {
            steps.push(Step::Deliver(at, wire));
        }
        if !follower.unsynced.is_empty() {
            steps.push(Step::Fsync(at));
        }
        match follower.record_read {
            Some((_, Read::Asked)) => steps.push(Step::ServeFollower(at)),
            Some((_, Read::Served(_))) => steps.push(Step::DeliverFollower(at)),
            None => {}
        }
        if self.budget.crashes > 0 {
            steps.extend(
                (0..=follower.unsynced.len()).map(|kept| Step::Crash(at, u8::try_from(kept).expect("few"))),
            );
        }
        if self.budget.lost_disks > 0 {
            steps.push(Step::LoseDisk(at));
        }
    }

    fn steps_of_a_rescue(&self, number: u8, rescue: &Rescue, steps: &mut Vec<Step>) {
        if rescue.ended.is_some() {
            return;
        }
        self.steps_at_the_record(Writer::Rescue(number), rescue.write.as_ref(), rescue.read.as_ref(), steps);
        for (at, seal) in &rescue.seals {
            match seal {
                Seal::Sent => steps.push(Step::DeliverSeal(number, *at)),
                Seal::Answered(..) | Seal::Broken => steps.push(Step::AnswerSeal(number, *at)),
                Seal::Waiting => {}
            }
            if self.budget.unanswered_seals > 0 && *seal != Seal::Broken {
                steps.push(Step::LoseSeal(number, *at));
            }
        }
        if rescue.gather.is_some() {
            steps.push(Step::Gather(number));
        }
        if self.budget.deaths > 0 {
            steps.push(Step::Die(number));
        }
        if rescue.reads_lease_of.is_some() {
            steps.push(Step::ReadLease(number));
        }
        if rescue.looks_for_loss {
            steps.push(Step::LookForLoss(number));
        }
    }
}
