//! INV-LOG-3 a released frame is stored in the bucket, in its cell's prefix or in a bundle that a recovery reads: what an
//! owner tells its followers to drop, what a follower drops of what was proved, and ever after: when a bundle is deleted,
//! and when the record excludes it.

use holdfast_core::log_record::{LogRecord, LogState};
use holdfast_types::{LogOffset, SessionId};

use super::facts::LogFacts;
use crate::violation::{Violation, require};

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct ReleaseChecker;

impl ReleaseChecker {
    /// A session tells its followers to drop its frames below `start`.
    ///
    /// # Errors
    /// INV-LOG-3.
    pub fn on_released(
        &self,
        facts: &mut LogFacts,
        session: SessionId,
        start: LogOffset,
    ) -> Result<(), Violation> {
        facts.bundles.on_released(session, start);
        let lacking = facts.first_unreadable(session, start);
        let text = format_args!("{session}: released below {start}, the bucket lacks {lacking:?}");
        require(lacking.is_none(), "INV-LOG-3", text)
    }

    /// A session's log record is this one now, and its bundles are what they are.
    ///
    /// # Errors
    /// INV-LOG-3: a recovery does not find any more what followers have dropped.
    pub fn on_record(&self, facts: &mut LogFacts, record: &LogRecord) -> Result<(), Violation> {
        if record.state == LogState::Sealed {
            return Ok(()); // INV-REC-2 asks for more
        }
        let lacking = facts.first_unreadable(record.session, facts.bundles.released_below(record.session));
        let text = format_args!("{}: was released, and no recovery finds {lacking:?}", record.session);
        require(lacking.is_none(), "INV-LOG-3", text)
    }

    /// A follower drops a session's frames below `start`.
    ///
    /// # Errors
    /// INV-LOG-3.
    pub fn on_dropped(
        &self,
        facts: &mut LogFacts,
        session: SessionId,
        start: LogOffset,
    ) -> Result<(), Violation> {
        if facts.is_lost(session) {
            return Ok(()); // it came back, and learnt that nobody will ask for them
        }
        let proved = facts.proved_below(session);
        self.on_released(facts, session, start.min(proved))
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::tests::{ME, ensemble, log, store};
    use super::super::proof::tests::record;
    use super::*;
    use crate::bucket::Cell;
    use holdfast_types::{Epoch, Txid};

    fn bundle(facts: &mut LogFacts, first: u64, below: u64) {
        let frames = (first..below).map(|at| (Cell(0), Epoch::new(1), Txid::new(at))).collect();
        facts.bundles.on_stored(ME, LogOffset::new(first), (LogOffset::new(below), frames));
    }

    #[test]
    fn a_bundle_counts_as_long_as_a_recovery_reads_it() {
        let from = |from: u64| LogRecord {
            bundles_from: Some(LogOffset::new(from)),
            ..record(ensemble(&[1]), true, None)
        };
        let mut facts = log(4);
        let released = |facts: &mut LogFacts, below| {
            ReleaseChecker.on_released(&mut facts.clone(), ME, LogOffset::new(below)).is_ok()
        };
        bundle(&mut facts, 1, 3);
        assert!(!released(&mut facts, 2), "the record does not speak of bundles");
        facts.bundles.on_record(&from(1));
        assert!(released(&mut facts, 3) && !released(&mut facts, 4));
        bundle(&mut facts, 3, 5);
        ReleaseChecker.on_released(&mut facts, ME, LogOffset::new(5)).unwrap();
        let mut excluded = facts.clone();
        excluded.bundles.on_record(&from(3));
        assert!(ReleaseChecker.on_record(&mut excluded, &from(3)).is_err(), "1 and 2 are in no prefix");
        store(&mut facts, 1);
        store(&mut facts, 2);
        let mut broken = facts.clone();
        broken.bundles.on_deleted(ME, LogOffset::new(1));
        assert!(ReleaseChecker.on_record(&mut broken, &from(1)).is_err(), "nobody finds the second one");
        facts.bundles.on_record(&from(3));
        facts.bundles.on_deleted(ME, LogOffset::new(1));
        ReleaseChecker.on_record(&mut facts, &from(3)).unwrap();
    }

    #[test]
    fn a_release_of_what_the_bucket_lacks_is_noticed() {
        let mut facts = log(2);
        store(&mut facts, 1);
        let at = LogOffset::new;
        ReleaseChecker.on_released(&mut facts, ME, at(2)).unwrap();
        assert_eq!(ReleaseChecker.on_released(&mut facts, ME, at(3)).unwrap_err().invariant, "INV-LOG-3");
        ReleaseChecker.on_dropped(&mut facts, ME, at(3)).unwrap();
        facts.on_proved(ME, at(3));
        assert!(ReleaseChecker.on_dropped(&mut facts, ME, at(3)).is_err());
        facts.on_lost(ME);
        ReleaseChecker.on_dropped(&mut facts, ME, at(3)).unwrap();
    }
}
