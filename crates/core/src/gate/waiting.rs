//! Outputs that wait, in order.

use alloc::collections::VecDeque;

use holdfast_types::{Millis, Txid};

use super::OutputId;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Waiting {
    pub(super) output: OutputId,
    pub(super) ticket: Txid,
    pub(super) deadline: Millis,
    /// Whether a proof is not enough: the bucket must hold it.
    pub(super) in_bucket: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Queue {
    queue: VecDeque<Waiting>,
    /// No deadline is earlier than this; looked at again when it comes.
    earliest: Option<Millis>,
    /// How many must be in the bucket before they leave.
    for_bucket: usize,
}

impl Queue {
    pub(super) fn push(&mut self, waiting: Waiting) {
        self.earliest = Some(self.earliest.map_or(waiting.deadline, |at| at.min(waiting.deadline)));
        self.for_bucket += usize::from(waiting.in_bucket);
        self.queue.push_back(waiting);
    }

    pub(super) fn first(&self) -> Option<&Waiting> {
        self.queue.front()
    }

    pub(super) fn pop(&mut self) -> Option<Waiting> {
        let first = self.queue.pop_front();
        self.for_bucket -= usize::from(first.as_ref().is_some_and(|first| first.in_bucket));
        if self.queue.is_empty() {
            self.earliest = None;
        }
        first
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether any output must be in the bucket before it leaves.
    pub(super) fn wants_bucket(&self, uploaded: Txid) -> bool {
        // A release's is the last of its cell; others may wait behind that of a restore.
        self.for_bucket > 0 && self.queue.iter().any(|waiting| waiting.in_bucket && waiting.ticket > uploaded)
    }

    /// Whether a deadline has come. Costs a walk over the queue only when the earliest known one has.
    pub(super) fn is_late(&mut self, now: Millis) -> bool {
        if self.earliest.is_none_or(|at| now < at) {
            return false;
        }
        self.earliest = self.queue.iter().map(|waiting| waiting.deadline).min();
        self.earliest.is_some_and(|at| now >= at)
    }

    /// Nothing that waits gives up before this.
    pub(super) fn raise_deadlines(&mut self, until: Millis) {
        for waiting in &mut self.queue {
            waiting.deadline = waiting.deadline.max(until);
        }
    }

    /// Outputs with tickets of a range need a proof of its end.
    pub(super) fn raise_tickets(&mut self, from: Txid, through: Txid) {
        for waiting in &mut self.queue {
            if waiting.ticket >= from {
                waiting.ticket = waiting.ticket.max(through);
            }
        }
    }

    /// Nothing beyond `captured` exists.
    pub(super) fn clip_tickets(&mut self, captured: Txid) {
        for waiting in &mut self.queue {
            waiting.ticket = waiting.ticket.min(captured);
        }
    }
}
