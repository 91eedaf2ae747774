//! INV-LOG-2 no follower accepts an append at or below its seal: behind a session's seal its journal gets neither a frame
//! nor an adoption.

use std::collections::BTreeSet;

use holdfast_core::follower::LogEntry;
use holdfast_core::log_record::MemberId;
use holdfast_types::SessionId;

use crate::violation::{Violation, require};

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct SealChecker {
    sealed: BTreeSet<(MemberId, SessionId)>,
}

impl SealChecker {
    /// A disk has an entry for certain. Entries of a session come in order.
    ///
    /// # Errors
    /// INV-LOG-2.
    pub fn on_fsynced(
        &mut self,
        member: &MemberId,
        session: SessionId,
        entry: &LogEntry,
    ) -> Result<(), Violation> {
        let disk = (member.clone(), session);
        match entry {
            LogEntry::Seal => {
                self.sealed.insert(disk);
                Ok(())
            }
            LogEntry::Frames { .. } | LogEntry::Adopt { .. } => {
                let text = format_args!("{member:?} wrote {entry:?} of {session} behind its seal");
                require(!self.sealed.contains(&disk), "INV-LOG-2", text)
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::tests::{ME, member};
    use super::*;
    use holdfast_types::LogOffset;

    #[test]
    fn an_append_behind_a_seal_is_noticed() {
        let mut checker = SealChecker::default();
        let frames = LogEntry::Frames { first: LogOffset::new(1), last: LogOffset::new(1) };
        checker.on_fsynced(&member(1), ME, &frames).unwrap();
        checker.on_fsynced(&member(1), ME, &LogEntry::Seal).unwrap();
        checker.on_fsynced(&member(2), ME, &frames).unwrap();
        assert_eq!(checker.on_fsynced(&member(1), ME, &frames).unwrap_err().invariant, "INV-LOG-2");
    }
}
