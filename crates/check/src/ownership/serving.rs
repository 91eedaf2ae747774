//! A served cell: one write in each epoch, which leaves on a bucket proof.

use holdfast_core::gate::{FailCause, Gate, GateEffect, GateEvent, GateOwner, OutputId};
use holdfast_types::{Millis, Txid};

use super::World;
use super::process::{Phase, Serving, Upload};
use super::seen::bit;
use crate::register::Read;

/// When a session's authority ends, and its clock before and after that.
const AUTHORITY_UNTIL: Millis = Millis::new(10);
const FIRST: Txid = Txid::new(1);

impl World {
    /// The claimed epoch restores what the bucket holds of earlier ones.
    pub(super) fn restore(&mut self, who: usize) {
        let Phase::Restoring { owner, version } = self.processes[who].phase.clone() else {
            unreachable!("a claim succeeded")
        };
        let earlier = bit(owner.epoch) - 1;
        self.seen.restored.insert(owner.epoch, self.objects & earlier);
        let gate_owner = GateOwner { node: owner.node.clone(), session: owner.session, epoch: owner.epoch };
        let gate = Gate::new(gate_owner, Txid::ZERO, 0);
        let (has_written, upload, owner_read, is_over) = (false, None, None, false);
        let serving = Serving { owner, version, gate, has_written, upload, owner_read, is_over };
        self.processes[who].phase = Phase::Serving(Box::new(serving));
    }

    pub(super) fn serving(&mut self, who: usize) -> &mut Serving {
        let Phase::Serving(serving) = &mut self.processes[who].phase else {
            unreachable!("the cell is served")
        };
        serving
    }

    pub(super) fn write(&mut self, who: usize) {
        self.serving(who).has_written = true;
        let deadline = Millis::new(u64::MAX);
        self.gate_event(
            who,
            GateEvent::OutputReady { output: OutputId(1), ticket: FIRST, deadline, in_bucket: false },
        );
    }

    pub(super) fn land_upload(&mut self, who: usize) {
        let serving = self.serving(who);
        serving.upload = Some(Upload::Landed);
        let epoch = serving.owner.epoch;
        self.objects |= bit(epoch);
        self.seen.note_stored(epoch);
    }

    /// The upload is answered with an error, or not in time.
    pub(super) fn fail_upload(&mut self, who: usize) {
        let serving = self.serving(who);
        if serving.upload.take() == Some(Upload::Sent) {
            let epoch = serving.owner.epoch;
            self.late_objects |= bit(epoch);
        }
        self.gate_event(who, GateEvent::UploadFailed { last: FIRST });
    }

    pub(super) fn deliver_proof(&mut self, who: usize) {
        let Some(Read::Served(found)) = self.serving(who).owner_read.take() else {
            unreachable!("it was served")
        };
        let owner = found.map(|(owner, _)| owner);
        self.gate_event(who, GateEvent::OwnerRead { owner });
    }

    pub(super) fn gate_event(&mut self, who: usize, event: GateEvent) {
        let has_ended = self.processes[who].has_ended;
        let now = if has_ended { AUTHORITY_UNTIL } else { Millis::ZERO };
        let mut effects = self.serving(who).gate.on(event, now, AUTHORITY_UNTIL);
        while let Some(effect) = (!effects.is_empty()).then(|| effects.remove(0)) {
            let serving = self.serving(who);
            match effect {
                GateEffect::Capture => {
                    let captured = Some((FIRST, None));
                    effects.extend(serving.gate.on(
                        GateEvent::Captured { captured, len: 1 },
                        now,
                        AUTHORITY_UNTIL,
                    ));
                }
                GateEffect::Upload { .. } => serving.upload = Some(Upload::Sent),
                GateEffect::ReadOwner { .. } => serving.owner_read = Some(Read::Asked),
                GateEffect::Release { .. } => {
                    serving.is_over = true;
                    self.seen.acknowledged |= bit(serving.owner.epoch);
                    self.seen.left_fenced |= has_ended;
                }
                GateEffect::Discard { cause } => {
                    serving.is_over = true;
                    serving.owner_read = None;
                    self.seen.proof_failed |= cause == FailCause::OwnershipLost;
                }
                GateEffect::Fail { .. } | GateEffect::WakeAt(_) | GateEffect::Settled => {}
            }
        }
    }
}
