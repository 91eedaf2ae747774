//! No live recoverer is taken over: another one becomes the claimant of a recovery only when the one before is blocked, has
//! been silent, or has lost its authority by its own clock, or its process is gone. The last only while clocks keep their
//! bound.

use holdfast_core::log_record::{LogRecord, RecoveryMark};
use holdfast_core::recovery::RECOVERY_SILENCE_MS;
use holdfast_types::SessionId;

use crate::violation::{Violation, require};

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct ReliefChecker {
    relieved: u64,
}

impl ReliefChecker {
    /// The store replaced a log record; `may_live` says whether a session's process lives and may act now.
    ///
    /// # Errors
    /// The takeover of a live recoverer.
    pub fn on_record(
        &mut self,
        before: Option<&LogRecord>,
        after: &LogRecord,
        may_live: impl Fn(SessionId) -> bool,
    ) -> Result<(), Violation> {
        let mark = |record: &LogRecord| record.recovery.clone();
        let (Some(before), Some(after)) = (before.and_then(mark), mark(after)) else { return Ok(()) };
        if before.claimant == after.claimant || is_free(&before, &after) {
            return Ok(());
        }
        self.relieved += 1;
        let text = format_args!("{after:?} took over from {before:?}, which lives");
        require(!may_live(before.claimant), "RELIEF", text)
    }

    /// Recoverers that were taken over before they were silent for long.
    #[must_use]
    pub const fn relieved(&self) -> u64 {
        self.relieved
    }
}

/// Whoever took over looked at its clock before it wrote this heartbeat.
fn is_free(before: &RecoveryMark, after: &RecoveryMark) -> bool {
    before.is_blocked || after.heartbeat_ms.since(before.heartbeat_ms) >= RECOVERY_SILENCE_MS
}

#[cfg(test)]
mod tests {
    use super::super::facts::tests::ensemble;
    use super::super::proof::tests::record;
    use super::*;
    use holdfast_types::{LogOffset, Millis};

    fn recovered_by(claimant: u128, heartbeat_ms: u64, is_blocked: bool) -> LogRecord {
        let mark = RecoveryMark {
            claimant: SessionId::from_bits(claimant),
            claimant_node: None,
            heartbeat_ms: Millis::new(heartbeat_ms),
            done_below: LogOffset::ZERO,
            is_blocked,
        };
        LogRecord { recovery: Some(mark), ..record(ensemble(&[1]), true, None) }
    }

    #[test]
    fn a_takeover_of_a_live_recoverer_is_noticed() {
        let mut checker = ReliefChecker::default();
        let (mine, theirs) = (recovered_by(1, 5, false), recovered_by(2, 9, false));
        assert_eq!(checker.on_record(Some(&mine), &theirs, |_| true).unwrap_err().invariant, "RELIEF");
        checker.on_record(Some(&mine), &theirs, |_| false).unwrap();
        assert_eq!(checker.relieved(), 2);
        let silent = recovered_by(2, 5 + RECOVERY_SILENCE_MS, false);
        checker.on_record(Some(&mine), &silent, |_| true).unwrap();
        checker.on_record(Some(&recovered_by(1, 5, true)), &theirs, |_| true).unwrap();
        checker.on_record(Some(&mine), &mine, |_| true).unwrap();
        checker.on_record(None, &mine, |_| true).unwrap();
        assert_eq!(checker.relieved(), 2);
    }
}
