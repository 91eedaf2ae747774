//! What may happen next.

use holdfast_types::Epoch;

use super::process::{Ask, Phase, Process, Serving, Upload};
use super::seen::bit;
use super::{Bounds, World};
use crate::register::Write;

/// A node, by its place.
type Who = usize;

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A session begins a claim.
    Claim(Who),
    /// A session gives the cell up.
    Release(Who),
    /// A session lets the cell go to sleep, and stays its owner.
    Sleep(Who),
    /// The bucket reads the owner record for a claim or a release.
    Serve(Who),
    /// It arrives.
    Deliver(Who),
    /// A write of the record lands.
    Land(Who),
    /// Its answer arrives.
    Answer(Who),
    /// Its answer does not, nor can the writer find out.
    LoseAnswer(Who),
    /// A write lands of which nobody knows.
    LandFloating(usize),
    /// A claim learns whether there is data.
    LookForHistory(Who),
    /// A claim reads the owner's lease, before or after its end by the reader's clock.
    ReadLease(Who, bool),
    /// The dead session's log is recovered.
    Recover(Who),
    /// The claimed epoch restores.
    Restore(Who),
    /// The handler writes and answers.
    Write(Who),
    /// The upload lands.
    LandUpload(Who),
    /// Its answer arrives.
    AnswerUpload(Who),
    /// It is answered with an error; it may land later.
    FailUpload(Who),
    /// An upload lands that was answered with an error.
    LandLateObject(Epoch),
    /// The bucket reads the owner record for a proof.
    ServeProof(Who),
    /// It arrives.
    DeliverProof(Who),
    /// The lease ends.
    EndLease(Who),
    /// The process is killed and starts again.
    Restart(Who),
}

impl World {
    pub(super) fn steps(&self, bounds: &Bounds, steps: &mut Vec<Step>) {
        for (who, process) in self.processes.iter().enumerate() {
            self.steps_of(who, process, bounds, steps);
            if !process.has_ended {
                steps.push(Step::EndLease(who));
            }
            if self.restarts > 0 {
                steps.push(Step::Restart(who));
            }
        }
        steps.extend((0..self.record.floating.len()).map(Step::LandFloating));
        let late = (1..32).map(Epoch::new).filter(|epoch| self.late_objects & bit(*epoch) != 0);
        steps.extend(late.map(Step::LandLateObject));
    }

    fn steps_of(&self, who: Who, process: &Process, bounds: &Bounds, steps: &mut Vec<Step>) {
        match &process.phase {
            Phase::Idle if self.claims > 0 && !process.has_ended => steps.push(Step::Claim(who)),
            Phase::Idle => {}
            Phase::Claiming { ask, .. } | Phase::Releasing { ask, .. } => {
                self.steps_of_an_ask(who, ask, bounds, steps);
            }
            Phase::Restoring { .. } => steps.push(Step::Restore(who)),
            Phase::Serving(serving) => self.steps_of_a_cell(who, process, serving, steps),
        }
    }

    fn steps_of_an_ask(&self, who: Who, ask: &Ask, bounds: &Bounds, steps: &mut Vec<Step>) {
        match ask {
            Ask::Owner(read) => {
                steps.push(if Self::is_served(read) { Step::Deliver(who) } else { Step::Serve(who) });
            }
            Ask::Lease(node) => {
                steps.push(Step::ReadLease(who, false));
                let (_, _, has_ended) = self.lease_of(node);
                if has_ended || bounds.beyond_skew {
                    steps.push(Step::ReadLease(who, true));
                }
            }
            Ask::Log(_) => steps.push(Step::Recover(who)),
            Ask::History => steps.push(Step::LookForHistory(who)),
            Ask::Record(write) => {
                let is_sent = matches!(write, Write::Sent(..));
                steps.push(if is_sent { Step::Land(who) } else { Step::Answer(who) });
                if self.lost_answers > 0 {
                    steps.push(Step::LoseAnswer(who));
                }
            }
        }
    }

    fn steps_of_a_cell(&self, who: Who, process: &Process, serving: &Serving, steps: &mut Vec<Step>) {
        if !serving.has_written && !process.has_ended {
            steps.push(Step::Write(who));
        }
        match serving.upload {
            Some(Upload::Sent) => steps.push(Step::LandUpload(who)),
            Some(Upload::Landed) => steps.push(Step::AnswerUpload(who)),
            None => {}
        }
        if serving.upload.is_some() && self.lost_answers > 0 {
            steps.push(Step::FailUpload(who));
        }
        if let Some(read) = &serving.owner_read {
            steps.push(if Self::is_served(read) { Step::DeliverProof(who) } else { Step::ServeProof(who) });
        }
        // Stops its cells in order only when nothing of them is under way.
        let is_quiet = serving.upload.is_none() && serving.owner_read.is_none();
        if is_quiet && (serving.is_over || !serving.has_written) {
            steps.push(Step::Sleep(who));
            if self.releases > 0 && !process.has_ended && !serving.gate.has_failed() {
                steps.push(Step::Release(who));
            }
        }
    }
}
