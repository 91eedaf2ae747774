//! The machine. At most one capture, one upload and one owner read are outstanding; commits that arrive meanwhile share the
//! next capture, so one proof serves any number of concurrent commits.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use holdfast_types::{Epoch, LogOffset, Millis, NodeName, SessionId, Txid};

use super::uploads::Uploads;
use super::waiting::{Queue, Waiting};
use super::{Clearance, DurabilityProof, FailCause, GateEffect, GateEvent};
use crate::ensemble::EnsembleProof;
use crate::mutant::{self, Mutant};
use crate::ownership::OwnerView;

/// Captured transactions of a cell that wait for an ensemble at once. With two, one is on its way while the commits that
/// came since gather in the next; more would only make more and smaller frames.
const LOGGED_IN_FLIGHT_MAX: usize = 2;

/// A capture keeps its cell's thread for as long as it takes to read and compress what was committed, or waits for one of a
/// neighbour. Meanwhile outputs give up this much later, in milliseconds.
const CAPTURE_MS_MAX: u64 = 30_000;
/// What is captured has at least this long to be proved, however late it came, in milliseconds; and more by its length.
const PROOF_MS_MIN: u64 = 5_000;
/// The slowest store that is waited for, in bytes a millisecond: as slow as one try of an upload may be.
const BYTES_PER_MS: u64 = 1_000;
/// What is shorter has no time of its own, in bytes.
const LONG_BYTES: u64 = 1 << 20;

/// Whose gate it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GateOwner {
    /// The node.
    pub node: NodeName,
    /// Its session.
    pub session: SessionId,
    /// The epoch that it claimed.
    pub epoch: Epoch,
}

/// The gate of one cell in one epoch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Gate {
    owner: GateOwner,
    /// The highest ticket asked for: what must be captured.
    wanted: Txid,
    captured: Txid,
    is_capturing: bool,
    /// Captured transactions in the node log that no proof covers yet.
    logged: VecDeque<(Txid, LogOffset)>,
    /// The proof of the frame whose capture is not reported yet: followers may be faster than the cell's thread.
    early: Option<(EnsembleProof, (LogOffset, Txid))>,
    /// The last transaction that the node log took: the bucket must get everything up to it.
    logged_upto: Txid,
    /// The last transaction that it did not take: on its way to the bucket at once.
    unlogged_upto: Txid,
    uploads: Uploads,
    covered: Txid,
    /// Up to here nothing waits for its pace.
    hurried_upto: Txid,
    /// How long what is logged may wait, in times of the pace.
    rounds: u32,
    /// Whether an owner read of this epoch has named the session yet. Before, even what was restored may be missing
    /// from a later epoch: a late landing of the epoch before can be seen by one restore and not by another.
    is_confirmed: bool,
    owner_read: Option<OwnerRead>,
    waiting: Queue,
    /// A long transaction that is not covered yet, and until when neither its outputs nor those behind it give up.
    long: Option<(Txid, Millis)>,
    /// From which ticket on outputs wait for something besides their proofs.
    withheld_from: Option<Txid>,
    failed: Option<FailCause>,
    is_settled: bool,
}

/// An owner read in flight, and what it can prove: what was uploaded before it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct OwnerRead {
    upto: Txid,
    attempt: u32,
}

impl Gate {
    /// A gate over a database at `restored`, all of which the bucket holds. What an ensemble proves is uploaded every
    /// `pace_ms`.
    #[must_use]
    pub fn new(owner: GateOwner, restored: Txid, pace_ms: u64) -> Self {
        Self {
            owner,
            wanted: restored,
            captured: restored,
            is_capturing: false,
            logged: VecDeque::new(),
            early: None,
            logged_upto: restored,
            unlogged_upto: restored,
            uploads: Uploads::new(restored, pace_ms),
            covered: restored,
            hurried_upto: restored,
            rounds: 0,
            is_confirmed: mutant::is(Mutant::SkipConfirmation),
            owner_read: None,
            waiting: Queue::default(),
            long: None,
            withheld_from: None,
            failed: None,
            is_settled: false,
        }
    }

    /// The last transaction that a proof covers.
    #[must_use]
    pub const fn covered(&self) -> Txid {
        self.covered
    }

    /// The last transaction captured.
    #[must_use]
    pub const fn captured(&self) -> Txid {
        self.captured
    }

    /// The last transaction known to be in the bucket.
    #[must_use]
    pub const fn uploaded(&self) -> Txid {
        self.uploads.uploaded
    }

    /// Outputs that wait.
    #[must_use]
    pub fn waiting_len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether the gate has failed: the cell must not be used any more.
    #[must_use]
    pub const fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Takes an event. `now` and `authority_until` are monotonic: when the event happened, and the end of the session's
    /// authority as known at that time.
    pub fn on(&mut self, event: GateEvent, now: Millis, authority_until: Millis) -> Vec<GateEffect> {
        let mut effects = Vec::new();
        let expired = now >= authority_until && !mutant::is(Mutant::IgnoreExpiredLease);
        if let GateEvent::OutputReady { output, ticket, deadline, in_bucket } = event {
            let deadline = self.long.map_or(deadline, |(_, until)| deadline.max(until));
            self.waiting.push(Waiting { output, ticket, deadline, in_bucket });
            if self.failed.is_none() {
                self.wanted = self.wanted.max(ticket);
            }
        }
        if self.failed.is_none() && expired {
            self.fail(FailCause::LeaseLost, &mut effects);
        }
        self.take(event, now, &mut effects);
        if self.failed.is_none() && self.is_late(now) {
            self.fail(FailCause::TimedOut, &mut effects);
        }
        if let Some(cause) = self.failed {
            self.fail_waiting(cause, &mut effects);
        }
        self.pump(now, &mut effects);
        effects
    }

    fn is_late(&mut self, now: Millis) -> bool {
        let grace_ms = if self.is_capturing { CAPTURE_MS_MAX } else { 0 };
        self.waiting.is_late(Millis::new(now.get().saturating_sub(grace_ms)))
    }

    fn take(&mut self, event: GateEvent, now: Millis, effects: &mut Vec<GateEffect>) {
        match event {
            // Also after a failure: what was logged goes on to the bucket, and what was captured meanwhile is logged.
            GateEvent::Uploaded { last } => self.on_uploaded(last, effects),
            GateEvent::UploadFailed { last } => self.on_upload_failed(last, effects),
            GateEvent::Captured { captured, len } => {
                self.on_captured(captured, effects);
                if captured.is_some() {
                    self.give_time(len, now);
                }
            }
            GateEvent::CaptureFailed => self.on_capture_failed(effects),
            GateEvent::PaceChanged { rounds } => self.rounds = rounds,
            _ if self.failed.is_some() => {}
            GateEvent::OutputReady { .. } => self.release(Clearance::NothingUncovered, effects),
            GateEvent::EnsembleProved { proof, offset, txid } => {
                self.on_proved(&proof, (offset, txid), effects)
            }
            GateEvent::OwnerRead { owner } => self.on_owner(owner.as_ref(), effects),
            GateEvent::OwnerUnreadable => self.on_unreadable(effects),
            GateEvent::DatabaseFailed => self.fail(FailCause::CaptureFailed, effects),
            GateEvent::Fenced => self.fail(FailCause::LeaseLost, effects),
            GateEvent::Abandoned => self.fail(FailCause::Abandoned, effects),
            GateEvent::Cover => self.hurried_upto = self.hurried_upto.max(self.captured),
            GateEvent::Cut { at } => self.cut(at),
            GateEvent::Withhold { from } => {
                self.withheld_from = Some(self.withheld_from.map_or(from, |first| first.min(from)));
            }
            GateEvent::Revealed { through, from } => self.on_revealed(through, from, effects),
            GateEvent::Tick => {}
        }
    }

    /// Starts what is due.
    fn pump(&mut self, now: Millis, effects: &mut Vec<GateEffect>) {
        match self.failed {
            None => self.pump_live(now, effects),
            // A session without authority writes nothing; its log's recovery does.
            Some(FailCause::LeaseLost) => {}
            Some(_) => self.settle(now, effects),
        }
    }

    fn pump_live(&mut self, now: Millis, effects: &mut Vec<GateEffect>) {
        let bucket_is_behind = self.unlogged_upto > self.uploads.uploaded;
        let may_capture = !self.is_capturing && !bucket_is_behind && self.logged.len() < LOGGED_IN_FLIGHT_MAX;
        if self.wanted > self.captured && may_capture {
            self.is_capturing = true;
            effects.push(GateEffect::Capture);
        }
        let uploaded = self.uploads.uploaded;
        let is_hurried = self.hurried_upto > uploaded || self.waiting.wants_bucket(uploaded);
        let is_urgent = bucket_is_behind || self.rounds == 0 || is_hurried;
        self.start_upload(self.captured, (is_urgent, now), effects);
    }

    fn start_upload(&mut self, upto: Txid, (is_urgent, now): (bool, Millis), effects: &mut Vec<GateEffect>) {
        let due_before = self.uploads.due();
        if let Some(piece) = self.uploads.start(upto, is_urgent, (now, self.rounds)) {
            effects.push(GateEffect::Upload { first: piece.first, last: piece.last, attempt: 0 });
        } else if let Some(due) = self.uploads.due()
            && due_before.is_none()
        {
            effects.push(GateEffect::WakeAt(due));
        }
    }

    fn settle(&mut self, now: Millis, effects: &mut Vec<GateEffect>) {
        if self.is_settled || self.is_capturing {
            return;
        }
        if self.uploads.uploaded >= self.logged_upto || mutant::is(Mutant::HideDirtyCell) {
            self.is_settled = true;
            effects.push(GateEffect::Settled);
        } else {
            self.start_upload(self.logged_upto, (true, now), effects);
        }
    }

    fn on_captured(&mut self, captured: Option<(Txid, Option<LogOffset>)>, effects: &mut Vec<GateEffect>) {
        assert!(self.is_capturing, "a capture was asked for");
        self.is_capturing = false;
        let early = self.early.take().filter(|_| self.failed.is_none());
        match captured {
            Some((txid, offset)) => {
                assert_eq!(txid, self.captured.next(), "captures are numbered without a gap");
                self.captured = txid;
                self.wanted = self.wanted.max(txid);
                match offset {
                    Some(offset) => {
                        self.logged.push_back((txid, offset));
                        self.logged_upto = txid;
                    }
                    None => self.unlogged_upto = txid,
                }
                if let Some((proof, frame)) = early {
                    self.on_proved(&proof, frame, effects);
                }
            }
            None => {
                // The ticket's transaction left no page behind: it reveals nothing beyond what is captured.
                self.wanted = self.captured;
                self.waiting.clip_tickets(self.captured);
                self.withheld_from = self.withheld_from.map(|from| from.min(self.captured));
                if self.failed.is_none() {
                    self.release(Clearance::NothingUncovered, effects);
                }
            }
        }
    }

    /// A transaction was captured late, or is so long that its proof takes its time: whoever waits is patient.
    fn give_time(&mut self, len: u64, now: Millis) {
        if len < LONG_BYTES && !self.waiting.is_late(now) {
            return;
        }
        let until = now.plus(PROOF_MS_MIN + len / BYTES_PER_MS);
        let until = self.long.map_or(until, |(_, before)| before.max(until));
        self.long = Some((self.captured, until));
        self.waiting.raise_deadlines(until);
    }

    fn cut(&mut self, at: Txid) {
        // What an object may hold already ends with the last captured transaction or before.
        assert!(at >= self.captured, "a cut is made at the newest transaction");
        self.wanted = self.wanted.max(at);
        self.hurried_upto = self.hurried_upto.max(at);
        self.uploads.cut(at);
    }

    fn on_capture_failed(&mut self, effects: &mut Vec<GateEffect>) {
        self.is_capturing = false;
        if self.failed.is_none() {
            self.fail(FailCause::CaptureFailed, effects);
        }
    }

    fn on_proved(&mut self, proof: &EnsembleProof, frame: (LogOffset, Txid), effects: &mut Vec<GateEffect>) {
        let (offset, txid) = frame;
        if txid > self.captured {
            // It is told once: no later proof need come.
            self.early = Some((*proof, frame)).filter(|_| self.is_capturing);
            return;
        }
        if !self.logged.iter().any(|logged| *logged == (txid, offset)) {
            return; // the bucket was faster
        }
        if let Some(proof) = DurabilityProof::from_ensemble(proof, frame, self.owner.epoch) {
            // A transaction that the log did not take is in the bucket before the next one is captured.
            assert!(self.unlogged_upto <= self.uploads.uploaded || txid < self.unlogged_upto);
            self.covered_upto(&proof, effects);
        }
    }

    fn covered_upto(&mut self, proof: &DurabilityProof, effects: &mut Vec<GateEffect>) {
        self.covered = self.covered.max(proof.upto());
        let covered = self.covered;
        self.logged.retain(|(txid, _)| *txid > covered);
        self.long = self.long.filter(|(txid, _)| *txid > covered);
        self.release(Clearance::Proved(*proof), effects);
    }

    fn on_uploaded(&mut self, last: Txid, effects: &mut Vec<GateEffect>) {
        if !self.uploads.is_done(last) || self.failed.is_some() {
            return;
        }
        self.read_owner(0, effects);
        // An output that only waited for the bucket to have it.
        self.release(Clearance::NothingUncovered, effects);
    }

    fn on_upload_failed(&mut self, last: Txid, effects: &mut Vec<GateEffect>) {
        if self.failed == Some(FailCause::LeaseLost) {
            return;
        }
        if let Some(piece) = self.uploads.again(last) {
            effects.push(GateEffect::Upload { first: piece.first, last: piece.last, attempt: piece.attempt });
        }
    }

    fn read_owner(&mut self, attempt: u32, effects: &mut Vec<GateEffect>) {
        let uploaded = self.uploads.uploaded;
        if self.owner_read.is_none() && (uploaded > self.covered || !self.is_confirmed) {
            self.owner_read = Some(OwnerRead { upto: uploaded, attempt });
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
        let GateOwner { node, session, epoch } = &self.owner;
        match DurabilityProof::from_bucket(upto, owner, (node, *session, *epoch)) {
            Some(proof) => {
                self.is_confirmed = true;
                self.covered_upto(&proof, effects);
                self.read_owner(0, effects);
            }
            None => self.fail(FailCause::OwnershipLost, effects),
        }
    }

    fn on_revealed(&mut self, through: Txid, from: Option<Txid>, effects: &mut Vec<GateEffect>) {
        if let Some(first) = self.withheld_from.take() {
            self.waiting.raise_tickets(first, through);
            self.wanted = self.wanted.max(through);
        }
        self.withheld_from = from;
        self.release(Clearance::NothingUncovered, effects);
    }

    fn release(&mut self, clearance: Clearance, effects: &mut Vec<GateEffect>) {
        while let Some(first) = self.waiting.first() {
            let in_bucket = first.ticket <= self.uploads.uploaded || mutant::is(Mutant::CoverByEnsemble);
            if first.ticket > self.covered || (first.in_bucket && !in_bucket) {
                return;
            }
            if self.withheld_from.is_some_and(|from| first.ticket >= from) {
                return;
            }
            if !self.is_confirmed {
                self.read_owner(0, effects);
                return;
            }
            // Both sides of INV-ACK-1: nothing leaves beyond what was captured and proved.
            assert!(
                first.ticket <= self.captured
                    || mutant::is(Mutant::CoverTicketEarly)
                    || mutant::is(Mutant::CoverBeyondOwnerRead)
            );
            effects.push(GateEffect::Release { output: first.output, clearance });
            self.waiting.pop();
        }
    }

    fn fail(&mut self, cause: FailCause, effects: &mut Vec<GateEffect>) {
        self.fail_waiting(cause, effects);
        if mutant::is(Mutant::KeepDatabaseAfterFailedProof) && cause == FailCause::TimedOut {
            self.covered = self.captured;
            self.logged.clear();
            self.uploads = Uploads::new(self.captured, 0);
            self.unlogged_upto = self.captured;
            return;
        }
        self.failed = Some(cause);
        effects.push(GateEffect::Discard { cause });
    }

    fn fail_waiting(&mut self, cause: FailCause, effects: &mut Vec<GateEffect>) {
        while let Some(waiting) = self.waiting.pop() {
            effects.push(GateEffect::Fail { output: waiting.output, cause });
        }
    }
}
