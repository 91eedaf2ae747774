//! The machine: what the parts share, and which event goes to which.

use alloc::vec::Vec;

use holdfast_types::{AlarmId, AlarmTime, Epoch, Millis, Txid};

use super::counting::Orphan;
use super::firing::Firing;
use super::publication::Publication;
use super::retirement::Retirement;
use super::{AlarmEffect, AlarmEvent, AlarmNow, AlarmState, Armed, EntryName};
use crate::mutant::{self, Mutant};

/// The alarm of one cell in one epoch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Alarm {
    epoch: Epoch,
    state: AlarmState,
    /// The transaction that holds the last change.
    ticket: Txid,
    publication: Publication,
    firing: Firing,
    retirement: Retirement,
}

impl Alarm {
    /// The alarm of a cell that was just restored to `ticket`. Whether what is armed has its entry is not known: nothing
    /// leaves before it does. `orphan` is there where the owner before ended without a release: it is settled by what the
    /// effects say of a [`AlarmEffect::Count`] or [`AlarmEffect::Abandon`], once that is proved; at once where neither is
    /// among them.
    pub fn start(
        epoch: Epoch,
        (state, ticket): (AlarmState, Txid),
        orphan: Option<Orphan>,
        now: AlarmNow,
    ) -> (Self, Vec<AlarmEffect>) {
        let mut alarm = Self {
            epoch,
            state,
            ticket,
            publication: Publication::default(),
            firing: Firing::default(),
            retirement: Retirement::default(),
        };
        let mut effects = Vec::new();
        if let Some(armed) = state.armed {
            if mutant::is(Mutant::TrustRestoredEntry) {
                alarm.publication.trust(armed.id);
            } else {
                alarm.publication.installed(&armed, ticket, &mut effects);
            }
            if let Some(orphan) = orphan {
                alarm.firing.suspect(&armed, orphan, now, &mut effects);
            }
        }
        alarm.pump(now, &mut effects);
        (alarm, effects)
    }

    /// What is armed, as far as commits tell.
    #[must_use]
    pub const fn armed(&self) -> Option<&Armed> {
        self.state.armed.as_ref()
    }

    /// The installation whose handler runs.
    #[must_use]
    pub const fn running(&self) -> Option<AlarmId> {
        self.firing.running
    }

    /// Whether a run that was started may begin: what it was started for is still armed, and due.
    #[must_use]
    pub fn may_begin(&self, id: AlarmId, now: AlarmNow) -> bool {
        let is_due = |armed: &Armed| armed.due <= now.wall || mutant::is(Mutant::FireEarly);
        let is_armed = self.state.armed.is_some_and(|armed| armed.id == id && is_due(&armed));
        self.firing.running == Some(id) && (is_armed || mutant::is(Mutant::RunWhatWasDeleted))
    }

    /// When a run is due by the wall clock; none while nothing is armed or a run cannot begin.
    #[must_use]
    pub fn due(&self) -> Option<AlarmTime> {
        self.state.armed.filter(|_| self.firing.is_free()).map(|armed| armed.due)
    }

    /// When a `Tick` is wanted by the monotonic clock, whatever the wall clock says.
    #[must_use]
    pub fn next_tick(&self) -> Option<Millis> {
        let retirement = self.retirement.due().filter(|_| self.is_published());
        [retirement, self.firing.held_until()].into_iter().flatten().min()
    }

    /// Takes an event.
    pub fn on(&mut self, event: AlarmEvent, now: AlarmNow) -> Vec<AlarmEffect> {
        let mut effects = Vec::new();
        match event {
            AlarmEvent::Committed { state, ticket } => self.on_committed(state, ticket, &mut effects),
            AlarmEvent::Published(id) => self.on_published(id, &mut effects),
            AlarmEvent::PublishFailed(id) => {
                let left = self.publication.failed(id, (&self.state, self.ticket), &mut effects);
                self.retirement.add(left);
            }
            AlarmEvent::Ended(id, end) => self.firing.ended(id, end, (&self.state, now), &mut effects),
            AlarmEvent::Counted(id) => self.firing.counted(id),
            AlarmEvent::Proved => self.retirement.proved(&mut effects),
            AlarmEvent::RetiredWritten => self.retirement.written(&mut effects),
            AlarmEvent::RetireFailed => self.retirement.write_failed(&mut effects),
            AlarmEvent::RetiredByAnother => self.retirement.give_up(),
            AlarmEvent::Deleted => self.retirement.deleted(),
            AlarmEvent::DeleteFailed => self.retirement.delete_failed(&mut effects),
            AlarmEvent::Hinted(entry) => self.on_hinted(entry, &mut effects),
            AlarmEvent::Stopped => self.firing.stop(),
            AlarmEvent::Tick => {}
        }
        self.pump(now, &mut effects);
        effects
    }

    fn on_committed(&mut self, state: AlarmState, ticket: Txid, effects: &mut Vec<AlarmEffect>) {
        assert!(state.last >= self.state.last, "an installation's number is never used twice");
        let before = core::mem::replace(&mut self.state, state);
        self.ticket = ticket;
        // A change that was rolled back is told too: it is not the record of a run that the alarm waits for.
        if before != state {
            self.firing.committed();
        }
        let is_same = before.armed.map(|armed| armed.id) == state.armed.map(|armed| armed.id);
        if is_same {
            return;
        }
        self.firing.replaced();
        if let Some(before) = before.armed {
            let left = self.publication.superseded(&before);
            self.retirement.add(left);
        }
        match &state.armed {
            Some(armed) => self.publication.installed(armed, ticket, effects),
            None => self.publication.cleared(ticket, effects),
        }
    }

    fn on_published(&mut self, id: AlarmId, effects: &mut Vec<AlarmEffect>) {
        let left = self.publication.published(id, (&self.state, self.ticket), effects);
        self.retirement.add(left);
    }

    fn on_hinted(&mut self, entry: EntryName, effects: &mut Vec<AlarmEffect>) {
        if let Some(armed) = self.state.armed.filter(|armed| armed.id == entry.id) {
            // Below another minute it is no entry of ours, and no mark proves it obsolete.
            if armed.entry() == entry {
                self.on_published(entry.id, effects);
            }
        } else if entry.id <= self.last() {
            // One beyond is of a later epoch, whose owner looks after it.
            self.retirement.add(Some(entry));
        }
    }

    fn is_published(&self) -> bool {
        self.state.armed.is_none_or(|armed| self.publication.is_confirmed(armed.id))
    }

    /// The last installation that may have been made.
    fn last(&self) -> AlarmId {
        AlarmId { epoch: self.epoch, seq: self.state.last }
    }

    /// Starts what is due.
    fn pump(&mut self, now: AlarmNow, effects: &mut Vec<AlarmEffect>) {
        self.firing.start_due(&self.state, now, effects);
        if self.is_published() {
            let state = (self.last(), self.state.armed);
            self.retirement.pump(state, self.ticket, now.monotonic, effects);
        }
    }
}
