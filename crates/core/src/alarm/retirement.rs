//! Entries that mean nothing any more: named obsolete in the retired record behind a proof, then deleted. They gather for a
//! while first, so that a cell that installs an alarm after every run pays for one record write in that time, not for each.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use holdfast_types::{AlarmId, Millis, Txid};

use super::{AlarmEffect, Armed, EntryName};
use crate::mutant::{self, Mutant};

/// Entries that a cell remembers for deletion. What it forgets is found by the waker's scan, which hints the cell again.
pub const OBSOLETE_MAX: usize = 256;
/// Entries of one deletion.
pub const ENTRIES_PER_DELETE: usize = 128;
/// How long entries gather, in milliseconds.
const GATHER_MS: u64 = 5_000;

/// What the retired record says: every installation of the cell up to `through` is obsolete, but the armed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mark {
    /// The last installation that it speaks of.
    pub through: AlarmId,
    /// The exempt one.
    pub armed: Option<AlarmId>,
}

impl Mark {
    /// Whether it proves an entry of the cell obsolete.
    #[must_use]
    pub fn is_obsolete(&self, id: AlarmId) -> bool {
        id <= self.through && self.armed != Some(id)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Step {
    Proving,
    Writing { attempt: u32 },
    Deleting { attempt: u32 },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Round {
    mark: Mark,
    entries: Vec<EntryName>,
    step: Step,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Retirement {
    obsolete: BTreeSet<EntryName>,
    gather_until: Option<Millis>,
    round: Option<Round>,
}

impl Retirement {
    /// When the next round begins.
    pub(super) fn due(&self) -> Option<Millis> {
        self.gather_until.filter(|_| self.round.is_none())
    }

    pub(super) fn add(&mut self, entry: Option<EntryName>) {
        if let Some(entry) = entry.filter(|_| self.obsolete.len() < OBSOLETE_MAX) {
            self.obsolete.insert(entry);
        }
    }

    /// Begins a round when it is time. The state is the newest, and what is armed in it is published.
    pub(super) fn pump(
        &mut self,
        (last, armed): (AlarmId, Option<Armed>),
        ticket: Txid,
        now: Millis,
        effects: &mut Vec<AlarmEffect>,
    ) {
        if self.round.is_some() || self.obsolete.is_empty() {
            return;
        }
        let gathers = *self.gather_until.get_or_insert(now.plus(GATHER_MS)) > now;
        if gathers && !mutant::is(Mutant::RetireWithoutProof) {
            return;
        }
        self.gather_until = None;
        let mut mark = Mark { through: last, armed: armed.map(|armed| armed.id) };
        let mut entries: Vec<EntryName> = self.obsolete.iter().take(ENTRIES_PER_DELETE).copied().collect();
        for entry in &entries {
            self.obsolete.remove(entry);
        }
        if mutant::is(Mutant::DeleteArmedEntry) {
            entries.extend(armed.map(|armed| armed.entry()));
            mark.armed = None;
        }
        assert!(entries.iter().all(|entry| mark.is_obsolete(entry.id)), "what is armed stays");
        self.round = Some(Round { mark, entries, step: Step::Proving });
        effects.push(AlarmEffect::Prove { ticket });
        if mutant::is(Mutant::RetireWithoutProof) {
            self.proved(effects);
        }
    }

    pub(super) fn proved(&mut self, effects: &mut Vec<AlarmEffect>) {
        let Some(round) = self.round.as_mut().filter(|round| round.step == Step::Proving) else { return };
        round.step = Step::Writing { attempt: 0 };
        effects.push(AlarmEffect::WriteRetired { mark: round.mark, attempt: 0 });
    }

    pub(super) fn write_failed(&mut self, effects: &mut Vec<AlarmEffect>) {
        let Some(Round { mark, step: Step::Writing { attempt }, .. }) = &mut self.round else { return };
        *attempt = attempt.saturating_add(1);
        effects.push(AlarmEffect::WriteRetired { mark: *mark, attempt: *attempt });
    }

    pub(super) fn written(&mut self, effects: &mut Vec<AlarmEffect>) {
        let Some(Round { entries, step: step @ Step::Writing { .. }, .. }) = &mut self.round else { return };
        *step = Step::Deleting { attempt: 0 };
        effects.push(AlarmEffect::DeleteEntries { entries: entries.clone(), attempt: 0 });
    }

    pub(super) fn delete_failed(&mut self, effects: &mut Vec<AlarmEffect>) {
        let Some(Round { entries, step: Step::Deleting { attempt }, .. }) = &mut self.round else { return };
        *attempt = attempt.saturating_add(1);
        effects.push(AlarmEffect::DeleteEntries { entries: entries.clone(), attempt: *attempt });
    }

    pub(super) fn deleted(&mut self) {
        self.round.take_if(|round| matches!(round.step, Step::Deleting { .. }));
    }

    /// A later epoch looks after the entries.
    pub(super) fn give_up(&mut self) {
        self.round = None;
        self.obsolete.clear();
        self.gather_until = None;
    }
}
