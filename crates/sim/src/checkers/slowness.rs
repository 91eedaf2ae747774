//! Slow members (design 5.2): who is given up for slowness was slow; not while all are, unless that has lasted for so long that
//! it is not the owner; and who was given up is left alone for 300 s.

use std::collections::BTreeMap;

use holdfast_core::log_record::MemberId;
use holdfast_types::SessionId;

use crate::violation::{Violation, require};

/// How long an owner may go on to see slowness that has ended: the samples that it looks at, what still waits, and the time
/// for another ensemble to become active.
const ECHO_MS: u64 = 5_000;
/// How long it may take an owner to see slowness: its window, and a frame.
const NOTICE_MS: u64 = 3_300;
/// How long all must be slow before one is replaced.
const SUSPICION_MS: u64 = 10_000;
/// How long a write of the record may be on its way that names a member which was well when it began.
const WRITE_MS: u64 = 1_000;
/// How long a slow member is left alone.
const PAUSE_MS: u64 = 300_000;

/// How a disk does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// When the time began in which it was slow but for moments.
    pub begun_ms: u64,
    /// Since when it is, or was, slow without a break.
    pub since_ms: u64,
    /// Until when; 0: it never was.
    pub until_ms: u64,
}

impl Pace {
    fn may_look_slow(self, now: u64) -> bool {
        self.until_ms > 0 && now <= self.until_ms + ECHO_MS
    }

    /// For how long it may have been seen to be slow; none where that cannot be seen yet, or has ended.
    fn slow_for_ms(self, now: u64) -> Option<u64> {
        let is_slow = now <= self.until_ms && now >= self.since_ms + NOTICE_MS;
        is_slow.then(|| now - self.begun_ms)
    }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct SlownessChecker {
    given_up: BTreeMap<(SessionId, MemberId), u64>,
    replaced: u64,
}

impl SlownessChecker {
    /// A session gives a member up for slowness; `siblings` are the disks of its other members.
    ///
    /// # Errors
    /// The member was well, or all were slow, and not for long.
    pub fn on_given_up(
        &mut self,
        session: SessionId,
        (member, pace): (&MemberId, Pace),
        siblings: &[Pace],
        now: u64,
    ) -> Result<(), Violation> {
        self.given_up.insert((session, member.clone()), now);
        let text = format_args!("{member:?} was given up at {now} and is well: {pace:?}");
        require(pace.may_look_slow(now), "SLOWNESS", text)?;
        let slow_for_ms: Option<Vec<u64>> = siblings.iter().map(|sibling| sibling.slow_for_ms(now)).collect();
        // Where one has been replaced, its substitute, slow by now, is among them: the other was there all the time.
        let Some(slow_for_ms) = slow_for_ms.and_then(|all| all.into_iter().max()) else { return Ok(()) };
        self.replaced += 1;
        let text = format_args!("{member:?} was given up at {now}, and nobody does better: {siblings:?}");
        require(slow_for_ms >= SUSPICION_MS, "SLOWNESS", text)
    }

    /// An ensemble of a session became active.
    ///
    /// # Errors
    /// It has a member that was slow.
    pub fn on_active(&self, session: SessionId, members: &[MemberId], now: u64) -> Result<(), Violation> {
        let given_up = |member: &&MemberId| {
            let at = self.given_up.get(&(session, (*member).clone()));
            // Both clocks drift.
            at.is_some_and(|at| now - at > WRITE_MS && now - at < PAUSE_MS / 100 * 99)
        };
        let found = members.iter().find(given_up);
        require(found.is_none(), "SLOWNESS", format_args!("{found:?} was slow and is a member at {now}"))
    }

    /// Members given up for slowness so far, and those of them whose siblings were slow for long, too.
    #[must_use]
    pub fn given_up(&self) -> (u64, u64) {
        (self.given_up.len() as u64, self.replaced)
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::tests::{ME, member};
    use super::*;

    const WELL: Pace = Pace { begun_ms: 0, since_ms: 0, until_ms: 0 };

    fn slow(since_ms: u64) -> Pace {
        Pace { begun_ms: since_ms, since_ms, until_ms: 60_000 }
    }

    #[test]
    fn a_member_that_is_given_up_though_it_is_well_or_all_are_slow_is_noticed() {
        let given_up = |pace, siblings: &[Pace], now| {
            SlownessChecker::default().on_given_up(ME, (&member(1), pace), siblings, now).is_ok()
        };
        assert!(given_up(slow(20_000), &[WELL], 22_000));
        assert!(!given_up(WELL, &[WELL], 22_000));
        assert!(given_up(Pace { until_ms: 20_000, ..slow(19_000) }, &[WELL], 24_000), "an echo");
        assert!(!given_up(slow(20_000), &[slow(20_000)], 25_000), "all at once");
        assert!(given_up(slow(20_000), &[slow(20_000)], 31_000), "for long");
        assert!(given_up(slow(20_000), &[slow(24_000)], 25_000), "nobody can know that yet");
        let again = Pace { begun_ms: 9_000, ..slow(20_000) };
        assert!(given_up(slow(20_000), &[again], 24_000), "as good as all the time");
        assert!(given_up(slow(20_000), &[slow(20_000), WELL], 25_000));
    }

    #[test]
    fn a_slow_member_that_is_taken_again_is_noticed() {
        let mut checker = SlownessChecker::default();
        checker.on_given_up(ME, (&member(1), slow(20_000)), &[WELL], 22_000).unwrap();
        checker.on_active(ME, &[member(2)], 23_000).unwrap();
        assert!(checker.on_active(ME, &[member(2), member(1)], 200_000).is_err());
        checker.on_active(ME, &[member(1)], 322_000).unwrap();
        checker.on_active(SessionId::from_bits(9), &[member(1)], 23_000).unwrap();
        assert_eq!(checker.given_up(), (1, 0));
    }
}
