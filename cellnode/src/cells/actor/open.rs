//! What of a cell is under way between turns: open events, and operations that wait at the gate or run.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use holdfast_rpc::CallError;
use tokio_util::sync::CancellationToken;

use super::super::event::ReplySender;
use super::super::{Event, Resident};
use crate::runtime::{EventId, OpId};

/// Operations of one cell that may be under way.
const OPERATIONS_MAX: usize = 1_024;

struct OpenEvent {
    /// Until it is answered.
    reply: Option<ReplySender>,
    /// What it holds of the node's bounds.
    _held: Box<dyn Send>,
}

/// Events that are not over. A cell with open events is in use.
pub(super) struct OpenEvents {
    resident: Arc<Resident>,
    made: u64,
    events: HashMap<EventId, OpenEvent>,
}

impl OpenEvents {
    pub(super) fn new(resident: Arc<Resident>) -> Self {
        Self { resident, made: 0, events: HashMap::new() }
    }

    pub(super) fn next_name(&mut self) -> EventId {
        self.made += 1;
        EventId(self.made)
    }

    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub(super) fn contains(&self, event: EventId) -> bool {
        self.events.contains_key(&event)
    }

    pub(super) fn insert(&mut self, name: EventId, event: Event) {
        let Event { reply, held, .. } = event;
        self.events.insert(name, OpenEvent { reply: Some(reply), _held: held });
        self.resident.note_open(self.events.len());
    }

    /// A run of the alarm handler is open: nobody waits for its answer.
    pub(super) fn insert_alarm(&mut self, name: EventId) {
        self.events.insert(name, OpenEvent { reply: None, _held: Box::new(()) });
        self.resident.note_open(self.events.len());
    }

    /// Where the event's answer goes; none when it was answered already.
    pub(super) fn take_reply(&mut self, event: EventId) -> Option<ReplySender> {
        self.events.get_mut(&event)?.reply.take()
    }

    pub(super) fn done(&mut self, event: EventId) {
        if let Some(OpenEvent { reply: Some(reply), .. }) = self.events.remove(&event) {
            let reason = "the handler ended without an answer".to_owned();
            let _ = reply.send(Err(CallError::OutcomeUnknown { reason }));
        }
        self.resident.note_open(self.events.len());
    }

    /// Nobody knows what the events that are open have done.
    pub(super) fn fail_all(&mut self, reason: &str) {
        for (_, OpenEvent { reply, .. }) in self.events.drain() {
            if let Some(reply) = reply {
                let _ = reply.send(Err(CallError::OutcomeUnknown { reason: reason.to_owned() }));
            }
        }
        self.resident.note_open(0);
    }
}

/// Operations under way. Dropping them breaks those off that run.
#[derive(Default)]
pub(super) struct Operations {
    under_way: HashMap<OpId, CancellationToken>,
    /// Those that were refused; the runtime is not told yet.
    refused: HashSet<OpId>,
}

impl Operations {
    /// What tells that the operation is not wanted any more. An error, and the answer to come, when too many are under
    /// way.
    pub(super) fn begin(&mut self, op: OpId) -> Result<CancellationToken, String> {
        if self.under_way.len() >= OPERATIONS_MAX {
            self.refused.insert(op);
            return Err(format!("{OPERATIONS_MAX} operations of this cell are under way"));
        }
        let token = CancellationToken::new();
        let before = self.under_way.insert(op, token.clone());
        assert!(before.is_none(), "an operation's name is used once");
        Ok(token)
    }

    pub(super) fn is_under_way(&self, op: OpId) -> bool {
        self.under_way.contains_key(&op) || self.refused.contains(&op)
    }

    pub(super) fn ended(&mut self, op: OpId) {
        self.under_way.remove(&op);
        self.refused.remove(&op);
    }

    pub(super) fn cancel(&mut self, op: OpId) {
        if let Some(token) = self.under_way.remove(&op) {
            token.cancel();
        }
        self.refused.remove(&op);
    }

    pub(super) fn cancel_all(&mut self) {
        for (_, token) in self.under_way.drain() {
            token.cancel();
        }
        self.refused.clear();
    }
}

impl Drop for Operations {
    fn drop(&mut self) {
        self.cancel_all();
    }
}
