//! What may happen next, and how the world answers the gate.

use holdfast_core::gate::{Clearance, GateEffect, GateEvent, OutputId, ProofKind};
use holdfast_types::{LogOffset, Millis, Txid};

use super::world::{AUTHORITY_UNTIL, Call, Captured, Output, RESTORED, TOO_LATE_BY_MS, record};
use super::{Bounds, Phase, Proofs, World};

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The handler writes and answers.
    Write,
    /// The handler answers without a write.
    Read,
    /// The cell is given up in order.
    Close,
    /// The capture that was asked for ends; the node log takes it or not.
    Capture {
        /// Whether it does.
        is_logged: bool,
    },
    /// The capture that was asked for fails.
    FailCapture,
    /// The followers fsync one more frame.
    Fsync,
    /// The node log tells the gate that the next frame is proved.
    Prove,
    /// The upload lands.
    LandUpload,
    /// The upload is answered.
    AnswerUpload,
    /// The upload is answered with an error; what has not landed may land later.
    FailUpload,
    /// An upload lands that was answered with an error.
    LandLateUpload,
    /// The bucket reads the owner record.
    ServeOwner,
    /// The owner record arrives.
    DeliverOwner,
    /// The owner record cannot be read.
    FailOwner,
    /// What is logged may wait for its pace, or no more.
    ChangePace,
    /// The cell is abandoned.
    Abandon,
    /// The gate's clock is looked at.
    Tick,
    /// Time goes on.
    Advance,
    /// Another session recovers the node log...
    Seal,
    /// ...and claims the cell, and restores it.
    Succeed,
}

impl World {
    pub(super) fn steps(&self, bounds: Bounds, steps: &mut Vec<Step>) {
        let mut may = |is_possible: bool, step: Step| {
            if is_possible {
                steps.push(step);
            }
        };
        let serves = !self.discarded && !self.closing && self.phase < Phase::Fenced;
        may(serves && self.writes <= bounds.writes, Step::Write);
        may(serves && self.reads < bounds.reads, Step::Read);
        may(serves && bounds.closes, Step::Close);
        may(self.capture, Step::Capture { is_logged: true });
        may(self.capture, Step::Capture { is_logged: false });
        may(self.capture && self.faults > 0, Step::FailCapture);
        may(self.fsynced < self.frames() && !self.sealed, Step::Fsync);
        may(self.proved < self.fsynced, Step::Prove);
        may(matches!(self.upload, Some((.., Call::Asked))), Step::LandUpload);
        may(matches!(self.upload, Some((.., Call::Done(())))), Step::AnswerUpload);
        may(self.upload.is_some() && self.faults > 0, Step::FailUpload);
        may(self.late_upload.is_some(), Step::LandLateUpload);
        may(matches!(self.owner_read, Some(Call::Asked)), Step::ServeOwner);
        may(matches!(self.owner_read, Some(Call::Done(_))), Step::DeliverOwner);
        may(self.owner_read.is_some() && self.faults > 0, Step::FailOwner);
        may(self.faults > 0 && !self.discarded, Step::Abandon);
        may(!self.may_wait, Step::ChangePace);
        may(self.phase > Phase::Early, Step::Tick);
        may(self.phase < bounds.last_phase, Step::Advance);
        may(!self.sealed, Step::Seal);
        may(self.sealed && self.succeeded.is_none(), Step::Succeed);
    }

    pub(super) fn take(&mut self, step: Step, proofs: &Proofs) {
        let event = match step {
            Step::Write => {
                self.writes += 1;
                Some(self.output(false))
            }
            Step::Read => {
                self.reads += 1;
                Some(self.output(false))
            }
            Step::Close => {
                self.closing = true;
                Some(self.output(true))
            }
            Step::Capture { is_logged } => Some(self.end_capture(is_logged)),
            Step::FailCapture => {
                self.capture = false;
                self.fault(GateEvent::CaptureFailed)
            }
            Step::Prove => Some(self.prove(proofs)),
            Step::AnswerUpload => {
                let (_, last, _) = self.upload.take().expect("an upload is under way");
                Some(GateEvent::Uploaded { last })
            }
            Step::FailUpload => {
                let (first, last, call) = self.upload.take().expect("an upload is under way");
                if call == Call::Asked {
                    self.late_upload = Some((first, last));
                }
                self.fault(GateEvent::UploadFailed { last })
            }
            Step::DeliverOwner => {
                let Some(Call::Done(names_us)) = self.owner_read.take() else {
                    unreachable!("a read is back")
                };
                Some(GateEvent::OwnerRead { owner: Some(record(names_us)) })
            }
            Step::FailOwner => {
                self.owner_read = None;
                self.fault(GateEvent::OwnerUnreadable)
            }
            Step::ChangePace => {
                self.may_wait = true;
                Some(GateEvent::PaceChanged { rounds: 1 })
            }
            Step::Abandon => self.fault(GateEvent::Abandoned),
            Step::Tick => Some(GateEvent::Tick),
            step => {
                self.go_on(step);
                None
            }
        };
        if let Some(event) = event {
            let effects = self.gate.on(event, self.phase.now(), AUTHORITY_UNTIL);
            self.execute(effects);
        }
    }

    /// What happens without the gate.
    fn go_on(&mut self, step: Step) {
        match step {
            Step::Fsync => self.fsynced += 1,
            Step::LandUpload => {
                let (first, last, call) = self.upload.as_mut().expect("an upload is under way");
                *call = Call::Done(());
                let range = (*first, *last);
                self.land(range);
            }
            Step::LandLateUpload => {
                let range = self.late_upload.take().expect("one is late");
                self.land(range);
            }
            Step::ServeOwner => {
                let names_us = self.succeeded.is_none();
                self.owner_read = Some(Call::Done(names_us));
            }
            Step::Advance => self.phase = self.phase.next(),
            Step::Seal => self.sealed = true,
            Step::Succeed => self.succeeded = Some(self.durable_writes()),
            step => unreachable!("{step:?} is an event of the gate"),
        }
    }

    fn fault(&mut self, event: GateEvent) -> Option<GateEvent> {
        self.faults -= 1;
        Some(event)
    }

    fn land(&mut self, (first, last): (Txid, Txid)) {
        let range = self.at(first)..=self.at(last);
        self.captured[range].iter_mut().for_each(|captured| captured.landed = true);
    }

    fn output(&mut self, in_bucket: bool) -> GateEvent {
        self.outputs.push(Output { reveals: self.writes, in_bucket });
        let output = OutputId(self.outputs.len() as u64);
        let patience = Millis::new(self.phase.next().now().since(Millis::new(TOO_LATE_BY_MS)));
        let deadline = if in_bucket { Millis::new(u64::MAX) } else { patience };
        GateEvent::OutputReady { output, ticket: self.ticket(), deadline, in_bucket }
    }

    /// Everything written and not yet captured becomes one transaction.
    fn end_capture(&mut self, is_logged: bool) -> GateEvent {
        self.capture = false;
        if self.writes == self.captured_writes() {
            return GateEvent::Captured { captured: None, len: 0 };
        }
        let offset = is_logged.then(|| LogOffset::new(u64::from(self.frames()) + 1));
        self.captured.push(Captured { writes: self.writes, offset, landed: false });
        GateEvent::Captured { captured: Some((self.last_captured(), offset)), len: 1 }
    }

    fn prove(&mut self, proofs: &Proofs) -> GateEvent {
        self.proved += 1;
        let offset = LogOffset::new(u64::from(self.proved));
        let at = self.captured.iter().position(|captured| captured.offset == Some(offset));
        let txid = Txid::new(RESTORED.get() + 1 + at.expect("the frame was appended") as u64);
        GateEvent::EnsembleProved { proof: proofs.of(offset), offset, txid }
    }

    fn execute(&mut self, effects: Vec<GateEffect>) {
        for effect in effects {
            match effect {
                GateEffect::Capture => self.capture = true,
                GateEffect::Upload { first, last, attempt: _ } => {
                    self.upload = Some((first, last, Call::Asked));
                }
                GateEffect::ReadOwner { attempt: _ } => {
                    assert!(self.owner_read.is_none(), "one owner read at a time");
                    self.owner_read = Some(Call::Asked);
                }
                GateEffect::Release { output, clearance } => self.leave(output, clearance),
                GateEffect::Discard { .. } => self.discarded = true,
                GateEffect::Settled => self.settle(),
                GateEffect::Fail { .. } | GateEffect::WakeAt(_) => {}
            }
        }
    }

    fn leave(&mut self, output: OutputId, clearance: Clearance) {
        let number = u8::try_from(output.0).expect("few outputs");
        let Output { reveals, in_bucket } = self.outputs[usize::from(number) - 1];
        self.seen.left_unordered |= number <= self.left;
        self.left = number;
        self.seen.left_fenced |= self.phase == Phase::Fenced;
        self.seen.left_undurable |= reveals > self.succeeded.unwrap_or_else(|| self.durable_writes());
        self.seen.closed_early |= in_bucket && reveals > self.landed_writes();
        if let (Clearance::Proved(proof), true) = (clearance, reveals > 1) {
            self.seen.left_by_ensemble |= proof.kind() == ProofKind::Ensemble;
            self.seen.left_by_bucket |= proof.kind() == ProofKind::Bucket;
        }
    }

    fn settle(&mut self) {
        self.settled = true;
        let mut logged = self.captured.iter().filter(|captured| captured.offset.is_some());
        self.seen.settled_logged |= logged.clone().next().is_some();
        self.seen.settled_early |= logged.any(|captured| !captured.landed);
    }
}
