//! INV-REC-1 no claim from a session whose log record is open, recovering or not there; INV-REC-2 `sealed` means that
//! every acknowledged frame is in its cell's prefix; INV-REC-3 no code path declares loss.

use holdfast_core::log_record::{LogRecord, LogState};
use holdfast_core::ownership::{OwnerState, OwnerView};
use holdfast_types::{Epoch, SessionId};

use super::facts::LogFacts;
use crate::bucket::Cell;
use crate::violation::{Violation, require};

/// INV-REC-1.
#[derive(Clone, Debug, Default)]
pub struct ClaimChecker;

impl ClaimChecker {
    /// The store replaced an owner record; `log` is the log record of the owner before.
    ///
    /// # Errors
    /// INV-REC-1.
    pub fn on_written(
        &self,
        before: Option<&OwnerView>,
        after: &OwnerView,
        log: Option<&LogRecord>,
    ) -> Result<(), Violation> {
        let Some(before) = before else { return Ok(()) };
        let takes_over = before.state == OwnerState::Owned && before.session != after.session;
        let is_sealed = log.is_some_and(|log| log.state == LogState::Sealed);
        let text = format_args!("{after:?} was claimed from {before:?}, whose log is {log:?}");
        require(!takes_over || is_sealed, "INV-REC-1", text)
    }
}

/// INV-REC-2.
#[derive(Clone, Debug, Default)]
pub struct CoverageChecker {
    sealed: u64,
}

impl CoverageChecker {
    /// The store replaced a log record.
    ///
    /// # Errors
    /// INV-REC-2.
    pub fn on_record(&mut self, facts: &mut LogFacts, record: &LogRecord) -> Result<(), Violation> {
        if record.state != LogState::Sealed || record.loss_declared {
            return Ok(());
        }
        self.sealed += 1;
        let below = facts.proved_below(record.session);
        let lacking = facts.first_unstored(record.session, below);
        let text = format_args!("{} is sealed, the bucket lacks {lacking:?}", record.session);
        require(lacking.is_none(), "INV-REC-2", text)
    }

    /// A discarded cell is called settled: its session may activate it again without a recovery.
    ///
    /// # Errors
    /// INV-REC-2: the bucket lacks frames of it.
    pub fn on_settled(
        &self,
        facts: &LogFacts,
        session: SessionId,
        cell: Cell,
        epoch: Epoch,
    ) -> Result<(), Violation> {
        let lacking = facts.first_unstored_of(session, cell, epoch);
        let text = format_args!("{session}: {cell:?} is settled, the bucket lacks {lacking:?}");
        require(lacking.is_none(), "INV-REC-2", text)
    }

    /// Logs sealed so far.
    #[must_use]
    pub const fn sealed(&self) -> u64 {
        self.sealed
    }
}

/// INV-REC-3.
#[derive(Clone, Debug, Default)]
pub struct LossChecker;

impl LossChecker {
    /// The store replaced a log record; `is_declared` says whether a person declared the session's loss.
    ///
    /// # Errors
    /// INV-REC-3.
    pub fn on_record(&self, record: &LogRecord, is_declared: bool) -> Result<(), Violation> {
        let text = format_args!("{}: nobody declared the loss that {record:?} tells of", record.session);
        require(!record.loss_declared || is_declared, "INV-REC-3", text)
    }

    /// A program's call wrote a loss record.
    ///
    /// # Errors
    /// Always: INV-REC-3.
    pub fn on_written(&self, session: SessionId) -> Result<(), Violation> {
        Err(Violation::new("INV-REC-3", format_args!("a program declared the loss of {session}")))
    }
}

/// Sealed is final: not even who comes back with what was lost changes the record.
///
/// # Errors
/// INV-REC-2.
pub fn must_be_final(before: Option<&LogRecord>, after: &LogRecord) -> Result<(), Violation> {
    let is_sealed = before.is_some_and(|before| before.state == LogState::Sealed);
    require(!is_sealed, "INV-REC-2", format_args!("{before:?} was sealed and became {after:?}"))
}

#[cfg(test)]
mod tests {
    use super::super::facts::tests::{ME, ensemble, log, store};
    use super::super::proof::tests::record;
    use super::*;
    use holdfast_types::{LogOffset, NodeName, WriteId};

    fn owner(session: u128) -> OwnerView {
        OwnerView {
            node: NodeName::parse("n").unwrap(),
            session: SessionId::from_bits(session),
            epoch: Epoch::new(1),
            state: OwnerState::Owned,
            floor: Epoch::ZERO,
            write_id: WriteId::from_bits(session),
        }
    }

    #[test]
    fn a_claim_from_a_session_whose_log_is_not_sealed_is_noticed() {
        let (mine, theirs) = (owner(1), owner(2));
        let open = record(ensemble(&[1]), true, None);
        let sealed = LogRecord { state: LogState::Sealed, ..open.clone() };
        ClaimChecker.on_written(Some(&mine), &theirs, Some(&sealed)).unwrap();
        ClaimChecker.on_written(Some(&mine), &mine, None).unwrap();
        let released = OwnerView { state: OwnerState::Released, ..mine.clone() };
        ClaimChecker.on_written(Some(&released), &theirs, None).unwrap();
        for log in [None, Some(&open), Some(&LogRecord { state: LogState::Recovering, ..open.clone() })] {
            let claimed = ClaimChecker.on_written(Some(&mine), &theirs, log);
            assert_eq!(claimed.unwrap_err().invariant, "INV-REC-1");
        }
    }

    #[test]
    fn a_seal_over_uncovered_frames_is_noticed() {
        let mut facts = log(1);
        let sealed = LogRecord { state: LogState::Sealed, ..record(ensemble(&[1]), true, None) };
        let mut checker = CoverageChecker::default();
        checker.on_record(&mut facts, &sealed).unwrap();
        facts.on_proved(ME, LogOffset::new(2));
        assert_eq!(checker.on_record(&mut facts, &sealed).unwrap_err().invariant, "INV-REC-2");
        assert!(checker.on_settled(&facts, ME, Cell(0), Epoch::new(1)).is_err());
        store(&mut facts, 1);
        checker.on_record(&mut facts, &sealed).unwrap();
        checker.on_settled(&facts, ME, Cell(0), Epoch::new(1)).unwrap();
    }

    #[test]
    fn a_loss_that_nobody_declared_is_noticed() {
        let lost = LogRecord { loss_declared: true, ..record(ensemble(&[1]), true, None) };
        LossChecker.on_record(&lost, true).unwrap();
        assert_eq!(LossChecker.on_record(&lost, false).unwrap_err().invariant, "INV-REC-3");
        assert_eq!(LossChecker.on_written(ME).unwrap_err().invariant, "INV-REC-3");
    }

    #[test]
    fn a_sealed_record_that_changes_is_noticed() {
        let open = record(ensemble(&[1]), true, None);
        let sealed = LogRecord { state: LogState::Sealed, ..open.clone() };
        must_be_final(None, &open).unwrap();
        must_be_final(Some(&open), &sealed).unwrap();
        assert!(must_be_final(Some(&sealed), &sealed).is_err());
    }
}
