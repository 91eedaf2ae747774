//! INV-FENCE-1 after its expiry a session starts no event and releases no output. The checker keeps its own account of
//! each session's authority: once ended it never comes back, whatever the session believes. Also that a session stops
//! only for a true cause, and does nothing afterwards.

use std::collections::BTreeMap;

use holdfast_core::lease::FenceCause;
use holdfast_types::{Millis, SessionId};

use crate::violation::{Violation, require};

#[derive(Clone, Copy, Debug)]
struct Account {
    until: Millis,
    has_stopped: bool,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct FenceChecker {
    sessions: BTreeMap<SessionId, Account>,
    fences: u64,
}

impl FenceChecker {
    /// A session's lease was confirmed until `until`; times are of its monotonic clock.
    ///
    /// # Errors
    /// INV-FENCE-1: authority that had ended came back.
    pub fn on_authority(&mut self, session: SessionId, now: Millis, until: Millis) -> Result<(), Violation> {
        let account = self.sessions.entry(session).or_insert(Account { until, has_stopped: false });
        let text = format_args!("{session}: authority until {} was renewed at {now}", account.until);
        require(now < account.until && !account.has_stopped, "INV-FENCE-1", text)?;
        account.until = until;
        Ok(())
    }

    /// Whether a session may act.
    #[must_use]
    pub fn has_authority(&self, session: SessionId, now: Millis) -> bool {
        self.sessions.get(&session).is_some_and(|account| now < account.until && !account.has_stopped)
    }

    /// A session starts an event or lets an output leave.
    ///
    /// # Errors
    /// INV-FENCE-1.
    pub fn on_act(&self, session: SessionId, now: Millis, what: &str) -> Result<(), Violation> {
        let text = format_args!("{session}: {what} at {now} without authority");
        require(self.has_authority(session, now), "INV-FENCE-1", text)
    }

    /// A session calls the store.
    ///
    /// # Errors
    /// INV-FENCE-1: it had stopped.
    pub fn on_call(&self, session: SessionId) -> Result<(), Violation> {
        let stopped = self.sessions.get(&session).is_some_and(|account| account.has_stopped);
        require(!stopped, "INV-FENCE-1", format_args!("{session}: called the store after it had stopped"))
    }

    /// A session stopped by itself. `record` is whose session the lease record names now,
    /// `is_log_taken` whether another wrote the session's log record; `may_expire` says whether the
    /// scenario gives any reason to miss a renewal.
    ///
    /// # Errors
    /// A fence without a true cause.
    pub fn on_fence(
        &mut self,
        session: SessionId,
        cause: FenceCause,
        now: Millis,
        (record, is_log_taken): (Option<SessionId>, bool),
        may_expire: bool,
    ) -> Result<(), Violation> {
        self.fences += 1;
        let until = self.sessions.get(&session).map_or(Millis::ZERO, |account| account.until);
        let is_true = match cause {
            FenceCause::Expired => now >= until && may_expire,
            // What was missing when it was read may since be another's, whose name was free.
            FenceCause::RecordMissing | FenceCause::RecordMismatch => record != Some(session),
            FenceCause::LogTaken => is_log_taken,
        };
        let text = format_args!(
            "{session}: fenced for {cause:?} at {now}, authority until {until}, record {record:?}"
        );
        self.on_stop(session);
        require(is_true, "FENCE-CAUSE", text)
    }

    /// A session's process ended.
    pub fn on_stop(&mut self, session: SessionId) {
        self.sessions
            .entry(session)
            .or_insert(Account { until: Millis::ZERO, has_stopped: true })
            .has_stopped = true;
    }

    /// Sessions that stopped by themselves.
    #[must_use]
    pub const fn fences(&self) -> u64 {
        self.fences
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: SessionId = SessionId::from_bits(1);

    fn held() -> FenceChecker {
        let mut checker = FenceChecker::default();
        checker.on_authority(ME, Millis::new(0), Millis::new(10)).unwrap();
        checker
    }

    #[test]
    fn an_act_after_expiry_is_noticed() {
        held().on_act(ME, Millis::new(9), "output").unwrap();
        assert_eq!(held().on_act(ME, Millis::new(10), "output").unwrap_err().invariant, "INV-FENCE-1");
    }

    #[test]
    fn authority_that_comes_back_is_noticed() {
        assert!(held().on_authority(ME, Millis::new(10), Millis::new(20)).is_err());
    }

    #[test]
    fn a_call_after_the_end_is_noticed() {
        let mut checker = held();
        checker.on_call(ME).unwrap();
        checker.on_stop(ME);
        assert!(checker.on_call(ME).is_err());
    }

    #[test]
    fn a_fence_without_a_true_cause_is_noticed() {
        let at = Millis::new(5);
        let late = Millis::new(10);
        let mine = Some(ME);
        assert!(held().on_fence(ME, FenceCause::Expired, at, (mine, false), true).is_err());
        assert!(held().on_fence(ME, FenceCause::Expired, late, (mine, false), false).is_err());
        assert!(held().on_fence(ME, FenceCause::RecordMismatch, at, (mine, false), true).is_err());
        assert!(held().on_fence(ME, FenceCause::RecordMissing, at, (mine, false), true).is_err());
        held().on_fence(ME, FenceCause::Expired, late, (mine, false), true).unwrap();
        held().on_fence(ME, FenceCause::RecordMismatch, at, (None, false), true).unwrap();
        let another = Some(SessionId::from_bits(2));
        held().on_fence(ME, FenceCause::RecordMissing, at, (another, false), true).unwrap();
        assert!(held().on_fence(ME, FenceCause::LogTaken, at, (mine, false), true).is_err());
        held().on_fence(ME, FenceCause::LogTaken, at, (mine, true), true).unwrap();
    }
}
