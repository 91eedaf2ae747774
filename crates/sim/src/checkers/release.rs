//! INV-LOG-3 a released frame is covered in the bucket: what an owner tells its followers to drop, and what a follower
//! drops of what was proved.

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
        let lacking = facts.first_unstored(session, start);
        let text = format_args!("{session}: released below {start}, the bucket lacks {lacking:?}");
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
        let proved = facts.proved_below(session);
        self.on_released(facts, session, start.min(proved))
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::tests::{ME, log, store};
    use super::*;

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
    }
}
