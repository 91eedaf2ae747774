//! Runs that are counted before they begin. A handler that ends its process never comes to the end at which failures are
//! counted, and would end one node after the other. So where the owner before ended without a release, an alarm that was due
//! then may have done it: its next run is counted first, and begins when that count is proved. The first death is not
//! counted, each further one is (INV-WAKE-3). Alarms that become due in a living session cost nothing more than before.
//!
//! The count is in the row of the alarm, so it holds whoever runs the alarm next: `failures` is one more, `attempts` is not
//! until the run has ended. Releases that know nothing of this read a failure.

use alloc::vec::Vec;

use holdfast_types::AlarmId;

use super::firing::{FAILURES_MAX, Firing, later, retry_delay_ms};
use super::{Abandoned, AlarmEffect, AlarmNow, Armed};
use crate::mutant::{self, Mutant};

/// Counted runs after which an alarm is given up, should the owner of its cell end once more while it is due: the first run
/// and these are as many as one that fails in order has.
pub const UNENDED_MAX: u32 = FAILURES_MAX - 1;
/// What is due so soon may have been due for the owner before, whose clock may differ so far, in milliseconds (the default of
/// `--max-clock-skew`).
const CLOCKS_DIFFER_MS: u64 = 500;

/// That the owner of a cell before this session ended without a release, for as long as it has not been settled what that
/// says of the cell's alarm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Orphan {
    /// The alarm as this session has counted it before, in a transaction whose proof did not come. It may have landed.
    pub counted: Option<Armed>,
}

/// A run that this session has counted before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Count {
    pub(super) id: AlarmId,
    pub(super) is_proved: bool,
}

impl Armed {
    /// Whether a run was counted and has not ended, as far as the row tells.
    pub(super) const fn is_counted(&self) -> bool {
        self.failures > self.attempts
    }
}

impl Firing {
    /// Takes up an alarm whose cell's last owner ended without a release.
    pub(super) fn suspect(
        &mut self,
        armed: &Armed,
        orphan: Orphan,
        now: AlarmNow,
        effects: &mut Vec<AlarmEffect>,
    ) {
        let id = armed.id;
        if orphan.counted == Some(*armed) {
            self.count = Some(Count { id, is_proved: true });
            return;
        }
        if armed.due > later(now.wall, CLOCKS_DIFFER_MS) || mutant::is(Mutant::ForgetToCount) {
            return;
        }
        if armed.failures >= UNENDED_MAX {
            return self.abandon(id, Abandoned::Unended(armed.failures), effects);
        }
        let tries = armed.attempts.max(armed.failures);
        let due = if tries == 0 { armed.due } else { later(now.wall, retry_delay_ms(tries)) };
        self.count = Some(Count { id, is_proved: false });
        effects.push(AlarmEffect::Count(Armed { due, failures: armed.failures + 1, ..*armed }));
    }

    /// The count is proved: the run may begin.
    pub(super) fn counted(&mut self, id: AlarmId) {
        if let Some(count) = self.count.as_mut().filter(|count| count.id == id) {
            count.is_proved = true;
        }
    }

    /// Another installation is armed, or none is.
    pub(super) fn replaced(&mut self) {
        self.count = None;
    }
}
