//! Advisory leases: they share out background work and keep no promise, so a holder that is late or two holders at once
//! cost nothing but work done twice.

use holdfast_types::{Millis, SessionId};

/// A lease as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdvisoryLease {
    /// Who holds it.
    pub session: SessionId,
    /// When it ends, wall clock.
    pub expires_ms: Millis,
}

/// Whether a session should write the lease anew: nobody holds it, it ended, or it is the session's own.
#[must_use]
pub fn may_take(found: Option<AdvisoryLease>, me: SessionId, wall_now: Millis) -> bool {
    found.is_none_or(|lease| lease.session == me || lease.expires_ms <= wall_now)
}

/// What whoever waits for its turn at something does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Writes the lease, and begins when the write is applied.
    Take,
    /// Another is at it: looks again soon.
    Wait,
    /// Has waited long enough, and begins without the lease.
    GoWithout,
}

/// Whose turn it is, for a session that has waited so long and waits at most so long. A lease whose holder died ends by
/// itself; one that claims to last for ever costs its patience and no more.
#[must_use]
pub fn turn(
    found: Option<AdvisoryLease>,
    me: SessionId,
    wall_now: Millis,
    (waited_ms, patience_ms): (u64, u64),
) -> Turn {
    if waited_ms >= patience_ms {
        Turn::GoWithout
    } else if may_take(found, me, wall_now) {
        Turn::Take
    } else {
        Turn::Wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_comes_when_the_other_is_done_or_patience_is_over() {
        let me = SessionId::from_bits(1);
        let now = Millis::new(1_000);
        let other = |expires| {
            Some(AdvisoryLease { session: SessionId::from_bits(2), expires_ms: Millis::new(expires) })
        };
        assert_eq!(turn(None, me, now, (0, 500)), Turn::Take);
        assert_eq!(turn(other(2_000), me, now, (0, 500)), Turn::Wait);
        // Its holder died, or gave it up.
        assert_eq!(turn(other(1_000), me, now, (499, 500)), Turn::Take);
        assert_eq!(turn(other(0), me, now, (499, 500)), Turn::Take);
        assert_eq!(turn(other(u64::MAX), me, now, (499, 500)), Turn::Wait);
        assert_eq!(turn(other(u64::MAX), me, now, (500, 500)), Turn::GoWithout);
        assert_eq!(turn(None, me, now, (0, 0)), Turn::GoWithout);
    }

    #[test]
    fn a_lease_is_taken_when_it_ends_and_renewed_before() {
        let me = SessionId::from_bits(1);
        let held = |session, expires| {
            Some(AdvisoryLease { session: SessionId::from_bits(session), expires_ms: Millis::new(expires) })
        };
        let now = Millis::new(100);
        assert!(may_take(None, me, now));
        assert!(may_take(held(1, 200), me, now));
        assert!(may_take(held(2, 100), me, now));
        assert!(!may_take(held(2, 101), me, now));
    }
}
