//! The machine. At most one capture-or-upload and one owner read are outstanding; commits that arrive meanwhile share
//! the next capture, so one upload serves any number of concurrent commits.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use holdfast_types::{Epoch, Millis, NodeName, SessionId, Txid};

use super::{Clearance, DurabilityProof, FailCause, GateEffect, GateEvent, OutputId};
use crate::mutant::{self, Mutant};
use crate::ownership::OwnerView;

/// The gate of one cell in one epoch.
#[derive(Clone, Debug)]
pub struct Gate {
    node: NodeName,
    session: SessionId,
    epoch: Epoch,
    /// The highest ticket asked for: what must be captured.
    wanted: Txid,
    captured: Txid,
    uploaded: Txid,
    covered: Txid,
    /// Whether an owner read of this epoch has named the session yet. Before, even what was restored may be missing
    /// from a later epoch: a late landing of the epoch before can be seen by one restore and not by another.
    is_confirmed: bool,
    pipeline: Pipeline,
    owner_read: Option<OwnerRead>,
    waiting: VecDeque<Waiting>,
    failed: Option<FailCause>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pipeline {
    Idle,
    Capturing,
    Uploading { attempt: u32 },
}

/// An owner read in flight, and what it can prove: what was uploaded before it began.
#[derive(Clone, Copy, Debug)]
struct OwnerRead {
    upto: Txid,
    attempt: u32,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    output: OutputId,
    ticket: Txid,
    deadline: Millis,
}

impl Gate {
    /// A gate for the epoch that `node` and `session` claimed, over a database at `restored`, all of which the bucket
    /// holds.
    #[must_use]
    pub fn new(node: NodeName, session: SessionId, epoch: Epoch, restored: Txid) -> Self {
        Self {
            node,
            session,
            epoch,
            wanted: restored,
            captured: restored,
            uploaded: restored,
            covered: restored,
            is_confirmed: mutant::is(Mutant::SkipConfirmation),
            pipeline: Pipeline::Idle,
            owner_read: None,
            waiting: VecDeque::new(),
            failed: None,
        }
    }

    /// The last transaction that a proof covers.
    #[must_use]
    pub fn covered(&self) -> Txid {
        self.covered
    }

    /// The last transaction known to be in the bucket.
    #[must_use]
    pub fn uploaded(&self) -> Txid {
        self.uploaded
    }

    /// Outputs that wait.
    #[must_use]
    pub fn waiting_len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether the gate has failed: the cell must not be used any more.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Takes an event. `now` and `authority_until` are monotonic: when the event happened, and the end of the session's
    /// authority as known at that time.
    pub fn on(&mut self, event: GateEvent, now: Millis, authority_until: Millis) -> Vec<GateEffect> {
        let mut effects = Vec::new();
        let expired = now >= authority_until && !mutant::is(Mutant::IgnoreExpiredLease);
        if let GateEvent::OutputReady { output, ticket, deadline } = event {
            self.wanted = self.wanted.max(ticket);
            self.waiting.push_back(Waiting { output, ticket, deadline });
        }
        if self.failed.is_none() {
            match event {
                _ if expired => self.fail(FailCause::LeaseLost, &mut effects),
                GateEvent::Fenced => self.fail(FailCause::LeaseLost, &mut effects),
                GateEvent::CaptureFailed => self.fail(FailCause::CaptureFailed, &mut effects),
                GateEvent::OutputReady { .. } => {
                    self.release(Clearance::NothingUncovered, &mut effects);
                }
                GateEvent::Captured { txid } => self.on_captured(txid, &mut effects),
                GateEvent::Uploaded { txid } => self.on_uploaded(txid, &mut effects),
                GateEvent::UploadFailed { txid } => self.on_upload_failed(txid, &mut effects),
                GateEvent::OwnerRead { owner } => self.on_owner(owner.as_ref(), &mut effects),
                GateEvent::OwnerUnreadable => self.on_unreadable(&mut effects),
                GateEvent::Tick => {}
            }
            self.check_deadlines(now, &mut effects);
        }
        match self.failed {
            Some(cause) => self.fail_waiting(cause, &mut effects),
            None => self.pump(&mut effects),
        }
        effects
    }

    /// Starts a capture when something is wanted and nothing is under way.
    fn pump(&mut self, effects: &mut Vec<GateEffect>) {
        if self.pipeline == Pipeline::Idle && self.wanted > self.captured {
            self.pipeline = Pipeline::Capturing;
            effects.push(GateEffect::Capture);
        }
    }

    fn on_captured(&mut self, txid: Option<Txid>, effects: &mut Vec<GateEffect>) {
        assert_eq!(self.pipeline, Pipeline::Capturing, "a capture was asked for");
        match txid {
            Some(txid) => {
                assert_eq!(txid, self.captured.next(), "captures are numbered without a gap");
                self.captured = txid;
                self.wanted = self.wanted.max(txid);
                self.pipeline = Pipeline::Uploading { attempt: 0 };
                effects.push(GateEffect::Upload { txid, attempt: 0 });
            }
            None => {
                // The ticket's transaction left no page behind: it reveals nothing beyond what is captured.
                self.pipeline = Pipeline::Idle;
                self.wanted = self.captured;
                for waiting in &mut self.waiting {
                    waiting.ticket = waiting.ticket.min(self.captured);
                }
                self.release(Clearance::NothingUncovered, effects);
            }
        }
    }

    fn on_uploaded(&mut self, txid: Txid, effects: &mut Vec<GateEffect>) {
        if txid != self.captured || !matches!(self.pipeline, Pipeline::Uploading { .. }) {
            return; // the late answer of an earlier try
        }
        self.uploaded = txid;
        self.pipeline = Pipeline::Idle;
        self.read_owner(0, effects);
    }

    fn on_upload_failed(&mut self, txid: Txid, effects: &mut Vec<GateEffect>) {
        let Pipeline::Uploading { attempt } = self.pipeline else { return };
        if txid == self.captured {
            let attempt = attempt.saturating_add(1);
            self.pipeline = Pipeline::Uploading { attempt };
            effects.push(GateEffect::Upload { txid, attempt });
        }
    }

    fn read_owner(&mut self, attempt: u32, effects: &mut Vec<GateEffect>) {
        if self.owner_read.is_none() && (self.uploaded > self.covered || !self.is_confirmed) {
            self.owner_read = Some(OwnerRead { upto: self.uploaded, attempt });
            effects.push(GateEffect::ReadOwner { attempt });
        }
    }

    fn on_unreadable(&mut self, effects: &mut Vec<GateEffect>) {
        if let Some(read) = self.owner_read.take() {
            self.read_owner(read.attempt.saturating_add(1), effects);
        }
    }

    fn on_owner(&mut self, owner: Option<&OwnerView>, effects: &mut Vec<GateEffect>) {
        let Some(read) = self.owner_read.take() else { return };
        let upto = if mutant::is(Mutant::CoverBeyondOwnerRead) { self.captured } else { read.upto };
        match DurabilityProof::from_bucket(upto, owner, (&self.node, self.session, self.epoch)) {
            Some(proof) => {
                self.covered = self.covered.max(proof.upto());
                self.is_confirmed = true;
                self.release(Clearance::Proved(proof), effects);
                self.read_owner(0, effects);
            }
            None => self.fail(FailCause::OwnershipLost, effects),
        }
    }

    fn release(&mut self, clearance: Clearance, effects: &mut Vec<GateEffect>) {
        while let Some(first) = self.waiting.front() {
            if first.ticket > self.covered {
                return;
            }
            if !self.is_confirmed {
                self.read_owner(0, effects);
                return;
            }
            // Both sides of INV-ACK-1: nothing leaves beyond what a proof covers.
            assert!(
                first.ticket <= self.uploaded
                    || mutant::is(Mutant::CoverTicketEarly)
                    || mutant::is(Mutant::CoverBeyondOwnerRead)
            );
            effects.push(GateEffect::Release { output: first.output, clearance });
            self.waiting.pop_front();
        }
    }

    fn check_deadlines(&mut self, now: Millis, effects: &mut Vec<GateEffect>) {
        let late = self.waiting.iter().any(|waiting| now >= waiting.deadline);
        if late && self.failed.is_none() {
            self.fail(FailCause::TimedOut, effects);
        }
    }

    fn fail(&mut self, cause: FailCause, effects: &mut Vec<GateEffect>) {
        self.fail_waiting(cause, effects);
        if mutant::is(Mutant::KeepDatabaseAfterFailedProof) && cause == FailCause::TimedOut {
            self.covered = self.captured;
            self.uploaded = self.captured;
            self.pipeline = Pipeline::Idle;
            return;
        }
        self.failed = Some(cause);
        effects.push(GateEffect::Discard { cause });
    }

    fn fail_waiting(&mut self, cause: FailCause, effects: &mut Vec<GateEffect>) {
        for waiting in self.waiting.drain(..) {
            effects.push(GateEffect::Fail { output: waiting.output, cause });
        }
    }
}
