//! INV-LOG-1 what an ensemble proved is fsynced on every member of the ensemble that a recovery would ask, or in the
//! bucket: when it is proved, and whenever the record changes afterwards.

use holdfast_core::log_record::{LogRecord, LogState};
use holdfast_types::{LogOffset, SessionId};

use super::facts::LogFacts;
use crate::violation::{Violation, require};

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct ProofChecker;

impl ProofChecker {
    /// A session takes its frames below for durable. `record` is its log record as the bucket has it.
    ///
    /// # Errors
    /// INV-LOG-1.
    pub fn on_proved(
        &self,
        facts: &mut LogFacts,
        session: SessionId,
        below: LogOffset,
        record: Option<&LogRecord>,
    ) -> Result<(), Violation> {
        require_safe(facts, session, below, record)?;
        facts.on_proved(session, below);
        Ok(())
    }

    /// The store replaced a session's log record.
    ///
    /// # Errors
    /// INV-LOG-1: a recovery would now ask followers that lack what was proved.
    pub fn on_record(&self, facts: &mut LogFacts, record: &LogRecord) -> Result<(), Violation> {
        let below = facts.proved_below(record.session);
        require_safe(facts, record.session, below, Some(record))
    }
}

fn require_safe(
    facts: &mut LogFacts,
    session: SessionId,
    below: LogOffset,
    record: Option<&LogRecord>,
) -> Result<(), Violation> {
    if record.is_some_and(|record| record.loss_declared) {
        return Ok(());
    }
    let unsealed = record.filter(|record| record.state != LogState::Sealed);
    let witnesses = unsealed.and_then(LogRecord::witnesses);
    let found = facts.first_unsafe(session, below, witnesses);
    let text = format_args!("{session}: proved below {below}, but {found:?} is not safe under {record:?}");
    require(found.is_none(), "INV-LOG-1", text)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::facts::tests::{ME, ensemble, fsync, log, store};
    use super::*;
    use holdfast_core::log_record::Ensemble;
    use holdfast_types::{NodeName, WriteId};

    pub(crate) fn record(ensemble: Ensemble, active: bool, prior: Option<Ensemble>) -> LogRecord {
        LogRecord {
            write_id: WriteId::from_bits(1),
            node: NodeName::parse("n").unwrap(),
            session: ME,
            state: LogState::Open,
            ensemble,
            active,
            prior,
            recovery: None,
            loss_declared: false,
            bundles_from: None,
        }
    }

    fn below(offset: u64) -> LogOffset {
        LogOffset::new(offset)
    }

    #[test]
    fn a_proof_that_one_member_has_not_fsynced_is_noticed() {
        let mut facts = log(1);
        let record = record(ensemble(&[1, 2]), true, None);
        fsync(&mut facts, 1, 1);
        assert!(ProofChecker.on_proved(&mut facts, ME, below(2), Some(&record)).is_err());
        assert!(ProofChecker.on_proved(&mut facts, ME, below(2), None).is_err());
        fsync(&mut facts, 2, 1);
        ProofChecker.on_proved(&mut facts, ME, below(2), Some(&record)).unwrap();
        store(&mut facts, 1);
        ProofChecker.on_proved(&mut facts, ME, below(2), None).unwrap();
    }

    #[test]
    fn a_record_that_forgets_who_has_what_was_proved_is_noticed() {
        let mut facts = log(1);
        fsync(&mut facts, 1, 1);
        let one = record(ensemble(&[1]), true, None);
        ProofChecker.on_proved(&mut facts, ME, below(2), Some(&one)).unwrap();
        let kept = record(ensemble(&[2]), false, Some(ensemble(&[1])));
        ProofChecker.on_record(&mut facts, &kept).unwrap();
        let forgotten = record(ensemble(&[2]), false, None);
        assert_eq!(ProofChecker.on_record(&mut facts, &forgotten).unwrap_err().invariant, "INV-LOG-1");
        let too_soon = record(ensemble(&[2]), true, None);
        assert!(ProofChecker.on_record(&mut facts, &too_soon).is_err());
    }
}
