//! A cell with due entries: what is known of it, and when it is looked at next.

use alloc::vec::Vec;

use holdfast_types::{AlarmId, AlarmTime, Epoch, Millis, SessionId, WakeMinute};

use super::HintOutcome;
use super::machine::CELL_ENTRIES_MAX;
use crate::lease::Now;
use crate::mutant::{self, Mutant};

/// After the deadline of an armed alarm its owner gets this long to fire and retire it; doubles.
const HOLD_MS: u64 = 3_000;
/// After a look that found another alarm armed, or none, its owner gets this long to retire the entry; doubles.
const SETTLE_MS: u64 = 2_000;
/// After a failure; doubles.
const FAILED_MS: u64 = 1_000;
/// So long before its alarm a cell without an owner is opened: those whose alarms are due are opened before it.
const AHEAD_MS: u64 = 5_000;
/// Longest pause while somebody looks, or nobody has the cell.
const LOOKED_MS_MAX: u64 = 600_000;
/// Longest pause after failures: whatever failed may be over.
const FAILED_MS_MAX: u64 = 30_000;

/// One entry, and the pass of the index in which it was last seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) minute: WakeMinute,
    pub(super) id: AlarmId,
    pub(super) pass: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Looked at when the monotonic clock reaches this.
    Waiting(Millis),
    /// What is retired of it is being read.
    Reading,
    /// These are being deleted.
    Deleting(Vec<AlarmId>),
    /// Its owner is asked.
    Hinting,
}

#[derive(Clone, Debug)]
pub(super) struct DueCell {
    pub(super) entries: Vec<Entry>,
    pub(super) state: State,
    /// Who looked last, and in which epoch: while that session lives its own timer fires what it installs.
    pub(super) looked: Option<(SessionId, Epoch)>,
    /// What was armed when somebody last looked, and when it is due.
    armed: Option<(AlarmId, Millis)>,
    /// The installation that its owner was last asked about.
    hinted: Option<AlarmId>,
    /// Looks in a row that changed nothing.
    tries: u32,
    /// There was no such cell.
    pub(super) is_missing: bool,
    /// The last hint failed: worth another as soon as somebody dies.
    pub(super) has_failed: bool,
}

impl DueCell {
    pub(super) fn new(entry: Entry, now: Now) -> Self {
        Self {
            entries: alloc::vec![entry],
            state: State::Waiting(now.monotonic),
            looked: None,
            armed: None,
            hinted: None,
            tries: 0,
            is_missing: false,
            has_failed: false,
        }
    }

    /// The newest installation: the only one that can be armed, unless it was never committed.
    pub(super) fn newest(&self) -> Option<Entry> {
        self.entries.iter().copied().max_by_key(|entry| entry.id)
    }

    /// The first moment at which one of its alarms may have been due.
    pub(super) fn oldest(&self) -> Option<WakeMinute> {
        self.entries.iter().map(|entry| entry.minute).min()
    }

    /// Forgets why it waited.
    pub(super) fn begin_anew(&mut self) {
        self.try_anew();
        self.has_failed = false;
    }

    /// Forgets how often it was tried; whether it can be opened now is for the next look to say.
    pub(super) fn try_anew(&mut self) {
        self.tries = 0;
        self.looked = None;
    }

    /// Its last owner is gone: when another one is to open it. Those whose alarms are longest due come first, and those whose
    /// alarms are known not to be due wait: an owner of many cells leaves more than can be opened at once.
    pub(super) fn orphaned(&mut self, now: Now) -> Millis {
        let armed = self.armed.take();
        self.begin_anew();
        // A newer installation, or one that there is no room to remember, may be due earlier.
        let newest = self.newest().map(|entry| entry.id);
        let is_known = |(id, _): &(AlarmId, _)| Some(*id) == newest && self.entries.len() < CELL_ENTRIES_MAX;
        let Some((_, due)) = armed.filter(is_known) else { return now.monotonic };
        let late_ms = now.wall.since(due);
        if late_ms > 0 {
            return Millis::new(now.monotonic.get().saturating_sub(late_ms));
        }
        now.monotonic.plus(due.since(now.wall).saturating_sub(AHEAD_MS))
    }

    /// Its owner is asked about an installation. Another one than before is news: what was there has fired, so this owner is
    /// not one that nothing comes of.
    pub(super) fn ask(&mut self, id: AlarmId) {
        if self.hinted.replace(id) != Some(id) {
            self.tries = 0;
        }
    }

    /// When to look again, after a hint.
    pub(super) fn after_hint(&mut self, outcome: HintOutcome, now: Now) -> Millis {
        let tries = self.tries;
        self.tries = tries.saturating_add(1);
        self.has_failed = matches!(outcome, HintOutcome::Failed | HintOutcome::Overloaded { .. });
        self.is_missing = outcome == HintOutcome::Missing;
        let pause_ms = match outcome {
            HintOutcome::Looked { session, epoch, armed } => {
                self.looked = Some((session, epoch));
                let at = |deadline: AlarmTime| Millis::new(u64::try_from(deadline.get()).unwrap_or(0));
                self.armed = armed.map(|(id, deadline)| (id, at(deadline)));
                match self.armed.filter(|(id, _)| self.entries.iter().any(|entry| entry.id == *id)) {
                    Some((_, deadline)) => {
                        let hold_ms = doubled(HOLD_MS, tries, LOOKED_MS_MAX);
                        deadline.since(now.wall).saturating_add(hold_ms).min(LOOKED_MS_MAX)
                    }
                    None => doubled(SETTLE_MS, tries, LOOKED_MS_MAX),
                }
            }
            HintOutcome::Missing => doubled(SETTLE_MS, tries, LOOKED_MS_MAX),
            HintOutcome::Overloaded { retry_after_ms } => {
                doubled(retry_after_ms.clamp(FAILED_MS, FAILED_MS_MAX), tries, FAILED_MS_MAX)
            }
            HintOutcome::Failed if mutant::is(Mutant::WakerForgetsFailure) => {
                self.has_failed = false;
                LOOKED_MS_MAX
            }
            HintOutcome::Failed => doubled(FAILED_MS, tries, FAILED_MS_MAX),
        };
        now.monotonic.plus(pause_ms)
    }

    /// When to look again, after the bucket did not answer.
    pub(super) fn after_failure(&mut self, now: Now) -> Millis {
        self.has_failed = true;
        let tries = self.tries;
        self.tries = tries.saturating_add(1);
        now.monotonic.plus(doubled(FAILED_MS, tries, FAILED_MS_MAX))
    }
}

fn doubled(first_ms: u64, times: u32, max_ms: u64) -> u64 {
    first_ms.saturating_mul(1 << times.min(20)).min(max_ms)
}
