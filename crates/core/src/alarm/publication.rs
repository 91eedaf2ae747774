//! Wake entries of installations: put once each, and confirmed before anything that reveals the installation leaves. While
//! one write is under way later installations wait, and only the newest of them is put: outputs of those between then wait
//! for a proof of the newest, by which the others are obsolete.

use alloc::vec::Vec;

use holdfast_types::{AlarmId, Txid};

use super::{AlarmEffect, AlarmState, Armed, EntryName};
use crate::mutant::{self, Mutant};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Putting {
    armed: Armed,
    /// The transaction that holds the installation.
    ticket: Txid,
    attempt: u32,
    /// Whether outputs still wait for it: not after a commit that cleared the alarm.
    is_awaited: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Publication {
    /// The installation whose entry is known to be in the bucket, while it is armed.
    confirmed: Option<AlarmId>,
    putting: Option<Putting>,
    /// From which ticket on the gate holds outputs back.
    withheld_from: Option<Txid>,
    /// The first installation since the write under way began.
    next_from: Option<Txid>,
}

impl Publication {
    pub(super) fn is_confirmed(&self, id: AlarmId) -> bool {
        self.confirmed == Some(id)
    }

    /// An installation was committed.
    pub(super) fn installed(&mut self, armed: &Armed, ticket: Txid, effects: &mut Vec<AlarmEffect>) {
        if self.withheld_from.is_none() && !mutant::is(Mutant::RevealBeforeEntry) {
            self.withheld_from = Some(ticket);
            effects.push(AlarmEffect::Withhold { from: ticket });
        } else if self.putting.is_some() {
            self.next_from.get_or_insert(ticket);
        }
        if self.putting.is_none() {
            self.put(*armed, ticket, effects);
        }
    }

    fn put(&mut self, armed: Armed, ticket: Txid, effects: &mut Vec<AlarmEffect>) {
        self.putting = Some(Putting { armed, ticket, attempt: 0, is_awaited: true });
        let (entry, deadline) = (armed.entry(), armed.deadline);
        effects.push(AlarmEffect::PutEntry { entry, deadline, attempt: 0 });
    }

    /// Nothing is armed any more: whatever waited leaves with a proof of that.
    pub(super) fn cleared(&mut self, ticket: Txid, effects: &mut Vec<AlarmEffect>) {
        self.next_from = None;
        if let Some(putting) = &mut self.putting {
            putting.is_awaited = false;
        }
        if self.withheld_from.take().is_some() {
            effects.push(AlarmEffect::Reveal { through: ticket, from: None });
        }
    }

    /// What was armed is not any more. The entry that it leaves behind; one whose write is under way is told with its end.
    pub(super) fn superseded(&mut self, before: &Armed) -> Option<EntryName> {
        self.confirmed.take_if(|id| *id == before.id).map(|_| before.entry())
    }

    /// The entry is there, says somebody.
    pub(super) fn trust(&mut self, id: AlarmId) {
        self.confirmed = Some(id);
    }

    /// An entry is in the bucket. Answers whether that is one left behind.
    pub(super) fn published(
        &mut self,
        id: AlarmId,
        (state, ticket): (&AlarmState, Txid),
        effects: &mut Vec<AlarmEffect>,
    ) -> Option<EntryName> {
        let put = self.putting.take_if(|putting| putting.armed.id == id)?;
        let Some(armed) = state.armed else { return Some(put.armed.entry()) };
        if armed.id == id {
            self.confirmed = Some(id);
            self.next_from = None;
            if self.withheld_from.take().is_some() {
                effects.push(AlarmEffect::Reveal { through: put.ticket, from: None });
            }
            return None;
        }
        if put.is_awaited && self.withheld_from.is_some() {
            self.withheld_from = self.next_from.take();
            effects.push(AlarmEffect::Reveal { through: put.ticket, from: self.withheld_from });
        }
        self.next_from = None;
        self.put(armed, ticket, effects);
        Some(put.armed.entry())
    }

    /// A write failed. Answers an entry that may be left behind.
    pub(super) fn failed(
        &mut self,
        id: AlarmId,
        (state, ticket): (&AlarmState, Txid),
        effects: &mut Vec<AlarmEffect>,
    ) -> Option<EntryName> {
        let putting = self.putting.as_mut().filter(|putting| putting.armed.id == id)?;
        match state.armed {
            Some(armed) if armed.id == id => {
                putting.attempt = putting.attempt.saturating_add(1);
                let (entry, deadline, attempt) = (armed.entry(), armed.deadline, putting.attempt);
                effects.push(AlarmEffect::PutEntry { entry, deadline, attempt });
                None
            }
            newer => {
                let left = putting.armed.entry();
                self.putting = None;
                self.next_from = None;
                if let Some(armed) = newer {
                    self.put(armed, ticket, effects);
                }
                Some(left)
            }
        }
    }
}
